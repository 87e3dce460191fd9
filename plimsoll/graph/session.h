// Session: runs a graph: values for its placeholders in, values of its nodes out; holds the values of its variables.
//
//   Session session(g);
//   session.initialize_variables();
//   for (...) session.run({train}, {{x, batch}, {y, labels}});
//   float l = session.run(loss, {{x, batch}, {y, labels}}).item<float>();
//   session.close();                                        // everything is given back now; also what ~Session does
//
// What a run needs is pruned, planned and kept, once for each combination of fetches, feeds and their shapes, within a
// bound in bytes; after that a run takes one block for everything inside and the results' memory. Any node can be
// fetched, also several times, and any can be fed. Variables made in the graph have one value in each session; eager
// ones are shared by all and used as they are. Throws InvalidArgument for feeds that do not fit, naming the
// placeholder, and for placeholders that are needed and not fed; FailedPrecondition for variables without a value,
// naming them, for a closed session and for another graph's tensors; OutOfMemory before anything has run. Thread
// safety: any thread; runs may overlap, each with memory of its own. Those that change a variable take turns.
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
  // Bytes that variables, runs and results may take together: part of what the BudgetScope may take that the session
  // was made in, if there was one. Runs inside of another BudgetScope are bound by both; their results belong to that.
  // Runs that do not fit otherwise compute values again (memory_plan(...).smallest_bytes), to the same bits.
  std::optional<std::size_t> budget = {};
  Passes passes = {};
  // A directory on a disk, in which runs that do not fit otherwise may also keep values for a while, in a file without
  // a name. Needs a budget; "": nowhere.
  std::string spill = {};
};

// Symbolic tensors with the values they get.
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
  std::vector<BudgetPoint> front;     // The same, of a session with a budget: what it can do with, and how fast.
  std::size_t variable_bytes = 0;     // Held: the values of its variables.
  std::size_t plans = 0;
  std::size_t plan_bytes = 0;  // Of the bookkeeping of the plans that are kept.
  std::vector<std::pair<std::string, std::size_t>> variables;

  std::string to_string() const;
  friend PLIMSOLL_API std::ostream& operator<<(std::ostream& out, const SessionMemory& memory);
};

class PLIMSOLL_API Session {
 public:
  explicit Session(SessionOptions options = {});  // Of default_graph().
  explicit Session(const Graph& graph, SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Tensor run(const Tensor& fetch, const Feeds& feeds = {});
  std::vector<Tensor> run(std::initializer_list<Tensor> fetches, const Feeds& feeds = {});
  std::vector<Tensor> run(const std::vector<Tensor>& fetches, const Feeds& feeds = {});

  // Gives every variable of the graph its initial value, again for those that have one.
  void initialize_variables();
  // The graph's variables by name, as far as they have values; assigning to one changes it for the runs to come.
  std::vector<Variable> variables() const;
  // For loaders: gives the variable of that name a value. Throws NotFound, InvalidArgument.
  void set_variable(const std::string& name, const Tensor& value);
  std::vector<std::string> uninitialized_variables() const;

  using Wanted = FunctionRef<bool(const std::string& name)>;
  // For savers: the graph's variables, eager ones included, all as they are between two runs; the tensors share their
  // bytes. Throws FailedPrecondition for those without a value, naming them.
  std::vector<NamedTensor> variable_values(Wanted wanted) const;
  // For loaders: calls `fill` with the memory of these variables, to be written in place, while nothing runs. Those
  // without a value get memory, which is theirs when `fill` has returned; when it throws they still have no value.
  void fill_variables(Wanted wanted, FunctionRef<void(std::span<const RestoreTarget>)> fill);

  void close();  // A second time does nothing. Waits for runs of other threads.
  bool is_closed() const noexcept;
  const Graph& graph() const noexcept;

  MemoryPlan memory_plan(const std::vector<Tensor>& fetches, const Feeds& feeds = {});  // Without running.
  SessionMemory memory_report() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll
