// Partitioned tensors of a bundle: each slice has its own entry, under a key made of the tensor's name and its place.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/internal/input_file.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/io/internal/slices.h"
#include "plimsoll/io/internal/staging.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMaxSlices = 1024;  // Per tensor: they are compared with each other.

// A number as bytes that sort in numeric order.
void append_ordered(std::string& out, std::uint64_t value) {
  std::string digits;
  for (; value != 0; value >>= 8) digits.insert(digits.begin(), static_cast<char>(value & 0xff));
  out.push_back(static_cast<char>(digits.size()));
  out += digits;
}

// The same for a signed one: as many leading ones (of the number without its sign) as there are bytes, then the number.
void append_ordered_signed(std::string& out, std::int64_t value) {
  const std::uint64_t magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  std::size_t bytes = 1;
  while (bytes < 10 && magnitude >> (7 * bytes - 1) != 0) ++bytes;
  unsigned char digits[10];
  for (std::size_t i = 0; i < 10; ++i)
    digits[9 - i] = i < 8 ? static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * i))
                          : static_cast<unsigned char>(value < 0 ? 0xff : 0);
  unsigned char* const begin = digits + 10 - bytes;
  const unsigned ones = 0xffff & ~(0xffffu >> bytes);  // In the first two bytes.
  begin[0] ^= static_cast<unsigned char>(ones >> 8);
  if (bytes > 1) begin[1] ^= static_cast<unsigned char>(ones);
  out.append(reinterpret_cast<const char*>(begin), bytes);
}

// Whether two slices have an element in common.
bool overlap(const BundleSlice& a, const BundleSlice& b) {
  for (std::size_t axis = 0; axis < a.starts.size(); ++axis)
    if (a.starts[axis] + a.sizes[axis] <= b.starts[axis] || b.starts[axis] + b.sizes[axis] <= a.starts[axis] ||
        a.sizes[axis] == 0 || b.sizes[axis] == 0)
      return false;
  return true;
}

// Where the bytes of a slice belong in the tensor, in order: runs of equal length.
class Runs {
 public:
  Runs(const Shape& shape, const BundleSlice& slice, std::size_t element) : slice_(slice), index_(shape.rank(), 0) {
    strides_.assign(shape.rank(), 0);
    std::uint64_t stride = element;
    bool whole = true;  // All later axes.
    for (std::size_t axis = shape.rank(); axis-- > 0; stride *= static_cast<std::uint64_t>(shape[axis])) {
      strides_[axis] = stride;
      place_ += stride * static_cast<std::uint64_t>(slice.starts[axis]);
      if (!whole) continue;
      outer_ = axis;
      run_ = stride * static_cast<std::uint64_t>(slice.sizes[axis]);
      whole = slice.sizes[axis] == shape[axis];
    }
    if (shape.rank() == 0) run_ = element;
  }

  // Copies the next bytes of the slice to their places.
  void put(std::span<const std::byte> bytes, std::byte* tensor) {
    while (!bytes.empty()) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), run_ - done_));
      std::memcpy(tensor + place_ + done_, bytes.data(), part);
      bytes = bytes.subspan(part);
      done_ += part;
      if (done_ == run_) next();
    }
  }

 private:
  void next() {
    done_ = 0;
    for (std::size_t axis = outer_; axis-- > 0;) {
      place_ += strides_[axis];
      if (++index_[axis] < slice_.sizes[axis]) return;
      place_ -= strides_[axis] * static_cast<std::uint64_t>(slice_.sizes[axis]);
      index_[axis] = 0;
    }
  }

  const BundleSlice& slice_;
  std::vector<std::uint64_t> strides_;  // In bytes.
  std::vector<std::int64_t> index_;
  std::size_t outer_ = 0;  // The loop runs over the axes before this one.
  std::uint64_t run_ = 0, place_ = 0, done_ = 0;
};

}  // namespace

