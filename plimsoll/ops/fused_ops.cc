#include "plimsoll/ops/fused_ops.h"

#include <cstring>

#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/attention.h"
#include "plimsoll/ops/internal/batch_norm_ops.h"
#include "plimsoll/ops/internal/convolution_ops.h"
#include "plimsoll/ops/internal/elementwise_ops.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kAlignment = 64;
std::size_t rounded(std::size_t bytes) { return round_up(bytes, kAlignment); }

const Convolve* plain_convolution(const Op& op) {
  const auto* const found = dynamic_cast<const Convolve*>(&op);
  return found && found->is_plain() ? found : nullptr;
}

// One number for each output channel.
Shape per_channel(const Shape& y) { return {y.back()}; }

class NormedConvolution final : public OpOf<NormedConvolution> {
 public:
  NormedConvolution(const Convolve& convolution, const BatchNormInfer& norm)
      : convolution_(convolution.rule(), true, norm.relu() ? std::optional(UnaryOp::relu) : std::nullopt),
        plain_(convolution),
        epsilon_(norm.epsilon()),
        inputs_(norm.inputs()) {
    inputs_.first += 1;  // The filter is between them.
  }
  const char* name() const noexcept override { return "conv2d_batch_norm"; }
  void infer(const Specs& in, SpecList& out) const override {
    const SpecRef operands[] = {{&in.shape(0), in.dtype(0)}, {&in.shape(1), in.dtype(1)}};
    plain_.infer(Specs(operands), out);
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override {
    const Shape channels = per_channel(out[0].shape);
    const SpecRef operands[] = {{&in.shape(0), in.dtype(0)}, {&in.shape(1), in.dtype(0)}, {&channels, in.dtype(0)}};
    const std::size_t convolving = convolution_.workspace_bytes(Specs(operands), out);
    return own_bytes(in.shape(1), channels, in.dtype(0)) +
           std::max(convolving, batch_norm_scratch_bytes(scaled_shape(in.shape(1), channels), in.dtype(0)));
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    return Op::cost(in, out) + convolution_cost(out[0].shape, in.shape(1));
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView &filter = run.in[1], &mean = run.in[2], &variance = run.in[3];
    const DType dtype = filter.dtype();
    const Shape channels = per_channel(run.out[0].shape()), row({1, channels[0]});
    std::byte* at = run.scratch.data();
    const auto take = [&](const Shape& shape) {
      TensorView taken(at, 0, dtype, shape);
      at += rounded(taken.size() * size_of(dtype));
      return taken;
    };
    const TensorView scaled = take(filter.shape()), bias = take(channels), zeros = take(channels);
    const std::span<std::byte> rest = run.scratch.subspan(static_cast<std::size_t>(at - run.scratch.data()));
    std::memset(zeros.bytes(), 0, zeros.size() * size_of(dtype));
    const BatchNormParameters parameters = parameters_of(run, inputs_);
    const Shape rows = scaled_shape(filter.shape(), channels);
    batch_norm_inference(filter.reshaped(rows), zeros, variance, {parameters.gamma, nullptr}, scaled.reshaped(rows),
                         {epsilon_, false}, rest);
    batch_norm_inference(ConstTensorView(zeros).reshaped(row), mean, variance, parameters, bias.reshaped(row),
                         {epsilon_, false}, rest);
    const ConstTensorView operands[] = {run.in[0], scaled, bias};
    convolution_.run({operands, run.out, rest});
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }

 private:
  static Shape scaled_shape(const Shape& filter, const Shape& channels) {
    const auto size = static_cast<std::int64_t>(filter.size());
    return {channels[0] == 0 ? 0 : size / channels[0], channels[0]};
  }
  static std::size_t own_bytes(const Shape& filter, const Shape& channels, DType dtype) {
    return rounded(filter.size() * size_of(dtype)) + 2 * rounded(channels.size() * size_of(dtype));
  }

  Convolve convolution_, plain_;
  double epsilon_;
  NormInputs inputs_;
};

class FusedAttention final : public OpOf<FusedAttention> {
 public:
  FusedAttention(double scale, bool has_mask) noexcept : rule_{.scale = scale}, has_mask_(has_mask) {}
  const char* name() const noexcept override { return "scaled_dot_product_attention"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& q = in.shape(0);
    out.add({q[0], q[1], q[2], in.shape(2)[3]}, in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return attention_scratch_bytes(in.shape(0), in.shape(1), in.shape(2), in.dtype(0));
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    const auto keys = static_cast<std::uint64_t>(in.shape(1)[2]);
    return Op::cost(in, out) + kAttentionMultiplicationCost * keys * (in.shape(0).size() + out[0].shape.size());
  }
  void run(const OpRun& run) const noexcept override {
    AttentionInputs in = {.q = run.in[0], .k = run.in[1], .v = run.in[2]};
    if (has_mask_) in.additive = run.in[3];
    attention(rule_, in, {.y = run.out[0]}, run.scratch);
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }

 private:
  AttentionRule rule_;
  bool has_mask_;
};

}  // namespace

std::unique_ptr<Op> convolution_with(const Op& convolution, bool has_bias, Activation activation) {
  const Convolve* const plain = plain_convolution(convolution);
  if (!plain) return nullptr;
  std::optional<UnaryOp> function;
  for (unsigned char i = 0; activation != Activation::linear && i < static_cast<unsigned char>(UnaryOp::kCount); ++i)
    if (std::strcmp(op_name(static_cast<UnaryOp>(i)), activation_name(activation)) == 0)
      function = static_cast<UnaryOp>(i);
  if (!function && activation != Activation::linear) return nullptr;
  return std::make_unique<Convolve>(plain->rule(), has_bias, function);
}

std::unique_ptr<Op> convolution_with_norm(const Op& convolution, const Op& norm) {
  const Convolve* const plain = plain_convolution(convolution);
  const auto* const given = dynamic_cast<const BatchNormInfer*>(&norm);
  return plain && given ? std::make_unique<NormedConvolution>(*plain, *given) : nullptr;
}

std::unique_ptr<Op> attention_of(double scale, bool has_mask) {
  return std::make_unique<FusedAttention>(scale, has_mask);
}

}  // namespace plimsoll::internal
