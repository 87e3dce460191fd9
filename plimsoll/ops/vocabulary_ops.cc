#include "plimsoll/ops/vocabulary_ops.h"

#include <algorithm>

#include "plimsoll/kernels/vocabulary_loss.h"
#include "plimsoll/ops/labels.h"
#include "plimsoll/ops/op_cost.h"

namespace plimsoll::internal {
namespace {

VocabularySizes sizes_of(const Shape& x, const Shape& w) noexcept {
  const std::int64_t inner = x.back();
  return {inner == 0 ? 0 : static_cast<std::int64_t>(x.size()) / inner, inner, w[1]};
}

std::uint64_t product_cost(const VocabularySizes& s) {
  return multiplication_cost(static_cast<std::uint64_t>(s.rows) * static_cast<std::uint64_t>(s.inner) *
                             static_cast<std::uint64_t>(s.classes));
}
std::uint64_t exponentials_cost(const VocabularySizes& s) {
  return kExponentialCost * static_cast<std::uint64_t>(s.rows) * static_cast<std::uint64_t>(s.classes);
}

// Slices stay in the caches, which whole logits do not: measured, with an inner size of 64 this saves what computing
// them again costs, with 512 nearly nothing of it.
std::uint64_t remade_cost(const VocabularySizes& s) {
  constexpr std::int64_t kSaved = 40;
  return product_cost({s.rows, std::max<std::int64_t>(0, s.inner - kSaved), s.classes});
}

VocabularyOperands operands_of(const OpRun& run, const ConstTensorView* bias) {
  const VocabularySizes s = sizes_of(run.in[1].shape(), run.in[2].shape());
  return {run.in[1].reshaped({s.rows, s.inner}), run.in[2], bias, run.in[0].reshaped({s.rows})};
}

class VocabularyLoss final : public OpOf<VocabularyLoss> {
 public:
  explicit VocabularyLoss(bool with_argmax) noexcept : with_argmax_(with_argmax) {}
  const char* name() const noexcept override { return "sparse_softmax_cross_entropy_with_logits"; }
  void infer(const Specs& in, SpecList& out) const override {
    const VocabularySizes s = sizes_of(in.shape(1), in.shape(2));
    out.add(in.shape(0), in.dtype(1));
    out.add({s.rows, 2}, f64);
    if (with_argmax_) out.add(in.shape(0), i64);
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return vocabulary_loss_scratch_bytes(sizes_of(in.shape(1), in.shape(2)), in.dtype(1));
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    const VocabularySizes s = sizes_of(in.shape(1), in.shape(2));
    return Op::cost(in, out) + product_cost(s) + exponentials_cost(s);
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView* const bias = run.in.size() > 3 ? &run.in[3] : nullptr;
    VocabularyResults out{run.out[0], run.out[1], {}};
    if (with_argmax_) out.best = run.out[2];
    internal::vocabulary_loss(operands_of(run, bias), out, run.scratch);
  }
  bool index_rule(std::span<const ConstTensorView> in, IndexRule& rule) const override {
    rule = label_rule(name(), "label", in[2].shape()[1]);
    return true;
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false, .checks = true}; }
  bool operator==(const VocabularyLoss&) const = default;

 private:
  bool with_argmax_;
};

class VocabularyLossGradient final : public OpOf<VocabularyLossGradient> {
 public:
  explicit VocabularyLossGradient(const VocabularyGradientParts& parts) noexcept : parts_(parts) {}
  const char* name() const noexcept override { return "cross_entropy_gradient"; }
  void infer(const Specs& in, SpecList& out) const override {
    out.add(in.shape(2), in.dtype(1));
    if (parts_.dx) out.add(in.shape(1), in.dtype(1));
    if (parts_.db) out.add({in.shape(2)[1]}, in.dtype(1));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return vocabulary_gradient_scratch_bytes(sizes_of(in.shape(1), in.shape(2)), in.dtype(1));
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    const VocabularySizes s = sizes_of(in.shape(1), in.shape(2));
    return Op::cost(in, out) + (parts_.dx ? 2 : 1) * product_cost(s) + remade_cost(s) + exponentials_cost(s);
  }
  void run(const OpRun& run) const noexcept override {
    std::size_t next = 1;
    VocabularyGradients out{run.out[0], {}, {}};
    if (parts_.dx) out.dx = run.out[next++];
    if (parts_.db) out.db = run.out[next];
    const VocabularyOperands in = operands_of(run, parts_.bias ? &run.in[5] : nullptr);
    if (parts_.dx) out.dx = out.dx.reshaped(in.x.shape());
    internal::vocabulary_loss_gradient(in, run.in[3], run.in[4], out, run.scratch);
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }
  bool operator==(const VocabularyLossGradient&) const = default;

 private:
  VocabularyGradientParts parts_;
};

}  // namespace

bool has_vocabulary_loss(const TensorSpec& x, const TensorSpec& w) {
  return x.dtype == w.dtype && x.shape.rank() >= 1 && w.shape.rank() == 2 && x.shape.is_known() &&
         is_sliceable(sizes_of(x.shape, w.shape), x.dtype);
}

std::unique_ptr<Op> vocabulary_loss(bool with_argmax) { return std::make_unique<VocabularyLoss>(with_argmax); }

std::unique_ptr<Op> vocabulary_loss_gradient(const VocabularyGradientParts& parts) {
  return std::make_unique<VocabularyLossGradient>(parts);
}

}  // namespace plimsoll::internal
