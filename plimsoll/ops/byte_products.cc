#include "plimsoll/ops/byte_products.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/op_cost.h"

namespace plimsoll::internal {
namespace {

class ByteProduct final : public OpOf<ByteProduct> {
 public:
  ByteProduct(const ByteWindow& window, const std::array<std::int64_t, 3>& places, DType dtype) noexcept
      : window_(window), places_(places), dtype_(dtype) {}
  const char* name() const noexcept override { return "byte_convolution"; }
  std::string input_name(std::size_t input) const override {
    constexpr const char* kNames[] = {"x",       "filter",  "x_zero", "w_zero", "x_scale",
                                      "w_scale", "y_scale", "y_zero", "bias"};
    return kNames[input];
  }
  void infer(const Specs& in, SpecList& out) const override;
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    const Shape& w = in.shape(1);
    return Op::cost(in, out) + multiplication_cost(out[0].shape.size() * w.size() / static_cast<std::uint64_t>(w[4]));
  }
  void run(const OpRun& run) const noexcept override {
    ByteOperands operands{run.in[0], run.in[1], run.in[2], run.in[3]};
    if (run.in.size() > 4)
      operands.x_scale = run.in[4], operands.w_scale = run.in[5], operands.y_scale = run.in[6],
      operands.y_zero = run.in[7];
    if (run.in.size() > 8) operands.bias = run.in[8];
    internal::byte_convolution(window_, operands, run.out[0]);
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }
  bool operator==(const ByteProduct&) const = default;

 private:
  ByteWindow window_;
  std::array<std::int64_t, 3> places_;
  DType dtype_;
};

void ByteProduct::infer(const Specs& in, SpecList& out) const {
  const Shape &x = in.shape(0), &w = in.shape(1);
  const auto is_byte = [](DType dtype) { return dtype == u8 || dtype == i8; };
  if (!is_byte(in.dtype(0))) refuse_dtype(*this, in.dtype(0));
  if (!is_byte(in.dtype(1))) refuse_dtype(*this, in.dtype(1));
  const std::int64_t groups = window_.groups;
  if (x.rank() != 5 || w.rank() != 5 || groups < 1 || w[4] < 1 || w[4] % groups != 0 || x[4] != w[3] * groups)
    throw InvalidArgument(fmt::format("{}: x {} and a filter {} in {} groups do not go together", name(), x.to_string(),
                                      w.to_string(), groups));
  for (std::size_t input = 2; input < in.size(); ++input) {
    const bool many = input == 3 || input == 5, bias = input == 8, scale = input >= 4 && input <= 6;
    const std::size_t size = in.shape(input).size(), channels = static_cast<std::size_t>(w[4]);
    const bool fits = bias ? size == channels : size == 1 || (many && size == channels);
    if (!fits || in.dtype(input) != (scale ? f32 : i32))
      throw InvalidArgument(fmt::format("{}: {} is {} {} beside {} channels", name(), input_name(input),
                                        dtype_name(in.dtype(input)), in.shape(input).to_string(), channels));
  }
  if (in.size() != 4 && in.size() != 8 && in.size() != 9)
    throw InvalidArgument(fmt::format("{}: {} operands", name(), in.size()));
  if (in.size() == 4 ? dtype_ != i32 : !is_byte(dtype_)) refuse_dtype(*this, dtype_);
  out.add({x[0], places_[0], places_[1], places_[2], w[4]}, dtype_);
}

}  // namespace

Tensor byte_convolution(const std::vector<Tensor>& operands, const ByteWindow& window,
                        const std::array<std::int64_t, 3>& places, DType dtype) {
  return execute_list(ByteProduct(window, places, dtype), operands);
}

}  // namespace plimsoll::internal
