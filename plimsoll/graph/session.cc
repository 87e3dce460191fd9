#include "plimsoll/graph/session.h"

#include <fmt/format.h>

#include <atomic>
#include <ostream>
#include <shared_mutex>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/plan_cache.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/trace_recorder.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::size_t kPlanCacheBytes = std::size_t{64} << 20;
constexpr int kGrowingRuns = 16;  // Runs in a row before each of which nodes were added: a loop that builds.

bool fits(const Shape& value, const Shape& declared) {
  if (value.rank() != declared.rank()) return false;
  for (std::size_t axis = 0; axis < value.rank(); ++axis)
    if (declared[axis] != kUnknownSize && declared[axis] != value[axis]) return false;
  return true;
}

void append(Signature& signature, const TensorSpec& spec) {
  signature.push_back(static_cast<std::uint64_t>(spec.dtype) << 32 | spec.shape.rank());
  for (const std::int64_t size : spec.shape) signature.push_back(static_cast<std::uint64_t>(size));
}

}  // namespace

class Session::State {
 public:
  State(const Graph& graph, const SessionOptions& options)
      : graph_(graph), passes_(options.passes), plans_(kPlanCacheBytes) {
    if (!options.budget) return;
    if (const std::optional<Budget> outer = Budget::current())
      budget_.emplace("session", *options.budget, *outer);
    else
      budget_.emplace("session", *options.budget);
  }

  std::vector<Tensor> run(std::span<const Tensor> fetches, const Feeds& feeds) {
    const std::shared_lock use(use_);
    require_open();
    const std::shared_ptr<Program> program = plan_for(fetches, feeds);
    const std::vector<Variable> variables = values_for(*program);
    std::vector<const Tensor*> values;
    for (const Feeds::Item& item : feeds.items()) values.push_back(&item.second);
    std::vector<Tensor> results(fetches.size());
    const TraceWith nobody(nullptr);
    std::optional<BudgetScope> charged;
    if (budget_) {
      program->require_room(*budget_, variables, "session");
      charged.emplace(*budget_);
    }
    program->run({.feeds = values, .variables = variables, .results = results});
    return results;
  }

