// Reads any bytes as a checkpoint, the first two being the length of the index: succeeds or is refused; what is read
// fits the data.
#include "plimsoll/base/error.h"
#include "plimsoll/io/bundle.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const std::size_t index_bytes = std::min<std::size_t>(bytes.size(), data[0] | data[1] << 8);
  const std::span<const std::byte> shard = bytes.subspan(index_bytes);
  try {
    const plimsoll::BundleReader reader(bytes.first(index_bytes), {&shard, 1}, {.verify_checksums = false});
    for (const plimsoll::BundleEntry& entry : reader.entries()) try {
        reader.verify(entry.key);
        if (entry.dtype && reader.read(entry.key).nbytes() > shard.size()) __builtin_trap();  // Slices, too.
      } catch (const plimsoll::Corruption&) {
      } catch (const plimsoll::NotFound&) {
      } catch (const plimsoll::Unsupported&) {
      }
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  }
  return 0;
}
