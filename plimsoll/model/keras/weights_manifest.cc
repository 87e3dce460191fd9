#include "plimsoll/model/keras/weights_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "plimsoll/base/error.h"
#include "plimsoll/base/half.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct WeightSpec {
  std::string name;
  Shape shape;
  DType dtype = f32;
  std::string quantized;  // "", "uint8", "uint16" or "float16".
  double scale = 1, min = 0;
  bool of_optimizer = false;

  std::size_t stored_bytes() const {
    const std::size_t size = quantized.empty() ? size_of(dtype) : quantized == "uint8" ? 1 : 2;
    return size * shape.size();
  }
};

DType dtype_of(const std::string& name, const std::string& weight, const std::string& path) {
  if (name == "float32") return f32;
  if (name == "int32") return i32;
  if (name == "bool") return boolean;
  if (name == "string" || name == "complex64")
    throw Unsupported(fmt::format("{}: weight \"{}\" is of {}, which is not offered", path, weight, name));
  throw Corruption(fmt::format("{}: weight \"{}\" has the dtype \"{}\", which is none", path, weight, name));
}

void read_quantization(WeightSpec& spec, const Json& in, const std::string& path) {
  const ConfigReader quantization = config_reader(in, path);
  spec.quantized = quantization.text("dtype", "");
  if (spec.quantized != "uint8" && spec.quantized != "uint16" && spec.quantized != "float16")
    throw Corruption(fmt::format("{}: weight \"{}\" is quantized as \"{}\"; uint8, uint16 and float16 are known", path,
                                 spec.name, spec.quantized));
  if (spec.quantized == "float16") {
    if (spec.dtype != f32) throw Corruption(fmt::format("{}: weight \"{}\" is float16 of no float32", path, spec.name));
    return;
  }
  if (!quantization.has("scale") || !quantization.has("min"))
    throw Corruption(fmt::format("{}: weight \"{}\" is quantized without min and scale", path, spec.name));
  spec.scale = quantization.number("scale", 1);
  spec.min = quantization.number("min", 0);
  if (spec.dtype == boolean) throw Corruption(fmt::format("{}: weight \"{}\" is quantized bool", path, spec.name));
}

WeightSpec read_spec(const Json& in, const std::string& path) {
  const ConfigReader reader = config_reader(in, path);
  WeightSpec spec;
  spec.name = reader.text("name", "");
  if (spec.name.empty()) throw Corruption(fmt::format("{}: a weight without a name", path));
  spec.shape = reader.shape("shape");
  if (!spec.shape.is_known()) throw Corruption(fmt::format("{}: weight \"{}\" has unknown sizes", path, spec.name));
  spec.dtype = dtype_of(reader.text("dtype", ""), spec.name, path);
  spec.of_optimizer = reader.text("group", "") == "optimizer";
  if (reader.has("quantization")) read_quantization(spec, in["quantization"], path + "/quantization");
  return spec;
}

fs::path weight_file(const std::string& directory, const std::string& name, const std::string& path) {
  const fs::path relative(name);
  bool leaves = name.empty() || relative.is_absolute();
  for (const fs::path& part : relative) leaves = leaves || part == "..";
  if (leaves) throw Corruption(fmt::format("{}: the weights file \"{}\" is not in the model's folder", path, name));
  return fs::path(directory) / relative;
}

// Refuses everything at once, so that the limit named is sufficient: for the files' bytes and every weight. The block
// has no pages as long as nothing writes to it.
void require_room(const std::vector<WeightSpec>& specs, std::size_t file_bytes) {
  const auto add = [](std::size_t& sum, std::size_t bytes) {
    if (bytes > SIZE_MAX / 4 - sum) throw Corruption("model.json: the weights are larger than any memory");
    sum += (bytes + 63) / 64 * 64;
  };
  std::size_t weights = 0;
  for (const WeightSpec& spec : specs) add(weights, size_of(spec.dtype) * spec.shape.size());
  const auto probe = [](std::size_t bytes, Device& device) {
    if (bytes > 0) static_cast<void>(make_tensor({.op = "weights"}, {bytes}, u8, device));
  };
  if (&current_device() != &current_host_device()) return probe(weights, current_device());
  add(weights, file_bytes);
  probe(weights, current_device());
}

