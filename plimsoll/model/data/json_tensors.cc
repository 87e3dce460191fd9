#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/json_file.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;

DType dtype_named(const std::string& name, const std::string& path) {
  try {
    return parse_dtype(name);
  } catch (const Error&) {
    throw Corruption(fmt::format("{}/dtype: \"{}\" is not a dtype", path, name));
  }
}

template <class T>
void fill(std::span<T> to, const Json& data, const std::string& path) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const Json& value = data[i];
    if (value.is_boolean())
      to[i] = static_cast<T>(value.get<bool>() ? 1 : 0);
    else if (value.is_number_integer() && std::is_integral_v<T>)
      to[i] = static_cast<T>(value.get<std::int64_t>());
    else if (value.is_number())
      to[i] = static_cast<T>(value.get<double>());
    else
      throw Corruption(fmt::format("{}/data/{}: expected a number, found {}", path, i, value.type_name()));
  }
}

Tensor read_tensor(const Json& in, const std::string& path) {
  const ConfigReader reader = config_reader(in, path);
  const Shape shape = reader.shape("shape");
  const DType dtype = dtype_named(reader.text("dtype", "float32"), path);
  if (!in.contains("data") || !in["data"].is_array()) throw Corruption(fmt::format("{}/data: expected a list", path));
  if (!shape.is_known() || shape.size() != in["data"].size())
    throw Corruption(fmt::format("{}: {} values do not fill the shape {}", path, in["data"].size(), shape.to_string()));
  Tensor result = make_tensor({.op = "json", .category = Category::kInputs}, shape, dtype, current_host_device());
  const TensorView to = writable(result);
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      throw Unsupported(fmt::format("{}: 16-bit floats are not offered here; write float32", path));
    else
      fill<T>(to.span<T>(), in["data"], path);
  });
  return result;
}

// The shape of lists in lists of numbers, by their first elements.
std::vector<std::int64_t> shape_of_lists(const Json& in, const std::string& path) {
  std::vector<std::int64_t> sizes;
  for (const Json* at = &in; at->is_array(); at = &(*at)[0]) {
    sizes.push_back(static_cast<std::int64_t>(at->size()));
    if (at->empty()) break;
    if (sizes.size() > kMaxRank)
      throw Corruption(fmt::format("{}: lists are nested more than {} deep", path, kMaxRank));
  }
  return sizes;
}

void fill_from_lists(const Json& in, std::span<const std::int64_t> sizes, float*& to, const std::string& path) {
  if (sizes.empty()) {
    if (!in.is_number()) throw Corruption(fmt::format("{}: expected a number, found {}", path, in.type_name()));
    *to++ = in.get<float>();
    return;
  }
  if (!in.is_array() || in.size() != static_cast<std::size_t>(sizes[0]))
    throw Corruption(fmt::format("{}: expected a list of {}", path, sizes[0]));
  for (std::size_t i = 0; i < in.size(); ++i)
    fill_from_lists(in[i], sizes.subspan(1), to, sizes.size() > 2 ? path : fmt::format("{}/{}", path, i));
}

Tensor read_lists(const Json& in, const std::string& path) {
  const std::vector<std::int64_t> sizes = shape_of_lists(in, path);
  Tensor result = make_tensor({.op = "json", .category = Category::kInputs}, Shape(sizes), f32, current_host_device());
  float* to = writable(result).data<float>();
  fill_from_lists(in, sizes, to, path);
  return result;
}

}  // namespace

std::vector<Tensor> load_json_tensors(const std::string& path) {
  std::vector<Tensor> result;
  with_json_file(path, [&](const Json& document) {
    if (!document.is_array()) throw Corruption(fmt::format("{}: expected a list of tensors", path));
    if (!document.empty() && !document[0].is_object()) return result.push_back(read_lists(document, path));
    for (std::size_t i = 0; i < document.size(); ++i)
      result.push_back(read_tensor(document[i], fmt::format("{}: {}", path, i)));
  });
  return result;
}

}  // namespace plimsoll