  MemoryPlan memory_plan(std::span<const Tensor> fetches, const Feeds& feeds) {
    const std::shared_lock use(use_);
    require_open();
    return plan_for(fetches, feeds)->memory_plan();
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
    const std::shared_ptr<Program> program = plan_for(initial, {});
    const std::vector<Variable> variables = values_for(*program);
    std::vector<Tensor> results(initial.size());
    const TraceWith nobody(nullptr);
    std::optional<BudgetScope> charged;
    if (budget_) charged.emplace(*budget_);
    program->run({.variables = variables, .results = results});
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
      targets.push_back({variable.name, held->writable_value(), has_value});
      pins.push_back(std::make_unique<Pin>(*held));
    }
    fill(targets);
    for (const auto& [number, variable] : fresh) values_[number].emplace(variable);
  }

  void close() {
    // First: threads that run again and again would not let it have the lock for long.
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
    plans_.for_each([&](const Program& program) {
      if (program.memory_plan().peak_bytes < memory.peak_bytes) return;
      memory.peak_bytes = program.memory_plan().peak_bytes;
      memory.lower_bound_bytes = program.memory_plan().lower_bound_bytes;
    });
    memory.plans = plans_.size();
    memory.plan_bytes = plans_.bytes();
    return memory;
  }

 private:
  // Keeps a variable's bytes where they are.
  class Pin {
   public:
    explicit Pin(const Variable& variable) : storage_(variable.share_bytes()) { storage_->pin(); }
    ~Pin() { storage_->unpin(); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

   private:
    const StorageRef storage_;
  };

  // Who holds the value of the graph's variable of that number, if it has one. Requires mutex_.
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

  // The values the program reads and writes.
  std::vector<Variable> values_for(const Program& program) const {
    std::vector<Variable> values;
    std::string missing;
    const std::lock_guard lock(mutex_);
    for (const Program::VariableUse& use : program.variables()) {
      const NodeVariable& variable = program.graph().variables()[use.number];
      const std::uint32_t number = variable.declared_number;
      if (variable.eager)
        values.push_back(*variable.eager);
      else if (number < values_.size() && values_[number])
        values.push_back(*values_[number]);
      else
        missing += fmt::format("{}\"{}\"", missing.empty() ? "" : ", ", variable.name);
    }
    if (!missing.empty())
      throw FailedPrecondition(fmt::format(
          "run: no value in this session for variable {}; call initialize_variables(), or restore them", missing));
    return values;
  }

  std::shared_ptr<Program> plan_for(std::span<const Tensor> fetches, const Feeds& feeds) {
    GraphState& graph = *graph_.state();
    Signature signature;
    std::vector<ValueId> values;
    std::vector<Feed> fed;
    watch_growth();
    for (const Tensor& fetch : fetches) {
      values.push_back(value_of(fetch, "fetch"));
      signature.push_back(std::uint64_t{values.back().node} << 32 | values.back().output);
    }
    signature.push_back(UINT64_MAX);
    for (const Feeds::Item& item : feeds.items()) {
      fed.push_back({value_of(item.first, "feed"), {item.second.shape(), item.second.dtype()}});
      check_feed(item, fed);
      signature.push_back(std::uint64_t{fed.back().value.node} << 32 | fed.back().value.output);
      append(signature, fed.back().spec);
    }
    if (std::shared_ptr<Program> known = plans_.find(signature)) return known;
    trace_size("graph", &graph, graph.nodes().size());
    Passes expanding = passes_;
    expanding.merge = false;  // Gradients of what is merged would add up in another order.
    Rewritten expanded = rewrite(graph, fed, values, false, expanding);
    std::vector<Feed> again;
    for (std::size_t i = 0; i < fed.size(); ++i) again.push_back({expanded.feeds[i], fed[i].spec});
    Rewritten merged = rewrite(*expanded.graph, again, expanded.fetches, true, passes_);  // All in it is needed.
    auto program = std::make_shared<Program>(std::move(merged), passes_);
    if (log_enabled(LogLevel::debug)) log_message(LogLevel::debug, "session: placement\n" + graph_.placement());
    const std::size_t bytes = program->bytes();
    return plans_.insert(signature, std::move(program), bytes);
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

  void check_feed(const Feeds::Item& item, const std::vector<Feed>& fed) const {
    const auto& [symbolic, value] = item;
    const std::string name = symbolic.name();
    if (value.is_empty_handle() || value.is_disposed())
      refuse_disposed(value, "run", fmt::format("the value fed to \"{}\"", name));
    if (is_symbolic(value))
      throw InvalidArgument(fmt::format("run: the value fed to \"{}\" is symbolic; feed one that has elements", name));
    if (value.dtype() != symbolic.dtype())
      throw InvalidArgument(fmt::format("run: \"{}\" is {}, the value fed to it {}; cast the value", name,
                                        dtype_name(symbolic.dtype()), dtype_name(value.dtype())));
    if (!fits(value.shape(), symbolic.shape()))
      throw InvalidArgument(
          fmt::format("run: \"{}\" has shape {}, the value fed to it {}; sizes other than ? must be "
                      "equal",
                      name, symbolic.shape().to_string(), value.shape().to_string()));
    if (&device_of(value) != &device_of(symbolic))
      throw InvalidArgument(fmt::format("run: \"{}\" is on {}, the value fed to it on {}; move it with .to(\"{}\")",
                                        name, symbolic.device(), value.device(), symbolic.device()));
    for (std::size_t i = 0; i + 1 < fed.size(); ++i)
      if (fed[i].value == fed.back().value) throw InvalidArgument(fmt::format("run: \"{}\" is fed twice", name));
  }

  // A graph that grows before run after run is most often a loop that builds what it should build once.
  void watch_growth() {
    GraphState& graph = *graph_.state();
    const auto locked = graph.lock();
    const std::size_t size = graph.nodes().size();
    const bool grew = seen_size_ != 0 && size > seen_size_;
    growing_ = grew ? growing_ + 1 : 0;
    seen_size_ = size;
    if (growing_ < kGrowingRuns || warned_) return;
    warned_ = true;
    const Node& last = graph.nodes().back();
    const std::size_t cut = last.name.rfind('/');
    const std::string scope = cut == std::string::npos ? "" : last.name.substr(0, cut);
    log_message(
        LogLevel::warning,
        fmt::format("session: the graph grew before each of the last {} runs, to {} nodes, lastly by \"{}\" (operation "
                    "{}, scope \"{}\"); build it before the loop, and finalize() it to find the place",
                    growing_, size, last.name, kind_name(last), scope));
  }

  const Graph graph_;
  const Passes passes_;
  std::optional<Budget> budget_;
  mutable std::shared_mutex use_;  // Shared by runs; alone to close.
  std::atomic<bool> closed_{false};
  PlanCache<Program> plans_;
  mutable std::mutex mutex_;
  std::vector<std::optional<Variable>> values_;  // By number in the graph. Guarded by mutex_.
  std::size_t seen_size_ = 0;                    // Guarded by the graph's lock, as the rest.
  int growing_ = 0;
  bool warned_ = false;
};

Session::Session(SessionOptions options) : Session(default_graph(), options) {}
Session::Session(const Graph& graph, SessionOptions options) : state_(std::make_unique<State>(graph, options)) {
  trace_opened("session", state_.get());
}
Session::~Session() { state_->close(); }

Tensor Session::run(const Tensor& fetch, const Feeds& feeds) {
  return std::move(state_->run(std::span<const Tensor>(&fetch, 1), feeds)[0]);
}
std::vector<Tensor> Session::run(std::initializer_list<Tensor> fetches, const Feeds& feeds) {
  return state_->run(std::span<const Tensor>(fetches.begin(), fetches.size()), feeds);
}
std::vector<Tensor> Session::run(const std::vector<Tensor>& fetches, const Feeds& feeds) {
  return state_->run(fetches, feeds);
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

std::string SessionMemory::to_string() const {
  std::string text = fmt::format("planned peak {} ({} bytes), lower bound {} ({} bytes)\nvariables {} ({} bytes)\n",
                                 format_bytes(peak_bytes), peak_bytes, format_bytes(lower_bound_bytes),
                                 lower_bound_bytes, format_bytes(variable_bytes), variable_bytes);
  for (const auto& [name, bytes] : variables) text += fmt::format("  {:<40} {:>12}\n", name, bytes);
  return text + fmt::format("{} plans kept, {} of bookkeeping\n", plans, format_bytes(plan_bytes));
}

std::ostream& operator<<(std::ostream& out, const SessionMemory& memory) { return out << memory.to_string(); }

}  // namespace plimsoll
