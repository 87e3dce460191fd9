// Describes the ledger's rows in lists and pictures for people.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/tensor/ledger_walk.h"
#include "plimsoll/tensor/live_tensors.h"

namespace plimsoll::internal {

// Call inside a walk.
LiveTensor describe_row(const LedgerRow& row);

// `relu (100,) float32, 400 B, scope "training"`
std::string row_text(const LiveTensor& row);

}  // namespace plimsoll::internal
