// Reads any bytes as an ONNX file, or refuses them; its tensors are no larger than the file allows.
#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/onnx/onnx_graph.h"
#include "plimsoll/model/onnx/onnx_layer.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const plimsoll::Budget budget("fuzz", std::size_t{64} << 20);
  const plimsoll::BudgetScope scope(budget);
  try {
    auto file = std::make_shared<const plimsoll::OnnxFile>("fuzz.onnx",
                                                           std::string_view(reinterpret_cast<const char*>(data), size));
    const plimsoll::OnnxLayer layer(plimsoll::OnnxGraph::read(std::move(file)), true);
  } catch (const plimsoll::Error&) {
  }
  return 0;
}
