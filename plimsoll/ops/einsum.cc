#include "plimsoll/ops/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

// Axes by their letters.
using Letters = std::string;

bool has(const Letters& letters, char letter) { return letters.find(letter) != Letters::npos; }

template <class F>
Letters those(const Letters& letters, F wanted) {
  Letters result;
  std::copy_if(letters.begin(), letters.end(), std::back_inserter(result), wanted);
  return result;
}

class Equation {
 public:
  explicit Equation(std::string_view text);

  // Throws when the operands do not match; afterwards the sizes are known.
  void fit(const std::vector<Tensor>& operands);
  const std::vector<Letters>& inputs() const noexcept { return inputs_; }
  const Letters& output() const noexcept { return output_; }
  std::int64_t size(char letter) const { return sizes_.at(letter); }
  std::int64_t size_of_all(const Letters& letters) const {
    std::int64_t product = 1;
    for (const char letter : letters) product *= size(letter);
    return product;
  }

 private:
  template <class Kind = InvalidArgument>
  [[noreturn]] void refuse(const std::string& why) const {
    throw Kind(fmt::format("einsum: \"{}\": {}", text_, why));
  }
  void check_letters(const Letters& letters) const;
  Letters implied_output() const;

  std::string text_;
  std::vector<Letters> inputs_;
  Letters output_;
  std::map<char, std::int64_t> sizes_;
};

Equation::Equation(std::string_view text) : text_(text) {
  std::string left = text_;
  std::erase(left, ' ');
  if (has(left, '.')) refuse<Unsupported>("\"...\" is not offered; give every axis a letter");
  const std::size_t arrow = left.find("->");
  if (arrow != std::string::npos) {
    output_ = left.substr(arrow + 2);
    left.resize(arrow);
  }
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = left.find(',', begin);
    inputs_.push_back(left.substr(begin, end == std::string::npos ? end : end - begin));
  }
  for (const Letters& letters : inputs_) {
    check_letters(letters);
    for (const char letter : letters)
      if (std::count(letters.begin(), letters.end(), letter) > 1)
        refuse<Unsupported>(fmt::format("{} is twice in one operand; diagonals are not offered", letter));
  }
  check_letters(output_);
  for (const char letter : output_) {
    if (std::count(output_.begin(), output_.end(), letter) > 1)
      refuse(fmt::format("{} is twice in the output; give it once", letter));
    if (std::none_of(inputs_.begin(), inputs_.end(), [&](const Letters& input) { return has(input, letter); }))
      refuse(fmt::format("{} of the output is in no operand", letter));
  }
  if (arrow == std::string::npos) output_ = implied_output();
}

void Equation::check_letters(const Letters& letters) const {
  for (const char letter : letters)
    if (!(letter >= 'a' && letter <= 'z') && !(letter >= 'A' && letter <= 'Z'))
      refuse(fmt::format("'{}' is not a letter; write operands as \"ij,jk->ik\"", letter));
}

Letters Equation::implied_output() const {
  Letters all;
  for (const Letters& letters : inputs_) all += letters;
  std::sort(all.begin(), all.end());
  return those(all, [&](char letter) { return std::count(all.begin(), all.end(), letter) == 1; });
}

void Equation::fit(const std::vector<Tensor>& operands) {
  if (inputs_.size() != operands.size())
    refuse(fmt::format("names {} operands, {} are given", inputs_.size(), operands.size()));
  if (operands.size() > 2)
    refuse<Unsupported>(fmt::format("{} operands; one or two are offered, so take it in steps", operands.size()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_empty_handle()) refuse_disposed(operands[i], "einsum", fmt::format("operand {}", i));
    const Shape& shape = operands[i].shape();
    if (shape.rank() != inputs_[i].size())
      refuse(fmt::format("\"{}\" has {} letters, operand {} is {} with {} axes", inputs_[i], inputs_[i].size(), i,
                         shape.to_string(), shape.rank()));
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      const auto [found, is_new] = sizes_.emplace(inputs_[i][axis], shape[axis]);
      if (!is_new && found->second != shape[axis])
        refuse(fmt::format("{} is {} in operand 0 {} and {} in operand {} {}", inputs_[i][axis], found->second,
                           operands[0].shape().to_string(), shape[axis], i, shape.to_string()));
    }
  }
}

// A tensor whose axes have letters.
struct Lettered {
  Tensor tensor;
  Letters letters;

