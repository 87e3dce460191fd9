// The small parsers of base: any text yields a value or an InvalidArgument, and a printed size is read back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/processors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::size_t bytes = plimsoll::parse_bytes(text);
    if (bytes < 1024 && plimsoll::parse_bytes(plimsoll::format_bytes(bytes)) != bytes) __builtin_trap();
  } catch (const plimsoll::InvalidArgument&) {
  }
  try {
    plimsoll::parse_dtype(text);
  } catch (const plimsoll::InvalidArgument&) {
  }
  if (plimsoll::processors_of_quota(text) < 0) __builtin_trap();
  return 0;
}
