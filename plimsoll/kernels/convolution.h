// Convolutions of f32 and f64 images and their gradients, with strides, dilations, padding and groups.
//
//   Window same = {.top = 1, .bottom = 1, .left = 1, .right = 1};
//   convolution(x, filter, y, {same}, {.bias = &bias}, scratch);          // x [8, 32, 32, 3], filter [3, 3, 3, 16]
//   convolution_input_gradient(dy, filter, dx, {same}, {}, scratch);      // Also the transposed convolution.
//   convolution_filter_gradient(x, dy, dfilter, {same}, scratch);
//   convolution(with_height_1(x), with_height_1(filter, true), ...);      // x [8, 100, 3]: of one dimension
//
// Images are [batch, rows, columns, channels]; a filter is [rows, columns, channels in / groups, channels out]. Output
// channels of group g are computed from input channels of group g. A depthwise filter [rows, columns, channels,
// multiplier] has the same bytes as [rows, columns, 1, channels * multiplier] with groups = channels; both shapes are
// accepted. The bias's gradient is reduce(sum) of dy over all axes but the last.
//
// Our own kernels, no library: products are gathered directly from the image, or from a padded copy of a part of it in
// `scratch`; nothing is allocated. Each output is one chain of fused multiply-adds in the order rows, columns, channels
// of the filter. However, f32 windows of 3x3, stride 1, with channels that fill vectors (16 or more) are computed in
// tiles by Winograd's F(2x2, 3x3), with 16 products instead of 36 and rounding errors a few times as large; there
// infinities and NaN reach all four outputs of their tiles. Results depend only on shapes, not on threads. A fused bias
// and relu (or relu6) return the same bits as separate steps. Thread safety: any thread, with its own scratch. Never
// throws.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/kernels/convolution_window.h"
#include "plimsoll/kernels/rectifier.h"

namespace plimsoll::internal {

struct Convolution {
  Window window;
  std::int64_t groups = 1;
  std::int64_t lanes = 0;  // Parts in progress at once, each with scratch of its own; 0: enough for many processors.
};

// Applied to each result before it is written: + bias [channels], then the rectifier.
struct ConvolutionFinish {
  const ConstTensorView* bias = nullptr;
  Rectifier rectifier = {};
};

enum class ConvolutionPass : unsigned char { forward, input_gradient, filter_gradient };

// f32 and f64; other dtypes are converted by the caller.
PLIMSOLL_API bool is_convolution_supported(DType dtype) noexcept;

// Bytes of scratch for these shapes of x (or its gradient), filter and y, whatever the batch: forward and input
// gradient, up to some 3 MiB (for tiles, up to some 2 MiB and the transformed filter: 16 / 9 of it; for groups, the
// filter reordered instead of 1 MiB); filter gradient, up to some 4 MiB. Fewer lanes take less; results do not depend
// on them.
PLIMSOLL_API std::size_t convolution_scratch_bytes(ConvolutionPass pass, const Shape& x, const Shape& filter,
                                                   const Shape& y, const Convolution& convolution,
                                                   DType dtype) noexcept;

// All of them require shapes that agree: y has x's batch, window.positions_*() rows and columns, and the filter's
// channels; groups divide both numbers of channels. One dtype, no overlap, scratch of convolution_scratch_bytes()
// aligned to 64 bytes. The output is overwritten. Batches and images may be empty.
PLIMSOLL_API void convolution(const ConstTensorView& x, const ConstTensorView& filter, const TensorView& y,
                              const Convolution& convolution, const ConvolutionFinish& finish,
                              std::span<std::byte> scratch) noexcept;

// dx from dy. A transposed convolution of an image dy: the caller chooses dx's shape among those that produce dy's.
PLIMSOLL_API void convolution_input_gradient(const ConstTensorView& dy, const ConstTensorView& filter,
                                             const TensorView& dx, const Convolution& convolution,
                                             const ConvolutionFinish& finish, std::span<std::byte> scratch) noexcept;

PLIMSOLL_API void convolution_filter_gradient(const ConstTensorView& x, const ConstTensorView& dy,
                                              const TensorView& dfilter, const Convolution& convolution,
                                              std::span<std::byte> scratch) noexcept;

// [batch, columns, channels] as [batch, 1, columns, channels]. For a filter [columns, in, out] pass `filter` = true.
template <class View>
View with_height_1(const View& x, bool filter = false) {
  const Shape& s = x.shape();
  return x.reshaped(filter ? Shape{1, s[0], s[1], s[2]} : Shape{s[0], 1, s[1], s[2]});
}

}  // namespace plimsoll::internal
