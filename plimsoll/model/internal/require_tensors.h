// Checks that given tensors are not empty and not disposed.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {

// Throws as refuse_disposed does, with the name of the argument: "x", or "x[1]" for one of several.
inline void require_tensors(const std::vector<Tensor>& tensors, const char* where, const char* name) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].is_empty_handle() || tensors[i].is_disposed())
      refuse_disposed(tensors[i], where, tensors.size() == 1 ? name : fmt::format("{}[{}]", name, i));
}

}  // namespace plimsoll::internal
