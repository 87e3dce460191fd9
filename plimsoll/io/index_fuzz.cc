// Reads any bytes as an index table: succeeds or is refused, and never uses more memory than its limit.
#include "plimsoll/base/error.h"
#include "plimsoll/io/internal/table.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const plimsoll::InputFile file("fuzz", std::as_bytes(std::span(data, size)));
  try {
    plimsoll::read_table(file,  // Without checksums, which would hide everything behind them.
                         {.max_bytes = 16 << 20, .verify_checksums = false});
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  }
  return 0;
}
