#include "plimsoll/kernels/matmul.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/broadcast.h"
#include "plimsoll/kernels/internal/gemm_loops.h"

namespace plimsoll {
namespace {

// B is packed once per block of depth x width, in parallel, for all threads; then threads take blocks of rows, each
// packing its rows of A into a part of the scratch that belongs to the block.
constexpr std::int64_t kDepth = 256;   // A tile's panels of both operands stay in the first cache,
constexpr std::int64_t kHeight = 72;   // a block of A in the second,
constexpr std::int64_t kWidth = 2048;  // and a block of B in the third. kHeight is a multiple of every tile's rows.
constexpr std::int64_t kSlots = 16;    // Row blocks that are under way at once.

struct Matrix {
  std::int64_t rows, columns, row_stride, column_stride;
};

Matrix matrix_of(const Shape& shape, bool transposed) noexcept {
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape.back();
  return transposed ? Matrix{columns, rows, 1, columns} : Matrix{rows, columns, columns, 1};
}

std::int64_t round_up(std::int64_t n, std::int64_t to) noexcept { return (n + to - 1) / to * to; }

// How one product is cut; of the shape alone.
struct Cut {
  std::int64_t depth, height, width, slots;
  std::size_t a_bytes, b_bytes;  // Of one slot; of the block of B.
};

Cut cut_of(std::int64_t m, std::int64_t n, std::int64_t k, std::size_t size, const GemmLoops& loops) noexcept {
  Cut cut;
  cut.depth = std::clamp<std::int64_t>(k, 1, kDepth);
  cut.height = std::clamp(round_up(m, loops.rows), loops.rows, kHeight);
  cut.width = std::clamp(round_up(n, loops.columns), loops.columns, kWidth);
  cut.slots = std::min(kSlots, (m + cut.height - 1) / cut.height);
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(round_up(elements * static_cast<std::int64_t>(size), 64));
  };
  cut.a_bytes = bytes(cut.height * cut.depth);
  cut.b_bytes = bytes(cut.width * cut.depth);
  return cut;
}

struct Product {
  const GemmLoops& loops;
  std::size_t size;  // Of an element.
  Matrix a, b;
  Cut cut;
  std::byte* scratch;
  const std::byte *a_data, *b_data;
  std::byte* c_data;

  std::int64_t m() const noexcept { return a.rows; }
  std::int64_t n() const noexcept { return b.columns; }
  std::int64_t k() const noexcept { return a.columns; }
  const std::byte* at(const std::byte* data, std::int64_t offset) const noexcept {
    return data + static_cast<std::size_t>(offset) * size;
  }
  bool is_large() const noexcept { return m() * n() * k() >= 64 * 64 * 32; }

