#include "plimsoll/kernels/movement.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/transpose_block.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 32768;
constexpr std::int64_t kBlock = 64;  // Rows that are transposed together, square by square.

// A box copy with axes merged where both sides advance evenly; outermost first.
struct BoxCopy {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> sizes, from, to;

  void append(std::int64_t size, std::int64_t from_stride, std::int64_t to_stride) noexcept {
    if (size == 1) return;
    if (rank > 0) {
      const auto last = static_cast<std::size_t>(rank - 1);
      if (from[last] == from_stride * size && to[last] == to_stride * size) {
        sizes[last] *= size, from[last] = from_stride, to[last] = to_stride;
        return;
      }
    }
    const auto next = static_cast<std::size_t>(rank++);
    sizes[next] = size, from[next] = from_stride, to[next] = to_stride;
  }
  // Removes the axis and appends it as the last one.
  void move_last(int axis) noexcept {
    const auto a = static_cast<std::size_t>(axis), n = static_cast<std::size_t>(rank);
    std::rotate(sizes.begin() + axis, sizes.begin() + axis + 1, sizes.begin() + static_cast<std::ptrdiff_t>(n));
    std::rotate(from.begin() + static_cast<std::ptrdiff_t>(a), from.begin() + axis + 1,
                from.begin() + static_cast<std::ptrdiff_t>(n));
    std::rotate(to.begin() + static_cast<std::ptrdiff_t>(a), to.begin() + axis + 1,
                to.begin() + static_cast<std::ptrdiff_t>(n));
  }
  // For a position among the first `axes` axes.
  void offsets(std::int64_t position, int axes, std::int64_t& x, std::int64_t& y) const noexcept {
    for (int i = axes; i-- > 0;) {
      const auto axis = static_cast<std::size_t>(i);
      const std::int64_t index = position % sizes[axis];
      position /= sizes[axis];
      x += index * from[axis], y += index * to[axis];
    }
  }
  std::int64_t count(int axes) const noexcept {
    std::int64_t n = 1;
    for (int i = 0; i < axes; ++i) n *= sizes[static_cast<std::size_t>(i)];
    return n;
  }
};

// Walks over all axes but the last, and knows where the row at each place begins.
class BoxWalk {
 public:
  BoxWalk(const BoxCopy& box, std::int64_t position) noexcept : box_(box) {
    for (int i = box.rank - 1; i-- > 0;) {
      const auto axis = static_cast<std::size_t>(i);
      index_[axis] = position % box.sizes[axis];
      position /= box.sizes[axis];
      from += index_[axis] * box.from[axis], to += index_[axis] * box.to[axis];
    }
  }
  void next() noexcept {
    for (int i = box_.rank - 1; i-- > 0;) {
      const auto axis = static_cast<std::size_t>(i);
      from += box_.from[axis], to += box_.to[axis];
      if (++index_[axis] < box_.sizes[axis]) return;
      index_[axis] = 0;
      from -= box_.sizes[axis] * box_.from[axis], to -= box_.sizes[axis] * box_.to[axis];
    }
  }
  std::int64_t from = 0, to = 0;

 private:
  const BoxCopy& box_;
  std::array<std::int64_t, kMaxRank> index_;
};

// Rows whose elements are `from` apart on one side, `to` on the other.
template <class T>
void copy_row(const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t n) noexcept {
  if (from == 1 && to == 1)
    std::memcpy(y, x, static_cast<std::size_t>(n) * sizeof(T));
  else if (from == 0 && to == 1)
    std::fill_n(y, n, *x);
  else
    for (std::int64_t i = 0; i < n; ++i) y[i * to] = x[i * from];
}

// The last two axes of a copy whose source is dense along the last but one, and whose output along the last: square by
// square, kBlock rows at a time.
template <class T>
void copy_planes(const BoxCopy& box, const T* x, T* y, std::int64_t begin, std::int64_t end) noexcept {
  const auto row = static_cast<std::size_t>(box.rank - 2), column = row + 1;
  const std::int64_t row_blocks = divide_up(box.sizes[row], kBlock), from_stride = box.from[column];
  for (std::int64_t task = begin; task < end; ++task) {
    std::int64_t from = 0, to = 0;
    box.offsets(task / row_blocks, box.rank - 2, from, to);
    const std::int64_t first = task % row_blocks * kBlock, last = std::min(first + kBlock, box.sizes[row]);
    for (std::int64_t c = 0; c < box.sizes[column]; c += kSquare<T>)
      for (std::int64_t r = first; r < last; r += kSquare<T>)
        transpose_block(x + from + r + c * from_stride, from_stride, y + to + r * box.to[row] + c, box.to[row],
                        std::min(kSquare<T>, last - r), std::min(kSquare<T>, box.sizes[column] - c));
  }
}

