// Loads any bytes as a .keras or .h5 file, or refuses them.
#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/fuzz_folder.h"
#include "plimsoll/model/keras/keras_file.h"
#include "plimsoll/tensor/memory_info.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string path = plimsoll::fuzz_folder() + "/model.keras";
  std::ofstream(path, std::ios::binary) << std::string_view(reinterpret_cast<const char*>(data), size);
  try {
    plimsoll::load_keras(path);
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  } catch (const plimsoll::NotFound&) {
  } catch (const plimsoll::OutOfMemory&) {
  }
  if (plimsoll::memory().num_tensors != 0) __builtin_trap();
  return 0;
}
