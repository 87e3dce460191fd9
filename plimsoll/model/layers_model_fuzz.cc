// A model.json of any bytes, with weights of any bytes after its first zero byte, is loaded or refused.
#include <filesystem>
#include <fstream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/model/layers_model.h"
#include "plimsoll/tensor/memory_info.h"

namespace {

std::string folder() {
  static const std::string kPath = [] {
    plimsoll::config::set_logical_device_configuration(plimsoll::config::list_physical_devices("CPU").at(0),
                                                       {{.memory_limit = 64 << 20}});
    std::string path = (std::filesystem::temp_directory_path() / "layers_model_fuzz_XXXXXX").string();
    return std::string(mkdtemp(path.data()));
  }();
  return kPath;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(all.find('\0'), all.size());
  std::ofstream(folder() + "/model.json") << all.substr(0, end);
  std::ofstream(folder() + "/weights.bin") << all.substr(std::min(end + 1, all.size()));
  try {
    plimsoll::load_layers_model(folder() + "/model.json");
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  } catch (const plimsoll::NotFound&) {
  } catch (const plimsoll::OutOfMemory&) {
  }
  if (plimsoll::memory().num_tensors != 0) __builtin_trap();
  return 0;
}
