#include "plimsoll/kernels/internal/tiles.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/broadcast.h"
#include "plimsoll/kernels/internal/casts.h"
#include "plimsoll/kernels/internal/stream_copy.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kTile = 512;    // Elements.
constexpr std::int64_t kLongRun = 32;  // Longer rows are used directly; shorter ones are gathered.

enum class Layout : unsigned char { dense, repeated, mixed };

struct Source {
  const std::byte* data;
  Loop convert;  // Null when the dtype is the wanted one.
  Loop fill;     // For the wanted dtype.
  std::size_t size;
  Layout layout;
};

struct Job {
  const Loop* loops;
  Source sources[kMaxOperands];
  int count;
  unsigned repeated;  // Operands that are one element.
  std::byte* out;
  Loop convert_out;  // Null when the loop makes the output's dtype.
  std::size_t out_size;
  bool stream, converts, has_mixed;
  Broadcast plan;                                  // Set when has_mixed.
  alignas(8) std::byte elements[kMaxOperands][8];  // Repeated operands, converted.
};

struct alignas(64) Buffers {
  static constexpr std::size_t kRoom = kTile * 8 + 64;  // Gathering writes some elements beyond the tile.
  std::byte operands[kMaxOperands][kRoom];
  std::byte raw[kRoom];
  std::byte out[kTile * 8];
};

// Runs the loop on n elements from `position` on; `repeated` says which of `in` are one element.
void run_loop(const Job& job, const void** in, unsigned repeated, std::int64_t position, std::int64_t n,
              Buffers& buffers) noexcept {
  if (!job.loops[repeated]) {
    for (int i = 0; i < job.count; ++i) {
      if (!(repeated >> i & 1)) continue;
      job.sources[i].fill(in + i, buffers.operands[i], n);
      in[i] = buffers.operands[i];
    }
    repeated = 0;
  }
  std::byte* target = job.out + static_cast<std::size_t>(position) * job.out_size;
  void* made = job.convert_out || job.stream ? static_cast<void*>(buffers.out) : target;
  job.loops[repeated](in, made, n);
  const void* value = made;
  if (job.convert_out) {
    void* to = job.stream ? static_cast<void*>(buffers.raw) : target;
    job.convert_out(&value, to, n);
    value = to;
  }
  if (job.stream) stream_copy(target, value, static_cast<std::size_t>(n) * job.out_size);
}

const void* converted(const Source& source, const void* raw, std::int64_t n, std::byte* buffer) noexcept {
  if (!source.convert) return raw;
  source.convert(&raw, buffer, n);
  return buffer;
}

const void* dense_piece(const Job& job, int i, std::int64_t position, std::int64_t n, Buffers& buffers) noexcept {
  const Source& source = job.sources[i];
  if (source.layout == Layout::repeated) return source.data;
  return converted(source, source.data + static_cast<std::size_t>(position) * source.size, n, buffers.operands[i]);
}

// The most elements of a tile: all of them when nothing needs a buffer.
std::int64_t tile_limit(const Job& job, unsigned repeated) noexcept {
  return job.converts || job.stream || !job.loops[repeated] ? kTile : INT64_MAX;
}

// Operands of the output's size or of one element.
void run_plain(const Job& job, std::int64_t begin, std::int64_t end, Buffers& buffers) noexcept {
  const std::int64_t limit = tile_limit(job, job.repeated);
  for (std::int64_t position = begin, n; position < end; position += n) {
    n = std::min(end - position, limit);
    const void* in[kMaxOperands];
    for (int i = 0; i < job.count; ++i) in[i] = dense_piece(job, i, position, n, buffers);
    run_loop(job, in, job.repeated, position, n, buffers);
  }
}

// Row by row of the plan, each operand a run of elements or one.
void run_rows(const Job& job, std::int64_t begin, std::int64_t end, Buffers& buffers) noexcept {
  unsigned repeated = job.repeated;
  for (int i = 0; i < job.count; ++i)
    if (job.sources[i].layout == Layout::mixed && job.plan.inner_stride(i) == 0) repeated |= 1u << i;
  const std::int64_t limit = tile_limit(job, repeated);
  BroadcastCursor cursor(job.plan, job.count, begin);
  for (std::int64_t position = begin, n; position < end; position += n) {
    n = std::min(std::min(end - position, limit), cursor.left_in_row());
    const void* in[kMaxOperands];
    for (int i = 0; i < job.count; ++i) {
      const Source& source = job.sources[i];
      if (source.layout != Layout::mixed)
        in[i] = dense_piece(job, i, position, n, buffers);
      else
        in[i] = converted(source, source.data + static_cast<std::size_t>(cursor.offset(i)) * source.size,
                          repeated >> i & 1 ? 1 : n, buffers.operands[i]);
    }
    cursor.advance(n);
    run_loop(job, in, repeated, position, n, buffers);
  }
}

// Rows one after the other, each a run of elements or one element repeated. Writes up to three elements beyond the end.
template <class T>
void copy_rows(const T* x, std::int64_t row_stride, bool repeats, std::int64_t inner, std::int64_t rows,
               T* y) noexcept {
  for (std::int64_t r = 0; r < rows; ++r, x += row_stride, y += inner) {
    if (repeats) {
      const T value = *x;
      for (std::int64_t i = 0; i < inner; i += 4) y[i] = value, y[i + 1] = value, y[i + 2] = value, y[i + 3] = value;
    } else {
      for (std::int64_t i = 0; i < inner; ++i) y[i] = x[i];
    }
  }
}

