#include "plimsoll/kernels/convolution_mask.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

// 512 elements are 16 words: element e is bit e / 16 of word e % 16, so that vectors of elements match vectors of
// words.
constexpr std::int64_t kWords = 16, kBits = 32, kGroup = kWords * kBits;
constexpr std::int64_t kGrain = 64;  // Groups of a chunk.

typedef std::uint32_t Words __attribute__((vector_size(64)));
typedef std::int32_t Truths __attribute__((vector_size(64)));
typedef float Floats __attribute__((vector_size(64)));

void pack(const float* y, std::byte* to) noexcept {
  Words words = {};
  for (std::int64_t bit = 0; bit < kBits; ++bit, y += kWords) {
    Floats values;
    std::memcpy(&values, y, sizeof values);
    words |= reinterpret_cast<Words>(values > 0.f) & (std::uint32_t{1} << bit);
  }
  std::memcpy(to, &words, sizeof words);
}

void apply(const float* dy, const std::byte* from, float* dx) noexcept {
  Words words;
  std::memcpy(&words, from, sizeof words);
  for (std::int64_t bit = 0; bit < kBits; ++bit, dy += kWords, dx += kWords) {
    Floats values;
    std::memcpy(&values, dy, sizeof values);
    const Truths taken = (words & (std::uint32_t{1} << bit)) != 0;
    values = reinterpret_cast<Floats>(reinterpret_cast<Truths>(values) & taken);
    std::memcpy(dx, &values, sizeof values);
  }
}

// The same element by element: for the last group, and for f64.
template <class T>
void pack_some(const T* y, std::int64_t n, std::byte* to) noexcept {
  std::uint32_t words[kWords] = {};
  for (std::int64_t e = 0; e < n; ++e) words[e % kWords] |= std::uint32_t{y[e] > T(0)} << (e / kWords);
  std::memcpy(to, words, sizeof words);
}

template <class T>
void apply_some(const T* dy, std::int64_t n, const std::byte* from, T* dx) noexcept {
  std::uint32_t words[kWords];
  std::memcpy(words, from, sizeof words);
  for (std::int64_t e = 0; e < n; ++e) dx[e] = words[e % kWords] >> (e / kWords) & 1 ? dy[e] : T(0);
}

// Calls visit(first element, elements, offset of the group's words) for every group, in parallel.
template <class F>
void each_group(std::size_t size, F visit) noexcept {
  const auto elements = static_cast<std::int64_t>(size);
  parallel_for(divide_up(elements, kGroup), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group)
      visit(group * kGroup, std::min(kGroup, elements - group * kGroup), group * kWords * 4);
  });
}

}  // namespace

std::size_t relu_mask_bytes(std::size_t elements) noexcept {
  return divide_up(elements, kGroup) * static_cast<std::size_t>(kWords) * 4;
}

void relu_mask(const ConstTensorView& y, std::byte* mask) noexcept {
  PLIMSOLL_CHECK(y.dtype() == f32 || y.dtype() == f64);
  each_group(y.size(), [&](std::int64_t first, std::int64_t n, std::int64_t at) {
    if (y.dtype() == f64) return pack_some(y.data<double>() + first, n, mask + at);
    n == kGroup ? pack(y.data<float>() + first, mask + at) : pack_some(y.data<float>() + first, n, mask + at);
  });
}

void relu_mask_gradient(const ConstTensorView& dy, const std::byte* mask, const TensorView& dx) noexcept {
  PLIMSOLL_CHECK((dy.dtype() == f32 || dy.dtype() == f64) && dy.size() == dx.size() && dy.dtype() == dx.dtype());
  each_group(dy.size(), [&](std::int64_t first, std::int64_t n, std::int64_t at) {
    if (dy.dtype() == f64) return apply_some(dy.data<double>() + first, n, mask + at, dx.data<double>() + first);
    const float* from = dy.data<float>() + first;
    float* to = dx.data<float>() + first;
    n == kGroup ? apply(from, mask + at, to) : apply_some(from, n, mask + at, to);
  });
}

}  // namespace plimsoll::internal
