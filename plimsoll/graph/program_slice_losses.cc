// Cross entropies over large vocabularies: where logits are computed by a dense layer, read by a sparse cross entropy
// and perhaps an argmax, and have a gradient, two steps can do it in slices that never hold all logits
// (ops/vocabulary_ops.h). They cost the product once more, so only lean plans do.
//
//   dense(x, w, b), loss, argmax, loss's gradient, sum (db), x^T g (dw), g w^T (dx)   become   loss, its gradient
#include <algorithm>
#include <optional>
#include <string_view>

#include "plimsoll/device/device.h"
#include "plimsoll/graph/program_match.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/vocabulary_ops.h"

namespace plimsoll::internal {
namespace {

using Place = StepList::Place;
using Step = StepList::Step;

bool is_named(const Step& step, std::string_view name) { return name == step.op->name(); }

// The steps of one such loss, by number.
struct SlicedLoss {
  std::size_t product, loss;
  std::optional<std::size_t> best, gradient, sum, weights, inputs;
  std::size_t at = 0;                // Where the loss is computed instead,
  std::vector<std::size_t> hoisted;  // and what its gradient needs that came after the gradient of the logits.
};

class LossFinder {
 public:
  explicit LossFinder(const StepList& list)
      : list_(list), readers_(list.roots.size()), makers_(list.roots.size(), kNoStep) {
    for (std::size_t i = 0; i < list.steps.size(); ++i) {
      for (std::size_t k = 0; k < list.steps[i].in.size(); ++k)
        readers_[list.values[list.steps[i].in[k]].root].push_back({i, k});
      for (const std::uint32_t output : list.steps[i].out) makers_[list.values[output].root] = i;
    }
    for (const std::uint32_t fetch : list.fetches)
      if (fetch != StepList::kNone) readers_[list.values[fetch].root].push_back({kNoStep, 0});
  }

  std::optional<SlicedLoss> find(std::size_t product) const {
    if (!is_product_of_rows(product)) return std::nullopt;
    SlicedLoss found{.product = product, .loss = kNoStep};
    if (!find_readers_of_logits(found) || found.loss == kNoStep || !find_place(found)) return std::nullopt;
    if (!found.gradient) return found;
    if (found.at >= *found.gradient || !find_readers_of_slopes(found) || !hoist(found) || is_changed_between(found))
      return std::nullopt;
    return found;
  }

 private:
  static constexpr std::size_t kNoStep = SIZE_MAX;
  struct Reader {
    std::size_t step, input;
  };

  std::uint32_t root_of(std::uint32_t value) const { return list_.values[value].root; }
  bool is_whole(std::uint32_t value) const {
    return list_.values[value].offset == 0 && list_.spec(value).bytes() == list_.roots[root_of(value)].bytes;
  }
  bool is_planned(std::uint32_t value) const { return list_.roots[root_of(value)].place == Place::kPlanned; }
  bool are_bytes_of(std::uint32_t a, std::uint32_t b) const {
    return root_of(a) == root_of(b) && list_.values[a].offset == list_.values[b].offset &&
           list_.spec(a).bytes() == list_.spec(b).bytes();
  }

  bool is_product_of_rows(std::size_t i) const {
    const Step& step = list_.steps[i];
    const bool by_host = step.device && step.device->backend().is_reachable();
    if (!by_host || step.out.size() != 1 || step.in.size() < 2 || !is_planned(step.out[0])) return false;
    if (!is_named(step, "dense") && !is_named(step, "matmul")) return false;
    const TensorSpec &x = list_.spec(step.in[0]), &w = list_.spec(step.in[1]);
    if (w.shape.rank() != 2 || x.shape.rank() < 2 || x.shape.back() != w.shape[0] || !has_vocabulary_loss(x, w))
      return false;
    if (step.in.size() == 2 && is_named(step, "matmul")) return is_product(list_, step, {});
    std::vector<const TensorSpec*> specs;
    for (const std::uint32_t input : step.in) specs.push_back(&list_.spec(input));
    const auto plain = [](const std::vector<Tensor>& in) {
      return in.size() > 2 ? dense(in[0], in[1], in[2]) : dense(in[0], in[1]);
    };
    return are_same(op_made_by(plain, specs, *step.device).get(), *step.op);
  }

  bool has_labels(const Step& step) const {
    const TensorSpec& labels = list_.spec(step.in[0]);
    return labels.dtype == i32 || labels.dtype == i64;
  }

  bool is_argmax(const Step& step) const {
    const auto best = [](const std::vector<Tensor>& in) { return in[0].argmax(-1); };
    return is_named(step, "argmax") &&
           are_same(op_made_by(best, {&list_.spec(step.in[0])}, *step.device).get(), *step.op);
  }

