// An index table of any bytes is read or refused; never more memory than its limit.
#include "plimsoll/base/error.h"
#include "plimsoll/io/internal/table.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const plimsoll::InputFile file("fuzz", std::as_bytes(std::span(data, size)));
  try {
    plimsoll::read_table(file,
                         {.max_bytes = 16 << 20, .verify_checksums = false});  // Else nothing behind them is reached.
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  }
  return 0;
}
