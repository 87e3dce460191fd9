#include "plimsoll/kernels/internal/matmul_product.h"

#include <algorithm>

#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/matmul_pack.h"

namespace plimsoll::internal {
namespace {

constexpr double kDirectWork = 160.0 * 160 * 160;
constexpr std::int64_t kDirectDepth = 48;           // Up to here packing never pays.
constexpr std::int64_t kMostItems = 64;             // For a product in place.
constexpr std::int64_t kDepth = 256;                // A panel of B stays in the first cache,
constexpr std::int64_t kBlockBytes = 192 << 10;     // a block of A in the second,
constexpr std::int64_t kInPlaceBytes = 96 << 10;    // (if not packed, its rows may compete for cache lines)
constexpr std::int64_t kNarrowBytes = 256 << 10;    // and a packed part of B, when all of A's rows are packed at once;
constexpr std::int64_t kRightBytes = 1 << 20;       // else the packed parts of B and
constexpr std::int64_t kLeftBytes = (3 << 20) / 2;  // of A in the third.
constexpr std::int64_t kCloseBytes = 2 << 10;       // Between rows of A that need no packing,
constexpr std::int64_t kFew = 256;                  // however far apart when there are so few, or B is so narrow.
constexpr double kPieceWork = 1 << 20;              // Per piece of the packed product,
constexpr std::int64_t kPackElements = 1 << 14;     // per piece of packing.

// The size of equal parts of n, each a multiple of `unit` and at most `most`, which is one too.
std::int64_t even_part(std::int64_t n, std::int64_t unit, std::int64_t most) noexcept {
  return round_up(divide_up(n, divide_up(n, std::max(most, unit))), unit);
}

// How a product in place is cut: columns first, then rows.
struct Items {
  std::int64_t columns, rows, across, down;  // Per item; items across and down.
};

Items items_of(const MatmulProduct& x, const MatmulLoops& loops) noexcept {
  const double pieces = std::clamp(x.work() / kMatmulItem, 1.0, static_cast<double>(kMostItems));
  const auto wanted = static_cast<std::int64_t>(pieces);
  if (wanted == 1) return {x.n, x.m, 1, 1};
  Items items;
  items.columns = round_up(divide_up(x.n, wanted), loops.columns);
  items.across = divide_up(x.n, items.columns);
  const std::int64_t fewest = (x.b_column == 1 ? 8 : 32) * loops.rows;  // Each item transposes its part of B again.
  const std::int64_t rows = divide_up(x.m, std::max<std::int64_t>(1, wanted / items.across));
  items.rows = std::max(round_up(rows, loops.rows), fewest);
  items.down = divide_up(x.m, items.rows);
  return items;
}

}  // namespace

void MatmulFinish::add_to(MatmulBlock& block) const noexcept {
  if (add || activation) return;
  block.bias = bias;
  block.rectifier = rectifier;
}

std::int64_t matmul_depth(std::int64_t k) noexcept { return even_part(k, 1, kDepth); }

void MatmulFinish::apply(std::byte* c, std::int64_t row_bytes, std::int64_t rows, std::int64_t columns) const noexcept {
  if (!add && !activation) return;
  for (std::int64_t i = 0; i < rows; ++i, c += row_bytes) {
    const void* const operands[] = {c, bias};
    if (add) add(operands, c, columns);
    if (activation) activation(operands, c, columns);
  }
}

bool MatmulProduct::is_direct() const noexcept {
  const std::int64_t rows = std::max(m, part_of_rows);
  const double whole = static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
  return !is_half(source) && (k <= kDirectDepth || whole <= kDirectWork || rows <= 4);
}

std::int64_t MatmulProduct::items() const noexcept {
  const Items items = items_of(*this, loops());
  return items.across * items.down;
}

void MatmulProduct::multiply_item(std::int64_t item) const noexcept {
  const MatmulLoops& kernels = loops();
  const Items items = items_of(*this, kernels);
  const std::int64_t i = item / items.across * items.rows, j = item % items.across * items.columns;
  std::byte* to = at(c, i * c_row + j);
  MatmulBlock block;
  block.c = to;
  block.m = std::min(items.rows, m - i);
  block.n = std::min(items.columns, n - j);
  block.is_a_packed = block.is_b_packed = false;
  block.a_row = a_row, block.a_column = a_column, block.b_row = b_row, block.b_column = b_column;
  block.c_row = c_row;
  MatmulFinish part = finish;
  if (part.bias) part.bias = at(const_cast<std::byte*>(part.bias), j);
  const std::int64_t depth = b_column == 1 ? k : kMatmulStackDepth;
  for (std::int64_t p = 0; p < k; p += depth) {
    block.a = source_at(a, i * a_row + p * a_column);
    block.b = source_at(b, p * b_row + j * b_column);
    block.k = std::min(depth, k - p);
    block.accumulate = accumulate || p > 0;
    if (p + block.k == k) part.add_to(block);
    kernels.multiply(block);
  }
  part.apply(to, c_row * static_cast<std::int64_t>(size()), block.m, block.n);
}

// The packed product: for each part of the columns and each part of k, B's part is packed; for each part of the rows,
// A's, unless its rows are close together; then pieces of the result are computed from them, a block of A's rows by a
// group of B's columns. When one part has all the rows, it is packed once for each part of k, and the parts of B that
// follow each other are narrow.
struct MatmulProduct::Cut {
  std::int64_t depth, width, height;  // Packed at once.
  std::int64_t block, group;          // Rows and columns of a piece.
  bool is_left_packed;                // Otherwise A is read in place.
  std::size_t left_bytes, right_bytes;
};

MatmulProduct::Cut MatmulProduct::cut() const noexcept {
  const MatmulLoops& kernels = loops();
  const auto bytes = static_cast<std::int64_t>(size());
  Cut cut;
  cut.is_left_packed = is_half(source) || a_column != 1 || (a_row * bytes > kCloseBytes && m > kFew && n > kFew);
  const std::int64_t block_bytes = cut.is_left_packed ? kBlockBytes : kInPlaceBytes;
  cut.depth = matmul_depth(k);
  const auto part_of = [&](std::int64_t size, std::int64_t unit, std::int64_t most_bytes) {
    return even_part(size, unit, most_bytes / (cut.depth * bytes) / unit * unit);
  };
  cut.height = part_of(m, kernels.rows, kLeftBytes);
  cut.width = part_of(n, kernels.columns, cut.height >= m ? kNarrowBytes : kRightBytes);
  cut.block = part_of(cut.height, kernels.rows, block_bytes);
  const double column_work = static_cast<double>(cut.block) * static_cast<double>(cut.depth);
  const auto columns = static_cast<std::int64_t>(kPieceWork / column_work);
  cut.group = even_part(cut.width, kernels.columns, round_up(std::max<std::int64_t>(columns, 1), kernels.columns));
  cut.left_bytes = cut.is_left_packed ? static_cast<std::size_t>(round_up(cut.height * cut.depth * bytes, 64)) : 0;
  cut.right_bytes = static_cast<std::size_t>(round_up(cut.width * cut.depth * bytes, 64));
  return cut;
}

std::size_t MatmulProduct::packed_bytes() const noexcept {
  const Cut parts = cut();
  return parts.left_bytes + parts.right_bytes;
}

// What is being packed and multiplied now: rows from i, columns from j, k from p.
struct MatmulProduct::Region {
  const Cut& cut;
  std::byte *left, *right;
  std::int64_t i, height, j, width, p, depth;
  std::int64_t left_panels, right_panels;  // To be packed.
  MatmulAhead ahead;                       // What is packed next.
};

// Panels in the order of the first half of A's, all of B's, the rest of A's: so a thread packs the rows that it will
// multiply.
void MatmulProduct::pack_panels(const Region& x, std::int64_t begin, std::int64_t end) const noexcept {
  const MatmulLoops& kernels = loops();
  const std::int64_t of_b = x.right_panels, b_begin = x.left_panels / 2;
  for (std::int64_t panel = begin; panel < end; ++panel) {
    if (panel >= b_begin && panel < b_begin + of_b) {
      const std::int64_t column = (panel - b_begin) * kernels.columns;
      matmul_pack(kernels.pack_columns, source, source_at(b, x.p * b_row + (x.j + column) * b_column),
                  std::min(kernels.columns, x.width - column), x.depth, b_column, b_row, kernels.columns,
                  at(x.right, column * x.depth));
    } else {
      const std::int64_t row = (panel < b_begin ? panel : panel - of_b) * kernels.rows;
      matmul_pack(kernels.pack_rows, source, source_at(a, (x.i + row) * a_row + x.p * a_column),
                  std::min(kernels.rows, x.height - row), x.depth, a_row, a_column, kernels.rows,
                  at(x.left, row * x.depth));
    }
  }
}

void MatmulProduct::multiply_piece(const Region& x, std::int64_t piece) const noexcept {
  const std::int64_t across = divide_up(x.width, x.cut.group);
  const std::int64_t row = piece / across * x.cut.block, column = piece % across * x.cut.group;
  std::byte* to = at(c, (x.i + row) * c_row + x.j + column);
  MatmulBlock block;
  block.a = at(x.left, row * x.depth);
  block.b = at(x.right, column * x.depth);
  block.c = to;
  block.m = std::min(x.cut.block, x.height - row);
  block.n = std::min(x.cut.group, x.width - column);
  block.k = x.depth;
  block.is_a_packed = x.cut.is_left_packed, block.is_b_packed = true;
  if (!block.is_a_packed) block.a = source_at(a, (x.i + row) * a_row + x.p);
  block.a_row = a_row, block.a_column = a_column, block.b_row = block.b_column = 1;
  block.c_row = c_row;
  block.accumulate = accumulate || x.p > 0;
  MatmulFinish part = finish;
  if (part.bias) part.bias = at(const_cast<std::byte*>(part.bias), x.j + column);
  if (x.ahead.data) {
    const std::int64_t pieces = divide_up(x.height, x.cut.block) * across, lines = x.ahead.end;
    block.ahead = x.ahead;
    block.ahead.begin = piece * lines / pieces, block.ahead.end = (piece + 1) * lines / pieces;
  }
  const bool is_last = x.p + x.depth == k;
  if (is_last) part.add_to(block);
  loops().multiply(block);
  if (!is_last) return;
  part.apply(to, c_row * static_cast<std::int64_t>(size()), block.m, block.n);
}

void MatmulProduct::multiply_region(const Region& x) const noexcept {
  const bool is_parallel = work() >= kMatmulItem;
  const std::int64_t panels = x.left_panels + x.right_panels,
                     batch = std::max<std::int64_t>(1, kPackElements / (x.depth * loops().columns));
  parallel_for(panels, is_parallel ? batch : panels,
               [&](std::int64_t begin, std::int64_t end) { pack_panels(x, begin, end); });
  const std::int64_t pieces = divide_up(x.height, x.cut.block) * divide_up(x.width, x.cut.group);
  parallel_for(pieces, is_parallel ? 1 : pieces, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) multiply_piece(x, piece);
  });
}

