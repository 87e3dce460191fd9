#include "plimsoll/graph/session.h"

#include <fmt/format.h>

#include <atomic>
#include <shared_mutex>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/graph/call_signature.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/growth_watch.h"
#include "plimsoll/graph/plan_cache.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/graph/spill_option.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::size_t kPlanCacheBytes = std::size_t{64} << 20;

bool fits(const Shape& value, const Shape& declared) {
  if (value.rank() != declared.rank()) return false;
  for (std::size_t axis = 0; axis < value.rank(); ++axis)
    if (declared[axis] != kUnknownSize && declared[axis] != value[axis]) return false;
  return true;
}

// What distinguishes runs; needs no heap when it is short.
using Words = ShortList<std::uint64_t, 96>;

void append(Words& words, const Tensor& value) {
  const Shape& shape = value.shape();
  words.push_back(static_cast<std::uint64_t>(value.dtype()) << 32 | shape.rank());
  for (const std::int64_t size : shape) words.push_back(static_cast<std::uint64_t>(size));
}

std::uint64_t number_of(ValueId value) { return std::uint64_t{value.node} << 32 | value.output; }

}  // namespace

class Session::State {
 public:
  State(const Graph& graph, const SessionOptions& options)
      : graph_(graph),
        passes_(options.passes),
        spill_(open_spill("session", options.spill, options.budget.has_value())),
        plans_(kPlanCacheBytes) {
    if (!options.budget) return;
    if (const std::optional<Budget> outer = Budget::current())
      budget_.emplace("session", *options.budget, *outer);
    else
      budget_.emplace("session", *options.budget);
  }

  void run(std::span<const Tensor> fetches, const Feeds& feeds, std::span<Tensor> results) {
    const std::shared_lock use(use_);
    require_open();
    const std::shared_ptr<Planned> planned = plan_for(fetches, feeds);
    const std::vector<Variable>& variables = values_for(*planned);
    ShortList<const Tensor*, 16> values;
    for (const Feeds::Item& item : feeds.items()) values.push_back(&item.second);
    const TraceWith nobody(nullptr);
    planned->program.run({.feeds = values.span(),
                          .variables = variables,
                          .results = results,
                          .where = "session",
                          .own = budget_ ? &*budget_ : nullptr,
                          .may_recompute = budget_.has_value(),
                          .spill = spill_ ? &*spill_ : nullptr});
    if (budget_) recount(*planned);
  }

  MemoryPlan memory_plan(std::span<const Tensor> fetches, const Feeds& feeds) {
    const std::shared_lock use(use_);
    require_open();
    const std::shared_ptr<Planned> planned = plan_for(fetches, feeds);
    MemoryPlan plan = planned->program.memory_plan_with_front(eviction());
    recount(*planned);
    return plan;
  }

  void initialize() {
    const std::shared_lock use(use_);
    require_open();
    GraphState& graph = *graph_.state();
    std::vector<Tensor> initial;
    std::vector<std::uint32_t> numbers;
    {
      const auto locked = graph.lock();
      for (std::uint32_t i = 0; i < graph.variables().size(); ++i) {
        if (graph.variables()[i].eager) continue;
        numbers.push_back(i);
        initial.push_back(graph.tensor(graph.variables()[i].initial));
      }
    }
    if (numbers.empty()) return;
    const std::shared_ptr<Planned> planned = plan_for(initial, {});
    std::vector<Tensor> results(initial.size());
    const TraceWith nobody(nullptr);
    std::optional<BudgetScope> charged;
    if (budget_) charged.emplace(*budget_);
    planned->program.run({.variables = values_for(*planned), .results = results});
    for (std::size_t i = 0; i < numbers.size(); ++i) set(numbers[i], results[i]);
  }

  void set_by_name(const std::string& name, const Tensor& value) {
    const std::shared_lock use(use_);
    require_open();
    GraphState& graph = *graph_.state();
    const auto locked = graph.lock();
    for (std::uint32_t i = 0; i < graph.variables().size(); ++i) {
      const NodeVariable& variable = graph.variables()[i];
      if (variable.name != name) continue;
      if (variable.eager) {
        variable.eager->assign(value);
        return;
      }
      if (!(variable.spec.shape == value.shape()) || variable.spec.dtype != value.dtype())
        throw InvalidArgument(fmt::format("set_variable: variable \"{}\" is {} {}, the value {} {}", name,
                                          dtype_name(variable.spec.dtype), variable.spec.shape.to_string(),
                                          dtype_name(value.dtype()), value.shape().to_string()));
      return set(i, value);
    }
    throw NotFound(fmt::format("set_variable: the graph has no variable \"{}\"", name));
  }

