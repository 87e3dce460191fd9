#include "plimsoll/ops/cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/loss.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/labels.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/op_cost.h"
#include "plimsoll/ops/scratch.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/ops/take_along.h"

namespace plimsoll {
namespace {

enum class Loss : unsigned char { kSoftmax, kSparseSoftmax, kSigmoid };

constexpr std::int64_t kBlock = 65536;  // Elements converted at once, or one row.

// Logits as rows with one loss each, and blocks of rows for half types; depends on the shape only.
struct RowSizes {
  RowSizes(Loss loss, const Shape& logits) noexcept : columns(loss == Loss::kSigmoid ? 1 : logits.back()) {
    const std::size_t row_axes = logits.rank() - (loss == Loss::kSigmoid ? 0 : 1);
    for (std::size_t axis = 0; axis < row_axes; ++axis) rows *= logits[axis];
    block = std::clamp<std::int64_t>(kBlock / std::max<std::int64_t>(1, columns), 1, std::max<std::int64_t>(1, rows));
  }
  Shape matrix() const { return {rows, columns}; }
  std::size_t block_size() const noexcept { return static_cast<std::size_t>(block * columns); }

  std::int64_t rows = 1, columns, block;
};

void run_loss(Loss loss, const ConstTensorView& logits, const ConstTensorView& labels,
              const LossOutputs& out) noexcept {
  switch (loss) {
    case Loss::kSoftmax:
      return softmax_cross_entropy(logits, labels, out);
    case Loss::kSparseSoftmax:
      return sparse_softmax_cross_entropy(logits, labels, out);
    case Loss::kSigmoid:
      return sigmoid_cross_entropy(logits, labels, out);
  }
}

// A view of a half tensor's rows in f32; for other dtypes the rows themselves.
ConstTensorView widened(const ConstTensorView& part, ScratchViews& scratch) noexcept {
  if (!is_half(part.dtype())) return part;
  const TensorView wide = scratch.take(f32, part.shape());
  copy(part, wide);
  return wide;
}

// For both ops: labels, logits, and for the gradient also that of the losses.
bool launch_loss(Loss loss, KernelQueue& queue, const OpRun& run) noexcept {
  const bool gradient = run.in.size() > 2;
  if (run.in[1].dtype() != f32) return false;
  const char* name = nullptr;
  if (loss == Loss::kSparseSoftmax && run.in[0].dtype() == i32)
    name = gradient ? "sparse_loss_grad.i32" : "sparse_loss.i32";
  else if (loss == Loss::kSparseSoftmax && run.in[0].dtype() == i64)
    name = gradient ? "sparse_loss_grad.i64" : "sparse_loss.i64";
  else if (loss == Loss::kSoftmax)
    name = gradient ? "softmax_loss_grad" : "softmax_loss";
  else if (loss == Loss::kSigmoid)
    name = gradient ? "sigmoid_loss_grad" : "sigmoid_loss";
  if (!name) return false;
  const RowSizes rows(loss, run.in[1].shape());
  KernelCall call(name);
  call.out(run.out[0].bytes()).in(run.in[0].bytes()).in(run.in[1].bytes());
  if (gradient) call.in(run.in[2].bytes());
  return queue.run(call.integer(rows.rows).integer(rows.columns).items(static_cast<std::size_t>(rows.rows)));
}

class CrossEntropy final : public OpOf<CrossEntropy> {
 public:
  explicit CrossEntropy(Loss loss) noexcept : loss_(loss) {}
  const char* name() const noexcept override {
    constexpr const char* kNames[] = {"softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits",
                                      "sigmoid_cross_entropy_with_logits"};
    return kNames[static_cast<std::size_t>(loss_)];
  }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    if (!is_half(in.dtype(1))) return 0;
    const RowSizes rows(loss_, in.shape(1));
    return 2 * scratch_bytes(f32, rows.block_size()) + scratch_bytes(f32, static_cast<std::size_t>(rows.block));
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    return Op::cost(in, out) + kExponentialCost * in.shape(1).size();
  }
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override { return launch_loss(loss_, queue, run); }
  SavedSlots saved(SlotMask wanted) const override {
    return {.inputs = wanted & slot(1) ? slot(0) | slot(1) : slot(1)};
  }
  void gradient(GradientContext& c) const override;
  std::string input_name(std::size_t input) const override { return input == 0 ? "labels" : "logits"; }
  bool index_rule(std::span<const ConstTensorView> in, IndexRule& rule) const override {
    if (loss_ != Loss::kSparseSoftmax) return false;
    rule = label_rule(name(), "label", in[1].shape().back());
    return true;
  }
  OpFacts facts() const noexcept override { return {.checks = loss_ == Loss::kSparseSoftmax}; }
  bool operator==(const CrossEntropy&) const = default;

