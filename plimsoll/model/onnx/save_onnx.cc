#include "plimsoll/model/onnx/save_onnx.h"

#include <map>

#include "plimsoll/base/wire.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/onnx/onnx_export.h"
#include "plimsoll/model/onnx/onnx_layer.h"
#include "plimsoll/model/onnx/onnx_writer.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using Values = std::map<std::string, Tensor>;

// A message with some of its fields replaced: `replace` says whether it has written the field.
template <class F>
OnnxMessage rewritten(std::string_view bytes, F&& replace) {
  OnnxMessage message;
  for (WireReader in(bytes); in.next();) {
    if (replace(in, message)) continue;
    if (in.is_bytes())
      message.text(in.field(), in.bytes());
    else
      message.integer(in.field(), in.integer());
  }
  return message;
}

std::string name_in(std::string_view bytes, std::uint32_t field) {
  for (WireReader in(bytes); in.next();)
    if (in.field() == field) return std::string(in.bytes());
  return "";
}

// A Constant node whose value is one of the weights.
OnnxMessage rewritten_node(std::string_view bytes, const Values& values) {
  const auto found = name_in(bytes, 4) == "Constant" ? values.find(name_in(bytes, 2)) : values.end();
  return rewritten(bytes, [&](const WireReader& in, OnnxMessage& out) {
    if (found == values.end() || in.field() != 5 || name_in(in.bytes(), 1) != "value") return false;
    OnnxMessage attribute;
    attribute.text(1, "value");
    attribute.integer(20, 4);
    attribute.message(5, onnx_tensor(found->first, found->second));
    out.message(5, std::move(attribute));
    return true;
  });
}

OnnxMessage rewritten_graph(std::string_view bytes, const Values& values) {
  return rewritten(bytes, [&](const WireReader& in, OnnxMessage& out) {
    if (in.field() == 1) {
      out.message(1, rewritten_node(in.bytes(), values));
      return true;
    }
    const auto found = in.field() == 5 ? values.find(name_in(in.bytes(), 8)) : values.end();
    if (found == values.end()) return false;
    out.message(5, onnx_tensor(found->first, found->second));
    return true;
  });
}

// The file it was read from, with the weights' present values.
OnnxMessage imported(const OnnxLayer& layer) {
  Values values;
  for (std::size_t i = 0; i < layer.graph().weights().size(); ++i)
    if (!layer.graph().weights()[i].sparse) values[layer.graph().weights()[i].name] = layer.weight_value(i);
  return rewritten(layer.graph().file().bytes(), [&](const WireReader& in, OnnxMessage& out) {
    if (in.field() != 7) return false;
    out.message(7, rewritten_graph(in.bytes(), values));
    return true;
  });
}

OnnxMessage exported(const Model& model) {
  OnnxMessage file, opset;
  file.integer(1, OnnxExport::kIrVersion);
  file.text(2, "plimsoll");
  opset.text(1, "");
  opset.integer(2, OnnxExport::kOpset);
  file.message(8, std::move(opset));
  file.message(7, OnnxExport(model).take());
  return file;
}

}  // namespace

void save_onnx(const Model& model, const std::filesystem::path& path) {
  const TidyScope tensors;
  const OnnxLayer* layer = nullptr;
  for (const auto& each : model.network().layers())
    if (const auto* found = dynamic_cast<const OnnxLayer*>(each.get())) layer = found;
  const OnnxMessage message = layer ? imported(*layer) : exported(model);
  AtomicFile file(path);
  message.write(file);
  file.commit();
}

}  // namespace plimsoll
