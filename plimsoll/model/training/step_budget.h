// StepBudget: what a fit may use, checked against the plans of its steps before they run, and what it used.
//
//   StepBudget memory(network, "fit", {.bytes = options.budget});
//   { const BudgetScope charged(memory.loading()); stream->next(batch); }
//   const auto plan = network.training.plans.get(StepKind::kTrain, batch, "fit");
//   memory.admit(plan, batch, *data.node());          // OutOfMemory when the step needs more.
//   StepResult result = memory.run(*plan, batch);     // Inside what is left, recomputing when that is too little.
//   memory.peak_bytes();                              // Measured, counted as in a forecast.
//
// It counts weights, optimizer state, the step's plan, the batch (whether or not it shares bytes with what it was cut
// from), and what the pass over the dataset holds in addition. Surrounding budgets are checked too, before the first
// step. Steps recompute only with a budget of their own. A refusal names the smallest limit that suffices for
// everything requested. With a directory, large weights and optimizer state go there before the first batch is loaded.
// When steps fit with them in memory they come back with the first step; otherwise each step loads what it uses, and
// weights come back at the end. Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/training/forecast.h"
#include "plimsoll/model/training/step_plan.h"

namespace plimsoll {
struct Chunk;
}  // namespace plimsoll

namespace plimsoll::internal {

class BudgetNode;

struct StepLimits {
  std::optional<std::size_t> bytes = {};
  double max_slowdown = kMostSlowdown;  // Predicted; only with `bytes`.
  std::string spill = {};               // A directory to store values in; requires `bytes`.
  bool parks = true;                    // Large variables may be stored there too, between the steps that use them.
  bool shards_parameters = false;       // Trainable weights are spread over the ranks of a job; BesideStep counts them.
};

// Bytes that a step takes besides its plan, its parameters and its batch: a step of a job has some.
struct BesideStep {
  std::size_t gradients = 0, activations = 0, inputs = 0, optimizer = 0, workspace = 0;
  // Of parameters that are spread over ranks: this rank's part, and all, which the plan counts.
  std::size_t shards = 0, whole = 0;
  std::size_t all() const noexcept {  // Modulo 2^64: it may be negative.
    return gradients + activations + inputs + optimizer + workspace + shards - whole;
  }
  void add_to(MemoryForecast& forecast) const;
};

class StepBudget {
 public:
  // Throws InvalidArgument for a directory without bytes, and what SpillFile throws.
  StepBudget(Network& network, const char* where, const StepLimits& limits);
  ~StepBudget();  // Frees the disk space that steps have reserved. Weights are in memory again, if they fit.

  const Budget& loading() const noexcept { return *data_; }  // For passes and batches.

  // Call before the plan runs with a batch loaded from `data`. Fast for a plan that was admitted before, and when
  // nothing is limited. Throws OutOfMemory when a limit is smaller than what the step, or an expected one, needs.
  void admit(const std::shared_ptr<StepPlan>& plan, const Example& batch, const DatasetNode& data,
             const BesideStep& beside = {});
  // A step that will run after others, such as validation: the next admit() checks it too.
  // `loaded`: the batch that is in memory, when it is another one of this pass.
  void expect(const std::shared_ptr<StepPlan>& plan, const Example& batch, const DatasetNode& data,
              const Example* loaded = nullptr);
  // Requires that admit() returned for this plan and batch. Throws what StepPlan::run() throws.
  StepResult run(StepPlan& plan, const Example& batch);
  // The same in parts, for steps that consist of several runs: where they are charged, what they may do, the outcome of
  // one.
  const Budget& stepping() const noexcept { return steps_ ? *steps_ : *data_; }
  Recomputing recomputing() noexcept {
    return {.is_allowed = limit().has_value(),
            .max_slowdown = limits_.max_slowdown,
            .spill = spill_ ? &*spill_ : nullptr,
            .parks_variables = parks_};
  }
  void note_trained(const StepResult& result) noexcept;
  void note_freed() noexcept { has_room_ = nullptr; }  // Something that steps have left: the next may use its bytes.
  // Throws what admit() would for the steps that `unlimited` expects; returns when no limit is too small for them.
  void refuse_expected(const StepBudget& unlimited) const;
  // Adds what the pass holds besides the loaded batch; returns what is needed while it loads one.
  std::size_t add_data(MemoryForecast& needed, const Example& loaded, const DatasetNode& data) const;

  std::size_t peak_bytes() const { return std::max(peak_before_, held_ + shared_batch_ + measured_.peak()); }
  std::size_t used_bytes() const { return held_ + shared_batch_ + measured_.used(); }
  const std::optional<std::size_t>& limit() const noexcept { return limits_.bytes; }
  bool is_limited() const noexcept { return limits_.bytes || !around_.empty(); }
  bool has_admitted() const noexcept { return !admitted_.empty(); }
  bool has_refused() const noexcept { return refused_; }  // With a message that names the limit that suffices.
  // For training steps: the predicted slowdown compared with no limit, known when the first is admitted; and the
  // fraction of the work that was recomputing, of the last step and of all.
  double predicted_slowdown() const noexcept { return predicted_slowdown_; }
  double last_recomputed() const noexcept { return last_recomputed_; }
  std::size_t last_spilled() const noexcept { return last_spilled_; }    // What the last training step stored.
  std::size_t spilled_bytes() const noexcept { return spilled_bytes_; }  // By all steps.
  double recomputed_fraction() const noexcept { return trained_ > 0 ? recomputed_ / static_cast<double>(trained_) : 0; }