 private:
  void check_sparse(const Specs& in) const;

  Loss loss_;
};

Shape loss_shape(Loss loss, const Shape& logits) {
  return loss == Loss::kSigmoid ? logits : Shape(logits.sizes().first(logits.rank() - 1));
}

void CrossEntropy::infer(const Specs& in, SpecList& out) const {
  const Shape &labels = in.shape(0), &logits = in.shape(1);
  require_floating(*this, in.dtype(1));
  if (loss_ != Loss::kSigmoid) require_rank_at_least(*this, logits, 1);
  if (loss_ == Loss::kSparseSoftmax) {
    check_sparse(in);
  } else {
    require_same_dtype(*this, in);
    if (labels.rank() != logits.rank() || (labels.is_known() && logits.is_known() && !(labels == logits)))
      throw InvalidArgument(fmt::format(
          "{}: labels {} and logits {} differ; give both one shape{}", name(), labels.to_string(), logits.to_string(),
          loss_ == Loss::kSoftmax ? ", or the numbers of the classes to the sparse one" : ""));
  }
  out.add(loss_shape(loss_, logits), in.dtype(1));
}

void CrossEntropy::check_sparse(const Specs& in) const {
  const Shape &labels = in.shape(0), &logits = in.shape(1), wanted = loss_shape(loss_, logits);
  if (in.dtype(0) != i32 && in.dtype(0) != i64)
    throw InvalidArgument(fmt::format("{}: labels {} are {}; give the numbers of the classes as int32 or int64", name(),
                                      labels.to_string(), dtype_name(in.dtype(0))));
  if (labels.rank() != wanted.rank() || (labels.is_known() && wanted.is_known() && !(labels == wanted)))
    throw InvalidArgument(fmt::format("{}: labels {} do not fit logits {}; give one label for each row, {}", name(),
                                      labels.to_string(), logits.to_string(), wanted.to_string()));
}

void CrossEntropy::run(const OpRun& run) const noexcept {
  if (run.in[1].size() == 0) {  // No rows, or rows without elements.
    if (run.out[0].size() > 0) std::memset(run.out[0].bytes(), 0, run.out[0].nbytes());
    return;
  }
  const RowSizes rows(loss_, run.in[1].shape());
  const ConstTensorView logits = run.in[1].reshaped(rows.matrix());
  const ConstTensorView labels = run.in[0].reshaped(loss_ == Loss::kSparseSoftmax ? Shape({rows.rows}) : rows.matrix());
  const TensorView out = run.out[0].reshaped({rows.rows});
  if (!is_half(logits.dtype())) return run_loss(loss_, logits, labels, {.loss = out});
  for (std::int64_t begin = 0; begin < rows.rows; begin += rows.block) {
    const std::int64_t end = std::min(rows.rows, begin + rows.block);
    ScratchViews scratch(run.scratch);
    const ConstTensorView wide = widened(logits.rows(begin, end), scratch),
                          wide_labels = widened(labels.rows(begin, end), scratch);
    const TensorView losses = scratch.take(f32, {end - begin});
    run_loss(loss_, wide, wide_labels, {.loss = losses});
    copy(losses, out.rows(begin, end));
  }
}

// From labels, logits and the gradient of the losses, the gradient of the logits in one pass.
class CrossEntropyGradient final : public OpOf<CrossEntropyGradient> {
 public:
  explicit CrossEntropyGradient(Loss loss) noexcept : loss_(loss) {}
  const char* name() const noexcept override { return "cross_entropy_gradient"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(1), in.dtype(1)); }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    if (!is_half(in.dtype(1))) return 0;
    const RowSizes rows(loss_, in.shape(1));
    return 3 * scratch_bytes(f32, rows.block_size()) + scratch_bytes(f32, static_cast<std::size_t>(rows.block));
  }
  std::uint64_t cost(const Specs& in, const SpecList& out) const override {
    return Op::cost(in, out) + kExponentialCost * in.shape(1).size();
  }
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override { return launch_loss(loss_, queue, run); }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0) | slot(1) | slot(2)}; }
  void gradient(GradientContext& c) const override;
  bool index_rule(std::span<const ConstTensorView> in, IndexRule& rule) const override {
    if (loss_ != Loss::kSparseSoftmax) return false;
    rule = label_rule(name(), "label", in[1].shape().back());
    return true;
  }
  OpFacts facts() const noexcept override { return {.checks = loss_ == Loss::kSparseSoftmax, .overwrites = slot(1)}; }
  bool operator==(const CrossEntropyGradient&) const = default;

 private:
  void gradient_of_sigmoid(GradientContext& c) const;

  Loss loss_;
};

