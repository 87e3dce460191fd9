#include "plimsoll/cli/train/onnx_files.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/train/train_command_data.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll::internal {

bool is_onnx(const std::string& path) { return path.ends_with(".onnx"); }

std::map<std::string, Tensor> load_onnx_inputs(const std::string& npz, const OnnxModel& model) {
  require_form(npz, {".npz"});
  const NpzFile file(npz);
  const std::vector<std::string> names = file.names();
  std::map<std::string, Tensor> inputs;
  for (const OnnxEnd& end : model.inputs()) {
    if (std::find(names.begin(), names.end(), end.name) == names.end())
      throw NotFound(fmt::format("{}: there is no array \"{}\", which the model takes as an input", npz, end.name));
    inputs[end.name] = file.read(end.name);
  }
  return inputs;
}

namespace {

void print_json(const OnnxModel& model, const std::vector<Tensor>& outputs, const OnnxPrediction& arguments) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<OnnxEnd> ends = model.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    list.push_back({{"name", ends[i].name},
                    {"shape", std::vector<std::int64_t>(outputs[i].shape().begin(), outputs[i].shape().end())},
                    {"dtype", dtype_name(outputs[i].dtype())},
                    {"data", outputs[i].cast(f64).to_vector<double>()}});
  print_document(
      {{"outputs", std::move(list)},
       {"peak_bytes", memory_stats().peak_bytes_in_use},
       {"out", arguments.out.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(arguments.out)}});
}

}  // namespace

void predict_onnx(const OnnxPrediction& arguments) {
  const TidyScope tensors;
  if (!arguments.out.empty()) require_form(arguments.out, {".npz"});
  const OnnxModel model(arguments.model);
  OnnxPredictOptions options;
  if (!arguments.budget.empty()) options.budget = parse_bytes(arguments.budget);
  const std::vector<Tensor> outputs = model.predict(load_onnx_inputs(arguments.input, model), options);
  const std::vector<OnnxEnd> ends = model.outputs();
  if (!arguments.out.empty()) {
    TensorTree tree;
    for (std::size_t i = 0; i < outputs.size(); ++i) tree.insert(ends[i].name, outputs[i]);
    save_npz(arguments.out, tree);
  }
  if (arguments.json) return print_json(model, outputs, arguments);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (arguments.out.empty()) std::printf("%s: %s\n", ends[i].name.c_str(), to_string(outputs[i]).c_str());
  if (!arguments.out.empty())
    std::printf("%s in %s.\n",
                outputs.size() == 1 ? "1 output is" : fmt::format("{} outputs are", outputs.size()).c_str(),
                arguments.out.c_str());
  std::fflush(stdout);
}

std::map<std::string, Shape> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> shapes;
  for (const std::string& text : texts) {
    const std::size_t sign = text.rfind('=');
    const auto refuse = [&] {
      throw InvalidArgument(fmt::format("--shape: \"{}\" is not as NAME=1x3x224x224; NAME= is a scalar's", text));
    };
    if (sign == std::string::npos || sign == 0) refuse();
    std::vector<std::int64_t> sizes;
    for (std::size_t begin = sign + 1; begin < text.size();) {
      const std::size_t end = std::min(text.find('x', begin), text.size());
      std::int64_t size = 0;
      const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, size);
      if (error != std::errc() || stop != text.data() + end || size < 0 || end + 1 == text.size()) refuse();
      sizes.push_back(size);
      begin = end + 1;
    }
    shapes[text.substr(0, sign)] = sizes.empty() ? Shape::scalar() : Shape(sizes);
  }
  return shapes;
}

MemoryForecast forecast_onnx(const std::string& path, const std::vector<std::string>& shapes, const std::string& npz) {
  const OnnxModel model(path, {.weights = !npz.empty()});
  if (!npz.empty()) return model.forecast(load_onnx_inputs(npz, model));
  const std::map<std::string, Shape> given = parse_shapes(shapes);
  const std::vector<OnnxEnd> ends = model.inputs();
  for (const auto& [name, shape] : given)
    if (std::none_of(ends.begin(), ends.end(), [&name = name](const OnnxEnd& end) { return end.name == name; }))
      throw NotFound(fmt::format("forecast: {} has no input \"{}\"", path, name));
  return model.forecast(given);
}

}  // namespace plimsoll::internal
