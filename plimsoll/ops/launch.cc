#include "plimsoll/ops/launch.h"

#include <algorithm>
#include <cstring>

namespace plimsoll::internal {
namespace {

constexpr std::size_t kEach = 8;  // Elements of one work item of the simple kernels.

// "flat.add.f32", without the heap.
class KernelName {
 public:
  KernelName(std::string_view family, std::string_view op, std::string_view type) noexcept {
    for (const std::string_view part : {family, op, type}) {
      if (part.empty()) continue;
      if (size_ > 0) add(".");
      add(part);
    }
  }
  operator std::string_view() const noexcept { return {text_, size_}; }

 private:
  void add(std::string_view part) noexcept {
    const std::size_t count = std::min(part.size(), sizeof(text_) - size_);
    std::memcpy(text_ + size_, part.data(), count);
    size_ += count;
  }
  char text_[64];
  std::size_t size_ = 0;
};

std::string_view type_name(DType dtype) noexcept {
  return dtype == f32 ? "f32" : dtype == i32 ? "i32" : dtype == i64 ? "i64" : dtype == boolean ? "u8" : "none";
}

std::int64_t count_of(const TensorView& view) { return static_cast<std::int64_t>(view.size()); }
std::size_t eighths(const TensorView& out) { return (out.size() + kEach - 1) / kEach; }

std::string_view width_name(DType dtype) noexcept {
  switch (size_of(dtype)) {
    case 1:
      return "1";
    case 4:
      return "4";
    case 8:
      return "8";
    default:
      return "none";
  }
}

// Steps of an operand that broadcasts to `out`, by out's axes; false: too many axes.
bool broadcast_box(const Shape& shape, const Shape& out, StridedBox& box) noexcept {
  std::int64_t sizes[kMaxRank], steps[kMaxRank], step = 1;
  const std::size_t added = out.rank() - shape.rank();
  for (std::size_t axis = out.rank(); axis-- > 0;) {
    sizes[axis] = out[axis];
    const std::int64_t size = axis < added ? 1 : shape[axis - added];
    steps[axis] = size == 1 ? 0 : step;
    step *= size;
  }
  if (out.rank() > kLaunchRank) return false;
  for (std::size_t i = 0; i < out.rank(); ++i) {
    const std::size_t to = kLaunchRank - out.rank() + i;
    box.sizes[to] = sizes[i];
    box.steps[to] = steps[i];
  }
  return true;
}

KernelCall& add_box(KernelCall& call, const StridedBox& box) noexcept {
  for (std::size_t i = 1; i < kLaunchRank; ++i) call.integer(box.sizes[i]);
  for (const std::int64_t step : box.steps) call.integer(step);
  return call.integer(box.start);
}

}  // namespace

bool launch_unary(KernelQueue& queue, std::string_view op, const ConstTensorView& x, const TensorView& out) noexcept {
  const KernelName name("unary", op, type_name(x.dtype()));
  KernelCall call(name);
  return queue.run(call.out(out.bytes()).in(x.bytes()).integer(count_of(out)).items(eighths(out)));
}

bool launch_binary(KernelQueue& queue, std::string_view op, const ConstTensorView& a, const ConstTensorView& b,
                   const TensorView& out) noexcept {
  const bool whole_a = a.shape() == out.shape(), whole_b = b.shape() == out.shape();
  if ((whole_a || a.size() == 1) && (whole_b || b.size() == 1)) {
    const KernelName name("flat", op, type_name(a.dtype()));
    KernelCall call(name);
    call.out(out.bytes()).in(a.bytes()).in(b.bytes()).integer(count_of(out));
    return queue.run(call.integer(a.size() == 1 ? 0 : 1).integer(b.size() == 1 ? 0 : 1).items(eighths(out)));
  }
  StridedBox left, right;
  if (!broadcast_box(a.shape(), out.shape(), left) || !broadcast_box(b.shape(), out.shape(), right)) return false;
  const KernelName name("broad", op, type_name(a.dtype()));
  KernelCall call(name);
  call.out(out.bytes()).in(a.bytes()).in(b.bytes()).integer(count_of(out));
  for (std::size_t i = 1; i < kLaunchRank; ++i) call.integer(left.sizes[i]);
  for (const std::int64_t step : left.steps) call.integer(step);
  for (const std::int64_t step : right.steps) call.integer(step);
  return queue.run(call.items(eighths(out)));
}

bool launch_number(KernelQueue& queue, std::string_view op, const ConstTensorView& x, double number, bool number_first,
                   const TensorView& out) noexcept {
  constexpr double kExact = 1 << 24;  // Numbers are f32.
  if (x.dtype() != f32 && !(number >= -kExact && number <= kExact)) return false;
  const KernelName name("number", op, type_name(x.dtype()));
  KernelCall call(name);
  call.out(out.bytes()).in(x.bytes()).integer(count_of(out)).number(number).integer(number_first ? 1 : 0);
  return queue.run(call.items(eighths(out)));
}

bool launch_cast(KernelQueue& queue, const ConstTensorView& x, const TensorView& out) noexcept {
  if (x.dtype() == out.dtype()) return launch_copy(queue, x, out);
  const KernelName name("cast", type_name(x.dtype()), type_name(out.dtype()));
  KernelCall call(name);
  return queue.run(call.out(out.bytes()).in(x.bytes()).integer(count_of(out)).items(eighths(out)));
}

bool launch_fill(KernelQueue& queue, std::uint64_t pattern, const TensorView& out) noexcept {
  const KernelName name("fill", width_name(out.dtype()), "");
  KernelCall call(name);
  call.out(out.bytes()).integer(count_of(out)).bits(static_cast<std::uint32_t>(pattern));
  return queue.run(call.bits(static_cast<std::uint32_t>(pattern >> 32)).items(out.size()));
}

bool launch_copy(KernelQueue& queue, const ConstTensorView& x, const TensorView& out) noexcept {
  StridedBox box;
  box.sizes[kLaunchRank - 1] = count_of(out);
  box.steps[kLaunchRank - 1] = 1;
  return launch_strided(queue, x, box, out);
}

bool StridedBox::set(std::size_t rank, const std::int64_t* box_sizes, const std::int64_t* box_steps) noexcept {
  std::size_t used = 0;
  for (std::size_t i = 0; i < rank; ++i) used += box_sizes[i] != 1;
  if (used > kLaunchRank) return false;
  std::size_t to = kLaunchRank - used;
  for (std::size_t i = 0; i < rank; ++i) {
    if (box_sizes[i] == 1) continue;
    sizes[to] = box_sizes[i];
    steps[to++] = box_steps[i];
  }
  return true;
}

bool launch_strided(KernelQueue& queue, const ConstTensorView& x, const StridedBox& box,
                    const TensorView& out) noexcept {
  const KernelName name("strided", width_name(x.dtype()), "");
  KernelCall call(name);
  call.out(out.bytes()).in(x.bytes()).integer(count_of(out));
  return queue.run(add_box(call, box).items(eighths(out)));
}

bool launch_placed(KernelQueue& queue, const ConstTensorView& x, const StridedBox& box,
                   const TensorView& out) noexcept {
  const KernelName name("placed", width_name(x.dtype()), "");
  KernelCall call(name);
  call.out(out.bytes()).in(x.bytes()).integer(static_cast<std::int64_t>(x.size()));
  return queue.run(add_box(call, box).items((x.size() + kEach - 1) / kEach));
}

bool launch_box(KernelQueue& queue, const ConstTensorView& x, const BoxLayout& from, const TensorView& out) noexcept {
  StridedBox box;
  box.start = from.start;
  return box.set(out.rank(), out.shape().sizes().data(), from.strides.data()) && launch_strided(queue, x, box, out);
}

bool launch_into_box(KernelQueue& queue, const ConstTensorView& x, const TensorView& out,
                     const BoxLayout& to) noexcept {
  StridedBox box;
  box.start = to.start;
  return box.set(x.rank(), x.shape().sizes().data(), to.strides.data()) && launch_placed(queue, x, box, out);
}

bool launch_broadcast(KernelQueue& queue, const ConstTensorView& x, const TensorView& out) noexcept {
  StridedBox box;
  return broadcast_box(x.shape(), out.shape(), box) && launch_strided(queue, x, box, out);
}

bool launch_reduce(KernelQueue& queue, std::string_view kernel, const ConstTensorView& x, std::uint32_t axes,
                   const TensorView& out) noexcept {
  std::int64_t outer = 1, count = 1, inner = 1;
  bool begun = false, ended = false;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t size = x.shape()[axis];
    if (axes >> axis & 1) {
      if (ended && size != 1) return false;
      begun = true;
      count *= size;
    } else {
      ended = ended || (begun && size != 1);
      (begun ? inner : outer) *= size;
    }
  }
  if (count == 0) return false;
  const bool by_columns = kernel == "reduce.sum.f32" && inner >= 16;
  KernelCall call(by_columns ? "reduce_columns.sum.f32" : kernel);
  call.out(out.bytes()).in(x.bytes()).integer(outer).integer(count).integer(inner);
  if (by_columns) call.items(static_cast<std::size_t>((inner + 15) / 16), static_cast<std::size_t>(outer));
  return queue.run(by_columns ? call : call.items(out.size()));
}

