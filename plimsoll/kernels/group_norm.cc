#include "plimsoll/kernels/group_norm.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/group_norm_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kRowsPerBlock = 64;  // Summed in the elements' type; blocks are summed in f64.
constexpr std::int64_t kArrays = 6;         // Per-channel arrays that an item uses.

template <class T, class View>
auto* data_or_null(const View& view) noexcept {
  return view.base() ? view.template data<T>() : nullptr;
}

struct Extent {
  std::int64_t batch, rows, channels;
  explicit Extent(const Shape& x) noexcept : batch(x[0]), rows(1), channels(x.back()) {
    for (std::size_t axis = 1; axis + 1 < x.rank(); ++axis) rows *= x[axis];
  }
};

std::size_t item_bytes(std::int64_t channels, DType dtype) noexcept {
  const std::size_t bytes = static_cast<std::size_t>(channels) * (kArrays * size_of(dtype) + 2 * sizeof(double));
  return round_up(bytes, 64);
}

// One item of the batch with its scratch.
template <class T>
struct Item {
  std::int64_t rows, channels, groups;
  const GroupNormLoopsOf<T>& loops;
  double* totals[2];  // Per channel.
  T *block[2], *mean, *rstd, *factor, *shift;

  Item(const Extent& sizes, std::int64_t the_groups, std::byte* scratch) noexcept
      : rows(sizes.rows), channels(sizes.channels), groups(the_groups), loops(loops_of()) {
    totals[0] = reinterpret_cast<double*>(scratch);
    totals[1] = totals[0] + channels;
    T* arrays = reinterpret_cast<T*>(totals[1] + channels);
    T** all[kArrays] = {&block[0], &block[1], &mean, &rstd, &factor, &shift};
    for (T** array : all) *array = arrays, arrays += channels;
  }

  static const GroupNormLoopsOf<T>& loops_of() noexcept {
    if constexpr (sizeof(T) == 4)
      return group_norm_loops().f32;
    else
      return group_norm_loops().f64;
  }

  std::int64_t per_group() const noexcept { return channels / groups; }
  double count() const noexcept { return double(rows) * double(per_group()); }

  // Sums of channels over all rows, `add(row, rows)` adding to the blocks.
  template <class F>
  void sum_rows(F add) const noexcept {
    std::fill_n(totals[0], 2 * channels, 0.0);
    for (std::int64_t r = 0; r < rows; r += kRowsPerBlock) {
      std::fill_n(block[0], 2 * channels, T(0));
      add(r, std::min(kRowsPerBlock, rows - r));
      for (std::int64_t c = 0; c < 2 * channels; ++c) totals[0][c] += double(block[0][c]);
    }
  }

  double group_sum(std::int64_t group, const double* values, const T* weights) const noexcept {
    double sum = 0;
    for (std::int64_t c = group * per_group(); c < (group + 1) * per_group(); ++c)
      sum += weights ? double(weights[c]) * values[c] : values[c];
    return sum;
  }
  void spread(std::int64_t group, T* to, T value) const noexcept {
    std::fill_n(to + group * per_group(), per_group(), value);
  }

  void normalize(const T* x, const T* gamma, const T* beta, double epsilon, T* y, T* means, T* rstds) const noexcept {
    sum_rows([&](std::int64_t r, std::int64_t n) { loops.add(x + r * channels, n, channels, block[0]); });
    for (std::int64_t g = 0; g < groups; ++g)
      spread(g, mean, static_cast<T>(group_sum(g, totals[0], nullptr) / count()));
    sum_rows([&](std::int64_t r, std::int64_t n) { loops.add_squares(x + r * channels, n, channels, mean, block[0]); });
    for (std::int64_t g = 0; g < groups; ++g) {
      const double variance = group_sum(g, totals[0], nullptr) / count();
      spread(g, rstd, static_cast<T>(1 / std::sqrt(variance + epsilon)));
      if (means) means[g] = mean[g * per_group()];
      if (rstds) rstds[g] = rstd[g * per_group()];
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      factor[c] = gamma ? rstd[c] * gamma[c] : rstd[c];
      shift[c] = beta ? beta[c] : T(0);
    }
    loops.normalize(x, rows, channels, mean, factor, shift, y);
  }