  std::vector<Variable> variables() const {
    const std::lock_guard lock(mutex_);
    std::vector<Variable> result;
    for (const std::optional<Variable>& variable : values_)
      if (variable) result.push_back(*variable);
    return result;
  }

  std::vector<std::string> uninitialized() const {
    GraphState& graph = *graph_.state();
    const auto locked = graph.lock();
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < graph.variables().size(); ++i)
      if (!graph.variables()[i].eager && (i >= values_.size() || !values_[i]))
        names.push_back(graph.variables()[i].name);
    return names;
  }

  std::vector<NamedTensor> variable_values(Wanted wanted) {
    const std::unique_lock alone(use_);
    require_open();
    const TraceWith nobody(nullptr);
    GraphState& graph = *graph_.state();
    const auto locked = graph.lock();
    const std::lock_guard lock(mutex_);
    std::vector<NamedTensor> values;
    std::string missing;
    for (std::uint32_t i = 0; i < graph.variables().size(); ++i) {
      const NodeVariable& variable = graph.variables()[i];
      if (!wanted(variable.name)) continue;
      if (const std::optional<Variable> held = holder_of(variable, i))
        values.push_back({variable.name, held->value()});
      else
        missing += fmt::format("{}\"{}\"", missing.empty() ? "" : ", ", variable.name);
    }
    if (!missing.empty())
      throw FailedPrecondition(fmt::format(
          "save: no value in this session for variable {}; call initialize_variables(), or restore them", missing));
    return values;
  }

  void fill_variables(Wanted wanted, FunctionRef<void(std::span<const RestoreTarget>)> fill) {
    const std::unique_lock alone(use_);
    require_open();
    const TraceWith nobody(nullptr);
    std::optional<BudgetScope> charged;
    if (budget_) charged.emplace(*budget_);
    GraphState& graph = *graph_.state();
    const auto locked = graph.lock();
    const std::lock_guard lock(mutex_);
    values_.resize(std::max(values_.size(), graph.variables().size()));
    std::vector<std::pair<std::uint32_t, Variable>> fresh;
    std::vector<RestoreTarget> targets;
    std::vector<std::unique_ptr<Pin>> pins;
    for (std::uint32_t i = 0; i < graph.variables().size(); ++i) {
      const NodeVariable& variable = graph.variables()[i];
      if (!wanted(variable.name)) continue;
      std::optional<Variable> held = holder_of(variable, i);
      const bool has_value = held.has_value();
      if (!held) {
        held.emplace(make_tensor({.op = "LoadCheckpoint", .category = Category::kParameters}, variable.spec.shape,
                                 variable.spec.dtype, *variable.device),
                     VariableOptions{.name = variable.name, .trainable = variable.trainable});
        fresh.emplace_back(i, *held);
      }
      targets.push_back({variable.name, held->writable_value(), has_value, variable.device});
      pins.push_back(std::make_unique<Pin>(*held));
    }
    fill(targets);
    for (const auto& [number, variable] : fresh) values_[number].emplace(variable);
  }

  void close() {
    // First: threads that run continuously would not leave it the lock for long.
    if (!closed_.exchange(true)) trace_closed("session", this);
    const std::unique_lock alone(use_);
    plans_.clear();
    std::vector<std::optional<Variable>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(values_);
  }
  bool is_closed() const noexcept { return closed_; }
  const Graph& graph() const noexcept { return graph_; }

  SessionMemory report() const {
    SessionMemory memory;
    for (const Variable& variable : variables()) {
      memory.variables.emplace_back(variable.name(), variable.nbytes());
      memory.variable_bytes += variable.nbytes();
    }
    std::shared_ptr<const Planned> largest;
    plans_.for_each([&](const std::shared_ptr<Planned>& planned) {
      const MemoryPlan& plan = planned->program.memory_plan();
      if (plan.peak_bytes < memory.peak_bytes) return;
      memory.peak_bytes = plan.peak_bytes;
      memory.lower_bound_bytes = plan.lower_bound_bytes;
      largest = planned;
    });
    if (largest && budget_) memory.front = largest->program.front(eviction());
    memory.plans = plans_.size();
    memory.plan_bytes = plans_.bytes();
    return memory;
  }

 private:
  Eviction eviction() const noexcept { return spill_ ? Eviction::kSpill : Eviction::kRecompute; }

  // Keeps a variable's bytes in place.
  class Pin {
   public:
    explicit Pin(const Variable& variable) : storage_(variable.share_bytes()) { storage_->pin(); }
    ~Pin() { storage_->unpin(); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

   private:
    const StorageRef storage_;
  };

  // The holder of the value of the graph's variable with that number, if any. Requires mutex_.
  std::optional<Variable> holder_of(const NodeVariable& variable, std::uint32_t number) const {
    if (variable.eager) return variable.eager;
    if (number < values_.size()) return values_[number];
    return std::nullopt;
  }

  void require_open() const {
    if (closed_) throw FailedPrecondition("session: it is closed; make another one to run the graph again");
  }

  void set(std::uint32_t number, const Tensor& value) {
    const NodeVariable variable = [&] {
      const auto locked = graph_.state()->lock();
      return graph_.state()->variables()[number];
    }();
    std::unique_lock lock(mutex_);
    if (values_.size() <= number) values_.resize(number + 1);
    if (values_[number]) {
      const Variable known = *values_[number];
      lock.unlock();
      known.assign(value);
      return;
    }
    values_[number].emplace(value, VariableOptions{.name = variable.name, .trainable = variable.trainable});
  }

  // A plan, and the variables it reads and writes, which are fixed from the first run on.
  struct Planned {
    Planned(Rewritten rewritten, const Passes& passes) : program(std::move(rewritten), passes) {}
    Program program;
    std::atomic<bool> is_bound{false};
    std::atomic<std::size_t> counted_bytes{0};  // Of the program, as the cache knows them.
    std::vector<Variable> variables;            // Set once, under mutex_.
  };

  const std::vector<Variable>& values_for(Planned& planned) const {
    if (planned.is_bound.load(std::memory_order_acquire)) return planned.variables;
    std::vector<Variable> values;
    std::string missing;
    const std::lock_guard lock(mutex_);
    if (planned.is_bound.load(std::memory_order_relaxed)) return planned.variables;
    for (const Program::VariableUse& use : planned.program.variables()) {
      const NodeVariable& variable = planned.program.graph().variables()[use.number];
      if (const std::optional<Variable> held = holder_of(variable, variable.declared_number))
        values.push_back(*held);
      else
        missing += fmt::format("{}\"{}\"", missing.empty() ? "" : ", ", variable.name);
    }
    if (!missing.empty())
      throw FailedPrecondition(fmt::format(
          "run: no value in this session for variable {}; call initialize_variables(), or restore them", missing));
    planned.variables = std::move(values);
    planned.is_bound.store(true, std::memory_order_release);
    return planned.variables;
  }

  std::shared_ptr<Planned> plan_for(std::span<const Tensor> fetches, const Feeds& feeds) {
    Words words;
    growth_.look(*graph_.state());
    for (const Tensor& fetch : fetches) words.push_back(number_of(value_of(fetch, "fetch")));
    words.push_back(UINT64_MAX);
    for (std::size_t i = 0; i < feeds.items().size(); ++i) {
      const auto& [symbolic, value] = feeds.items()[i];
      words.push_back(number_of(value_of(symbolic, "feed")));
      check_feed(feeds, i);
      append(words, value);
    }
    if (std::shared_ptr<Planned> known = plans_.find(words.span())) return known;
    std::shared_ptr<Planned> planned = make_plan(fetches, feeds);
    const std::size_t bytes = planned->program.bytes();
    planned->counted_bytes = bytes;
    return plans_.insert(words.span(), std::move(planned), bytes);
  }

  // Recomputing plans are made when first needed, and count from then on.
  void recount(Planned& planned) {
    const std::size_t bytes = planned.program.bytes();
    if (planned.counted_bytes.exchange(bytes) != bytes) plans_.recount(planned, bytes);
  }

  std::shared_ptr<Planned> make_plan(std::span<const Tensor> fetches, const Feeds& feeds) const {
    GraphState& graph = *graph_.state();
    std::vector<ValueId> values;
    std::vector<Feed> fed;
    for (const Tensor& fetch : fetches) values.push_back(value_of(fetch, "fetch"));
    for (const auto& [symbolic, value] : feeds.items())
      fed.push_back({value_of(symbolic, "feed"), {value.shape(), value.dtype()}});
    trace_size("graph", &graph, graph.size());
    Passes expanding = passes_;
    expanding.merge = false;  // Gradients of merged operations would add up in another order.
    Rewritten expanded = rewrite(graph, fed, values, false, expanding);
    std::vector<Feed> again;
    for (std::size_t i = 0; i < fed.size(); ++i) again.push_back({expanded.feeds[i], fed[i].spec});
    Rewritten merged = rewrite(*expanded.graph, again, expanded.fetches, true, passes_);  // All in it is needed.
    auto planned = std::make_shared<Planned>(std::move(merged), passes_);
    if (log_enabled(LogLevel::debug)) log_message(LogLevel::debug, "session: placement\n" + graph_.placement());
    return planned;
  }

  ValueId value_of(const Tensor& tensor, const char* what) const {
    if (tensor.is_empty_handle() || tensor.is_disposed()) refuse_disposed(tensor, "run", what);
    if (!is_symbolic(tensor))
      throw InvalidArgument(fmt::format("run: a {} of shape {} is not symbolic; {} nodes of the session's graph", what,
                                        tensor.shape().to_string(), what));
    if (tracer_of(tensor) != graph_.state())
      throw FailedPrecondition(
          fmt::format("run: {} \"{}\" belongs to another graph than the session's", what, tensor.name()));
    const SymbolicValue& value = symbolic_value(tensor);
    return {value.node, value.output};
  }

  static void check_feed(const Feeds& feeds, std::size_t number) {
    const auto& [symbolic, value] = feeds.items()[number];
    if (value.is_empty_handle() || value.is_disposed())
      refuse_disposed(value, "run", fmt::format("the value fed to \"{}\"", symbolic.name()));
    if (is_symbolic(value))
      throw InvalidArgument(
          fmt::format("run: the value fed to \"{}\" is symbolic; feed one that has elements", symbolic.name()));
    if (value.dtype() != symbolic.dtype())
      throw InvalidArgument(fmt::format("run: \"{}\" is {}, the value fed to it {}; cast the value", symbolic.name(),
                                        dtype_name(symbolic.dtype()), dtype_name(value.dtype())));
    if (!fits(value.shape(), symbolic.shape()))
      throw InvalidArgument(
          fmt::format("run: \"{}\" has shape {}, the value fed to it {}; sizes other than ? must be equal",
                      symbolic.name(), symbolic.shape().to_string(), value.shape().to_string()));
    if (&device_of(value) != &device_of(symbolic))
      throw InvalidArgument(fmt::format("run: \"{}\" is on {}, the value fed to it on {}; move it with .to(\"{}\")",
                                        symbolic.name(), symbolic.device(), value.device(), symbolic.device()));
    const SymbolicValue& here = symbolic_value(symbolic);
    for (std::size_t i = 0; i < number; ++i) {
      const SymbolicValue& other = symbolic_value(feeds.items()[i].first);
      if (other.node == here.node && other.output == here.output)
        throw InvalidArgument(fmt::format("run: \"{}\" is fed twice", symbolic.name()));
    }
  }

  const Graph graph_;
  const Passes passes_;
  std::optional<Budget> budget_;
  std::optional<SpillFile> spill_;
  mutable std::shared_mutex use_;  // Shared by runs; exclusive to close.
  std::atomic<bool> closed_{false};
  PlanCache<Planned> plans_;
  mutable std::mutex mutex_;
  std::vector<std::optional<Variable>> values_;  // By number in the graph. Guarded by mutex_.
  GraphGrowthWatch growth_;
};

