// States that stateful layers get at their first step: kept when it succeeds, removed when it fails.
#pragma once

namespace plimsoll::internal {

class Network;

void keep_new_states(Network& network) noexcept;
void forget_new_states(Network& network);

}  // namespace plimsoll::internal