 private:
  struct Around {  // A budget that contains ours.
    std::shared_ptr<BudgetNode> node;
    std::size_t used;  // When we began.
  };
  // A step with such a batch, and the pass it comes from.
  struct Need {
    std::shared_ptr<StepPlan> plan;
    BatchSpec batch;
    MemoryForecast needed;         // Without recomputing.
    std::size_t loading = 0;       // The part that is needed while batches are loaded.
    std::size_t shared = 0;        // Bytes of the batch that nobody is charged for.
    std::size_t parked_state = 0;  // For an optimizer that others use: what is in the file when variables are parked.
  };
  // How a step runs: as it is; recomputing or spilling values; with variables parked, too.
  enum class Means : std::uint8_t { kNatural, kLean, kParked };
  using Needs = std::vector<Need>;  // Of training first.
  struct Refused {
    const Need* need = nullptr;
    const Around* by = nullptr;  // nullptr: the given limit.
    std::size_t sufficient = 0;
  };
  struct Admitted {
    std::shared_ptr<StepPlan> plan;
    std::size_t inputs = 0;  // Bytes of its batch and of the pass.
  };

  void begin(const Example& batch);
  Need need_of(const std::shared_ptr<StepPlan>& plan, const Example& batch, const Example& loaded,
               const DatasetNode& data, const BesideStep& beside = {}) const;
  void add_optimizer(Needs& needs) const;
  void park_variables();
  std::size_t resident_bytes() const;  // Of weights and optimizer state.
  bool may_use(const Need& need, Means means) const;
  Eviction eviction(const StepPlan& plan) const;                   // Of steps, as they run.
  std::size_t whole_bytes(const Need& need, Means means) const;    // The minimum, all together.
  std::size_t loading_bytes(const Need& need, Means means) const;  // The part of it while batches are loaded.
  // The first of the means that fits the limit, and what it needs; the last, when none does.
  template <class F>
  std::size_t smallest_limit(const Need& need, std::size_t given, F&& needed_with, Means* means = nullptr) const;
  std::size_t smallest_limit(const Need& need, Means* means = nullptr) const;
  std::size_t smallest_limit(const Need& need, const Around& around, Means* means = nullptr) const;
  void decide_parking(const Needs& needs);
  Refused find_refused(const Needs& needs) const;
  [[noreturn]] void refuse(const Refused& refused) const;
  void predict_slowdown(const Need& need);
  void make_room(const Admitted& next);
  void share(std::size_t bytes);
  std::size_t charged_bytes(const Example& batch) const;            // Of its tensors, to loading().
  std::size_t shared_bytes(const Example& batch) const;             // Of those that belong to others, but count.
  const Chunk* charged_chunk(const Tensor& tensor) const noexcept;  // Charged to loading(); nullptr when it is not.

  Network& network_;
  const char* const where_;
  const StepLimits limits_;
  std::optional<SpillFile> spill_;
  std::vector<Around> around_;  // Innermost first.
  std::size_t held_at_first_ = 0;
  std::size_t held_ = 0;  // Weights and optimizer state that existed before.
  std::size_t shared_batch_ = 0, peak_before_ = 0;
  Budget measured_;                  // Everything that is charged.
  std::optional<Budget> hard_;       // Part of it: the given limit.
  std::optional<Budget> data_;       // Part of that: what passes and batches take,
  std::optional<Budget> all_steps_;  // and what steps take, or have left behind;
  std::optional<Budget> steps_;      // of that, the steps of one plan.
  bool begun_ = false, refused_ = false;
  bool parks_ = false;               // Steps do not fit otherwise.
  std::vector<Variable> returning_;  // Weights that were in memory at first.
  double predicted_slowdown_ = 1, recomputed_ = 0, last_recomputed_ = 0;
  std::size_t trained_ = 0, last_spilled_ = 0, spilled_bytes_ = 0;
  std::vector<Admitted> admitted_;
  const StepPlan* has_room_ = nullptr;  // The plan that steps_ is sized for.
  Needs expected_;
};

// For refusals: what recomputing could achieve, with a forecast that has its front.
struct RecomputingWords {
  std::size_t sufficient = 0;
  double max_slowdown = kMostSlowdown;
  Eviction eviction = Eviction::kRecompute;
  std::size_t too_long = 0;  // The number of operations, if too many to compute leaner plans.
};
std::string describe_recomputing(const MemoryForecast& needed, const RecomputingWords& words);

// Adds bytes held besides the step to the whole forecast, and raises what is below `least`, a need of its own.
void add_held_bytes(MemoryForecast& forecast, std::size_t bytes, std::size_t least = 0);

}  // namespace plimsoll::internal
