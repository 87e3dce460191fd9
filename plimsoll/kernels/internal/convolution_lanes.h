// Lanes: a vector of T of the instruction set this file is compiled for.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll {
namespace {

template <class T>
struct Lanes {
  typedef T V __attribute__((vector_size(kVectorBytes)));
  static constexpr std::int64_t kWidth = kVectorBytes / sizeof(T);
  static V get(const T* p) noexcept {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static void put(T* p, V v) noexcept { __builtin_memcpy(p, &v, sizeof v); }
  static V rectified(V v) noexcept { return v < V{} ? V{} : v; }
};

}  // namespace
}  // namespace plimsoll