std::string internal::slice_key(std::string_view name, const BundleSlice& slice) {
  std::string key(1, '\0');
  for (const char c : name) {
    key.push_back(c);
    if (c == '\0') key.push_back('\xff');
    if (c == '\xff') key.push_back('\0');
  }
  key += std::string("\0\1", 2);
  append_ordered(key, slice.starts.size());
  for (std::size_t axis = 0; axis < slice.starts.size(); ++axis) {
    append_ordered_signed(key, slice.is_whole[axis] ? 0 : slice.starts[axis]);
    append_ordered_signed(key, slice.is_whole[axis] ? -1 : slice.sizes[axis]);
  }
  return key;
}

BundleSlice internal::parse_slice(std::string_view bytes, const Shape& shape) {
  BundleSlice slice;
  for (WireReader in(bytes); in.next();) {
    if (in.field() != 1) continue;
    const std::size_t axis = slice.starts.size();
    if (axis >= shape.rank()) throw WireError("a slice of more axes than the tensor has");
    std::int64_t start = 0, size = 0;
    bool is_whole = true;
    for (WireReader extent(in.bytes()); extent.next();) {
      if (extent.field() == 1) start = extent.integer();
      if (extent.field() == 2) size = extent.integer();
      is_whole &= extent.field() != 2;
    }
    if (is_whole) size = shape[axis];
    if (start < 0 || size < 0 || start > shape[axis] || size > shape[axis] - start || (is_whole && start != 0))
      throw WireError(fmt::format("a slice of {} from {} on an axis of {}", size, start, shape[axis]));
    slice.starts.push_back(start);
    slice.sizes.push_back(size);
    slice.is_whole.push_back(is_whole);
  }
  if (slice.starts.size() != shape.rank()) throw WireError("a slice of fewer axes than the tensor has");
  return slice;
}

std::string internal::fault_of_slices(const Shape& shape, std::span<const BundleSlice> slices) {
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    std::uint64_t own = 1;
    for (const std::int64_t size : slices[i].sizes) own *= static_cast<std::uint64_t>(size);
    elements += own;
    for (std::size_t j = 0; j < i; ++j)
      if (overlap(slices[i], slices[j])) return fmt::format("its slices {} and {} overlap", j, i);
  }
  if (elements == shape.size()) return "";
  return fmt::format("its slices have {} of its {} elements", elements, shape.size());
}

void BundleReader::check_slices(const BundleEntry& whole) const {
  if (whole.is_string()) throw Unsupported(where(whole) + ": strings in slices, which cannot be read");
  if (whole.slices.size() > kMaxSlices)
    throw Unsupported(fmt::format("{}: {} slices; at most {} are read", where(whole), whole.slices.size(), kMaxSlices));
  const std::string fault = fault_of_slices(whole.shape, whole.slices);
  if (!fault.empty()) throw Corruption(fmt::format("{}: {} (offset 0 of the index)", where(whole), fault));
  for (const BundleSlice& slice : whole.slices) {
    const BundleEntry* const found = find(slice_key(whole.key, slice));
    if (!found) throw NotFound(where(whole) + ": a slice of it is missing");
    if (found->dtype_name != whole.dtype_name || found->shape != Shape(slice.sizes) || found->is_partitioned())
      throw Corruption(fmt::format("{}: a slice of it is {} {} instead of {} {} (offset {} of data file {})",
                                   where(whole), found->dtype_name, found->shape.to_string(), whole.dtype_name,
                                   Shape(slice.sizes).to_string(), found->offset, found->shard));
    if (found->size > 0) shard_of(*found);
  }
}

// Reads every slice, and writes it to its place when there is a destination. Requires check_slices().
void BundleReader::read_slices(const BundleEntry& whole, std::byte* destination) const {
  const Staging staging(256_KiB);
  for (const BundleSlice& slice : whole.slices) {
    const BundleEntry& found = *find(slice_key(whole.key, slice));
    if (found.size == 0) continue;
    const InputFile& file = shard_of(found);
    std::optional<Runs> runs;
    if (destination) runs.emplace(whole.shape, slice, size_of(*whole.dtype));
    std::uint32_t crc = 0;
    for_each_piece(found.size, staging.bytes().size(), [&](std::uint64_t at, std::size_t size) {
      file.read(found.offset + at, staging.bytes().first(size));
      crc = crc32c(staging.bytes().first(size), crc);
      if (runs) runs->put(staging.bytes().first(size), destination);
    });
    check_crc(found, crc);
  }
}

}  // namespace plimsoll
