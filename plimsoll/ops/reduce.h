// Reductions as functions; see Tensor's methods for those over axes.
//
//   sum(x, {1}); mean(x); max(x, {0}, {.keep_dims = true})   // norm.h: norm, moments, variance, standard_deviation
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

inline Tensor sum(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {}) { return x.sum(axes, options); }
inline Tensor mean(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {}) { return x.mean(axes, options); }
inline Tensor prod(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {}) { return x.prod(axes, options); }
inline Tensor max(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {}) { return x.max(axes, options); }
inline Tensor min(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {}) { return x.min(axes, options); }
inline Tensor any(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {}) { return x.any(axes, options); }
inline Tensor all(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {}) { return x.all(axes, options); }

}  // namespace plimsoll