Session::Session(const SessionOptions& options) : Session(default_graph(), options) {}
Session::Session(const Graph& graph, const SessionOptions& options) : state_(std::make_unique<State>(graph, options)) {
  trace_opened("session", state_.get());
}
Session::~Session() { state_->close(); }

Tensor Session::run(const Tensor& fetch, const Feeds& feeds) {
  Tensor result;
  state_->run({&fetch, 1}, feeds, {&result, 1});
  return result;
}
std::vector<Tensor> Session::run(std::initializer_list<Tensor> fetches, const Feeds& feeds) {
  std::vector<Tensor> results(fetches.size());
  state_->run({fetches.begin(), fetches.size()}, feeds, results);
  return results;
}
std::vector<Tensor> Session::run(const std::vector<Tensor>& fetches, const Feeds& feeds) {
  std::vector<Tensor> results(fetches.size());
  state_->run(fetches, feeds, results);
  return results;
}
void Session::initialize_variables() { state_->initialize(); }
std::vector<Variable> Session::variables() const { return state_->variables(); }
void Session::set_variable(const std::string& name, const Tensor& value) { state_->set_by_name(name, value); }
std::vector<std::string> Session::uninitialized_variables() const { return state_->uninitialized(); }
std::vector<NamedTensor> Session::variable_values(Wanted wanted) const { return state_->variable_values(wanted); }
void Session::fill_variables(Wanted wanted, FunctionRef<void(std::span<const RestoreTarget>)> fill) {
  state_->fill_variables(wanted, fill);
}
void Session::close() { state_->close(); }
bool Session::is_closed() const noexcept { return state_->is_closed(); }
const Graph& Session::graph() const noexcept { return state_->graph(); }
MemoryPlan Session::memory_plan(const std::vector<Tensor>& fetches, const Feeds& feeds) {
  return state_->memory_plan(fetches, feeds);
}
SessionMemory Session::memory_report() const { return state_->report(); }

}  // namespace plimsoll
