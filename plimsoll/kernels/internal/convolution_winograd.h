// 3x3 convolutions of f32 by Winograd's F(2x2, 3x3): 16 products for 4 outputs instead of 36.
//
// Outputs are split into tiles of 2x2, each computed from a patch of 4x4 inputs; tiles of all images form one list,
// processed in blocks that stay in the second cache. Chosen by shape only. Rounding errors are some two to four times
// those of sums of products; infinities and NaN reach all outputs of their tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/kernels/internal/convolution_sweep.h"

namespace plimsoll::internal {

// Whether these shapes are worth it: 3x3 taps side by side, every output, vectors of channels.
bool is_winograd(const ConvolutionSizes& sizes, const Window& window, DType dtype) noexcept;
// The same for the filter's gradient, whose sums must be few.
bool is_winograd_filter(const ConvolutionSizes& sizes, const Window& window, DType dtype) noexcept;

std::size_t winograd_scratch_bytes(const ConvolutionSizes& sizes, bool backward) noexcept;
std::size_t winograd_filter_scratch_bytes(const ConvolutionSizes& sizes) noexcept;

// y from x; or, `backward`, dx from dy.
struct WinogradCall {
  const float *x, *filter, *bias;  // bias may be null.
  float* y;
  Rectifier rectifier;
  bool backward;
};
void winograd(const ConvolutionSizes& sizes, const Window& window, const WinogradCall& call,
              std::span<std::byte> scratch) noexcept;
void winograd_filter_gradient(const ConvolutionSizes& sizes, const Window& window, const float* x, const float* dy,
                              float* dfilter, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
