// Budget: a limit in bytes that its charges can never pass. Budgets form a tree.
//
//   Budget process("process", 512_MiB), model("ranker", 64_MiB, process);
//   {
//     BudgetScope use(model);              // on this thread, until the end of the block
//     Block table = allocate(1_MiB);       // charged to "ranker" and to "process"
//   }
//   model.used();                          // the table's bytes, until it is freed
//
// Every block is charged, rounding included, before it is taken. What one child leaves unused its siblings may use, up
// to the parent's limit. A budget at its limit refuses its own requests and nobody else's. Handles are shared: copies
// are the same budget, which lives as long as a handle, a scope or a charged block. Thread safety: every method may be
// called from any thread. In the steady state charging takes no lock and no atomic operation; used() is exact; peak()
// is exact while one thread charges, and with more threads at most 1/128 of the limit per thread too high.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/alerts.h"

namespace plimsoll {

namespace internal {
class BudgetNode;
struct Meter;
}  // namespace internal

struct BudgetOptions {
  bool evict = false;  // Instead of refusing, drop tensors made under it and recompute them when they are read.
  std::string spill;   // A directory for bytes that are stored on disk where that is cheaper or the only way.
};

class PLIMSOLL_API Budget {
 public:
  // Throws InvalidArgument unless the limit is above 0 and below 8 EiB (a negative number would be larger), and for
  // .spill without .evict.
  Budget(std::string name, std::size_t limit, const BudgetOptions& options = {});
  Budget(std::string name, std::size_t limit, const Budget& parent, const BudgetOptions& options = {});

  // The budget of the calling thread's innermost BudgetScope; for code that opens another one inside it.
  static std::optional<Budget> current();

  const std::string& name() const noexcept;
  std::size_t limit() const noexcept;
  std::size_t used() const;    // By this budget and those below it.
  std::size_t peak() const;    // Largest used() since the start or reset_peak().
  void reset_peak();           // To used(), not to zero.
  std::string report() const;  // A table of this budget and those below it.

  // Calls back when used() passes that share of the limit, as in alerts.h, until the handle is destroyed. Throws
  // InvalidArgument unless 0 < fraction <= 1 and there is a callback.
  [[nodiscard]] MemoryAlertHandle on_alert(double fraction, std::function<void(const MemoryAlert&)> callback) const;

  const std::shared_ptr<BudgetNode>& node() const noexcept { return node_; }

 private:
  explicit Budget(std::shared_ptr<BudgetNode> node) noexcept : node_(std::move(node)) {}
  std::shared_ptr<BudgetNode> node_;
};

// While it lives, everything the calling thread allocates is charged to the budget. Scopes nest; the innermost counts.
class PLIMSOLL_API BudgetScope {
 public:
  explicit BudgetScope(const Budget& budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  std::shared_ptr<BudgetNode> node_;
  Meter* before_;
};

}  // namespace plimsoll