void MatmulProduct::multiply_packed(std::byte* scratch) const noexcept {
  const Cut parts = cut();
  // B's part at these columns and this depth, which the pieces before it bring near: packing alone would wait for it.
  const auto part_of_b = [&](std::int64_t j, std::int64_t p) {
    if (b_column != 1 || j >= n || p >= k) return MatmulAhead{};
    const auto bytes = static_cast<std::int64_t>(size_of(source));
    const std::int64_t lines = divide_up(std::min(parts.width, n - j) * bytes, 64);
    return MatmulAhead{source_at(b, p * b_row + j), b_row * bytes, lines, 0, lines * std::min(parts.depth, k - p)};
  };
  const auto region = [&](std::int64_t i, std::int64_t j, std::int64_t p, bool packs_left, bool packs_right,
                          const MatmulAhead& ahead) {
    const std::int64_t height = std::min(parts.height, m - i), width = std::min(parts.width, n - j);
    multiply_region({parts, scratch, scratch + parts.left_bytes, i, height, j, width, p, std::min(parts.depth, k - p),
                     packs_left && parts.is_left_packed ? divide_up(height, loops().rows) : 0,
                     packs_right ? divide_up(width, loops().columns) : 0, ahead});
  };
  if (parts.height >= m) {
    for (std::int64_t p = 0; p < k; p += parts.depth)
      for (std::int64_t j = 0; j < n; j += parts.width)
        region(0, j, p, j == 0, true,
               j + parts.width < n ? part_of_b(j + parts.width, p) : part_of_b(0, p + parts.depth));
    return;
  }
  for (std::int64_t j = 0; j < n; j += parts.width)
    for (std::int64_t p = 0; p < k; p += parts.depth)
      for (std::int64_t i = 0; i < m; i += parts.height) {
        const bool is_last = i + parts.height >= m;
        const MatmulAhead next = p + parts.depth < k ? part_of_b(j, p + parts.depth) : part_of_b(j + parts.width, 0);
        region(i, j, p, true, i == 0, is_last ? next : MatmulAhead{});
      }
}

}  // namespace plimsoll::internal
