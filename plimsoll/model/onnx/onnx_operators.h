// The table of ONNX operators: one row per handler, with the versions it supports.
//
//   {"Softmax", 1, 12, softmax_of_rows},           // In a family's file: name, first and last version, handler
//   {"Softmax", 13, kNewest, softmax_of_axis},
//   {"Reshape", 5, kNewest, reshape, kOperand1},   // ... and operands whose elements decide shapes.
//
// A family is a file onnx_<family>.cc that ends with its rows and the function that returns them; onnx_operators.cc
// lists the families. docs/onnx.md lists the operators, and a test compares the two.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/model/onnx/onnx_node.h"

namespace plimsoll::internal {

inline constexpr int kNewest = 1 << 20;
using OnnxHandler = void (*)(OnnxNode&);

// Bits of operands whose elements must be known before the graph runs.
inline constexpr std::uint32_t kOperand0 = 1, kOperand1 = 2, kOperand2 = 4, kOperand3 = 8, kOperand4 = 16;
inline constexpr std::uint32_t kOperandsFrom1 = ~std::uint32_t{1};
// Of kinds of operators.
inline constexpr std::uint32_t kGivesShape = 1;  // Reads its operand's shape only: the result is always known.

struct OnnxOperator {
  const char* name;
  int since, until;  // Versions of the operator set.
  OnnxHandler handler;
  std::uint32_t known = 0;  // Operands, by their bits.
  std::uint32_t facts = 0;
  const char* domain = "";
};
using OnnxOperators = std::span<const OnnxOperator>;

// The families.
OnnxOperators onnx_elementwise_operators();
OnnxOperators onnx_activation_operators();
OnnxOperators onnx_reduction_operators();
OnnxOperators onnx_product_operators();
OnnxOperators onnx_shape_operators();
OnnxOperators onnx_movement_operators();
OnnxOperators onnx_index_operators();
OnnxOperators onnx_constant_operators();
OnnxOperators onnx_convolution_operators();
OnnxOperators onnx_pooling_operators();
OnnxOperators onnx_normalization_operators();
OnnxOperators onnx_recurrent_operators();
OnnxOperators onnx_loss_operators();
OnnxOperators onnx_control_operators();
OnnxOperators onnx_quantized_operators();
OnnxOperators onnx_resize_operators();
OnnxOperators onnx_search_operators();
OnnxOperators onnx_training_operators();
OnnxOperators onnx_attention_operators();
OnnxOperators onnx_sampling_operators();
OnnxOperators onnx_signal_operators();
OnnxOperators onnx_bits_operators();

// The row for an operator at this version of its domain's set; nullptr when there is none.
const OnnxOperator* find_onnx_operator(std::string_view domain, std::string_view name, std::int64_t version);
std::vector<OnnxOperator> all_onnx_operators();  // By name and version.

}  // namespace plimsoll::internal
