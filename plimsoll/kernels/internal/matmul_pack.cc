#include "plimsoll/kernels/internal/matmul_pack.h"

#include <algorithm>

#include "plimsoll/kernels/internal/loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kMostVectors = 32, kPiece = 64;

}  // namespace

// Half types: piece by piece of k, adjacent elements are converted to f32 on the stack and packed from there.
void matmul_pack(decltype(MatmulLoops::pack_rows) pack, DType source, const std::byte* x, std::int64_t count,
                 std::int64_t k, std::int64_t along, std::int64_t deep, std::int64_t most, std::byte* to) noexcept {
  if (!is_half(source)) return pack(x, count, k, along, deep, to);
  const Loop convert = source == f16 ? loops().f16_to_f32 : loops().bf16_to_f32;
  float values[kMostVectors * kPiece];
  for (std::int64_t p = 0; p < k; p += kPiece) {
    const std::int64_t depth = std::min(kPiece, k - p);
    const std::int64_t runs = deep == 1 ? count : depth, length = deep == 1 ? depth : count;
    for (std::int64_t i = 0; i < runs; ++i) {
      const void* from = x + 2 * (deep == 1 ? i * along + p : (p + i) * deep);
      convert(&from, values + i * length, length);
    }
    pack(values, count, depth, deep == 1 ? length : 1, deep == 1 ? 1 : length, to + 4 * p * most);
  }
}

}  // namespace plimsoll::internal
