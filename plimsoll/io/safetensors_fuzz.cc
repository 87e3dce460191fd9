// Reads any bytes as a safetensors file: succeeds or is refused; its tensors are exactly its bytes.
#include "plimsoll/base/error.h"
#include "plimsoll/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    const plimsoll::SafetensorsFile file(std::as_bytes(std::span(data, size)));
    for (const plimsoll::SafetensorsEntry& entry : file.entries())
      if (entry.dtype && file.read(entry.name).nbytes() > size) __builtin_trap();
  } catch (const plimsoll::Corruption&) {
  }
  return 0;
}
