// The JSON header of a safetensors file, parsed without building a document: memory grows with the entries, whatever
// the text is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/io/safetensors.h"

namespace plimsoll::internal {

class HeaderError : public std::runtime_error {
 public:
  HeaderError(std::size_t place, const std::string& what) : std::runtime_error(what), offset(place) {}
  std::size_t offset;  // In the header.
};

struct SafetensorsHeader {
  FileMetadata metadata;
  std::vector<SafetensorsEntry> entries;  // In the order of their bytes; offsets count from the end of the header.
};

// Throws HeaderError for anything else; entries must follow each other without holes from 0 on.
SafetensorsHeader parse_safetensors_header(std::string_view text);

std::optional<DType> safetensors_dtype(std::string_view name) noexcept;
const char* safetensors_dtype_name(DType dtype) noexcept;

}  // namespace plimsoll::internal
