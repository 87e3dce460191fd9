#include "plimsoll/io/internal/hdf5_messages.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constexpr int kFixed = 0, kFloat = 1, kString = 3, kOpaque = 5, kEnum = 8, kVariable = 9;

std::optional<DType> integer_dtype(std::uint32_t size, bool is_signed) {
  if (size == 1) return is_signed ? i8 : u8;
  if (!is_signed) return std::nullopt;
  if (size == 2) return i16;
  if (size == 4) return i32;
  if (size == 8) return i64;
  return std::nullopt;
}

std::optional<DType> float_dtype(std::uint32_t size, unsigned exponent, unsigned mantissa) {
  if (size == 2 && exponent == 5 && mantissa == 10) return f16;
  if (size == 2 && exponent == 8 && mantissa == 7) return bf16;
  if (size == 4 && exponent == 8 && mantissa == 23) return f32;
  if (size == 8 && exponent == 11 && mantissa == 52) return f64;
  return std::nullopt;
}

Hdf5Type integer_type(Hdf5Cursor& in, std::uint32_t bits, std::uint32_t size) {
  const std::uint16_t offset = in.number<std::uint16_t>(), precision = in.number<std::uint16_t>();
  const bool is_signed = (bits & 8) != 0;
  const bool whole = offset == 0 && precision == size * 8;
  return {Hdf5Type::Kind::kNumber, whole ? integer_dtype(size, is_signed) : std::nullopt, (bits & 1) != 0, size,
          fmt::format("{}integer of {} bytes", is_signed ? "" : "unsigned ", size)};
}

Hdf5Type float_type(Hdf5Cursor& in, std::uint32_t bits, std::uint32_t size) {
  const std::uint16_t offset = in.number<std::uint16_t>(), precision = in.number<std::uint16_t>();
  in.skip(1);
  const unsigned exponent = in.byte();
  in.skip(1);
  const unsigned mantissa = in.byte();
  in.skip(4);
  const bool whole = offset == 0 && precision == size * 8 && (bits & 0x40) == 0;  // The other bit: VAX order.
  return {Hdf5Type::Kind::kNumber, whole ? float_dtype(size, exponent, mantissa) : std::nullopt, (bits & 1) != 0, size,
          fmt::format("float of {} bytes", size)};
}

// How h5py stores bools: an enumeration of two values in a byte.
Hdf5Type enum_type(Hdf5Cursor& in, std::uint32_t bits, std::uint32_t size) {
  const bool is_bool = size == 1 && (bits & 0xffff) == 2;
  Hdf5Type result{Hdf5Type::Kind::kOther, std::nullopt, false, size, fmt::format("enumeration of {} bytes", size)};
  if (is_bool) result.kind = Hdf5Type::Kind::kNumber, result.dtype = boolean;
  in.skip(in.left());
  return result;
}

}  // namespace

Hdf5Type read_hdf5_type(Hdf5Cursor& in) {
  const std::uint8_t head = in.byte();
  const std::uint32_t low = in.byte(), middle = in.byte(), high = in.byte();
  const std::uint32_t bits = low | middle << 8 | high << 16;
  const auto size = in.number<std::uint32_t>();
  const int kind = head & 15;
  using Kind = Hdf5Type::Kind;
  switch (kind) {
    case kFixed:
      return integer_type(in, bits, size);
    case kFloat:
      return float_type(in, bits, size);
    case kString:
      return {Kind::kText, std::nullopt, false, size, "text"};
    case kEnum:
      return enum_type(in, bits, size);
    case kOpaque:  // How h5py stores bfloat16; an attribute says so.
      return {Kind::kOther, std::nullopt, false, size, fmt::format("opaque type of {} bytes", size)};
    case kVariable:
      if ((bits & 15) == 1) return {Kind::kLongText, std::nullopt, false, 16, "text"};
      [[fallthrough]];
    default:
      return {Kind::kOther, std::nullopt, false, size, fmt::format("type of class {}", kind)};
  }
}

std::optional<Shape> read_hdf5_space(Hdf5Cursor& in) {
  const std::uint8_t version = in.byte(), rank = in.byte();
  in.skip(1);  // Flags: maximum sizes, which are not needed.
  const std::uint8_t kind = in.byte();
  if (version != 1 && version != 2) in.corrupt(fmt::format("a dataspace of version {}", version));
  if (version == 1) in.skip(4);
  if (version == 2 && kind == 2) return std::nullopt;
  if (rank > kMaxRank) in.corrupt(fmt::format("a dataspace of {} axes, more than {}", rank, kMaxRank));
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < rank; ++i) {
    const auto size = in.number<std::uint64_t>();
    if (size > std::uint64_t{1} << 60) in.corrupt(fmt::format("an axis of {} elements", size));
    sizes.push_back(static_cast<std::int64_t>(size));
  }
  try {
    return Shape(sizes);
  } catch (const InvalidArgument& error) {
    in.corrupt(error.what());
  }
}

Hdf5Layout read_hdf5_layout(Hdf5Cursor& in) {
  using Kind = Hdf5Layout::Kind;
  Hdf5Layout result;
  const std::uint8_t version = in.byte();
  result.kind = Kind::kOther;
  if (version == 1 || version == 2) {
    const std::uint8_t axes = in.byte(), kind = in.byte();
    in.skip(5);
    if (kind != 1) return result;  // The oldest form of compact and chunked data.
    result.kind = Kind::kContiguous;
    result.address = in.number<std::uint64_t>();
    result.size = 1;
    for (int i = 0; i < axes; ++i)
      if (__builtin_mul_overflow(result.size, std::uint64_t{in.number<std::uint32_t>()}, &result.size))
        in.corrupt("a dataset of more than 2^64 bytes");
    return result;
  }
  if (version != 3 && version != 4) in.corrupt(fmt::format("a layout of version {}", version));
  const std::uint8_t kind = in.byte();
  if (kind == 0) {
    result.kind = Kind::kCompact;
    result.size = in.number<std::uint16_t>();
    result.address = in.address();
    in.skip(static_cast<std::size_t>(result.size));
  } else if (kind == 1) {
    result.kind = Kind::kContiguous;
    result.address = in.number<std::uint64_t>();
    result.size = in.number<std::uint64_t>();
  } else if (kind == 2 && version == 3) {
    result.kind = Kind::kChunked;
    const std::uint8_t axes = in.byte();
    if (axes == 0 || axes > kMaxRank + 1) in.corrupt(fmt::format("chunks of {} axes", axes));
    result.address = in.number<std::uint64_t>();
    for (int i = 0; i + 1 < axes; ++i) result.chunk.push_back(in.number<std::uint32_t>());
    in.skip(4);  // The element size, which the type states too.
  }
  return result;
}

std::vector<Hdf5Filter> read_hdf5_filters(Hdf5Cursor& in) {
  const std::uint8_t version = in.byte(), count = in.byte();
  if (version != 1 && version != 2) in.corrupt(fmt::format("filters of version {}", version));
  if (version == 1) in.skip(6);
  std::vector<Hdf5Filter> result;
  for (int i = 0; i < count; ++i) {
    const auto id = in.number<std::uint16_t>();
    const bool named = version == 1 || id >= 256;
    const std::size_t name_bytes = named ? in.number<std::uint16_t>() : 0;
    in.skip(2);
    const std::size_t values = in.number<std::uint16_t>();
    in.skip(version == 1 ? (name_bytes + 7) / 8 * 8 : name_bytes);
    in.skip(4 * values);
    if (version == 1 && values % 2 == 1) in.skip(4);
    result.push_back({id});
  }
  return result;
}

}  // namespace plimsoll::internal
