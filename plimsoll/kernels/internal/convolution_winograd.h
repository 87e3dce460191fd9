// 3x3 convolutions of f32 by Winograd's F(2x2, 3x3): 16 products for 4 outputs where the sum of products takes 36.
//
// Outputs are cut into tiles of 2x2, each made of a patch of 4x4 inputs; tiles of all images are one list, worked on in
// blocks that stay in the second cache. Chosen by shape alone. Rounding errors are some two to four times those of sums
// of products; what is infinite or NaN reaches all outputs of its tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/kernels/internal/convolution_sweep.h"

namespace plimsoll {

// Whether these shapes are worth it: 3x3 taps side by side, every output, vectors of channels.
bool is_winograd(const ConvolutionSizes& sizes, const Window& window, DType dtype) noexcept;
// The same for the filter's gradient, whose sums must be few.
bool is_winograd_filter(const ConvolutionSizes& sizes, const Window& window, DType dtype) noexcept;

std::size_t winograd_scratch_bytes(const ConvolutionSizes& sizes, bool backward) noexcept;
std::size_t winograd_filter_scratch_bytes(const ConvolutionSizes& sizes) noexcept;

// y of x; or, `backward`, dx of dy.
struct WinogradCall {
  const float *x, *filter, *bias;  // bias may be null.
  float* y;
  bool relu, backward;
};
void winograd(const ConvolutionSizes& sizes, const Window& window, const WinogradCall& call,
              std::span<std::byte> scratch) noexcept;
void winograd_filter_gradient(const ConvolutionSizes& sizes, const Window& window, const float* x, const float* dy,
                              float* dfilter, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll
