// Reads any bytes as an HDF5 file: succeeds or is refused; memory stays within what deflate can produce.
#include "plimsoll/base/error.h"
#include "plimsoll/io/hdf5.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    const plimsoll::Hdf5File file(std::as_bytes(std::span(data, size)));
    for (const plimsoll::Hdf5Entry& entry : file.entries()) {
      try {
        if (file.read(entry.name).nbytes() > 1040 * size) __builtin_trap();
      } catch (const plimsoll::Unsupported&) {
      }
    }
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  }
  return 0;
}
