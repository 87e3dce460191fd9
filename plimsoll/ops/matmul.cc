#include "plimsoll/ops/matmul.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/matmul.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/op_cost.h"

namespace plimsoll {
namespace {

std::int64_t size_from_end(const Shape& shape, std::size_t back) noexcept { return shape[shape.rank() - back]; }

Shape batch_of(const Shape& shape) { return Shape(shape.sizes().first(shape.rank() - 2)); }

Shape with_matrix(const Shape& batch, std::int64_t rows, std::int64_t columns) {
  std::int64_t sizes[kMaxRank + 2];
  std::copy(batch.begin(), batch.end(), sizes);
  sizes[batch.rank()] = rows, sizes[batch.rank() + 1] = columns;
  return Shape(std::span<const std::int64_t>(sizes, batch.rank() + 2));
}

class Matmul final : public OpOf<Matmul> {
 public:
  explicit Matmul(MatmulOptions options) noexcept : options_(options) {}
  const char* name() const noexcept override { return "matmul"; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    const auto inner = static_cast<std::uint64_t>(size_from_end(in.shape(0), options_.transpose_a ? 2 : 1));
    return Op::cost(in, out) + multiplication_cost(out[0].shape.size() * inner);
  }
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override {
    return {.inputs = (wanted & slot(0) ? slot(1) : 0) | (wanted & slot(1) ? slot(0) : 0), .remade = slot(0)};
  }
  void gradient(GradientContext& c) const override;
  std::string input_name(std::size_t input) const override { return input == 0 ? "left" : "right"; }
  bool operator==(const Matmul&) const = default;

 private:
  MatmulFlags flags() const noexcept {
    return {.transpose_a = options_.transpose_a, .transpose_b = options_.transpose_b};
  }
  // Whether all of a's matrices are multiplied by the same one of b's, so that they form one tall matrix.
  bool is_one_product(const Shape& a, const Shape& b) const noexcept {
    return a.rank() > 2 && b.rank() == 2 && !options_.transpose_a && a.is_known();
  }
  Shape as_one(const Shape& shape) const {
    const std::int64_t columns = shape.back();
    std::int64_t rows = 1;
    for (std::size_t axis = 0; axis + 1 < shape.rank(); ++axis) rows *= shape[axis];
    return {rows, columns};
  }
  [[noreturn]] void refuse_inner(const Shape& a, const Shape& b) const;
  Tensor gradient_of_a(GradientContext& c) const;
  Tensor gradient_of_b(GradientContext& c) const;

  MatmulOptions options_;
};

void Matmul::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  const DType dtype = in.dtype(0);
  if (!is_matmul_supported(dtype)) refuse_dtype(*this, dtype);
  const Shape &a = in.shape(0), &b = in.shape(1);
  require_rank_at_least(*this, a, 2);
  require_rank_at_least(*this, b, 2);
  const std::int64_t rows = size_from_end(a, options_.transpose_a ? 1 : 2),
                     left = size_from_end(a, options_.transpose_a ? 2 : 1),
                     right = size_from_end(b, options_.transpose_b ? 1 : 2),
                     columns = size_from_end(b, options_.transpose_b ? 2 : 1);
  if (left != right && left != kUnknownSize && right != kUnknownSize) refuse_inner(a, b);
  if (a.rank() == 2 && b.rank() == 2) return out.add({rows, columns}, dtype);
  Shape batch;
  try {
    batch = broadcast_shapes(batch_of(a), batch_of(b), "matmul");
  } catch (const InvalidArgument&) {
    throw InvalidArgument(
        fmt::format("matmul: batches do not broadcast: left {}, right {}; all axes but the last two must be equal or 1",
                    a.to_string(), b.to_string()));
  }
  out.add(with_matrix(batch, rows, columns), dtype);
}

void Matmul::refuse_inner(const Shape& a, const Shape& b) const {
  const auto side = [](const Shape& shape, bool transposed, std::size_t back) {
    return fmt::format("{}{} has {}", shape.to_string(), transposed ? " transposed" : "", size_from_end(shape, back));
  };
  throw InvalidArgument(fmt::format("matmul: inner sizes differ: left {}, right {}",
                                    side(a, options_.transpose_a, options_.transpose_a ? 2 : 1),
                                    side(b, options_.transpose_b, options_.transpose_b ? 1 : 2)));
}

std::size_t Matmul::workspace_bytes(const Specs& in, const SpecList& out) const {
  if (out[0].shape.size() == 0) return 0;
  const Shape a = is_one_product(in.shape(0), in.shape(1)) ? as_one(in.shape(0)) : in.shape(0);
  return matmul_scratch_bytes(a, in.shape(1), in.dtype(0), flags());
}

void Matmul::run(const OpRun& run) const noexcept {
  if (run.out[0].size() == 0) return;
  ConstTensorView a = run.in[0];
  TensorView out = run.out[0];
  if (is_one_product(a.shape(), run.in[1].shape())) {
    a = a.reshaped(as_one(a.shape()));
    out = out.reshaped(as_one(out.shape()));
  }
  internal::matmul(a, run.in[1], out, flags(), run.scratch);
}

bool Matmul::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const Shape &a = run.in[0].shape(), &b = run.in[1].shape(), &out = run.out[0].shape();
  const bool one = is_one_product(a, b);
  const std::int64_t n = out.back(), inner = size_from_end(a, options_.transpose_a ? 2 : 1);
  std::int64_t m = size_from_end(out, 2), batches = 1;
  for (std::size_t axis = 0; axis + 2 < out.rank(); ++axis) (one ? m : batches) *= out[axis];
  MatmulLaunch options{.transpose_a = options_.transpose_a, .transpose_b = options_.transpose_b};
  if (batches > 1) {  // Both have all batches, or one has a single matrix.
    const auto step = [&](const Shape& shape) {
      const std::int64_t matrix = size_from_end(shape, 1) * size_from_end(shape, 2);
      const std::int64_t count = matrix == 0 ? 0 : static_cast<std::int64_t>(shape.size()) / matrix;
      return count == batches ? matrix : count == 1 ? 0 : -1;
    };
    options.batches = batches;
    options.step_a = step(a);
    options.step_b = step(b);
    if (options.step_a < 0 || options.step_b < 0) return false;
  }
  return launch_matmul(queue, run.in[0], run.in[1], run.out[0], m, n, inner, options);
}

