#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/interrupt.h"
#include "plimsoll/graph/spill_option.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/step_budget.h"
#include "plimsoll/model/training/step_plan.h"
#include "plimsoll/ops/copy_on.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

// A result that belongs only to the caller: neither an argument nor one of the model's tensors.
Tensor own(const Tensor& result, const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs)
    if (input.record() == result.record()) return result.reshape(result.shape());
  return result;
}

Tensor rows_of(const Tensor& tensor, std::int64_t begin, std::int64_t count) {
  return count == tensor.shape()[0] ? tensor : tensor.slice({begin}, {count});
}

// The results of batches for one output: rows of one tensor or, where the first axis counts something else, tensors.
struct Collected {
  Tensor whole;
  std::vector<Tensor> parts;

  void add(Tensor& part, std::int64_t begin, std::int64_t rows, std::int64_t count) {
    if (part.rank() == 0 || part.shape()[0] != rows) {
      parts.push_back(part);
      return;
    }
    if (whole.is_empty_handle()) {
      std::vector<std::int64_t> sizes(part.shape().begin(), part.shape().end());
      sizes[0] = count;
      whole = make_tensor({.op = "predict"}, Shape(sizes), part.dtype(), device_of(part));
    }
    const std::size_t offset = part.nbytes() / static_cast<std::size_t>(rows) * static_cast<std::size_t>(begin);
    copy_on(device_of(whole), part.view(), TensorView(writable(whole).bytes(), offset, part.dtype(), part.shape()));
    part.dispose();
  }
  Tensor all() const { return parts.empty() ? whole : concat(parts, 0); }
};

std::shared_ptr<StepPlan> plan_for(Network& network, const std::vector<Tensor>& inputs) {
  return network.training.plans.get(StepKind::kPredict, {.inputs = inputs, .targets = {}, .weights = {}}, "predict");
}

// The memory for predictions of `count` examples, in such batches. Unknown for steps that run op by op.
struct PredictNeed {
  std::vector<std::shared_ptr<StepPlan>> plans;
  std::size_t beside = 0;             // The weights and a batch, which are charged to nobody here.
  std::size_t results = 0;            // Of all examples, when there are several batches.
  std::size_t most = 0;               // For one step.
  const StepPlan* largest = nullptr;  // That step.
  bool is_known = true;

  PredictNeed(Network& network, const std::vector<std::vector<Tensor>>& batches, std::int64_t count) {
    for (const std::vector<Tensor>& inputs : batches) {
      plans.push_back(plan_for(network, inputs));
      std::size_t batch = 0;
      for (const Tensor& input : inputs) batch += whole_blocks(input.nbytes());
      beside = std::max(beside, network.parameter_bytes() + batch);
      if (!plans.back()->has_program()) {
        is_known = false;
        continue;
      }
      const Program& program = plans.back()->program();
      if (!largest || program.block_bytes() > most) largest = plans.back().get();
      most = std::max(most, program.block_bytes());
      if (batches.size() == 1 && inputs[0].shape()[0] == count) continue;
      std::size_t whole = 0;
      for (std::size_t i = 0; i < program.num_fetches(); ++i) {
        const TensorSpec& part = program.fetch_spec(i);
        const std::int64_t rows = std::max<std::int64_t>(1, inputs[0].shape()[0]);
        whole += whole_blocks(part.bytes() / static_cast<std::size_t>(rows) * static_cast<std::size_t>(count));
      }
      results = std::max(results, whole);
    }
  }
  // For one step that may recompute.
  std::size_t leanest(Eviction eviction) const {
    std::size_t bytes = 0;
    for (const auto& plan : plans)
      bytes = std::max(bytes, plan->program().block_bytes() - plan->most_saved_bytes(kMostSlowdown, eviction));
    return bytes;
  }
};

// The file of one call, and the plans that have reserved space in it, which they free at the end.
class Spilling {
 public:
  explicit Spilling(std::optional<SpillFile> file) : file_(std::move(file)) {}
  ~Spilling() {
    for (const auto& plan : plans_) plan->program().release_slots();
  }
  Spilling(const Spilling&) = delete;
  Spilling& operator=(const Spilling&) = delete;

  SpillFile* file() noexcept { return file_ ? &*file_ : nullptr; }
  Eviction eviction() const noexcept { return file_ ? Eviction::kSpill : Eviction::kRecompute; }
  const std::shared_ptr<StepPlan>& note(const std::shared_ptr<StepPlan>& plan) {
    const bool is_new = std::find(plans_.begin(), plans_.end(), plan) == plans_.end();
    if (file_ && is_new && plan->has_program()) plans_.push_back(plan);
    return plan;
  }

 private:
  std::optional<SpillFile> file_;
  std::vector<std::shared_ptr<StepPlan>> plans_;
};

