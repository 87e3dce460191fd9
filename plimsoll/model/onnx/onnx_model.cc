#include "plimsoll/model/onnx/onnx_model.h"

#include <fmt/format.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/input_layer.h"
#include "plimsoll/model/onnx/onnx_layer.h"
#include "plimsoll/model/onnx/onnx_plan.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

OnnxEnd end_of(const onnx::ValueInfo& info) {
  return {info.name, onnx::dtype_of(info.type).value_or(f32), info.shape(), false};
}

void require_shape(const std::string& file, const OnnxEnd& end, const Shape& given) {
  if (!end.shape.is_set()) return;
  bool fits = end.shape.rank() == given.rank();
  for (std::size_t axis = 0; fits && axis < given.rank(); ++axis)
    fits = end.shape[axis] == kUnknownSize || end.shape[axis] == given[axis];
  if (!fits)
    throw InvalidArgument(fmt::format("onnx: \"{}\" takes input \"{}\" of shape {}, was given {}", file, end.name,
                                      end.shape.to_string(), given.to_string()));
}

// A run of one graph on these inputs: planned where that is possible, else operation by operation.
struct Whole {
  std::vector<Tensor> inputs;
  std::size_t beside = 0;          // Weights, constants and inputs.
  std::shared_ptr<OnnxPlan> plan;  // nullptr: elements decide sizes.
  const OnnxLayer& layer;

  Whole(const OnnxLayer& of, std::vector<Tensor> given) : inputs(std::move(given)), layer(of) {
    beside = layer.held_bytes();
    std::vector<TensorSpec> specs;
    std::vector<Tensor> known;
    bool any_known = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      beside += whole_blocks(inputs[i].nbytes());
      specs.push_back({inputs[i].shape(), inputs[i].dtype()});
      known.push_back(layer.graph().is_known_input(i) ? inputs[i] : Tensor());
      any_known = any_known || layer.graph().is_known_input(i);
    }
    try {
      plan = any_known ? std::make_shared<OnnxPlan>(layer, specs, known) : layer.plans().get(layer, specs);
    } catch (const FailedPrecondition&) {  // Elements decide.
    } catch (const InvalidArgument&) {     // Run directly, it says the same; branches of several shapes do not.
    }
  }
  std::vector<Tensor> run() const { return plan ? plan->run(inputs) : layer.run(inputs, {}, false); }
};

[[noreturn]] void refuse(const std::string& file, std::size_t needed, std::size_t budget) {
  OutOfMemoryDetails details{.requested = needed, .limit = budget, .smallest_sufficient_limit = needed};
  details.what = fmt::format("predict: \"{}\" needs {} with its weights and inputs, its budget is {}; give it {} bytes",
                             file, format_bytes_exactly(needed), format_bytes_exactly(budget), needed);
  throw_refusal(std::move(details), {.budget = "predict", .op = "predict", .scope = ""});
}

}  // namespace

OnnxModel::OnnxModel(const std::filesystem::path& path, const LoadOnnxOptions& options) {
  layer_ = std::make_shared<OnnxLayer>(OnnxGraph::read(OnnxFile::open(path)), options.weights);
}

OnnxModel::OnnxModel(const Model& model) {
  for (const auto& layer : model.network().layers())
    if (auto found = std::dynamic_pointer_cast<OnnxLayer>(layer)) layer_ = std::move(found);
  if (!layer_) throw InvalidArgument(fmt::format("onnx: model \"{}\" was not read from an ONNX file", model.name()));
}

std::vector<OnnxEnd> OnnxModel::inputs() const {
  std::vector<OnnxEnd> ends;
  for (std::size_t i = 0; i < layer_->graph().inputs().size(); ++i) {
    ends.push_back(end_of(layer_->graph().inputs()[i]));
    ends.back().decides_shapes = layer_->graph().is_known_input(i);
  }
  return ends;
}

std::vector<OnnxEnd> OnnxModel::outputs() const {
  std::vector<OnnxEnd> ends;
  for (const onnx::ValueInfo& info : layer_->graph().outputs()) ends.push_back(end_of(info));
  return ends;
}

std::size_t OnnxModel::num_parameters() const {
  std::size_t count = 0;
  for (const LayerBase::Weight& weight : layer_->own_weights()) count += weight.variable.size();
  return count;
}

Model OnnxModel::model() const {
  std::vector<LayerOutput> inputs, outputs;
  for (const OnnxEnd& end : this->inputs()) {
    auto input = std::make_shared<InputLayer>();
    input->set_name(end.name);
    input->set_batch_shape(end.shape.is_set() ? end.shape : Shape{kUnknownSize});
    input->set_input_dtype(end.dtype);
    inputs.push_back(input_of(std::move(input)));
  }
  const std::string& file = layer_->graph().file().name();
  if (inputs.empty())
    throw Unsupported(fmt::format("\"{}\": a model without inputs is unsupported here; ask OnnxModel", file));
  layer_->leave_file();  // Training writes to them, inside a budget that counts them from the start.
  const std::vector<LayerOutput> results = Layer(layer_).outputs(inputs);
  const std::vector<OnnxEnd> ends = this->outputs();
  for (std::size_t i = 0; i < results.size(); ++i)
    outputs.push_back(Layer(std::make_shared<OnnxOutput>(ends[i].name))(results[i]));
  return Model(inputs, outputs, {.name = std::filesystem::path(file).stem().string()});
}

