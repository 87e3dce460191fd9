// Session: runs a graph and holds the values of its variables: values for placeholders in, values of nodes out.
//
//   Session session(g);
//   session.initialize_variables();
//   for (...) session.run({train}, {{x, batch}, {y, labels}});
//   float l = session.run(loss, {{x, batch}, {y, labels}}).item<float>();
//   session.close();                                        // frees everything now; ~Session does the same
//
// A run's part of the graph is pruned, planned and kept, once for each combination of fetches, feeds and their shapes,
// within a limit in bytes; after that a run allocates one block for everything inside and the results. Any node can be
// fetched, several times too, and any can be fed. Variables made in the graph have one value in each session; eager
// ones are shared by all and used with their current values. Throws InvalidArgument for feeds that do not fit, naming
// the placeholder, and for placeholders that are needed and not fed; FailedPrecondition for variables without a value,
// naming them, for a closed session and for another graph's tensors; OutOfMemory before anything has run. Thread
// safety: any thread; runs may overlap, each with its own memory. Runs that change a variable take turns.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/memory_plan.h"
#include "plimsoll/graph/passes.h"
#include "plimsoll/io/checkpoint.h"

namespace plimsoll {

struct SessionOptions {
  // Bytes that variables, runs and results may use together: part of the limit of the BudgetScope that the session was
  // made in, if there was one. Runs inside another BudgetScope are limited by both; their results are charged to that
  // one. Runs that do not fit otherwise recompute values (memory_plan(...).smallest_bytes), with the same bits.
  std::optional<std::size_t> budget = {};
  Passes passes = {};
  // A directory on a disk where runs that would not fit otherwise may also store values temporarily, in a file without
  // a name. Needs a budget; "": none.
  std::string spill = {};
};

// Symbolic tensors and the values to feed them.
class Feeds {
 public:
  using Item = std::pair<Tensor, Tensor>;
  Feeds() = default;
  Feeds(std::initializer_list<Item> items) : items_(items) {}
  void add(const Tensor& symbolic, const Tensor& value) { items_.emplace_back(symbolic, value); }
  const std::vector<Item>& items() const noexcept { return items_; }

 private:
  std::vector<Item> items_;
};

struct PLIMSOLL_API SessionMemory {
  std::size_t peak_bytes = 0;         // Of the run that needs most.
  std::size_t lower_bound_bytes = 0;  // Of that run.
  std::vector<BudgetPoint> front;     // The same for a session with a budget: its alternatives, and how fast they are.
  std::size_t variable_bytes = 0;     // The values of its variables.
  std::size_t plans = 0;
  std::size_t plan_bytes = 0;  // Bookkeeping of the cached plans.
  std::vector<std::pair<std::string, std::size_t>> variables;

  std::string to_string() const;
  friend PLIMSOLL_API std::ostream& operator<<(std::ostream& out, const SessionMemory& memory);
};

class PLIMSOLL_API Session {
 public:
  explicit Session(const SessionOptions& options = {});  // Of default_graph().
  explicit Session(const Graph& graph, const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Tensor run(const Tensor& fetch, const Feeds& feeds = {});
  std::vector<Tensor> run(std::initializer_list<Tensor> fetches, const Feeds& feeds = {});
  std::vector<Tensor> run(const std::vector<Tensor>& fetches, const Feeds& feeds = {});

  // Gives every variable of the graph its initial value, also those that already have one.
  void initialize_variables();
  // The graph's variables by name, if they have values; assigning to one changes it for future runs.
  std::vector<Variable> variables() const;
  // For loaders: sets the variable of that name. Throws NotFound, InvalidArgument.
  void set_variable(const std::string& name, const Tensor& value);
  std::vector<std::string> uninitialized_variables() const;

  using Wanted = FunctionRef<bool(const std::string& name)>;
  // For savers: the graph's variables, including eager ones, as they are between two runs; the tensors share their
  // bytes. Throws FailedPrecondition for those without a value, naming them.
  std::vector<NamedTensor> variable_values(Wanted wanted) const;
  // For loaders: calls `fill` with the memory of these variables, to be written in place, while nothing runs. Those
  // without a value get memory, which becomes their value when `fill` has returned; when it throws they still have no
  // value.
  void fill_variables(Wanted wanted, FunctionRef<void(std::span<const RestoreTarget>)> fill);

  void close();  // A second call does nothing. Waits for runs of other threads.
  bool is_closed() const noexcept;
  const Graph& graph() const noexcept;

  MemoryPlan memory_plan(const std::vector<Tensor>& fetches, const Feeds& feeds = {});  // Without running.
  SessionMemory memory_report() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll
