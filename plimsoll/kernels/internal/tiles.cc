#include "plimsoll/kernels/internal/tiles.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/broadcast.h"
#include "plimsoll/kernels/internal/casts.h"
#include "plimsoll/kernels/internal/stream_copy.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kTile = 512;    // Elements.
constexpr std::int64_t kLongRun = 32;  // Rows from here on are taken as they are; shorter ones are gathered.

enum class Layout : unsigned char { dense, repeated, mixed };

struct Source {
  const std::byte* data;
  Loop convert;  // Null when the dtype is the wanted one.
  std::size_t size, wanted_size;
  Layout layout;
};

struct Job {
  Loop loop;
  Source sources[kMaxOperands];
  int count;
  std::byte* out;
  Loop convert_out;  // Null when the loop makes the output's dtype.
  std::size_t out_size;
  bool stream, direct, has_mixed;
  Broadcast plan;  // Set when has_mixed.
};

struct alignas(64) Buffers {
  std::byte operands[kMaxOperands][kTile * 8];
  std::byte raw[kTile * 8];
  std::byte out[kTile * 8];
};

void repeat(std::byte* to, const std::byte* element, std::size_t size, std::int64_t n) noexcept {
  if (size == 4) {
    std::uint32_t value;
    std::memcpy(&value, element, 4);
    std::fill_n(reinterpret_cast<std::uint32_t*>(to), n, value);
  } else if (size == 8) {
    std::uint64_t value;
    std::memcpy(&value, element, 8);
    std::fill_n(reinterpret_cast<std::uint64_t*>(to), n, value);
  } else if (size == 2) {
    std::uint16_t value;
    std::memcpy(&value, element, 2);
    std::fill_n(reinterpret_cast<std::uint16_t*>(to), n, value);
  } else {
    std::memset(to, static_cast<int>(*element), static_cast<std::size_t>(n));
  }
}

// Elements [position, position + n) of the output's order, row piece by row piece.
void gather(const Job& job, int operand, std::int64_t position, std::int64_t n, std::byte* to) noexcept {
  const Source& source = job.sources[operand];
  const std::int64_t inner = job.plan.inner(), stride = job.plan.inner_stride(operand);
  while (n > 0) {
    const std::int64_t within = position % inner, run = std::min(n, inner - within);
    const std::byte* from = source.data + static_cast<std::size_t>(job.plan.offset(operand, position)) * source.size;
    const std::size_t bytes = static_cast<std::size_t>(run) * source.size;
    if (stride == 0)
      repeat(to, from, source.size, run);
    else
      std::memcpy(to, from, bytes);
    to += bytes;
    position += run;
    n -= run;
  }
}

const void* fetch(const Job& job, int operand, std::int64_t position, std::int64_t n, Buffers& buffers) noexcept {
  const Source& source = job.sources[operand];
  if (source.layout == Layout::repeated) return buffers.operands[operand];  // Filled once per chunk.
  const void* raw = source.data + static_cast<std::size_t>(position) * source.size;
  if (source.layout == Layout::mixed) {
    if (job.plan.inner() >= kLongRun && job.plan.inner_stride(operand) != 0) {
      raw = source.data + static_cast<std::size_t>(job.plan.offset(operand, position)) * source.size;
    } else {
      std::byte* to = source.convert ? buffers.raw : buffers.operands[operand];
      gather(job, operand, position, n, to);
      raw = to;
    }
  }
  if (!source.convert) return raw;
  source.convert(&raw, buffers.operands[operand], n);
  return buffers.operands[operand];
}

void fill_repeated(const Job& job, std::int64_t n, Buffers& buffers) noexcept {
  for (int i = 0; i < job.count; ++i) {
    const Source& source = job.sources[i];
    if (source.layout != Layout::repeated) continue;
    alignas(8) std::byte element[8];
    const void* from = source.data;
    if (source.convert) source.convert(&from, element, 1);
    repeat(buffers.operands[i], source.convert ? element : source.data, source.wanted_size, std::min(n, kTile));
  }
}

void run_chunk(const Job& job, std::int64_t begin, std::int64_t end) noexcept {
  Buffers buffers;
  fill_repeated(job, end - begin, buffers);
  const std::int64_t inner = job.has_mixed ? job.plan.inner() : 0;
  for (std::int64_t position = begin; position < end;) {
    std::int64_t n = std::min(end - position, kTile);
    if (inner >= kLongRun) n = std::min(n, inner - position % inner);
    const void* in[kMaxOperands];
    for (int i = 0; i < job.count; ++i) in[i] = fetch(job, i, position, n, buffers);
    std::byte* target = job.out + static_cast<std::size_t>(position) * job.out_size;
    void* made = job.convert_out || job.stream ? static_cast<void*>(buffers.out) : target;
    job.loop(in, made, n);
    const void* value = made;
    if (job.convert_out) {
      void* to = job.stream ? static_cast<void*>(buffers.raw) : target;
      job.convert_out(&value, to, n);
      value = to;
    }
    if (job.stream) stream_copy(target, value, static_cast<std::size_t>(n) * job.out_size);
    position += n;
  }
  if (job.stream) stream_fence();
}

void run_direct(const Job& job, std::int64_t begin, std::int64_t end) noexcept {
  const void* in[kMaxOperands];
  for (int i = 0; i < job.count; ++i)
    in[i] = job.sources[i].data + static_cast<std::size_t>(begin) * job.sources[i].size;
  job.loop(in, job.out + static_cast<std::size_t>(begin) * job.out_size, end - begin);
}

Source make_source(const TileOperand& operand, std::size_t out_elements) noexcept {
  const ConstTensorView& view = *operand.view;
  const DType dtype = view.dtype();
  const std::size_t elements = view.size();
  const Layout layout = elements == out_elements ? Layout::dense : elements == 1 ? Layout::repeated : Layout::mixed;
  return {view.bytes(), dtype == operand.wanted ? nullptr : cast_loop(dtype, operand.wanted), size_of(dtype),
          size_of(operand.wanted), layout};
}

}  // namespace

void run_tiles(Loop loop, const TileOperand* operands, int count, const TensorView& out, DType made,
               std::int64_t grain) noexcept {
  const std::size_t elements = out.size();
  if (elements == 0) return;
  Job job;
  job.loop = loop;
  job.count = count;
  job.out = out.bytes();
  job.out_size = size_of(out.dtype());
  job.convert_out = made == out.dtype() ? nullptr : cast_loop(made, out.dtype());
  job.stream = elements * job.out_size >= kStreamFromBytes;
  job.direct = !job.convert_out && !job.stream;
  job.has_mixed = false;
  Sizes shapes[kMaxOperands];
  for (int i = 0; i < count; ++i) {
    job.sources[i] = make_source(operands[i], elements);
    shapes[i] = operands[i].view->shape().sizes();
    job.has_mixed |= job.sources[i].layout == Layout::mixed;
    job.direct = job.direct && job.sources[i].layout == Layout::dense && !job.sources[i].convert;
    if (job.sources[i].data == job.out) job.stream = false;  // In place: the lines are in the cache already.
  }
  if (job.has_mixed) job.plan = plan_broadcast(shapes, count, out.shape().sizes());
  const auto n = static_cast<std::int64_t>(elements);
  if (job.direct)
    parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) { run_direct(job, begin, end); });
  else
    parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) { run_chunk(job, begin, end); });
}

}  // namespace plimsoll