  bool find_readers_of_logits(SlicedLoss& found) const {
    const std::uint32_t logits = list_.steps[found.product].out[0];
    for (const auto& [number, input] : readers_[root_of(logits)]) {
      if (number == kNoStep) return false;
      const Step& step = list_.steps[number];
      if (!is_whole(step.in[input]) || list_.spec(step.in[input]).shape.back() != list_.spec(logits).shape.back())
        return false;
      if (is_named(step, "sparse_softmax_cross_entropy_with_logits") && input == 1 && found.loss == kNoStep)
        found.loss = number;
      else if (is_named(step, "cross_entropy_gradient") && input == 1 && has_labels(step) && !found.gradient)
        found.gradient = number;
      else if (!found.best && is_argmax(step))
        found.best = number;
      else
        return false;
    }
    return true;
  }

  // Where labels are there, and nothing reads losses or positions yet.
  bool find_place(SlicedLoss& found) const {
    const auto may_be = [&](std::size_t at) {
      const std::size_t labels = makers_[root_of(list_.steps[found.loss].in[0])];
      if (labels != kNoStep && labels >= at) return false;
      for (const std::size_t each : {found.loss, found.best.value_or(found.loss)})
        for (const Reader& reader : readers_[root_of(list_.steps[each].out[0])])
          if (reader.step <= at) return false;
      return true;
    };
    const std::size_t other = found.best.value_or(found.loss);
    for (const std::size_t at : {std::min(found.loss, other), std::max(found.loss, other)}) {
      found.at = at;
      if (may_be(at)) return true;
    }
    return false;
  }

  bool is_sum_of_rows(const Step& step) const {
    const auto sum = [](const std::vector<Tensor>& in) { return in[0].sum({0}); };
    const TensorSpec& rows = list_.spec(step.in[0]);
    return is_named(step, "sum") && rows.shape.rank() == 2 &&
           are_same(op_made_by(sum, {&rows}, *step.device).get(), *step.op);
  }

  bool find_readers_of_slopes(SlicedLoss& found) const {
    const Step& product = list_.steps[found.product];
    const std::uint32_t slopes = list_.steps[*found.gradient].out[0];
    if (!is_planned(slopes)) return false;
    for (const auto& [number, input] : readers_[root_of(slopes)]) {
      if (number == kNoStep || !is_whole(list_.steps[number].in[input])) return false;
      const Step& step = list_.steps[number];
      if (!found.sum && product.in.size() > 2 && is_sum_of_rows(step))
        found.sum = number;
      else if (!found.weights && input == 1 && is_product(list_, step, {.transpose_a = true}) &&
               list_.spec(step.in[0]).bytes() == list_.spec(product.in[0]).bytes())
        found.weights = number;
      else if (!found.inputs && input == 0 && are_bytes_of(step.in[1], product.in[1]) &&
               is_product(list_, step, {.transpose_b = true}))
        found.inputs = number;
      else
        return false;
    }
    return found.weights.has_value();
  }

  // x may be made again only after the gradient of the logits: then that moves before it.
  bool hoist(SlicedLoss& found) const {
    std::vector<std::uint32_t> open = {list_.steps[*found.weights].in[0]};
    while (!open.empty()) {
      const std::size_t maker = makers_[root_of(open.back())];
      open.pop_back();
      if (maker == kNoStep || maker < *found.gradient) continue;
      const Step& step = list_.steps[maker];
      const bool is_pure = list_.graph->node(step.node).kind == NodeKind::kOp && step.op->facts().is_pure;
      for (const auto& part : {found.gradient, found.sum, found.weights, found.inputs})
        if (part == maker) return false;
      if (!is_pure || list_.changes_variables(step)) return false;
      if (std::find(found.hoisted.begin(), found.hoisted.end(), maker) != found.hoisted.end()) continue;
      found.hoisted.push_back(maker);
      open.insert(open.end(), step.in.begin(), step.in.end());
    }
    std::sort(found.hoisted.begin(), found.hoisted.end());
    return true;
  }

  // The bias and weights must be what they were.
  bool is_changed_between(const SlicedLoss& found) const {
    const Step& product = list_.steps[found.product];
    for (std::size_t i = found.product; i < *found.gradient; ++i)
      for (const std::uint32_t output : list_.steps[i].out)
        for (const std::uint32_t input : product.in)
          if (i != found.product && root_of(output) == root_of(input)) return true;
    return false;
  }

  const StepList& list_;
  std::vector<std::vector<Reader>> readers_;  // By root.
  std::vector<std::size_t> makers_;           // By root: the last step that writes it.
};

// Makes the two steps, and leaves out those that they stand for.
class LossSlicer {
 public:
  LossSlicer(StepList& list, const SlicedLoss& found) : list_(list), found_(found) {}