// Called before anything is computed: throws OutOfMemory when the given budget, or a surrounding one, has no room for
// it, and names the limit that suffices.
void require_room_to_predict(const Network& network, const PredictNeed& need, std::int64_t count,
                             const std::optional<std::size_t>& budget, Eviction eviction) {
  if (!need.is_known) return;
  const auto within = [&](std::size_t limit, std::size_t held) {
    const std::size_t natural = held + need.results + need.most;
    return natural <= limit || !budget ? natural : held + need.results + need.leanest(eviction);
  };
  const std::string what = fmt::format("with {} for the results of {} examples", format_bytes(need.results), count);
  if (const std::size_t needed = budget ? within(*budget, need.beside) : 0; budget && needed > *budget) {
    MemoryForecast forecast;
    forecast.peak_bytes = need.beside + need.results + need.most;
    need.largest->add_front(forecast, eviction);
    const Program& program = need.largest->program();
    const std::size_t too_long = program.is_too_long_to_recompute() ? program.num_steps() : 0;
    OutOfMemoryDetails details{.requested = needed, .limit = *budget, .smallest_sufficient_limit = needed};
    details.what = fmt::format(
        "predict: model \"{}\" needs {}, {}, its budget is {}; {}; give it {} bytes, or predict smaller batches",
        network.name(), format_bytes_exactly(needed), what, format_bytes_exactly(*budget),
        describe_recomputing(forecast, {needed, kMostSlowdown, eviction, too_long}), needed);
    throw_refusal(std::move(details), {.budget = "predict", .op = "predict", .scope = network.name().c_str()});
  }
  const std::optional<Budget> innermost = Budget::current();
  for (const BudgetNode* node = innermost ? innermost->node().get() : nullptr; node; node = node->parent()) {
    const std::size_t used = node->used(), needed = within(node->limit(), used);
    if (needed <= node->limit()) continue;
    OutOfMemoryDetails details;
    details.requested = needed - used;
    details.limit = node->limit();
    details.in_use = used;
    details.smallest_sufficient_limit = needed;
    details.what = fmt::format(
        "predict: model \"{}\" needs {}, {}, budget \"{}\" of {} has {} in use; give it {} bytes, or predict smaller "
        "batches",
        network.name(), format_bytes_exactly(needed - used), what, node->name(), format_bytes_exactly(node->limit()),
        format_bytes_exactly(used), needed);
    throw_refusal(std::move(details),
                  {.budget = node->name().c_str(), .op = "predict", .scope = network.name().c_str()});
  }
}

// For results and steps, inside the surrounding budgets: the rest of the given budget.
Budget own_budget(std::size_t bytes, const PredictNeed& need) {
  const std::size_t left = bytes > need.beside ? bytes - need.beside : 1;
  const std::optional<Budget> around = Budget::current();
  return around ? Budget("predict", left, *around) : Budget("predict", left);
}

}  // namespace

std::vector<Tensor> Model::predict_all(const std::vector<Tensor>& inputs, const BatchSizeOptions& options) const {
  require_inputs(*network_, inputs, "predict");
  if (options.batch_size == 0) throw InvalidArgument("predict: batch_size is 0; give 1 or more");
  Spilling spilling(open_spill("predict", options.spill, options.budget.has_value()));
  const std::int64_t count = inputs[0].shape()[0], size = static_cast<std::int64_t>(options.batch_size);
  for (const Tensor& input : inputs)
    if (input.shape()[0] != count)
      throw InvalidArgument(
          fmt::format("predict: inputs of {} and {} examples; give all the same number", count, input.shape()[0]));
  const auto batch_at = [&](std::int64_t begin) {
    std::vector<Tensor> batch;
    for (const Tensor& input : inputs) batch.push_back(rows_of(input, begin, std::min(size, count - begin)));
    cast_inputs(*network_, batch);
    return batch;
  };
  return tidy([&] {
    const std::int64_t last = count <= size ? 0 : (count - 1) / size * size;
    std::vector<std::vector<Tensor>> kinds = {batch_at(0)};
    if (last > 0 && count - last != size) kinds.push_back(batch_at(last));
    std::optional<Budget> budget;  // For results and steps, inside the surrounding ones.
    if (options.budget || Budget::current()) {
      const PredictNeed need(*network_, kinds, count);
      require_room_to_predict(*network_, need, count, options.budget, spilling.eviction());
      if (options.budget) budget = own_budget(*options.budget, need);
    }
    const auto predicted = [&](const std::vector<Tensor>& batch) {
      std::optional<BudgetScope> scope;
      if (budget) scope.emplace(*budget);
      const std::shared_ptr<StepPlan> plan = spilling.note(plan_for(*network_, batch));
      return plan->predict(batch, {.is_allowed = budget.has_value(), .spill = spilling.file()});
    };
    if (last == 0) {
      std::vector<Tensor> results = predicted(kinds[0]);
      for (Tensor& result : results) result = own(result, inputs);
      return results;
    }
    kinds.clear();
    std::vector<Collected> collected(network_->output_slots().size());
    for (std::int64_t begin = 0; begin < count; begin += size) {
      check_interrupt();
      std::vector<Tensor> parts = tidy([&] { return predicted(batch_at(begin)); });
      std::optional<BudgetScope> scope;
      if (budget) scope.emplace(*budget);
      for (std::size_t i = 0; i < parts.size(); ++i)
        collected[i].add(parts[i], begin, std::min(size, count - begin), count);
    }
    std::vector<Tensor> results;
    for (const Collected& each : collected) results.push_back(each.all());
    return results;
  });
}

Tensor Model::predict(const Tensor& x, const BatchSizeOptions& options) const {
  if (network_->is_connected() && network_->output_slots().size() != 1)
    throw InvalidArgument(
        fmt::format("predict: model \"{}\" has {} outputs; use predict_all", name(), network_->output_slots().size()));
  return predict_all({x}, options).at(0);
}

}  // namespace plimsoll
