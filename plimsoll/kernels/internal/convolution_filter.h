// filter_gradient: the gradient of a convolution's filter, a sum over all pixels of all images.
//
// The pixels are split into pieces, each summed in blocks that fit the first cache; pieces after the first keep their
// sums in scratch and are added in order at the end. When a large filter leaves few pieces, its rows are split too.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/kernels/internal/convolution_sweep.h"

namespace plimsoll::internal {

std::size_t filter_gradient_scratch_bytes(const ConvolutionSizes& sizes, const Window& window, DType dtype) noexcept;

void filter_gradient(const ConvolutionSizes& sizes, const Window& window, DType dtype, const std::byte* x,
                     const std::byte* dy, std::byte* dfilter, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