  // Sums over the axes that are not wanted.
  Lettered summed_to(const Letters& wanted) const {
    std::vector<std::int64_t> gone;
    for (std::size_t axis = 0; axis < letters.size(); ++axis)
      if (!has(wanted, letters[axis])) gone.push_back(static_cast<std::int64_t>(axis));
    if (gone.empty()) return *this;
    return {tensor.sum(Axes(gone)), those(letters, [&](char letter) { return has(wanted, letter); })};
  }
  Tensor arranged(const Letters& order) const {
    if (order == letters) return tensor;
    std::vector<std::int64_t> permutation;
    for (const char letter : order) permutation.push_back(static_cast<std::int64_t>(letters.find(letter)));
    return tensor.transpose(permutation);
  }
};

// The letters of two operands by their role, each kind in the order of the output.
struct Roles {
  Letters batch, left, right, summed;
};

Tensor multiplied(const Equation& equation, const Lettered& a, const Lettered& b, const Roles& roles) {
  std::vector<std::int64_t> left_shape, right_shape;
  for (const char letter : roles.batch + roles.left + roles.right) {
    left_shape.push_back(has(roles.right, letter) ? 1 : equation.size(letter));
    right_shape.push_back(has(roles.left, letter) ? 1 : equation.size(letter));
  }
  return a.arranged(roles.batch + roles.left).reshape(Shape(left_shape)) *
         b.arranged(roles.batch + roles.right).reshape(Shape(right_shape));
}

Tensor contracted(const Equation& equation, const Lettered& a, const Lettered& b, const Roles& roles) {
  // Without transposing, if matmul accepts the axes in this order.
  const bool transpose_a = a.letters == roles.batch + roles.summed + roles.left;
  const bool transpose_b = b.letters == roles.batch + roles.right + roles.summed;
  const auto matrices = [&](const Lettered& x, const Letters& rows, const Letters& columns) {
    std::vector<std::int64_t> shape = {equation.size_of_all(rows), equation.size_of_all(columns)};
    if (!roles.batch.empty()) shape.insert(shape.begin(), equation.size_of_all(roles.batch));
    return x.arranged(roles.batch + rows + columns).reshape(Shape(shape));
  };
  const Tensor left = transpose_a ? matrices(a, roles.summed, roles.left) : matrices(a, roles.left, roles.summed);
  const Tensor right = transpose_b ? matrices(b, roles.right, roles.summed) : matrices(b, roles.summed, roles.right);
  const Tensor product = matmul(left, right, {.transpose_a = transpose_a, .transpose_b = transpose_b});
  std::vector<std::int64_t> shape;
  for (const char letter : roles.batch + roles.left + roles.right) shape.push_back(equation.size(letter));
  return product.reshape(Shape(shape));
}

Tensor einsum_of_two(const Equation& equation, const Tensor& first, const Tensor& second) {
  const Letters& output = equation.output();
  Lettered a{first, equation.inputs()[0]}, b{second, equation.inputs()[1]};
  a = a.summed_to(b.letters + output);
  b = b.summed_to(a.letters + output);
  const Letters alone = those(output, [&](char letter) { return has(a.letters, letter) != has(b.letters, letter); });
  if (!alone.empty() && has(b.letters, alone[0])) std::swap(a, b);  // So that the product comes out in order.
  const auto is_in = [](const Letters& letters) { return [&letters](char letter) { return has(letters, letter); }; };
  Roles roles;
  roles.left = those(alone, is_in(a.letters));
  roles.right = those(alone, is_in(b.letters));
  roles.batch = those(output, [&](char letter) { return !has(alone, letter); });
  roles.summed = those(a.letters, [&](char letter) { return !has(output, letter); });
  const Lettered product{roles.summed.empty() ? multiplied(equation, a, b, roles) : contracted(equation, a, b, roles),
                         roles.batch + roles.left + roles.right};
  return product.arranged(output);
}

}  // namespace

Tensor einsum(std::string_view text, const std::vector<Tensor>& operands) {
  Equation equation(text);
  equation.fit(operands);
  if (operands.size() == 2) return einsum_of_two(equation, operands[0], operands[1]);
  const Lettered x{operands[0], equation.inputs()[0]};
  return x.summed_to(equation.output()).arranged(equation.output());
}

}  // namespace plimsoll
