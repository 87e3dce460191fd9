// Parses any bytes as a tf.Example, or refuses them; it has no more values than bytes.
#include "plimsoll/base/error.h"
#include "plimsoll/model/data/example_proto.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    std::size_t values = 0;
    for (const auto& [name, feature] :
         plimsoll::parse_example(std::string_view(reinterpret_cast<const char*>(data), size))) {
      values += feature.size();
      if (feature.kind() == plimsoll::ExampleValues::Kind::kNone && feature.size() != 0) __builtin_trap();
    }
    if (values > size) __builtin_trap();
  } catch (const plimsoll::Corruption&) {
  }
  return 0;
}
