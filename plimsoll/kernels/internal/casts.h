// cast_loop: the loop that converts dense elements of one dtype to another, with the rules of copy() in elementwise.h.
#pragma once

#include "plimsoll/kernels/internal/loops.h"

namespace plimsoll::internal {

Loop cast_loop(DType from, DType to) noexcept;

}  // namespace plimsoll::internal
