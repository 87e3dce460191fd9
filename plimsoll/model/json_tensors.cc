#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/config.h"
#include "plimsoll/model/internal/json_file.h"
#include "plimsoll/model/layers_model.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;

DType dtype_named(const std::string& name, const std::string& path) {
  try {
    return parse_dtype(name);
  } catch (const Error&) {
    throw Corruption(fmt::format("{}/dtype: \"{}\" is no dtype", path, name));
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
  const ConfigReader reader(in, path);
  const Shape shape = reader.shape("shape");
  const DType dtype = dtype_named(reader.text("dtype", "float32"), path);
  if (!in.contains("data") || !in["data"].is_array()) throw Corruption(fmt::format("{}/data: expected a list", path));
  if (!shape.is_known() || shape.size() != in["data"].size())
    throw Corruption(fmt::format("{}: {} values do not fill the shape {}", path, in["data"].size(), shape.to_string()));
  const Tensor result = make_tensor({.op = "json", .category = Category::kInputs}, shape, dtype, current_device());
  const TensorView to = writable(result);
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      throw Unsupported(fmt::format("{}: 16-bit floats are not offered here; write float32", path));
    else
      fill<T>(to.span<T>(), in["data"], path);
  });
  return result;
}

}  // namespace

std::vector<Tensor> load_json_tensors(const std::string& path) {
  const Json document = read_json_file(path);
  if (!document.is_array()) throw Corruption(fmt::format("{}: expected a list of tensors", path));
  std::vector<Tensor> result;
  for (std::size_t i = 0; i < document.size(); ++i)
    result.push_back(read_tensor(document[i], fmt::format("{}: {}", path, i)));
  return result;
}

}  // namespace plimsoll
