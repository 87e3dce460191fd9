// Splits any bytes into fields, or refuses them; every byte of a field comes from the text.
#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/csv_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::size_t at = 0, bytes = 0;
  const auto feed = [&](std::span<char> to) {
    const std::size_t count = std::min(to.size(), size - at);
    if (count > 0) std::memcpy(to.data(), data + at, count);
    at += count;
    return count;
  };
  try {
    plimsoll::CsvReader reader(feed, "fuzz", ',');
    while (reader.next()) {
      if (reader.fields().empty() || reader.line() == 0) __builtin_trap();
      for (const std::string& field : reader.fields()) bytes += field.size();
    }
    if (bytes > size) __builtin_trap();
  } catch (const plimsoll::Corruption&) {
  }
  return 0;
}