bool launch_select(KernelQueue& queue, const ConstTensorView& test, const ConstTensorView& a, const ConstTensorView& b,
                   const TensorView& out) noexcept {
  if (size_of(out.dtype()) != 4) return false;
  KernelCall call("select.4");
  call.out(out.bytes()).in(test.bytes()).in(a.bytes()).in(b.bytes()).integer(count_of(out));
  for (const ConstTensorView* operand : {&test, &a, &b}) {
    if (operand->size() != 1 && !(operand->shape() == out.shape())) return false;
    call.integer(operand->size() == 1 ? 0 : 1);
  }
  return queue.run(call.items(out.size()));
}

bool launch_between(KernelQueue& queue, std::string_view kernel, const ConstTensorView& x, double low, double high,
                    const TensorView& out) noexcept {
  if (x.dtype() != f32) return false;
  KernelCall call(kernel);
  call.out(out.bytes()).in(x.bytes()).integer(count_of(out)).number(low).number(high);
  return queue.run(call.items(eighths(out)));
}

bool launch_relu_mask(KernelQueue& queue, const ConstTensorView& y, const TensorView& mask) noexcept {
  if (y.dtype() != f32) return false;
  const auto words = static_cast<std::int64_t>(mask.size() / 4);
  KernelCall call("relu_mask");
  call.out(mask.bytes()).in(y.bytes()).integer(static_cast<std::int64_t>(y.size())).integer(words);
  return queue.run(call.items(static_cast<std::size_t>((words + 15) / 16)));
}