  void pack_b(std::int64_t p, std::int64_t depth, std::int64_t j, std::int64_t width) const noexcept {
    const std::int64_t panels = (width + loops.columns - 1) / loops.columns;
    const std::int64_t grain = is_large() ? std::max<std::int64_t>(1, 32768 / (depth * loops.columns)) : panels;
    parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t q = begin; q < end; ++q) {
        const std::int64_t column = j + q * loops.columns, count = std::min(loops.columns, j + width - column);
        loops.pack_columns(at(b_data, p * b.row_stride + column * b.column_stride), count, depth, b.column_stride,
                           b.row_stride, scratch + static_cast<std::size_t>(q * loops.columns * depth) * size);
      }
    });
  }

  // Rows [i, i + height) times the packed block of B.
  void multiply_rows(std::int64_t slot, std::int64_t i, std::int64_t height, std::int64_t p, std::int64_t depth,
                     std::int64_t j, std::int64_t width, bool accumulate) const noexcept {
    std::byte* packed = scratch + cut.b_bytes + static_cast<std::size_t>(slot) * cut.a_bytes;
    for (std::int64_t r = 0; r < height; r += loops.rows)
      loops.pack_rows(at(a_data, (i + r) * a.row_stride + p * a.column_stride), std::min(loops.rows, height - r), depth,
                      a.row_stride, a.column_stride, packed + static_cast<std::size_t>(r * depth) * size);
    for (std::int64_t c = 0; c < width; c += loops.columns) {
      const std::byte* panel = scratch + static_cast<std::size_t>(c * depth) * size;
      for (std::int64_t r = 0; r < height; r += loops.rows)
        loops.tile(packed + static_cast<std::size_t>(r * depth) * size, panel, depth,
                   c_data + static_cast<std::size_t>((i + r) * n() + j + c) * size, n(),
                   std::min(loops.rows, height - r), std::min(loops.columns, width - c), accumulate);
    }
  }

  void run(bool accumulate) const noexcept {
    const std::int64_t blocks = (m() + cut.height - 1) / cut.height;
    for (std::int64_t j = 0; j < n(); j += cut.width)
      for (std::int64_t p = 0; p < k(); p += cut.depth) {
        const std::int64_t width = std::min(cut.width, n() - j), depth = std::min(cut.depth, k() - p);
        pack_b(p, depth, j, width);
        for (std::int64_t first = 0; first < blocks; first += cut.slots) {
          const std::int64_t count = std::min(cut.slots, blocks - first);
          parallel_for(count, is_large() ? 1 : count, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t s = begin; s < end; ++s) {
              const std::int64_t i = (first + s) * cut.height;
              multiply_rows(s, i, std::min(cut.height, m() - i), p, depth, j, width, accumulate || p > 0);
            }
          });
        }
      }
  }
};

Sizes batch_of(const Shape& shape) noexcept { return shape.sizes().first(shape.rank() - 2); }

const GemmLoops& loops_of(DType dtype) noexcept { return dtype == f32 ? gemm_loops().f32 : gemm_loops().f64; }

}  // namespace

bool is_matmul_supported(DType dtype) noexcept { return dtype == f32 || dtype == f64; }

std::size_t matmul_scratch_bytes(const Shape& a, const Shape& b, DType dtype, MatmulFlags flags) noexcept {
  const Matrix left = matrix_of(a, flags.transpose_a), right = matrix_of(b, flags.transpose_b);
  const Cut cut = cut_of(left.rows, right.columns, left.columns, size_of(dtype), loops_of(dtype));
  return cut.b_bytes + static_cast<std::size_t>(cut.slots) * cut.a_bytes;
}

void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out, MatmulFlags flags,
            std::span<std::byte> scratch) noexcept {
  if (out.size() == 0) return;
  const DType dtype = a.dtype();
  PLIMSOLL_CHECK(is_matmul_supported(dtype) &&
                 scratch.size() >= matmul_scratch_bytes(a.shape(), b.shape(), dtype, flags));
  Product product = {loops_of(dtype),
                     size_of(dtype),
                     matrix_of(a.shape(), flags.transpose_a),
                     matrix_of(b.shape(), flags.transpose_b),
                     {},
                     scratch.data(),
                     a.bytes(),
                     b.bytes(),
                     out.bytes()};
  if (product.k() == 0) {
    if (!flags.accumulate) std::memset(out.bytes(), 0, out.nbytes());
    return;
  }
  product.cut = cut_of(product.m(), product.n(), product.k(), product.size, product.loops);
  const Sizes operands[] = {batch_of(a.shape()), batch_of(b.shape())};
  const Broadcast plan = plan_broadcast(operands, 2, batch_of(out.shape()));
  const std::int64_t batches = static_cast<std::int64_t>(out.size()) / (product.m() * product.n());
  for (std::int64_t i = 0; i < batches; ++i) {
    product.a_data = product.at(a.bytes(), plan.offset(0, i) * product.m() * product.k());
    product.b_data = product.at(b.bytes(), plan.offset(1, i) * product.k() * product.n());
    product.c_data = out.bytes() + static_cast<std::size_t>(i * product.m() * product.n()) * product.size;
    product.run(flags.accumulate);
  }
}

}  // namespace plimsoll
