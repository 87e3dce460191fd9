#include "plimsoll/model/onnx/onnx_operators.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace plimsoll::internal {
namespace {

using Family = OnnxOperators (*)();
constexpr Family kFamilies[] = {
    onnx_activation_operators,    onnx_constant_operators,  onnx_control_operators,   onnx_convolution_operators,
    onnx_elementwise_operators,   onnx_index_operators,     onnx_loss_operators,      onnx_movement_operators,
    onnx_normalization_operators, onnx_pooling_operators,   onnx_product_operators,   onnx_quantized_operators,
    onnx_recurrent_operators,     onnx_reduction_operators, onnx_resize_operators,    onnx_search_operators,
    onnx_shape_operators,         onnx_training_operators,  onnx_attention_operators, onnx_sampling_operators,
    onnx_signal_operators,        onnx_bits_operators,
};

using Table = std::multimap<std::string, OnnxOperator, std::less<>>;

const Table& table() {
  static const Table& made = *[] {
    auto* rows = new Table;
    for (const Family family : kFamilies)
      for (const OnnxOperator& row : family()) rows->emplace(row.name, row);
    return rows;
  }();
  return made;
}

}  // namespace

const OnnxOperator* find_onnx_operator(std::string_view domain, std::string_view name, std::int64_t version) {
  const auto [first, last] = table().equal_range(name);
  for (auto row = first; row != last; ++row)
    if (row->second.domain == domain && row->second.since <= version && version <= row->second.until)
      return &row->second;
  return nullptr;
}

std::vector<OnnxOperator> all_onnx_operators() {
  std::vector<OnnxOperator> rows;
  for (const auto& [name, row] : table()) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const OnnxOperator& a, const OnnxOperator& b) {
    return std::tuple(std::string_view(a.domain), std::string_view(a.name), a.since) <
           std::tuple(std::string_view(b.domain), std::string_view(b.name), b.since);
  });
  return rows;
}

}  // namespace plimsoll::internal
