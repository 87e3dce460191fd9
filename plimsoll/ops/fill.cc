// Fills that take shape and dtype from a tensor: ops, so that graphs and gradients can use them.
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"

namespace plimsoll {
namespace {

class FillLike final : public OpOf<FillLike> {
 public:
  FillLike(const char* name, Number value) noexcept : name_(name), value_(value) {}
  const char* name() const noexcept override { return name_; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override {
    const std::uint64_t element = value_.to(run.out[0].dtype());
    copy(ConstTensorView(&element, 0, run.out[0].dtype(), Shape::scalar()), run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_fill(queue, value_.to(run.out[0].dtype()), run.out[0]);
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false, .overwrites = slot(0)}; }
  bool operator==(const FillLike&) const = default;

 private:
  const char* name_;
  Number value_;
};

// A fill as a node: with no operands, of a shape that is known.
class Fill final : public OpOf<Fill> {
 public:
  Fill(const char* name, const Shape& shape, DType dtype, Number value) noexcept
      : name_(name), shape_(shape), value_(value), dtype_(dtype) {}
  const char* name() const noexcept override { return name_; }
  void infer(const Specs&, SpecList& out) const override { out.add(shape_, dtype_); }
  void run(const OpRun& run) const noexcept override {
    const std::uint64_t element = value_.to(dtype_);
    copy(ConstTensorView(&element, 0, dtype_, Shape::scalar()), run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_fill(queue, value_.to(dtype_), run.out[0]);
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }
  bool operator==(const Fill&) const = default;

 private:
  const char* name_;
  Shape shape_;
  Number value_;
  DType dtype_;
};

}  // namespace

namespace creation_detail {
Tensor fill_node(const char* name, const Shape& shape, DType dtype, const Number& value) {
  return execute(Fill(name, shape, dtype, value));
}
}  // namespace creation_detail

Tensor zeros_like(const Tensor& x) { return execute(FillLike("zeros_like", 0), x); }
Tensor ones_like(const Tensor& x) { return execute(FillLike("ones_like", 1), x); }
Tensor full_like(const Tensor& x, const Number& value) { return execute(FillLike("full_like", value), x); }

}  // namespace plimsoll
