#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/model.h"

namespace plimsoll {
namespace {

const Network& connected(const Network& network) {
  if (!network.is_connected())
    throw FailedPrecondition(
        fmt::format("model \"{}\" has no shapes yet; give its first layer an input_shape", network.name()));
  return network;
}

Shapes shapes_at(const Network& network, const std::vector<std::size_t>& slots) {
  Shapes result;
  for (const std::size_t slot : slots) {
    const Network::Call& call = network.call_of(slot);
    result.push_back(call.shapes[slot - call.first_output]);
  }
  return result;
}

}  // namespace

Shapes Model::input_shapes() const { return shapes_at(connected(*network_), network_->input_slots()); }
Shapes Model::output_shapes() const { return shapes_at(connected(*network_), network_->output_slots()); }
std::vector<std::string> Model::output_names() const { return connected(*network_).output_names(); }

std::vector<DType> Model::input_dtypes() const {
  std::vector<DType> result;
  for (const std::size_t slot : connected(*network_).input_slots())
    result.push_back(network_->call_of(slot).layer->input_dtype());
  return result;
}

std::vector<std::string> Model::input_names() const {
  std::vector<std::string> result;
  for (const std::size_t slot : connected(*network_).input_slots())
    result.push_back(network_->call_of(slot).layer->name());
  return result;
}

bool Model::is_compiled() const noexcept { return network_->training.is_compiled(); }

bool Model::loss_takes_labels() const {
  if (!is_compiled()) throw FailedPrecondition(fmt::format("model \"{}\" is not compiled; call compile first", name()));
  return network_->training.losses[0].takes_labels();
}

}  // namespace plimsoll