bool launch_matmul(KernelQueue& queue, const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                   std::int64_t m, std::int64_t n, std::int64_t inner, const MatmulLaunch& options) noexcept {
  if (a.dtype() != f32) return false;
  const char layout[] = {options.transpose_a ? 't' : 'n', options.transpose_b ? 't' : 'n', 0};
  const KernelName name("matmul", layout, options.activation);
  KernelCall call(name);
  call.out(out.bytes()).in(a.bytes()).in(b.bytes()).in(options.bias ? options.bias->bytes() : nullptr);
  call.integer(m).integer(n).integer(inner).integer(options.bias ? 1 : 0);
  call.integer(options.step_a).integer(options.step_b).integer(options.accumulate ? 1 : 0);
  const auto tiles = [](std::int64_t size, std::int64_t each) {
    return static_cast<std::size_t>((size + each - 1) / each);
  };
  return queue.run(call.items(tiles(n, 16), tiles(m, 4), static_cast<std::size_t>(options.batches)));
}

ConvolutionTile convolution_tile(std::int64_t channels) noexcept {
  const std::int64_t rest = channels % 16;
  return rest == 0 || rest > 8 ? ConvolutionTile{true, 4, 16} : ConvolutionTile{false, 8, 8};
}

bool launch_convolution(KernelQueue& queue, KernelCall& call, const ConvolutionTile& tile, std::int64_t channels,
                        std::int64_t lines, std::int64_t pixels) noexcept {
  const auto columns = static_cast<std::size_t>((channels + tile.channels - 1) / tile.channels);
  return queue.run(call.items(columns, static_cast<std::size_t>(lines * ((pixels + tile.pixels - 1) / tile.pixels))));
}

KernelCall& add_window(KernelCall& call, std::int64_t taps_down, std::int64_t taps_across, const Shape& from,
                       const Shape& to, const Window& window) noexcept {
  call.integer(taps_down).integer(taps_across).integer(from[1]).integer(from[2]).integer(to[1]).integer(to[2]);
  call.integer(window.row_stride).integer(window.column_stride);
  call.integer(window.row_dilation).integer(window.column_dilation);
  return call.integer(window.top).integer(window.left);
}

}  // namespace plimsoll::internal
