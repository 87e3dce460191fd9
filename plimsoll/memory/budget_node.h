// BudgetNode: the shared state of a Budget. It outlives its handles while blocks are charged to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/evictor.h"
#include "plimsoll/memory/meter_center.h"

namespace plimsoll {
struct BudgetOptions;
}  // namespace plimsoll

namespace plimsoll::internal {

class BudgetNode final : public MeterCenter, public std::enable_shared_from_this<BudgetNode> {
 public:
  // Makes a node that lives as long as the result and the blocks charged to it.
  static std::shared_ptr<BudgetNode> make(std::string name, std::size_t limit, std::shared_ptr<BudgetNode> parent,
                                          const BudgetOptions& options);

  const std::string& name() const noexcept { return name_; }
  const char* interned_name() const noexcept { return interned_name_; }  // Outlives the node, for traces.
  BudgetNode* parent() const noexcept { return parent_.get(); }
  bool evicts() const noexcept { return evicts_; }              // As asked for.
  Evictor* evictor() const noexcept { return evictor_.get(); }  // Of the outermost evicting budget above.
  // The smallest limit among the evicting budgets at or above this one; SIZE_MAX when none evicts.
  std::size_t least_evicting_limit() const noexcept { return least_evicting_limit_; }
  bool is_below(const BudgetNode& other) const noexcept;   // Or the same node.
  std::size_t number() const noexcept { return number_; }  // Small; reused after the node is gone.
  std::vector<std::shared_ptr<BudgetNode>> children() const;

  // One record (trace_words.h) for each node.
  static std::vector<std::string> trace_records();

  // Lock and unlock the list of nodes while a process forks.
  static void before_fork();
  static void after_fork();

 private:
  BudgetNode(std::string name, std::size_t limit, std::shared_ptr<BudgetNode> parent, const BudgetOptions& options);
  static void release(BudgetNode* node) noexcept;  // The last handle is gone.
  static void sweep() noexcept;                    // Destroys released nodes that nothing is charged to any more.

  const std::string name_;
  const char* const interned_name_;
  const std::shared_ptr<BudgetNode> parent_;
  const bool evicts_;
  const std::size_t least_evicting_limit_;
  const std::shared_ptr<Evictor> evictor_;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t number_ = kNone;           // Until make() has given it one.
  BudgetNode* next_released_ = nullptr;  // Links nodes whose handles are gone, so that releasing one cannot fail.
  std::vector<std::weak_ptr<BudgetNode>> children_;
};

}  // namespace plimsoll::internal
