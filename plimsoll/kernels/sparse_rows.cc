#include "plimsoll/kernels/sparse_rows.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 16384;  // Elements per chunk.

// Writes the element's bytes over and over.
void fill_bytes(std::byte* to, std::size_t bytes, std::uint64_t element, std::size_t size) noexcept {
  if (bytes == 0) return;
  std::memcpy(to, &element, size);
  for (std::size_t done = size; done < bytes; done += std::min(done, bytes - done))
    std::memcpy(to + done, to, std::min(done, bytes - done));
}

// How a batch of rows is laid out: in bytes, but for the width.
struct PaddedRows {
  PaddedRows(const Shape& padded, DType dtype) noexcept : count(padded[0]), width(padded[1]), item(size_of(dtype)) {
    for (std::size_t axis = 2; axis < padded.rank(); ++axis) item *= static_cast<std::size_t>(padded[axis]);
  }
  std::int64_t grain() const noexcept {
    return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, width * static_cast<std::int64_t>(item) / 4));
  }
  std::int64_t count, width;
  std::size_t item;
};

}  // namespace

void softmax_runs(const ConstTensorView& values, const ConstTensorView& rows, const TensorView& out) noexcept {
  const std::int64_t* row = rows.data<std::int64_t>();
  const auto entries = static_cast<std::int64_t>(values.size());
  // A chunk has the runs that begin in it.
  parallel_for(entries, kGrain, [&](std::int64_t begin, std::int64_t end) {
    while (begin > 0 && begin < end && row[begin] == row[begin - 1]) ++begin;
    while (begin < end) {
      std::int64_t stop = begin + 1;
      while (stop < entries && row[stop] == row[begin]) ++stop;
      softmax(values.rows(begin, stop), out.rows(begin, stop));
      begin = stop;
    }
  });
}

void pad_rows(const ConstTensorView& values, const ConstTensorView& splits, std::uint64_t padding,
              const TensorView& out) noexcept {
  if (out.size() == 0) return;
  const PaddedRows rows(out.shape(), out.dtype());
  const std::int64_t* split = splits.data<std::int64_t>();
  parallel_for(rows.count, rows.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const auto kept = static_cast<std::size_t>(std::min(rows.width, split[r + 1] - split[r]));
      const auto width = static_cast<std::size_t>(rows.width);
      std::byte* const to = out.bytes() + static_cast<std::size_t>(r) * width * rows.item;
      if (kept > 0) std::memcpy(to, values.bytes() + static_cast<std::size_t>(split[r]) * rows.item, kept * rows.item);
      fill_bytes(to + kept * rows.item, (width - kept) * rows.item, padding, size_of(out.dtype()));
    }
  });
}

void unpad_rows(const ConstTensorView& padded, const ConstTensorView& splits, const TensorView& out) noexcept {
  if (out.size() == 0) return;
  const PaddedRows rows(padded.shape(), padded.dtype());
  const std::int64_t* split = splits.data<std::int64_t>();
  parallel_for(rows.count, rows.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const auto length = static_cast<std::size_t>(split[r + 1] - split[r]);
      const auto width = static_cast<std::size_t>(rows.width), kept = std::min(length, width);
      if (length == 0) continue;
      std::byte* const to = out.bytes() + static_cast<std::size_t>(split[r]) * rows.item;
      if (kept > 0) std::memcpy(to, padded.bytes() + static_cast<std::size_t>(r) * width * rows.item, kept * rows.item);
      std::memset(to + kept * rows.item, 0, (length - kept) * rows.item);
    }
  });
}

}  // namespace plimsoll::internal
