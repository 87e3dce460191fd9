// Loads any bytes as a model.json, with the bytes after the first zero byte as weights, or refuses them.
#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/fuzz_folder.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/tensor/memory_info.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string path = plimsoll::fuzz_folder() + "/model.json";
  std::ofstream(path) << plimsoll::split_off_weights({reinterpret_cast<const char*>(data), size});
  try {
    plimsoll::load_layers_model(path);
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  } catch (const plimsoll::NotFound&) {
  } catch (const plimsoll::OutOfMemory&) {
  }
  if (plimsoll::memory().num_tensors != 0) __builtin_trap();
  return 0;
}
