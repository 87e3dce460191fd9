#include "plimsoll/ops/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/attention.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/convolution_recorded.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/op_cost.h"

namespace plimsoll {
namespace {

enum class Mask : unsigned char { kNone, kAllowed, kAdditive };

AttentionInputs inputs_of(std::span<const ConstTensorView> in, Mask mask) noexcept {
  AttentionInputs inputs = {.q = in[0], .k = in[1], .v = in[2]};
  if (mask == Mask::kAllowed) inputs.allowed = in[3];
  if (mask == Mask::kAdditive) inputs.additive = in[3];
  return inputs;
}

// Sizes for kernels with one item per row of a head.
struct HeadSizes {
  std::size_t heads, queries, keys;  // Heads of all batches.
  double scale;
};
HeadSizes add_sizes(KernelCall& call, const AttentionRule& rule, Mask mask, std::span<const ConstTensorView> in,
                    std::size_t mask_input) noexcept {
  const Shape &q = in[0].shape(), &k = in[1].shape(), &v = in[2].shape();
  const std::size_t head = rule.sequence_first ? 2 : 1, sequence = rule.sequence_first ? 1 : 2;
  call.integer(q[head]).integer(q[sequence]).integer(k[sequence]).integer(q[3]).integer(v[3]);
  call.integer(rule.sequence_first ? 1 : 0).integer(rule.causal ? 1 : 0).integer(static_cast<std::int64_t>(mask));
  std::int64_t steps[3] = {}, step = k[sequence];
  for (std::size_t axis = 3; mask != Mask::kNone && axis-- > 0;) {
    const std::int64_t size = in[mask_input].shape()[axis];
    steps[axis] = size == 1 ? 0 : step;
    step *= size;
  }
  for (const std::int64_t each : steps) call.integer(each);
  return {static_cast<std::size_t>(q[0] * q[head]), static_cast<std::size_t>(q[sequence]),
          static_cast<std::size_t>(k[sequence]), rule.scale != 0 ? rule.scale : 1 / std::sqrt(double(q[3]))};
}

bool fits(std::int64_t size, std::int64_t wanted) noexcept {
  return size == wanted || size == kUnknownSize || wanted == kUnknownSize;
}

// What happens to y and to the rows' sums.
enum class Result : unsigned char {
  kKept,         // Both are kept for the gradient.
  kMadeAgain,    // y is recomputed for the gradient, when others read it there too.
  kAgain,        // This is the recomputation.
  kAgainNoSums,  // The same where no gradient is asked for.
};

// Inputs: q, k, v and the mask, if there is one. Outputs: y, and the logarithm of each row's sum unless omitted.
class Attention final : public OpOf<Attention> {
 public:
  Attention(const AttentionRule& rule, Mask mask, Result result) noexcept : rule_(rule), mask_(mask), result_(result) {}
  const char* name() const noexcept override { return "scaled_dot_product_attention"; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return attention_scratch_bytes(in.shape(0), in.shape(1), in.shape(2), in.dtype(0));
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    const auto keys = static_cast<std::uint64_t>(in.shape(1)[sequence_axis()]);
    return Op::cost(in, out) + kAttentionMultiplicationCost * keys * (in.shape(0).size() + out[0].shape.size());
  }
  void run(const OpRun& run) const noexcept override {
    attention(rule_, inputs_of(run.in, mask_), {.y = run.out[0], .log_sum = with_sums() ? run.out[1] : TensorView()},
              run.scratch);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    const TensorView& y = run.out[0];
    if (y.dtype() != f32) return false;
    KernelCall call("attention");
    call.out(y.bytes()).out(with_sums() ? run.out[1].bytes() : nullptr);
    for (std::size_t i = 0; i < 3; ++i) call.in(run.in[i].bytes());
    call.in(mask_ == Mask::kNone ? nullptr : run.in[3].bytes());
    const HeadSizes sizes = add_sizes(call, rule_, mask_, run.in, 3);
    call.integer(with_sums() ? 1 : 0).number(sizes.scale);
    return queue.run(call.items(sizes.queries, sizes.heads));
  }
  SavedSlots saved(SlotMask) const override {
    return {.inputs = slot(0) | slot(1) | slot(2) | (mask_ == Mask::kNone ? 0 : slot(3)), .outputs = slot(0) | slot(1)};
  }
  void gradient(GradientContext& c) const override;
  Tensor remake(GradientContext& c) const override;
  OpFacts facts() const noexcept override {
    return {.has_gradient = with_sums(), .remakes = result_ == Result::kMadeAgain};
  }
  std::size_t make_lean() noexcept override {
    return std::exchange(result_, Result::kAgainNoSums) == Result::kAgainNoSums ? 0 : 1;
  }
  std::string input_name(std::size_t input) const override {
    constexpr const char* kNames[] = {"q", "k", "v", "mask"};
    return kNames[input];
  }
  bool operator==(const Attention&) const = default;

