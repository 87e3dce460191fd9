// Kernel calls shared by several ops on a device with kernels of its own. device/opencl/kernel_sources.h defines the
// kernels' names and arguments.
//
//   bool Transpose::launch(KernelQueue& queue, const OpRun& run) const noexcept {
//     return launch_strided(queue, run.in[0], box, run.out[0]);
//   }
//
// Each returns false, having done nothing, when the queue has no kernel for these dtypes, ranks or sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "plimsoll/base/tensor_view.h"
#include "plimsoll/device/kernel_queue.h"
#include "plimsoll/kernels/convolution_window.h"
#include "plimsoll/kernels/movement.h"

namespace plimsoll::internal {

inline constexpr std::size_t kLaunchRank = 5;  // The most axes of kernels with strides.

bool launch_unary(KernelQueue& queue, std::string_view op, const ConstTensorView& x, const TensorView& out) noexcept;
// With broadcasting.
bool launch_binary(KernelQueue& queue, std::string_view op, const ConstTensorView& a, const ConstTensorView& b,
                   const TensorView& out) noexcept;
bool launch_number(KernelQueue& queue, std::string_view op, const ConstTensorView& x, double number, bool number_first,
                   const TensorView& out) noexcept;
bool launch_cast(KernelQueue& queue, const ConstTensorView& x, const TensorView& out) noexcept;
bool launch_fill(KernelQueue& queue, std::uint64_t pattern, const TensorView& out) noexcept;
bool launch_copy(KernelQueue& queue, const ConstTensorView& x, const TensorView& out) noexcept;  // Alike, one dtype.

// A box of elements: its sizes, and its place in a tensor, in elements.
struct StridedBox {
  std::array<std::int64_t, kLaunchRank> sizes{1, 1, 1, 1, 1}, steps{};
  std::int64_t start = 0;
  // False: it has more axes than kernels support, not counting those of size 1.
  bool set(std::size_t rank, const std::int64_t* box_sizes, const std::int64_t* box_steps) noexcept;
};
// Of `x` to all of `out`, or of all of `x` to `out`.
bool launch_strided(KernelQueue& queue, const ConstTensorView& x, const StridedBox& box,
                    const TensorView& out) noexcept;
bool launch_placed(KernelQueue& queue, const ConstTensorView& x, const StridedBox& box, const TensorView& out) noexcept;

// The same for the boxes of the host's kernels.
bool launch_box(KernelQueue& queue, const ConstTensorView& x, const BoxLayout& from, const TensorView& out) noexcept;
bool launch_into_box(KernelQueue& queue, const ConstTensorView& x, const TensorView& out, const BoxLayout& to) noexcept;

bool launch_broadcast(KernelQueue& queue, const ConstTensorView& x, const TensorView& out) noexcept;
// Over adjacent axes (bit i: axis i). A kernel of [outer, count, inner].
bool launch_reduce(KernelQueue& queue, std::string_view kernel, const ConstTensorView& x, std::uint32_t axes,
                   const TensorView& out) noexcept;
// Operands of one shape, or single elements.
bool launch_select(KernelQueue& queue, const ConstTensorView& test, const ConstTensorView& a, const ConstTensorView& b,
                   const TensorView& out) noexcept;
// out = x clamped to the two numbers, or whether it lies between them; f32.
bool launch_between(KernelQueue& queue, std::string_view kernel, const ConstTensorView& x, double low, double high,
                    const TensorView& out) noexcept;
// Bits in the order of kernels/convolution_mask.cc.
bool launch_relu_mask(KernelQueue& queue, const ConstTensorView& y, const TensorView& mask) noexcept;

struct MatmulLaunch {
  const ConstTensorView* bias = nullptr;
  std::string_view activation = "linear";
  bool transpose_a = false, transpose_b = false, accumulate = false;
  std::int64_t batches = 1, step_a = 0, step_b = 0;  // Elements from one matrix to the next.
};
// f32 matrices: a [m, inner], b [inner, n] (or transposed), out [m, n].
bool launch_matmul(KernelQueue& queue, const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                   std::int64_t m, std::int64_t n, std::int64_t inner, const MatmulLaunch& options) noexcept;

// Kernels of convolutions have results of so many pixels x channels in registers.
struct ConvolutionTile {
  bool wide;
  std::int64_t pixels, channels;
};
ConvolutionTile convolution_tile(std::int64_t channels) noexcept;
bool launch_convolution(KernelQueue& queue, KernelCall& call, const ConvolutionTile& tile, std::int64_t channels,
                        std::int64_t lines, std::int64_t pixels) noexcept;

// Adds what kernels of windows over images take: taps, sizes of both images, and how the window moves.
KernelCall& add_window(KernelCall& call, std::int64_t taps_down, std::int64_t taps_across, const Shape& from,
                       const Shape& to, const Window& window) noexcept;

}  // namespace plimsoll::internal
