#include "plimsoll/model/layers/recurrent_states.h"

#include <new>

#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_layer.h"

namespace plimsoll::internal {
namespace {

template <class F>
void visit_recurrent(Network& network, F&& f) {
  network.visit_layers([&](LayerBase& layer) {
    if (auto* recurrent = dynamic_cast<RecurrentLayer*>(&layer)) f(*recurrent);
  });
}

}  // namespace

// A step that has succeeded must not fail for lack of a list of layers; the next one keeps them.
void keep_new_states(Network& network) noexcept {
  try {
    visit_recurrent(network, [](RecurrentLayer& layer) { layer.keep_new_states(); });
  } catch (const std::bad_alloc&) {
  }
}

void forget_new_states(Network& network) {
  visit_recurrent(network, [](RecurrentLayer& layer) { layer.forget_new_states(); });
}

}  // namespace plimsoll::internal