  // Leaves in totals the sums of dy and of dy (x - mean) rstd.
  void gradient(const T* x, const T* dy, const T* gamma, const T* means, const T* rstds, T* dx) const noexcept {
    for (std::int64_t g = 0; g < groups; ++g) spread(g, mean, means[g]), spread(g, rstd, rstds[g]);
    sum_rows([&](std::int64_t r, std::int64_t n) {
      loops.add_slopes(x + r * channels, dy + r * channels, n, channels, mean, rstd, block[0], block[1]);
    });
    if (!dx) return;
    for (std::int64_t c = 0; c < channels; ++c) factor[c] = gamma ? rstd[c] * gamma[c] : rstd[c];
    for (std::int64_t g = 0; g < groups; ++g) {
      const double scale = double(rstds[g]);
      spread(g, block[0], static_cast<T>(scale * group_sum(g, totals[0], gamma) / count()));
      spread(g, block[1], static_cast<T>(scale * scale * group_sum(g, totals[1], gamma) / count()));
    }
    loops.gradient(x, dy, rows, channels, mean, factor, block[0], block[1], dx);
  }
};

template <class T>
void run_forward(const ConstTensorView& x, std::int64_t groups, const ConstTensorView& gamma,
                 const ConstTensorView& beta, double epsilon, const GroupNormOutputs& out,
                 std::byte* scratch) noexcept {
  const Extent sizes(x.shape());
  const std::int64_t item = sizes.rows * sizes.channels;
  T *means = data_or_null<T>(out.mean), *rstds = data_or_null<T>(out.rstd);
  parallel_for(sizes.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      Item<T>(sizes, groups, scratch + static_cast<std::size_t>(b) * item_bytes(sizes.channels, x.dtype()))
          .normalize(x.data<T>() + b * item, data_or_null<T>(gamma), data_or_null<T>(beta), epsilon,
                     out.y.data<T>() + b * item, means ? means + b * groups : nullptr,
                     rstds ? rstds + b * groups : nullptr);
  });
}

template <class T>
void run_backward(const ConstTensorView& x, std::int64_t groups, const ConstTensorView& gamma,
                  const ConstTensorView& mean, const ConstTensorView& rstd, const ConstTensorView& dy,
                  const GroupNormGradients& out, std::byte* scratch) noexcept {
  const Extent sizes(x.shape());
  const std::int64_t item = sizes.rows * sizes.channels;
  const auto item_at = [&](std::int64_t b) {
    return Item<T>(sizes, groups, scratch + static_cast<std::size_t>(b) * item_bytes(sizes.channels, x.dtype()));
  };
  T *dx = data_or_null<T>(out.x), *dgamma = data_or_null<T>(out.gamma), *dbeta = data_or_null<T>(out.beta);
  parallel_for(sizes.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      item_at(b).gradient(x.data<T>() + b * item, dy.data<T>() + b * item, data_or_null<T>(gamma),
                          mean.data<T>() + b * groups, rstd.data<T>() + b * groups, dx ? dx + b * item : nullptr);
  });
  for (std::int64_t c = 0; c < sizes.channels; ++c) {
    double sums[2] = {};
    for (std::int64_t b = 0; b < sizes.batch; ++b)
      for (int i = 0; i < 2; ++i) sums[i] += item_at(b).totals[i][c];
    if (dbeta) dbeta[c] = static_cast<T>(sums[0]);
    if (dgamma) dgamma[c] = static_cast<T>(sums[1]);
  }
}

void check(const ConstTensorView& x, std::int64_t groups, std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK((x.dtype() == f32 || x.dtype() == f64) && x.rank() >= 2);
  PLIMSOLL_CHECK(groups > 0 && x.shape().back() % groups == 0);
  PLIMSOLL_CHECK(scratch.size() >= group_norm_scratch_bytes(x.shape(), x.dtype()));
}

}  // namespace

std::size_t group_norm_scratch_bytes(const Shape& x, DType dtype) noexcept {
  return static_cast<std::size_t>(x[0]) * item_bytes(x.back(), dtype);
}

void group_norm(const ConstTensorView& x, std::int64_t groups, const ConstTensorView& gamma,
                const ConstTensorView& beta, double epsilon, const GroupNormOutputs& out,
                std::span<std::byte> scratch) noexcept {
  if (x.size() == 0) return;
  check(x, groups, scratch);
  if (x.dtype() == f32)
    run_forward<float>(x, groups, gamma, beta, epsilon, out, scratch.data());
  else
    run_forward<double>(x, groups, gamma, beta, epsilon, out, scratch.data());
}

void group_norm_gradient(const ConstTensorView& x, std::int64_t groups, const ConstTensorView& gamma,
                         const ConstTensorView& mean, const ConstTensorView& rstd, const ConstTensorView& dy,
                         const GroupNormGradients& out, std::span<std::byte> scratch) noexcept {
  check(x, groups, scratch);
  if (x.dtype() == f32)
    run_backward<float>(x, groups, gamma, mean, rstd, dy, out, scratch.data());
  else
    run_backward<double>(x, groups, gamma, mean, rstd, dy, out, scratch.data());
}

}  // namespace plimsoll::internal
