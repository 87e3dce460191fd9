#include "plimsoll/ops/bitwise.h"

#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"

namespace plimsoll::internal {
namespace {

class Bitwise final : public OpOf<Bitwise> {
 public:
  explicit Bitwise(BitwiseOp op) noexcept : op_(op) {}
  const char* name() const noexcept override {
    constexpr const char* kNames[] = {"bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"};
    return kNames[static_cast<int>(op_)];
  }
  void infer(const Specs& in, SpecList& out) const override {
    require_same_dtype(*this, in);
    if (!is_integer(in.dtype(0))) refuse_dtype(*this, in.dtype(0));
    out.add(broadcast_shapes(in.shape(0), in.shape(1), name()), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override { internal::bitwise(op_, run.in[0], run.in[1], run.out[0]); }
  OpFacts facts() const noexcept override { return {.has_gradient = false, .overwrites = slot(0) | slot(1)}; }
  bool operator==(const Bitwise&) const = default;

 private:
  BitwiseOp op_;
};

class BitCast final : public OpOf<BitCast> {
 public:
  explicit BitCast(DType dtype) noexcept : dtype_(dtype) {}
  const char* name() const noexcept override { return "bit_cast"; }
  void infer(const Specs& in, SpecList& out) const override {
    if (size_of(in.dtype(0)) != size_of(dtype_))
      throw InvalidArgument(fmt::format("bit_cast: {} and {} have elements of different sizes", dtype_name(in.dtype(0)),
                                        dtype_name(dtype_)));
    out.add(in.shape(0), dtype_);
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].size() > 0) std::memmove(run.out[0].bytes(), run.in[0].bytes(), run.out[0].nbytes());
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false, .overwrites = slot(0)}; }
  bool operator==(const BitCast&) const = default;

 private:
  DType dtype_;
};

}  // namespace

Tensor bitwise(BitwiseOp op, const Tensor& a, const Tensor& b) { return execute(Bitwise(op), a, b); }

Tensor bit_cast_to(const Tensor& x, DType dtype) { return execute(BitCast(dtype), x); }

}  // namespace plimsoll::internal
