#include "plimsoll/model/keras/call_references.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

using Json = nlohmann::json;

Reference read_reference(const Json& in, const std::string& path) {
  const bool good =
      in.is_array() && in.size() >= 3 && in[0].is_string() && in[1].is_number_unsigned() && in[2].is_number_unsigned();
  if (!good) throw Corruption(fmt::format("{}: expected [layer, node, tensor]", path));
  return {in[0].get<std::string>(), in[1].get<std::size_t>(), in[2].get<std::size_t>()};
}

// Inputs that Keras passes by name: {"value": ["x", 0, 0]}, {"initial_state": [["h", 0, 0], ["c", 0, 0]]}.
void read_named_inputs(const Json& call, const std::string& path, std::vector<Reference>& to) {
  if (call.size() < 4 || !call[3].is_object()) return;
  for (const auto& [key, value] : call[3].items())
    if (key != "training" && key != "value" && key != "key" && key != "initial_state" && !value.is_null() &&
        value != false)
      throw Unsupported(fmt::format("{}: a call with \"{}\" is not offered", path, key));
  for (const char* key : {"value", "key", "initial_state"}) {
    if (!call[3].contains(key) || call[3][key].is_null()) continue;
    const Json& given = call[3][key];
    const bool is_one = given.is_array() && !given.empty() && given[0].is_string();
    if (!is_one && !given.is_array()) throw Corruption(fmt::format("{}/{}: expected a list", path, key));
    if (is_one)
      to.push_back(read_reference(given, path));
    else
      for (const Json& each : given) to.push_back(read_reference(each, path));
  }
}

// The tensors in one argument: one, a list of them, or none.
void take_tensors(const Json& in, const std::string& path, std::vector<Reference>& to) {
  if (in.is_null() || in == false) return;
  if (in.is_array()) {
    for (const Json& each : in) take_tensors(each, path, to);
    return;
  }
  const bool is_tensor = in.is_object() && in.contains("class_name") && in["class_name"] == "__keras_tensor__" &&
                         in.contains("config") && in["config"].is_object() && in["config"].contains("keras_history");
  if (!is_tensor)
    throw Unsupported(fmt::format("{}: an argument that is neither a tensor nor a list of them is not offered", path));
  to.push_back(read_reference(in["config"]["keras_history"], path));
}

}  // namespace

// ["a", 0, 0], or [["a", 0, 0], ...].
std::vector<Reference> read_references(const Json& in, const std::string& path) {
  if (in.is_array() && !in.empty() && in[0].is_string()) return {read_reference(in, path)};
  if (!in.is_array() || in.empty()) throw Corruption(fmt::format("{}: expected a list of [layer, node, tensor]", path));
  std::vector<Reference> result;
  for (const Json& each : in) result.push_back(read_reference(each, path));
  for (const Json& each : in) read_named_inputs(each, path, result);
  return result;
}

std::vector<Reference> read_call(const Json& in, const std::string& path) {
  if (!in.contains("args") || !in["args"].is_array() || !in.contains("kwargs") || !in["kwargs"].is_object())
    throw Corruption(fmt::format("{}: expected args and kwargs", path));
  std::vector<Reference> result;
  take_tensors(in["args"], path + "/args", result);
  // The same order as that of the layers' inputs: a query's value, then its key; then states.
  const Json& named = in["kwargs"];
  for (const char* key : {"query", "inputs", "sequence", "value", "key", "initial_state"})
    if (named.contains(key)) take_tensors(named[key], path + "/kwargs/" + key, result);
  static const std::set<std::string> kRead = {"query", "inputs", "sequence", "value", "key", "initial_state"};
  for (const auto& [key, value] : named.items())
    if (kRead.count(key) == 0 && !value.is_null() && value != false)
      throw Unsupported(fmt::format("{}: a call with \"{}\" is not offered", path, key));
  if (result.empty()) throw Corruption(fmt::format("{}: a call without tensors", path));
  return result;
}

}  // namespace plimsoll::internal