 private:
  std::size_t head_axis() const noexcept { return rule_.sequence_first ? 2 : 1; }
  std::size_t sequence_axis() const noexcept { return rule_.sequence_first ? 1 : 2; }
  bool with_sums() const noexcept { return result_ != Result::kAgainNoSums; }
  void check_mask(const Specs& in) const;

  AttentionRule rule_;
  Mask mask_;
  Result result_;
};

void Attention::infer(const Specs& in, SpecList& out) const {
  const Shape &q = in.shape(0), &k = in.shape(1), &v = in.shape(2);
  const DType dtype = in.dtype(0);
  if (dtype != f32 && dtype != f64) refuse_dtype(*this, dtype);
  for (std::size_t i = 1; i < 3; ++i)
    if (in.dtype(i) != dtype)
      throw InvalidArgument(fmt::format("{}: q is {}, {} {}; cast one of them", name(), dtype_name(dtype),
                                        input_name(i), dtype_name(in.dtype(i))));
  const std::size_t head = head_axis(), sequence = sequence_axis();
  const bool agrees = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && fits(q[0], k[0]) && fits(q[0], v[0]) &&
                      fits(q[head], k[head]) && fits(q[head], v[head]) && fits(k[sequence], v[sequence]) &&
                      fits(q[3], k[3]);
  if (q.rank() == 4 && q[3] == 0)
    throw InvalidArgument(fmt::format("{}: q {} has a depth of 0; give 1 or more", name(), q.to_string()));
  if (!agrees)
    throw InvalidArgument(fmt::format(
        "{}: q {}, k {} and v {} do not match; give {}", name(), q.to_string(), k.to_string(), v.to_string(),
        rule_.sequence_first ? "q [batch, queries, heads, depth], k and v [batch, keys, heads, ..]"
                             : "q [batch, heads, queries, depth], k and v [batch, heads, keys, ..]"));
  if (mask_ != Mask::kNone) check_mask(in);
  out.add({q[0], q[1], q[2], v[3]}, dtype);
  if (with_sums()) out.add({q[0], q[head], q[sequence]}, dtype);
}

void Attention::check_mask(const Specs& in) const {
  const Shape &q = in.shape(0), &k = in.shape(1), &mask = in.shape(3);
  if (mask_ == Mask::kAdditive && in.dtype(3) != in.dtype(0))
    throw InvalidArgument(fmt::format("{}: the mask is {}; give bool, or {} to be added", name(),
                                      dtype_name(in.dtype(3)), dtype_name(in.dtype(0))));
  const std::int64_t wanted[] = {q[0], q[head_axis()], q[sequence_axis()], k[sequence_axis()]};
  bool agrees = mask.rank() == 4 && fits(mask[3], wanted[3]);
  for (std::size_t axis = 0; agrees && axis < 3; ++axis) agrees = mask[axis] == 1 || fits(mask[axis], wanted[axis]);
  if (!agrees)
    throw InvalidArgument(fmt::format("{}: the mask is {}, q {} and k {}; give [{} or 1, {} or 1, {} or 1, {}]", name(),
                                      mask.to_string(), q.to_string(), k.to_string(), wanted[0], wanted[1], wanted[2],
                                      wanted[3]));
}

// Inputs: q, k, v, y, the rows' logarithms, y's gradient, and the mask. Outputs: the gradients of q, k and v.
class AttentionGradient final : public OpOf<AttentionGradient> {
 public:
  AttentionGradient(const AttentionRule& rule, Mask mask) noexcept : rule_(rule), mask_(mask) {}
  const char* name() const noexcept override { return "attention_gradient"; }
  void infer(const Specs& in, SpecList& out) const override {
    for (std::size_t i = 0; i < 3; ++i) out.add(in.shape(i), in.dtype(i));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return attention_gradient_scratch_bytes(in.shape(0), in.shape(1), in.shape(2), in.dtype(0));
  }
  // The scores again, and four products for the gradients.
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    const auto keys = static_cast<std::uint64_t>(in.shape(1)[rule_.sequence_first ? 1 : 2]);
    return Op::cost(in, out) + multiplication_cost(keys * (3 * in.shape(0).size() + 2 * in.shape(3).size()));
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView mask = mask_ == Mask::kNone ? ConstTensorView() : run.in[6];
    const ConstTensorView in[4] = {run.in[0], run.in[1], run.in[2], mask};
    attention_gradient(rule_, inputs_of(in, mask_), run.in[3], run.in[4], run.in[5],
                       {run.out[0], run.out[1], run.out[2]}, run.scratch);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    if (run.out[0].dtype() != f32) return false;
    const auto call_of = [&](const char* kernel, bool by_key) {
      KernelCall call(kernel);
      for (const TensorView& out : run.out) call.out(out.bytes());
      for (std::size_t i = 0; i < 6; ++i) call.in(run.in[i].bytes());
      call.in(mask_ == Mask::kNone ? nullptr : run.in[6].bytes());
      const HeadSizes sizes = add_sizes(call, rule_, mask_, run.in, 6);
      call.number(sizes.scale).items(by_key ? sizes.keys : sizes.queries, sizes.heads);
      return call;
    };
    return queue.run(call_of("attention_queries", false)) && queue.run(call_of("attention_keys", true));
  }
  void gradient(GradientContext&) const override {
    throw Unsupported(
        "scaled_dot_product_attention: has no second derivative; compute it with matmul and softmax instead");
  }
  bool operator==(const AttentionGradient&) const = default;

