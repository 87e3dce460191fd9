#include "plimsoll/graph/function.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/plan_cache.h"
#include "plimsoll/graph/spill_option.h"
#include "plimsoll/graph/traced_call.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::size_t kTraceCacheBytes = std::size_t{64} << 20;
constexpr std::uint64_t kManyTraces = 12;  // With only a few times as many calls as traces, something is wrong.

// Describes the arguments' tensors, for the reason of a trace.
std::vector<std::string> describe(const CallSignature& arguments) {
  std::vector<std::string> text;
  for (const Tensor* tensor : arguments.tensors())
    text.push_back(fmt::format("{} {}", dtype_name(tensor->dtype()), tensor->shape().to_string()));
  return text;
}

}  // namespace

struct FunctionCore::Trace {
  std::shared_ptr<TracedCall> call;
  std::shared_ptr<const void> kept;
  std::size_t num_results = 0;
  std::atomic<std::size_t> counted_bytes{0};  // As the cache knows them.
  Eviction eviction = Eviction::kRecompute;
};

struct FunctionCore::State {
  explicit State(FunctionOptions given) : options(std::move(given)) {
    if (options.budget) budget.emplace(name_of_budget(), *options.budget);
    spill = open_spill(where, options.spill, options.budget.has_value());
  }

  std::shared_ptr<Trace> trace(const CallSignature& arguments, Body body);
  void warn_of_retracing(const CallSignature& arguments);
  std::string name_of_budget() const { return options.name.empty() ? "function" : options.name; }

  // The budget of a call on this thread: the function's own limit, inside that of the surrounding BudgetScope.
  Budget charged() {
    const std::optional<Budget> outer = Budget::current();
    if (!outer) return *budget;
    const std::lock_guard lock(inside_mutex);
    if (!inside || inside_of != outer->node()) {
      inside.emplace(name_of_budget(), *options.budget, *outer);
      inside_of = outer->node();
    }
    return *inside;
  }

  const FunctionOptions options;
  const std::string where =
      options.name.empty() ? std::string("function") : fmt::format("function \"{}\"", options.name);
  std::optional<Budget> budget;
  std::optional<SpillFile> spill;
  std::mutex inside_mutex;
  std::optional<Budget> inside;           // Below the BudgetScope that was seen last. Guarded by inside_mutex.
  std::shared_ptr<BudgetNode> inside_of;  // That one's.
  PlanCache<Trace> traces{kTraceCacheBytes};
  std::recursive_mutex mutex;  // Of tracing.
  std::atomic<std::uint64_t> traced{0}, called{0};
  std::vector<std::string> last_arguments;  // Guarded by mutex, as the next.
  bool warned = false;
};

FunctionCore::FunctionCore(FunctionOptions options) : state_(std::make_unique<State>(std::move(options))) {}
FunctionCore::~FunctionCore() = default;

std::shared_ptr<FunctionCore::Trace> FunctionCore::State::trace(const CallSignature& arguments, Body body) {
  const std::shared_ptr<GraphState> graph = GraphState::make(GraphState::Role::kTrace);
  const TraceWith tracing(graph.get());
  const OutsideTidyScopes outside;
  std::vector<Tensor> symbolic;
  std::vector<ValueId> feeds, fetches;
  for (const Tensor* tensor : arguments.tensors()) {
    symbolic.push_back(graph->add_placeholder({tensor->shape(), tensor->dtype()}, device_of(*tensor), "argument"));
    feeds.push_back(graph->resolve(symbolic.back(), "function", "an argument"));
  }
  Traced traced = body(symbolic);
  for (const Tensor& result : traced.results) fetches.push_back(graph->resolve(result, "function", "a result"));
  auto made = std::make_shared<Trace>();
  made->kept = std::move(traced.kept);
  made->num_results = fetches.size();
  made->call = TracedCall::make(graph, std::move(feeds), std::move(fetches), graph->has_effects(), options.passes);
  return made;
}

void FunctionCore::State::warn_of_retracing(const CallSignature& arguments) {
  std::vector<std::string> now = describe(arguments);
  std::swap(now, last_arguments);
  if (warned || traced < kManyTraces || called > 4 * traced) return;
  warned = true;
  std::string reason = "plain values or the structure of the arguments differ; pass numbers that change as tensors";
  for (std::size_t i = 0; i < std::min(now.size(), last_arguments.size()); ++i)
    if (now[i] != last_arguments[i]) {
      reason = fmt::format("tensor {} was {} and is {}; pad to few shapes, or run it directly", i, now[i],
                           last_arguments[i]);
      break;
    }
  log_message(LogLevel::warning,
              fmt::format("function{}: traced {} times in {} calls, which costs more than it saves: {}",
                          options.name.empty() ? "" : fmt::format(" \"{}\"", options.name), traced.load(),
                          called.load(), reason));
}

std::shared_ptr<FunctionCore::Trace> FunctionCore::trace_for(const CallSignature& arguments, Body body) {
  state_->called.fetch_add(1, std::memory_order_relaxed);  // Now, so that every trace has a counted call.
  if (std::shared_ptr<Trace> known = state_->traces.find(arguments.words())) return known;
  const std::lock_guard lock(state_->mutex);
  if (std::shared_ptr<Trace> known = state_->traces.find(arguments.words())) return known;
  std::shared_ptr<Trace> made = state_->trace(arguments, body);
  made->eviction = state_->spill ? Eviction::kSpill : Eviction::kRecompute;
  state_->traced.fetch_add(1);
  state_->warn_of_retracing(arguments);
  const TraceWith nobody(nullptr);
  const std::size_t bytes = made->call->bytes();
  made->counted_bytes = bytes;
  return state_->traces.insert(arguments.words(), std::move(made), bytes);
}

void FunctionCore::call(Trace& trace, const CallSignature& arguments, std::span<Tensor> results) {
  std::optional<BudgetScope> charged;
  if (state_->budget) charged.emplace(state_->charged());
  trace.call->call(arguments.tensors(), results, nullptr, state_->where, state_->budget.has_value(),
                   state_->spill ? &*state_->spill : nullptr);
  if (!state_->budget) return;
  const std::size_t bytes = trace.call->bytes();  // Recomputing plans are made when they are first needed.
  if (trace.counted_bytes.exchange(bytes) != bytes) state_->traces.recount(trace, bytes);
}

std::size_t FunctionCore::num_results(const Trace& trace) noexcept { return trace.num_results; }
const void* FunctionCore::kept(const Trace& trace) noexcept { return trace.kept.get(); }
MemoryPlan FunctionCore::memory_plan(Trace& trace) { return trace.call->memory_plan(trace.eviction); }
std::size_t FunctionCore::trace_count() const noexcept { return state_->traced.load(); }
std::size_t FunctionCore::cached_traces() const { return state_->traces.size(); }
std::size_t FunctionCore::cached_bytes() const { return state_->traces.bytes(); }
bool FunctionCore::is_tracing() noexcept { return ThreadContext::current().tracer != nullptr; }

}  // namespace plimsoll