// Row by row of the last axis, in pieces.
template <class T>
void copy_rows(const BoxCopy& box, const T* x, T* y) noexcept {
  const auto last = static_cast<std::size_t>(box.rank - 1);
  const std::int64_t n = box.sizes[last], piece = box.rank == 1 ? std::min(n, kGrain) : n;
  const std::int64_t pieces = divide_up(n, piece);
  parallel_for(box.count(box.rank - 1) * pieces, std::max<std::int64_t>(1, kGrain / piece),
               [&](std::int64_t begin, std::int64_t end) {
                 BoxWalk walk(box, box.rank == 1 ? 0 : begin);
                 for (std::int64_t r = begin; r < end; ++r) {
                   const std::int64_t start = box.rank == 1 ? r * piece : 0;
                   copy_row(x + walk.from + start * box.from[last], box.from[last], y + walk.to + start * box.to[last],
                            box.to[last], std::min(piece, n - start));
                   if (box.rank > 1) walk.next();
                 }
               });
}

template <class T>
void run_box(BoxCopy& box, const T* x, T* y) noexcept {
  if (box.rank == 0) {
    *y = *x;
    return;
  }
  const auto last = static_cast<std::size_t>(box.rank - 1);
  int contiguous = -1;  // The axis along which the source is.
  for (int i = 0; i < box.rank; ++i)
    if (box.from[static_cast<std::size_t>(i)] == 1) contiguous = i;
  if (box.to[last] != 1 || box.from[last] == 1 || contiguous < 0) return copy_rows(box, x, y);
  box.move_last(contiguous);
  std::swap(box.sizes[last], box.sizes[last - 1]);
  std::swap(box.from[last], box.from[last - 1]);
  std::swap(box.to[last], box.to[last - 1]);
  const std::int64_t row_blocks = divide_up(box.sizes[last - 1], kBlock);
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrain / (std::min(kBlock, box.sizes[last - 1]) * box.sizes[last]));
  parallel_for(box.count(box.rank - 2) * row_blocks, grain,
               [&](std::int64_t begin, std::int64_t end) { copy_planes(box, x, y, begin, end); });
}

// Elements are moved as bits.
template <class F>
void with_bits(DType dtype, F f) noexcept {
  switch (size_of(dtype)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

void run_box(BoxCopy box, const ConstTensorView& x, std::int64_t from, const TensorView& out,
             std::int64_t to) noexcept {
  with_bits(x.dtype(), [&]<class T>(T) {
    run_box(box, reinterpret_cast<const T*>(x.bytes()) + from, reinterpret_cast<T*>(out.bytes()) + to);
  });
}

}  // namespace

BoxLayout box_layout(const Shape& tensor, std::span<const std::int64_t> begin,
                     std::span<const std::int64_t> step) noexcept {
  BoxLayout layout;
  std::int64_t stride = 1;
  for (std::size_t axis = tensor.rank(); axis-- > 0;) {
    layout.start += axis < begin.size() ? begin[axis] * stride : 0;
    layout.strides[axis] = axis < step.size() ? step[axis] * stride : stride;
    stride *= tensor[axis];
  }
  return layout;
}

void copy_box(const ConstTensorView& x, const BoxLayout& from, const TensorView& out, const BoxLayout& to,
              const Shape& shape) noexcept {
  if (shape.size() == 0) return;
  BoxCopy box;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) box.append(shape[axis], from.strides[axis], to.strides[axis]);
  run_box(box, x, from.start, out, to.start);
}

void transpose(const ConstTensorView& x, std::span<const std::int64_t> permutation, const TensorView& out) noexcept {
  const BoxLayout dense = box_layout(x.shape(), {});
  BoxLayout from;
  for (std::size_t axis = 0; axis < permutation.size(); ++axis)
    from.strides[axis] = dense.strides[static_cast<std::size_t>(permutation[axis])];
  copy_box(x, from, out, box_layout(out.shape(), {}), out.shape());
}

void tile(const ConstTensorView& x, const TensorView& out) noexcept {
  if (out.size() == 0) return;
  const BoxLayout from = box_layout(x.shape(), {}), to = box_layout(out.shape(), {});
  std::int64_t copies = 1;
  for (std::size_t axis = 0; axis < out.rank(); ++axis) copies *= out.shape()[axis] / x.shape()[axis];
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    BoxLayout place = to;
    std::int64_t rest = copy;
    for (std::size_t axis = out.rank(); axis-- > 0;) {
      const std::int64_t times = out.shape()[axis] / x.shape()[axis];
      place.start += rest % times * x.shape()[axis] * to.strides[axis];
      rest /= times;
    }
    copy_box(x, from, out, place, x.shape());
  }
}

std::int64_t concat_part(const ConstTensorView& x, std::size_t axis, std::int64_t begin,
                         const TensorView& out) noexcept {
  BoxLayout to = box_layout(out.shape(), {});
  to.start = begin * to.strides[axis];
  copy_box(x, box_layout(x.shape(), {}), out, to, x.shape());
  return begin + x.shape()[axis];
}

}  // namespace plimsoll::internal
