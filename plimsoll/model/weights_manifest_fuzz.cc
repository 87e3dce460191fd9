// A manifest of any bytes beside weights of any bytes after its first zero byte is read or refused.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/model/internal/weights_manifest.h"

namespace {

std::string folder() {
  static const std::string kPath = [] {
    plimsoll::config::set_logical_device_configuration(plimsoll::config::list_physical_devices("CPU").at(0),
                                                       {{.memory_limit = 64 << 20}});
    std::string path = (std::filesystem::temp_directory_path() / "weights_manifest_fuzz_XXXXXX").string();
    return std::string(mkdtemp(path.data()));
  }();
  return kPath;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(all.find('\0'), all.size());
  const auto manifest = nlohmann::json::parse(all.substr(0, end), nullptr, false);
  if (manifest.is_discarded()) return 0;
  std::ofstream(folder() + "/weights.bin") << all.substr(std::min(end + 1, all.size()));
  try {
    plimsoll::read_weights(manifest, folder(), "manifest");
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  } catch (const plimsoll::NotFound&) {
  } catch (const plimsoll::OutOfMemory&) {
  }
  return 0;
}