void CrossEntropyGradient::run(const OpRun& run) const noexcept {
  if (run.out[0].size() == 0) return;
  const RowSizes rows(loss_, run.in[1].shape());
  const ConstTensorView logits = run.in[1].reshaped(rows.matrix()), upstream = run.in[2].reshaped({rows.rows});
  const ConstTensorView labels = run.in[0].reshaped(loss_ == Loss::kSparseSoftmax ? Shape({rows.rows}) : rows.matrix());
  const TensorView out = run.out[0].reshaped(rows.matrix());
  if (!is_half(logits.dtype())) return run_loss(loss_, logits, labels, {.gradient = out, .upstream = upstream});
  for (std::int64_t begin = 0; begin < rows.rows; begin += rows.block) {
    const std::int64_t end = std::min(rows.rows, begin + rows.block);
    ScratchViews scratch(run.scratch);
    const ConstTensorView wide = widened(logits.rows(begin, end), scratch),
                          wide_labels = widened(labels.rows(begin, end), scratch),
                          wide_upstream = widened(upstream.rows(begin, end), scratch);
    const TensorView gradient = scratch.take(f32, wide.shape());
    run_loss(loss_, wide, wide_labels, {.gradient = gradient, .upstream = wide_upstream});
    copy(gradient, out.rows(begin, end));
  }
}

void CrossEntropy::gradient(GradientContext& c) const {
  if (c.wants(0) && loss_ == Loss::kSoftmax) c.give(0, log_softmax(c.input(1)) * -c.grad().expand_dims(-1));
  if (c.wants(0) && loss_ == Loss::kSigmoid) c.give(0, -(c.grad() * c.input(1)));
  if (c.wants(1)) c.give(1, execute(CrossEntropyGradient(loss_), c.input(0), c.input(1), c.grad()));
}

// Of y = g (p t' - t), where p is softmax(x) and t' the sum of t; the sparse t is 1 at the label, t' 1.
void CrossEntropyGradient::gradient(GradientContext& c) const {
  if (loss_ == Loss::kSigmoid) return gradient_of_sigmoid(c);
  const bool is_sparse = loss_ == Loss::kSparseSoftmax;
  const Tensor &labels = c.input(0), &upstream = c.grad();
  const Tensor p = softmax(c.input(1)), g = c.input(2).expand_dims(-1);
  const Tensor mean = (upstream * p).sum({-1}, {.keep_dims = true});
  const Tensor total = is_sparse ? Tensor() : labels.sum({-1}, {.keep_dims = true});
  if (c.wants(0) && !is_sparse) c.give(0, g * (mean - upstream));
  if (c.wants(1)) {
    const Tensor gradient = g * p * (upstream - mean);
    c.give(1, is_sparse ? gradient : gradient * total);
  }
  if (!c.wants(2)) return;
  const Tensor gradient = is_sparse ? mean - execute(TakeAlong(upstream.rank() - 1), upstream, labels.expand_dims(-1))
                                    : mean * total - (upstream * labels).sum({-1}, {.keep_dims = true});
  c.give(2, gradient.reshape(c.input_shape(2)));
}

// Of y = g (sigmoid(x) - z).
void CrossEntropyGradient::gradient_of_sigmoid(GradientContext& c) const {
  const Tensor &z = c.input(0), &g = c.input(2), &upstream = c.grad();
  const Tensor y = sigmoid(c.input(1));
  if (c.wants(0)) c.give(0, -(upstream * g));
  if (c.wants(1)) c.give(1, upstream * g * y * (1 - y));
  if (c.wants(2)) c.give(2, upstream * (y - z));
}

}  // namespace

Tensor softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits) {
  return execute(CrossEntropy(Loss::kSoftmax), labels, logits);
}

Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits) {
  const CrossEntropy op(Loss::kSparseSoftmax);
  if (logits.rank() > 0 && logits.shape().back() >= 0)
    require_labels(op.name(), "label", labels, logits.shape().back());
  return execute(op, labels, logits);
}

Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits) {
  return execute(CrossEntropy(Loss::kSigmoid), labels, logits);
}

}  // namespace plimsoll