namespace {

// While it lives, the model's device is the current one.
class ThereScope {
 public:
  explicit ThereScope(const OnnxLayer& layer) {
    if (!layer.device().empty()) scope_.emplace(layer.device());
  }

 private:
  std::optional<DeviceScope> scope_;
};

// In the order of the file's inputs, on the current device.
std::vector<Tensor> ordered(const OnnxModel& model, const std::map<std::string, Tensor>& given) {
  const std::string& file = model.layer()->graph().file().name();
  std::vector<Tensor> inputs;
  for (const OnnxEnd& end : model.inputs()) {
    const auto found = given.find(end.name);
    if (found == given.end())
      throw NotFound(fmt::format("onnx: \"{}\" takes an input \"{}\"; give it", file, end.name));
    const Tensor& tensor = found->second;
    if (tensor.dtype() != end.dtype)
      throw InvalidArgument(fmt::format("onnx: \"{}\" takes input \"{}\" of {}, was given {}", file, end.name,
                                        dtype_name(end.dtype), dtype_name(tensor.dtype())));
    require_shape(file, end, tensor.shape());
    inputs.push_back(tensor.to(current_device().name()));
  }
  return inputs;
}

}  // namespace

std::vector<Tensor> OnnxModel::predict(const std::map<std::string, Tensor>& given,
                                       const OnnxPredictOptions& options) const {
  return tidy([&] {
    const ThereScope there(*layer_);
    const Whole whole(*layer_, ordered(*this, given));
    std::optional<Budget> budget;
    std::optional<BudgetScope> scope;
    if (options.budget) {
      const std::string& file = layer_->graph().file().name();
      const std::size_t needed = whole.beside + (whole.plan ? whole.plan->program().smallest_block_bytes() : 0);
      if (needed > *options.budget) refuse(file, needed, *options.budget);
      const std::size_t left = std::max<std::size_t>(1, *options.budget - whole.beside);
      const std::optional<Budget> around = Budget::current();
      budget = around ? Budget("predict", left, *around) : Budget("predict", left);
      scope.emplace(*budget);
    }
    std::vector<Tensor> results = whole.run();
    for (Tensor& result : results)  // The caller's alone: not an input, nor one of the model's.
      result = result.reshape(result.shape());
    return results;
  });
}

MemoryForecast OnnxModel::forecast(const std::map<std::string, Shape>& shapes) const {
  const std::string& file = layer_->graph().file().name();
  std::vector<TensorSpec> specs;
  std::size_t beside = layer_->held_bytes(), bytes = 0;
  for (const OnnxEnd& end : inputs()) {
    const auto found = shapes.find(end.name);
    const Shape shape = found != shapes.end() ? found->second : end.shape;
    if (end.decides_shapes)
      throw FailedPrecondition(
          fmt::format("forecast: elements of input \"{}\" of \"{}\" decide shapes; give them", end.name, file));
    if (!shape.is_known())
      throw FailedPrecondition(fmt::format("forecast: input \"{}\" of \"{}\" has shape {}; give its sizes", end.name,
                                           file, shape.to_string()));
    require_shape(file, end, shape);
    specs.push_back({shape, end.dtype});
    bytes += whole_blocks(specs.back().bytes());
  }
  const ThereScope there(*layer_);
  const OnnxPlan plan(*layer_, specs, std::vector<Tensor>(specs.size()));
  MemoryForecast forecast = plan.forecast(beside + bytes);
  forecast.by_category["parameters"] += beside;
  forecast.by_category["inputs"] += bytes;
  return forecast;
}

MemoryForecast OnnxModel::forecast(const std::map<std::string, Tensor>& given) const {
  const TidyScope tensors;
  const ThereScope there(*layer_);
  const Whole whole(*layer_, ordered(*this, given));
  MemoryForecast forecast;
  if (whole.plan) {
    forecast = whole.plan->forecast(whole.beside);
  } else {
    const std::optional<Budget> around = Budget::current();
    const std::size_t unlimited = std::size_t{1} << 60;
    Budget measured = around ? Budget("forecast", unlimited, *around) : Budget("forecast", unlimited);
    {
      const BudgetScope scope(measured);
      const TidyScope inside;
      whole.run();
    }
    forecast.peak_bytes = forecast.lower_bound_bytes = forecast.smallest_budget = forecast.floor_bytes =
        whole.beside + measured.peak();
    forecast.by_category["activations"] = measured.peak();
    forecast.front = {{forecast.peak_bytes, 1}};
  }
  forecast.by_category["parameters"] += layer_->held_bytes();
  forecast.by_category["inputs"] += whole.beside - layer_->held_bytes();
  return forecast;
}

Model load_onnx(const std::filesystem::path& path, const LoadOnnxOptions& options) {
  return OnnxModel(path, options).model();
}

}  // namespace plimsoll