Tensor Matmul::gradient_of_a(GradientContext& c) const {
  const Tensor &b = c.input(1), &g = c.grad();
  if (options_.transpose_a) return matmul(b, g, {.transpose_a = options_.transpose_b, .transpose_b = true});
  return matmul(g, b, {.transpose_b = !options_.transpose_b});
}

Tensor Matmul::gradient_of_b(GradientContext& c) const {
  Tensor a = c.input(0), g = c.grad();
  if (is_one_product(a.shape(), c.input_shape(1))) {  // One product sums over the batches.
    a = a.reshape(as_one(a.shape()));
    g = g.reshape(as_one(g.shape()));
  }
  if (options_.transpose_b) return matmul(g, a, {.transpose_a = true, .transpose_b = options_.transpose_a});
  return matmul(a, g, {.transpose_a = !options_.transpose_a});
}

void Matmul::gradient(GradientContext& c) const {
  if (c.wants(1)) c.give(1, sum_to(gradient_of_b(c), c.input_shape(1)));
  c.done_with(0);
  if (c.wants(0)) c.give(0, sum_to(gradient_of_a(c), c.input_shape(0)));
}

void require_vectors(const char* where, const Tensor& a, const Tensor& b) {
  if (a.rank() != 1 || b.rank() != 1)
    throw InvalidArgument(fmt::format("{}: left is {}, right {}; give two vectors, or use matmul", where,
                                      a.shape().to_string(), b.shape().to_string()));
}

// For vectors and scalars, which are not matrices yet.
[[gnu::noinline]] Tensor matmul_of_vectors(const Tensor& a, const Tensor& b, MatmulOptions options) {
  for (const Tensor* operand : {&a, &b}) {
    const char* side = operand == &a ? "left" : "right";
    if (operand->rank() == 0)
      throw InvalidArgument(fmt::format("matmul: {} is a scalar; use * to multiply by it", side));
    if (operand->rank() == 1 && (operand == &a ? options.transpose_a : options.transpose_b))
      throw InvalidArgument(fmt::format("matmul: {} {} is a vector, which has no transpose; leave transpose_{} out",
                                        side, operand->shape().to_string(), operand == &a ? "a" : "b"));
  }
  const Tensor product =
      execute(Matmul(options), a.rank() == 1 ? a.expand_dims(0) : a, b.rank() == 1 ? b.expand_dims(1) : b);
  std::vector<std::int64_t> sizes(product.shape().begin(), product.shape().end());
  if (b.rank() == 1) sizes.pop_back();
  if (a.rank() == 1) sizes.erase(sizes.end() - (b.rank() == 1 ? 1 : 2));
  return product.reshape(Shape(sizes));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options) {
  const bool are_tensors = !a.is_empty_handle() && !b.is_empty_handle();
  if (are_tensors && (a.rank() < 2 || b.rank() < 2)) return matmul_of_vectors(a, b, options);
  return execute(Matmul(options), a, b);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  require_vectors("dot", a, b);
  return matmul(a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  require_vectors("outer", a, b);
  return a.expand_dims(1) * b.expand_dims(0);
}

}  // namespace plimsoll
