// Reads any bytes as a manifest, with the bytes after the first zero byte as weights, or refuses them.

#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/model/keras/fuzz_folder.h"
#include "plimsoll/model/keras/weights_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = plimsoll::split_off_weights({reinterpret_cast<const char*>(data), size});
  const auto manifest = try_parse_json(text);
  if (manifest.is_discarded()) return 0;
  try {
    plimsoll::read_weights(manifest, plimsoll::fuzz_folder(), "manifest");
  } catch (const plimsoll::Corruption&) {
  } catch (const plimsoll::Unsupported&) {
  } catch (const plimsoll::NotFound&) {
  } catch (const plimsoll::OutOfMemory&) {
  }
  return 0;
}