// All files one after the other, in memory of the arena.
Tensor read_stream(const std::vector<fs::path>& files, const std::vector<WeightSpec>& specs, std::size_t expected) {
  std::size_t total = 0;
  std::vector<std::size_t> sizes;
  for (const fs::path& file : files) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (error) throw NotFound(fmt::format("{}: cannot be opened ({})", file.string(), error.message()));
    sizes.push_back(size);
    total += size;
  }
  if (total != expected)
    throw Corruption(fmt::format("{}: the weights' files have {} bytes, the manifest says {}",
                                 files.empty() ? "model.json" : files.back().string(), total, expected));
  require_room(specs, total);
  Tensor stream = make_tensor({.op = "weights", .category = Category::kOther}, {total}, u8, current_host_device());
  char* to = reinterpret_cast<char*>(writable(stream).data<std::uint8_t>());
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::ifstream in(files[i], std::ios::binary);
    if (!in.read(to, static_cast<std::streamsize>(sizes[i])))
      throw Corruption(fmt::format("{}: only {} of {} bytes could be read", files[i].string(), in.gcount(), sizes[i]));
    to += sizes[i];
  }
  return stream;
}

template <class Q>
Q load(const std::uint8_t* from, std::size_t i) {  // Values are not aligned.
  Q value;
  std::memcpy(&value, from + i * sizeof(Q), sizeof(Q));
  return value;
}

template <class Q>
void dequantize(const WeightSpec& spec, const std::uint8_t* from, const TensorView& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const double value = load<Q>(from, i) * spec.scale + spec.min;
    if (spec.dtype == f32)
      to.data<float>()[i] = static_cast<float>(value);
    else
      to.data<std::int32_t>()[i] =
          static_cast<std::int32_t>(std::clamp(std::floor(value + 0.5), -2147483648.0, 2147483647.0));
  }
}

Tensor decode(const WeightSpec& spec, const std::uint8_t* from) {
  Tensor result =
      make_tensor({.op = "weight", .category = Category::kParameters}, spec.shape, spec.dtype, current_device());
  const HostWrite written(result);
  const TensorView& to = written.view();
  if (spec.quantized == "uint8")
    dequantize<std::uint8_t>(spec, from, to);
  else if (spec.quantized == "uint16")
    dequantize<std::uint16_t>(spec, from, to);
  else if (spec.quantized == "float16")
    for (std::size_t i = 0; i < to.size(); ++i) to.data<float>()[i] = static_cast<float>(load<float16>(from, i));
  else if (spec.dtype == boolean)
    for (std::size_t i = 0; i < to.size(); ++i) to.data<bool>()[i] = from[i] != 0;
  else if (to.size() > 0)
    std::memcpy(to.bytes(), from, spec.stored_bytes());
  return result;
}

}  // namespace

NamedWeights read_weights(const Json& manifest, const std::string& directory, const std::string& path) {
  if (!manifest.is_array()) throw Corruption(fmt::format("{}: expected a list of groups", path));
  std::vector<WeightSpec> specs;
  std::vector<fs::path> files;
  std::size_t bytes = 0;
  for (std::size_t g = 0; g < manifest.size(); ++g) {
    const std::string at = fmt::format("{}/{}", path, g);
    const Json& group = manifest[g];
    if (!group.is_object() || !group.contains("paths") || !group["paths"].is_array() || !group.contains("weights") ||
        !group["weights"].is_array())
      throw Corruption(fmt::format("{}: expected paths and weights", at));
    for (const Json& file : group["paths"]) {
      if (!file.is_string()) throw Corruption(fmt::format("{}/paths: expected text", at));
      files.push_back(weight_file(directory, file.get<std::string>(), at));
    }
    for (std::size_t i = 0; i < group["weights"].size(); ++i) {
      specs.push_back(read_spec(group["weights"][i], fmt::format("{}/weights/{}", at, i)));
      if (specs.back().stored_bytes() > SIZE_MAX / 2 - bytes)
        throw Corruption(fmt::format("{}: weight \"{}\" is larger than any file", at, specs.back().name));
      bytes += specs.back().stored_bytes();
    }
  }
  const Tensor stream = read_stream(files, specs, bytes);
  const std::uint8_t* from = stream.view().data<std::uint8_t>();
  NamedWeights result;
  for (const WeightSpec& spec : specs) {
    auto& group = spec.of_optimizer ? result.optimizer : result.weights;
    if (!group.emplace(spec.name, decode(spec, from)).second)
      throw Corruption(fmt::format("{}: weight \"{}\" is there twice", path, spec.name));
    from += spec.stored_bytes();
  }
  return result;
}

}  // namespace plimsoll::internal