void copy_rows(const std::byte* from, std::int64_t row_stride, bool repeats, std::size_t size, std::int64_t inner,
               std::int64_t rows, std::byte* to) noexcept {
  const auto copy = [&]<class T>(T) {
    copy_rows(reinterpret_cast<const T*>(from), row_stride, repeats, inner, rows, reinterpret_cast<T*>(to));
  };
  if (size == 4) return copy(std::uint32_t{});
  if (size == 8) return copy(std::uint64_t{});
  if (size == 2) return copy(std::uint16_t{});
  copy(std::uint8_t{});
}

// The operand's next n elements, row piece by row piece. Returns where the cursor is then.
BroadcastCursor gather(const Job& job, int operand, BroadcastCursor cursor, std::int64_t n, std::byte* to) noexcept {
  const Source& source = job.sources[operand];
  const bool repeats = job.plan.inner_stride(operand) == 0;
  const std::int64_t inner = job.plan.inner();
  while (n > 0) {
    const std::byte* from = source.data + static_cast<std::size_t>(cursor.offset(operand)) * source.size;
    std::int64_t taken = std::min(n, cursor.left_in_row());
    if (cursor.at_row_start() && n >= inner) {
      const std::int64_t rows = std::min(n / inner, cursor.rows_left());
      copy_rows(from, job.plan.row_stride(operand), repeats, source.size, inner, rows, to);
      cursor.advance_rows(rows);
      taken = rows * inner;
    } else {
      copy_rows(from, 0, repeats, source.size, taken, 1, to);
      cursor.advance(taken);
    }
    to += static_cast<std::size_t>(taken) * source.size;
    n -= taken;
  }
  return cursor;
}

// Short rows: several of them make a tile, mixed operands gathered. Rows that are all alike are gathered once.
void run_short_rows(const Job& job, std::int64_t begin, std::int64_t end, Buffers& buffers) noexcept {
  const std::int64_t inner = job.plan.inner(), whole = kTile / inner * inner;
  BroadcastCursor cursor(job.plan, job.count, begin);
  const void* in[kMaxOperands];
  bool is_ready[kMaxOperands] = {};  // The rows are alike, and a whole tile of them is ready.
  for (std::int64_t position = begin, n; position < end; position += n) {
    const bool at_start = cursor.at_row_start();
    n = std::min(end - position, whole - inner + cursor.left_in_row());
    BroadcastCursor next = cursor;  // Stays at a row's start when all rows are alike.
    for (int i = 0; i < job.count; ++i) {
      const Source& source = job.sources[i];
      if (source.layout != Layout::mixed) {
        in[i] = dense_piece(job, i, position, n, buffers);
        continue;
      }
      if (is_ready[i]) continue;
      std::byte* const to = source.convert ? buffers.raw : buffers.operands[i];
      next = gather(job, i, cursor, n, to);
      in[i] = converted(source, to, n, buffers.operands[i]);
      is_ready[i] = at_start && job.plan.rows_are_alike(i);
    }
    cursor = next;
    const void* values[kMaxOperands] = {in[0], in[1], in[2]};
    run_loop(job, values, job.repeated, position, n, buffers);
  }
}

void run_chunk(const Job& job, std::int64_t begin, std::int64_t end) noexcept {
  Buffers buffers;
  if (!job.has_mixed)
    run_plain(job, begin, end, buffers);
  else if (job.plan.inner() >= kLongRun)
    run_rows(job, begin, end, buffers);
  else
    run_short_rows(job, begin, end, buffers);
  if (job.stream) stream_fence();
}

void set_source(Job& job, int i, const TileOperand& operand, std::size_t out_elements) noexcept {
  const ConstTensorView& view = *operand.view;
  const DType dtype = view.dtype();
  const std::size_t elements = view.size();
  Source& source = job.sources[i];
  source = {view.bytes(), dtype == operand.wanted ? nullptr : cast_loop(dtype, operand.wanted),
            plimsoll::loops().fill[size_index(operand.wanted)], size_of(dtype), Layout::dense};
  if (elements == out_elements) {
    job.converts |= source.convert != nullptr;
    if (source.data == job.out) job.stream = false;  // In place: the lines are already in the cache.
  } else if (elements == 1) {
    source.layout = Layout::repeated;
    job.repeated |= 1u << i;
    source.data = static_cast<const std::byte*>(converted(source, source.data, 1, job.elements[i]));
    source.convert = nullptr;
  } else {
    source.layout = Layout::mixed;
    job.has_mixed = true;
    job.converts |= source.convert != nullptr;
  }
}

}  // namespace

void run_tiles(const Loop* loops, const TileOperand* operands, int count, const TensorView& out, DType made,
               std::int64_t grain) noexcept {
  const std::size_t elements = out.size();
  if (elements == 0) return;
  Job job;
  job.loops = loops;
  job.count = count;
  job.repeated = 0;
  job.out = out.bytes();
  job.out_size = size_of(out.dtype());
  job.convert_out = made == out.dtype() ? nullptr : cast_loop(made, out.dtype());
  job.stream = elements * job.out_size >= kStreamFromBytes;
  job.converts = job.convert_out != nullptr;
  job.has_mixed = false;
  Sizes shapes[kMaxOperands];
  for (int i = 0; i < count; ++i) {
    set_source(job, i, operands[i], elements);
    shapes[i] = operands[i].view->shape().sizes();
  }
  if (job.has_mixed) job.plan = plan_broadcast(shapes, count, out.shape().sizes());
  parallel_for(static_cast<std::int64_t>(elements), grain,
               [&](std::int64_t begin, std::int64_t end) { run_chunk(job, begin, end); });
}

}  // namespace plimsoll::internal
