// What the files of collections share: values that hold several tensors.
#pragma once

#include <functional>

#include "exchange.h"

namespace binding {

// Calls f with every tensor of a sparse, ragged or other collection; false for what is none.
bool visit_collection(nb::handle value, const std::function<void(const pl::Tensor&)>& f);

void bind_sparse(Module& m);

}  // namespace binding
