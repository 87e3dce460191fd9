// What tests of eviction share.
#pragma once

#include "plimsoll/tensor/evict/recipe_book.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

inline bool is_dropped(const Tensor& x) { return x.record()->storage.load()->is_dropped(); }

// As pressure would; false when it may not be.
inline bool drop(const Tensor& x) { return evict::RecipeBook::instance().drop(*x.record()->storage.load()); }

}  // namespace plimsoll
