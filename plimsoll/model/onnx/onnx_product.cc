// Products of matrices.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/einsum.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {
namespace {

void matmul_of(OnnxNode& node) { node.give(matmul(node.in(0), node.in(1))); }

void gemm(OnnxNode& node) {
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  const bool turns = node.integer("transB", 0) != 0, is_turned = turns && node.value(1).order() == AxisOrder{1, 0};
  Tensor product = matmul(node.in(0), is_turned ? node.value(1).held() : node.in(1),
                          {.transpose_a = node.integer("transA", 0) != 0, .transpose_b = turns && !is_turned});
  if (alpha != 1) product = product * alpha;
  if (node.has(2)) product = product + (beta == 1 ? node.in(2) : node.in(2) * beta);
  node.give(std::move(product));
}

// Replaces two axes of the same letter by their diagonal, which goes to the end.
Tensor diagonal(const Tensor& x, std::size_t first, std::size_t second) {
  std::vector<std::int64_t> order, sizes;
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    if (axis != first && axis != second) {
      order.push_back(static_cast<std::int64_t>(axis));
      sizes.push_back(x.shape()[axis]);
    }
  order.push_back(static_cast<std::int64_t>(first));
  order.push_back(static_cast<std::int64_t>(second));
  const std::int64_t size = x.shape()[first];
  sizes.push_back(size * size);
  const Tensor flat = transpose(x, order).reshape(Shape(sizes));
  std::vector<std::int64_t> begin(sizes.size(), kOpen), end(sizes.size(), kOpen), stride(sizes.size(), 1);
  stride.back() = size + 1;
  return strided_slice(flat, begin, end, stride);
}

// The letters of each operand, with letters of their own for "...", and the output's.
struct Equation {
  std::vector<std::string> operands;
  std::string output;
  bool has_output = false;
};

Equation parse_equation(const OnnxNode& node, std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation equation;
  const std::size_t arrow = text.find("->");
  equation.has_output = arrow != std::string::npos;
  if (equation.has_output) equation.output = text.substr(arrow + 2);
  std::string left = text.substr(0, arrow);
  for (std::size_t begin = 0; begin <= left.size();) {
    const std::size_t end = std::min(left.find(',', begin), left.size());
    equation.operands.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  if (equation.operands.size() != node.num_inputs())
    node.invalid(fmt::format("the equation \"{}\" has {} operands, the node {}", text, equation.operands.size(),
                             node.num_inputs()));
  std::size_t most = 0;  // Axes that "..." stands for.
  for (std::size_t i = 0; i < equation.operands.size(); ++i)
    if (equation.operands[i].find("...") != std::string::npos)
      most = std::max(most, node.rank(i) - std::min(node.rank(i), equation.operands[i].size() - 3));
  const auto expand = [&](std::string& letters, std::size_t axes) {
    const std::size_t dots = letters.find("...");
    if (dots == std::string::npos) return;
    std::string own;
    for (std::size_t i = most - axes; i < most; ++i) own += static_cast<char>('0' + i);
    letters.replace(dots, 3, own);
  };
  if (most > 10) node.unsupported("more than 10 axes of \"...\"");
  for (std::size_t i = 0; i < equation.operands.size(); ++i)
    expand(equation.operands[i], node.rank(i) - std::min(node.rank(i), equation.operands[i].size() - 3));
  expand(equation.output, most);
  return equation;
}

// Our einsum takes letters only: digits, which stand for "...", become letters that are free.
void use_letters(Equation& equation) {
  std::string all = equation.output;
  for (const std::string& operand : equation.operands) all += operand;
  char next = 'A';
  for (char digit = '0'; digit <= '9'; ++digit) {
    if (all.find(digit) == std::string::npos) continue;
    while (all.find(next) != std::string::npos) ++next;
    for (std::string& operand : equation.operands) std::replace(operand.begin(), operand.end(), digit, next);
    std::replace(equation.output.begin(), equation.output.end(), digit, next);
    all += next;
  }
}

void einsum_of(OnnxNode& node) {
  Equation equation = parse_equation(node, node.text("equation", ""));
  if (!equation.has_output) {
    std::map<char, int> counts;
    for (const std::string& operand : equation.operands)
      for (const char letter : operand) ++counts[letter];
    for (const auto& [letter, count] : counts)
      if (count == 1 || (letter >= '0' && letter <= '9')) equation.output += letter;
  }
  use_letters(equation);
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < node.num_inputs(); ++i) {
    Tensor operand = node.in(i);
    std::string& letters = equation.operands[i];
    for (std::size_t first = 0; first < letters.size(); ++first) {
      const std::size_t second = letters.find(letters[first], first + 1);
      if (second == std::string::npos) continue;
      if (operand.shape()[first] != operand.shape()[second]) node.invalid("a diagonal of sizes that differ");
      operand = diagonal(operand, first, second);
      const char letter = letters[first];
      letters.erase(second, 1);
      letters.erase(first, 1);
      letters += letter;
      first = static_cast<std::size_t>(-1);
    }
    operands.push_back(operand);
  }
  // Of more than two operands, from the left: what neither the output nor a later one reads is summed.
  while (operands.size() > 2) {
    std::string later = equation.output, kept;
    for (std::size_t i = 2; i < operands.size(); ++i) later += equation.operands[i];
    for (const char letter : equation.operands[0] + equation.operands[1])
      if (later.find(letter) != std::string::npos && kept.find(letter) == std::string::npos) kept += letter;
    operands[0] = einsum(equation.operands[0] + "," + equation.operands[1] + "->" + kept, {operands[0], operands[1]});
    equation.operands[0] = kept;
    operands.erase(operands.begin() + 1);
    equation.operands.erase(equation.operands.begin() + 1);
  }
  std::string text = equation.operands[0];
  if (operands.size() == 2) text += "," + equation.operands[1];
  node.give(einsum(text + "->" + equation.output, operands));
}

constexpr OnnxOperator kProductRows[] = {
    {"Einsum", 12, kNewest, einsum_of},
    {"Gemm", 1, kNewest, gemm},
    {"MatMul", 1, kNewest, matmul_of},
};

}  // namespace

OnnxOperators onnx_product_operators() { return kProductRows; }

}  // namespace plimsoll::internal
