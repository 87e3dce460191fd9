// Reads any bytes as an archive or an array: succeeds or is refused; memory stays within what deflate can produce.
#include "plimsoll/base/error.h"
#include "plimsoll/io/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    if (size > 0 && data[0] == 0x93) {
      if (plimsoll::load_npy(bytes).nbytes() > size) __builtin_trap();
      return 0;
    }
    const plimsoll::NpzFile file(bytes);
    for (const std::string& name : file.names())
      if (file.read(name).nbytes() > 1040 * size) __builtin_trap();
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  }
  return 0;
}