  void run() {
    const std::uint32_t statistics = add_statistics();
    std::vector<Step> steps;
    for (std::size_t i = 0; i < list_.steps.size(); ++i) {
      if (i == found_.at) steps.push_back(loss_step(statistics));
      if (found_.gradient == i) {
        for (const std::size_t each : found_.hoisted) steps.push_back(list_.steps[each]);
        steps.push_back(gradient_step(statistics));
      }
      if (!is_replaced(i)) steps.push_back(list_.steps[i]);
    }
    forget_value(list_, list_.steps[found_.product].out[0]);
    if (found_.gradient) forget_value(list_, list_.steps[*found_.gradient].out[0]);
    list_.steps = std::move(steps);
  }

 private:
  bool is_replaced(std::size_t i) const {
    if (i == found_.product || i == found_.loss) return true;
    for (const auto& part : {found_.best, found_.gradient, found_.sum, found_.weights, found_.inputs})
      if (part == i) return true;
    return std::find(found_.hoisted.begin(), found_.hoisted.end(), i) != found_.hoisted.end();
  }

  std::uint32_t add_statistics() {
    const Step& product = list_.steps[found_.product];
    const auto rows = static_cast<std::int64_t>(list_.spec(list_.steps[found_.loss].out[0]).shape.size());
    list_.specs.push_back(std::make_shared<TensorSpec>(TensorSpec{{rows, 2}, f64}));
    StepList::Root root;
    root.spec = *list_.specs.back();
    root.bytes = root.spec.bytes();
    root.device = product.device;
    root.op = list_.steps[found_.loss].op->name();
    root.node = list_.steps[found_.loss].node;
    list_.roots.push_back(root);
    list_.values.push_back(
        {.root = static_cast<std::uint32_t>(list_.roots.size() - 1), .spec = list_.specs.back().get()});
    return static_cast<std::uint32_t>(list_.values.size() - 1);
  }

  Step step_like(std::size_t number, std::unique_ptr<Op> op, std::vector<std::uint32_t> in,
                 std::vector<std::uint32_t> out) {
    Step step;
    step.node = list_.steps[number].node;
    step.device = list_.steps[found_.product].device;
    step.in = std::move(in);
    step.out = std::move(out);
    step.checks = op->facts().checks && list_.steps[number].checks;
    step.scratch_bytes = list_.scratch_of(*op, step.in, step.out);
    step.op = op.get();
    list_.ops.push_back(std::move(op));
    return step;
  }

  Step loss_step(std::uint32_t statistics) {
    const Step &product = list_.steps[found_.product], &loss = list_.steps[found_.loss];
    std::vector<std::uint32_t> in = {loss.in[0], product.in[0], product.in[1]}, out = {loss.out[0], statistics};
    if (product.in.size() > 2) in.push_back(product.in[2]);
    if (found_.best) out.push_back(list_.steps[*found_.best].out[0]);
    return step_like(found_.loss, vocabulary_loss(found_.best.has_value()), std::move(in), std::move(out));
  }

  Step gradient_step(std::uint32_t statistics) {
    const Step &product = list_.steps[found_.product], &slopes = list_.steps[*found_.gradient],
               &weights = list_.steps[*found_.weights];
    const VocabularyGradientParts parts = {
        .dx = found_.inputs.has_value(), .db = found_.sum.has_value(), .bias = product.in.size() > 2};
    std::vector<std::uint32_t> in = {slopes.in[0], weights.in[0], product.in[1], statistics, slopes.in[2]};
    if (parts.bias) in.push_back(product.in[2]);
    std::vector<std::uint32_t> out = {weights.out[0]};
    if (parts.dx) out.push_back(list_.steps[*found_.inputs].out[0]);
    if (parts.db) out.push_back(list_.steps[*found_.sum].out[0]);
    return step_like(*found_.gradient, vocabulary_loss_gradient(parts), std::move(in), std::move(out));
  }

  StepList& list_;
  const SlicedLoss& found_;
};

std::optional<SlicedLoss> first_loss(const StepList& list) {
  std::optional<LossFinder> finder;  // Only where there is something to find: most programs have none.
  for (std::size_t i = 0; i < list.steps.size(); ++i) {
    if (!is_named(list.steps[i], "dense") && !is_named(list.steps[i], "matmul")) continue;
    if (list.steps[i].in.size() < 2 || list.spec(list.steps[i].in[1]).shape.rank() != 2) continue;
    if (!has_vocabulary_loss(list.spec(list.steps[i].in[0]), list.spec(list.steps[i].in[1]))) continue;
    if (!finder) finder.emplace(list);
    if (std::optional<SlicedLoss> found = finder->find(i)) return found;
  }
  return std::nullopt;
}

}  // namespace

bool has_sliceable_loss(const StepList& list) { return first_loss(list).has_value(); }

void slice_losses(StepList& list) {
  while (const std::optional<SlicedLoss> found = first_loss(list)) LossSlicer(list, *found).run();
}

}  // namespace plimsoll::internal
