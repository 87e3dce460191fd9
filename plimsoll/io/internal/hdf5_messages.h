// The messages of an HDF5 object header that describe a dataset: its type, its sizes, and where its bytes are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/io/internal/hdf5_bytes.h"

namespace plimsoll::internal {

struct Hdf5Type {
  enum class Kind : std::uint8_t { kOther, kNumber, kText, kLongText };  // kLongText: in the global heap.
  Kind kind = Kind::kOther;
  std::optional<DType> dtype;  // For numbers; empty when it is not supported.
  bool big_endian = false;
  std::uint32_t size = 0;  // Of an element.
  std::string name;        // For messages: "float of 4 bytes".
};

struct Hdf5Filter {
  static constexpr std::uint16_t kDeflate = 1, kShuffle = 2, kFletcher = 3;
  std::uint16_t id = 0;
};

struct Hdf5Layout {
  enum class Kind : std::uint8_t { kNone, kCompact, kContiguous, kChunked, kOther };
  Kind kind = Kind::kNone;
  std::uint64_t address = kHdf5Nowhere, size = 0;  // Of the bytes; of chunks, the address of their tree.
  std::vector<std::uint32_t> chunk;                // Sizes of a chunk.
};

// A type that is not supported (compound, references) has kind kOther and is not an error.
Hdf5Type read_hdf5_type(Hdf5Cursor& in);
// Empty for a dataspace without elements. Throws Corruption for sizes that no tensor can have.
std::optional<Shape> read_hdf5_space(Hdf5Cursor& in);
Hdf5Layout read_hdf5_layout(Hdf5Cursor& in);
std::vector<Hdf5Filter> read_hdf5_filters(Hdf5Cursor& in);

}  // namespace plimsoll::internal
