#include "plimsoll/ops/dropout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/random.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/scratch.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kMaskBlock = 65536;  // Elements whose mask is kept at once; a multiple of a random block's four.

class Dropout final : public OpOf<Dropout> {
 public:
  Dropout(double rate, RandomDraw draw) noexcept : rate_(rate), draw_(draw) {}
  const char* name() const noexcept override { return "dropout"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_floating(*this, in.dtype(0));
    out.add(in.shape(0), in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return scratch_bytes(boolean, std::min<std::size_t>(kMaskBlock, in.shape(0).size()));
  }
  void run(const OpRun& run) const noexcept override {
    const auto count = static_cast<std::int64_t>(run.out[0].size());
    const DType dtype = run.out[0].dtype();
    const ConstTensorView x = run.in[0].reshaped({count});
    const TensorView out = run.out[0].reshaped({count});
    const std::uint64_t scale = Number(1 / (1 - rate_)).to(dtype), zero = 0;
    const ConstTensorView scale_view(&scale, 0, dtype, Shape::scalar()), zero_view(&zero, 0, dtype, Shape::scalar());
    RandomState state{.key = draw_.key, .offset = draw_.offset};
    for (std::int64_t begin = 0; begin < count; begin += kMaskBlock) {
      const std::int64_t end = std::min(count, begin + kMaskBlock);
      const TensorView part = out.rows(begin, end), kept = ScratchViews(run.scratch).take(boolean, {end - begin});
      internal::random_bernoulli(state, 1 - rate_, kept);
      state.offset += random_blocks(kept.size());
      binary(BinaryOp::multiply, x.rows(begin, end), scale_view, part);
      select(kept, part, zero_view, part);
    }
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    if (run.out[0].dtype() != f32) return false;
    const double kept = 1 - rate_;
    KernelCall call("dropout");
    call.out(run.out[0].bytes()).in(run.in[0].bytes()).integer(static_cast<std::int64_t>(run.out[0].size()));
    call.number(1 / kept).integer(static_cast<std::int64_t>(std::ceil(kept * 0x1p24)));  // As uniform_float().
    for (const std::uint64_t word : {draw_.key, draw_.offset})
      call.bits(static_cast<std::uint32_t>(word)).bits(static_cast<std::uint32_t>(word >> 32));
    return queue.run(call.items((run.out[0].size() + 31) / 32));
  }
  void gradient(GradientContext& c) const override { c.give(0, execute(*this, c.grad())); }
  RandomDraw* draw() noexcept override { return &draw_; }
  OpFacts facts() const noexcept override { return {.is_random = true, .overwrites = slot(0)}; }
  bool operator==(const Dropout&) const = default;

 private:
  double rate_;
  RandomDraw draw_;
};

}  // namespace

Tensor dropout(const Tensor& x, double rate, const DropoutSettings& settings) {
  if (!(rate >= 0 && rate < 1))
    throw InvalidArgument(fmt::format("dropout: the rate is {}; give 0 or more, and less than 1", rate));
  if (x.is_empty_handle() || x.is_disposed()) refuse_disposed(x, "dropout", "x");
  if (rate == 0 || !settings.training) return x;
  const bool later = is_symbolic(x);
  return execute(Dropout(rate, draw_random(settings.seed, later ? 0 : x.size(), later)), x);
}

}  // namespace plimsoll
