// The device of a node: that of its operands, or the one that a PlacementScope requests.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/base/names.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/device_name.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

thread_local const PlacementScope* innermost = nullptr;

}  // namespace

PlacementScope::PlacementScope(std::string_view device, Placement placement)
    : name_(intern(parse_device_name(device).text())), placement_(placement), outer_(innermost) {
  for (const auto& known : Runtime::instance().devices())
    if (known->name() == name_) device_ = known.get();
  if (device_) inside_.emplace(name_);
  innermost = this;
}
PlacementScope::PlacementScope() noexcept : outer_(innermost) { innermost = this; }
PlacementScope::~PlacementScope() { innermost = outer_; }
const PlacementScope* PlacementScope::current() noexcept {
  return innermost && *innermost->name_ ? innermost : nullptr;
}

// For a program's own graphs and traces: copies keep their devices.
const PlacementScope* GraphState::asked() const noexcept {
  return role_ == Role::kGraph || role_ == Role::kTrace ? PlacementScope::current() : nullptr;
}

void GraphState::note_placement(Node& node) const {
  const PlacementScope* const asked_for = asked();
  if (!asked_for || asked_for->device()) return;
  if (asked_for->is_soft()) {
    node.wanted = asked_for->name();
    return;
  }
  std::string devices;
  for (const auto& device : Runtime::instance().devices())
    devices += fmt::format("{}{}", devices.empty() ? "" : ", ", device->name());
  throw NotFound(
      fmt::format("placement: node \"{}\" ({}) is to be on {}, which does not exist; there is {}; choose one of them, "
                  "or ask softly",
                  node.name.empty() ? kind_name(node) : node.name, kind_name(node), asked_for->name(), devices));
}

void GraphState::place(const Op& op, std::span<const Tensor* const> inputs, std::vector<Tensor>& placed) {
  const PlacementScope* const asked_for = asked();
  if (!asked_for || !asked_for->device()) return;
  Undo undo(*this);
  require_open(op.name());
  bool moves = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor here = tensor(resolve(*inputs[i], op.name(), op.input_name(i)));
    moves |= &device_of(here) != asked_for->device();
    placed.push_back(here.to(asked_for->name()));
  }
  if (!moves) placed.clear();
  undo.keep();
}

}  // namespace plimsoll