 private:
  AttentionRule rule_;
  Mask mask_;
};

void Attention::gradient(GradientContext& c) const {
  if (mask_ == Mask::kAdditive && c.wants(3))
    throw Unsupported(fmt::format("{}: the added mask has no gradient; watch something else", name()));
  std::vector<const Tensor*> inputs = {&c.input(0), &c.input(1), &c.input(2), &c.output(0), &c.output(1), &c.grad(0)};
  if (mask_ != Mask::kNone) inputs.push_back(&c.input(3));
  std::vector<Tensor> gradients = execute_all(AttentionGradient(rule_, mask_), inputs);
  for (std::size_t i = 0; i < 3; ++i) c.give(i, std::move(gradients[i]));
}

Tensor Attention::remake(GradientContext& c) const {
  const Tensor* inputs[] = {&c.input(0), &c.input(1), &c.input(2), mask_ == Mask::kNone ? nullptr : &c.input(3)};
  const std::span<const Tensor* const> operands(inputs, mask_ == Mask::kNone ? 3u : 4u);
  if (is_recorded(c.input(0)) || is_recorded(c.input(1)) || is_recorded(c.input(2)))
    return std::move(execute_all(Attention(rule_, mask_, Result::kAgain), operands)[0]);
  return execute_on(Attention(rule_, mask_, Result::kAgainNoSums), operands);
}

// Recomputing y costs a fraction of the product that reads it, forward and back, while sequences are short.
Result result_of(const Tensor& q, const Tensor& k, bool sequence_first) noexcept {
  if (q.rank() != 4 || k.rank() != 4) return Result::kKept;
  const Shape &of_q = q.shape(), &of_k = k.shape();
  const std::int64_t keys = of_k[sequence_first ? 1 : 2], width = of_q[sequence_first ? 2 : 1] * of_q[3];
  return keys != kUnknownSize && width > 0 && 2 * keys <= width ? Result::kMadeAgain : Result::kKept;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options) {
  if (!std::isfinite(options.scale))
    throw InvalidArgument(
        fmt::format("scaled_dot_product_attention: scale is {}; give a finite number", options.scale));
  const Tensor& mask = options.mask;
  const Mask kind = mask.is_empty_handle() ? Mask::kNone : mask.dtype() == boolean ? Mask::kAllowed : Mask::kAdditive;
  const AttentionRule rule = {
      .scale = options.scale, .causal = options.causal, .sequence_first = options.sequence_first};
  const Tensor* inputs[] = {&q, &k, &v, &mask};
  std::vector<Tensor> out = execute_all(Attention(rule, kind, result_of(q, k, options.sequence_first)),
                                        {inputs, kind == Mask::kNone ? 3u : 4u});
  return std::move(out[0]);
}

}  // namespace plimsoll
