// Budget: a limit in bytes that what is charged to it can never pass. Budgets form a tree.
//
//   Budget process("process", 512_MiB), model("ranker", 64_MiB, process);
//   {
//     BudgetScope use(model);              // on this thread, until the end of the block
//     Block table = allocate(1_MiB);       // charged to "ranker" and to "process"
//   }
//   model.used();                          // the table's bytes, until it is freed
//
// Every block is charged, rounding included, before it is taken. What one child leaves unused its siblings may use, as
// far as the parent's limit goes. A budget at its limit refuses its own requests and nobody else's. Handles are shared:
// copies are the same budget, which lives as long as one of them, a scope or a charged block. Thread safety: every
// method may be called from any thread. Charging takes no lock and no atomic operation in the steady state; used() is
// exact, peak() exact while one thread charges and at most 1/128 of the limit per thread too high with more.
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
  bool evict = false;  // Rather than refuse, drop tensors made under it and compute them again when they are read.
  std::string spill;   // A directory to keep bytes in instead, where that is cheaper. Throws Unsupported for now.
};

class PLIMSOLL_API Budget {
 public:
  // Requires a limit above 0 and below 8 EiB, which a negative number would be, and .evict with .spill
  // (InvalidArgument).
  Budget(std::string name, std::size_t limit, const BudgetOptions& options = {});
  Budget(std::string name, std::size_t limit, const Budget& parent, const BudgetOptions& options = {});

  // That of the calling thread's innermost BudgetScope, for those who open one inside of it.
  static std::optional<Budget> current();

  const std::string& name() const noexcept;
  std::size_t limit() const noexcept;
  std::size_t used() const;    // Of this budget and those below it.
  std::size_t peak() const;    // Largest used() since the start or reset_peak().
  void reset_peak();           // To used(), not to zero.
  std::string report() const;  // A table of this budget and those below it.

  // Calls back when used() passes that share of the limit, as alerts.h says; until the handle goes. Throws
  // InvalidArgument unless 0 < fraction <= 1 and there is a callback.
  [[nodiscard]] MemoryAlertHandle on_alert(double fraction, std::function<void(const MemoryAlert&)> callback) const;

  const std::shared_ptr<BudgetNode>& node() const noexcept { return node_; }

 private:
  explicit Budget(std::shared_ptr<BudgetNode> node) noexcept : node_(std::move(node)) {}
  std::shared_ptr<BudgetNode> node_;
};

// While it lives, what the calling thread allocates is charged to the budget. Scopes nest; the innermost counts.
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
