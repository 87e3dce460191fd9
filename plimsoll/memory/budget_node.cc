#include "plimsoll/memory/budget_node.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "plimsoll/base/names.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/budget_list.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/memory/trace/trace_words.h"

namespace plimsoll::internal {
namespace {

// The numbers in use, and the nodes whose handles are gone. Has a lock of its own, taken before all others.
struct NodeList {
  std::mutex mutex;
  std::vector<bool> taken;
  std::vector<BudgetNode*> nodes;  // Indexed by number.
  BudgetNode* released = nullptr;  // Linked through next_released_.

  static NodeList& instance() {
    static auto* list = new NodeList;
    return *list;
  }
};

}  // namespace

BudgetNode::BudgetNode(std::string name, std::size_t limit, std::shared_ptr<BudgetNode> parent,
                       const BudgetOptions& options)
    : MeterCenter(limit),
      name_(std::move(name)),
      interned_name_(intern(name_)),
      parent_(std::move(parent)),
      evicts_(options.evict),
      least_evicting_limit_(std::min(evicts_ ? limit : SIZE_MAX, parent_ ? parent_->least_evicting_limit_ : SIZE_MAX)),
      evictor_(parent_ && parent_->evictor_ ? parent_->evictor_
               : evicts_                    ? make_evictor({.limit = limit, .spill = options.spill})
                                            : nullptr) {}

bool BudgetNode::is_below(const BudgetNode& other) const noexcept {
  const BudgetNode* node = this;
  while (node && node != &other) node = node->parent();
  return node != nullptr;
}

std::shared_ptr<BudgetNode> BudgetNode::make(std::string name, std::size_t limit, std::shared_ptr<BudgetNode> parent,
                                             const BudgetOptions& options) {
  sweep();
  std::shared_ptr<BudgetNode> node(new BudgetNode(std::move(name), limit, std::move(parent), options),
                                   &BudgetNode::release);
  trace_budget(node->name_, node->parent_ ? node->parent_->name_ : "", limit);
  NodeList& list = NodeList::instance();
  const std::lock_guard lock(list.mutex);
  const auto number =
      static_cast<std::size_t>(std::find(list.taken.begin(), list.taken.end(), false) - list.taken.begin());
  if (number == list.nodes.size()) list.nodes.push_back(nullptr);
  if (number == list.taken.size()) list.taken.push_back(true);
  list.taken[number] = true;
  list.nodes[number] = node.get();
  node->number_ = number;
  if (node->parent_) {
    auto& siblings = node->parent_->children_;
    std::erase_if(siblings, [](const auto& sibling) { return sibling.expired(); });
    siblings.push_back(node);
  }
  return node;
}

void BudgetNode::release(BudgetNode* node) noexcept {
  if (node->number_ == kNone) return delete node;  // It was never registered.
  NodeList& list = NodeList::instance();
  {
    const std::lock_guard lock(list.mutex);
    node->next_released_ = std::exchange(list.released, node);
  }
  sweep();
}

void BudgetNode::sweep() noexcept {
  NodeList& list = NodeList::instance();
  BudgetNode* done = nullptr;
  {
    const std::lock_guard lock(list.mutex);
    for (BudgetNode** link = &list.released; *link;) {
      BudgetNode* const node = *link;
      if (node->used() > 0) {
        link = &node->next_released_;
        continue;
      }
      try {
        const std::lock_guard centers(MeterCenter::mutex());
        const StopThreads stopped;
        for (ThreadMemory* thread : stopped) {
          if (thread->find_meter(*node)) thread->meters[node->number()].reset();
        }
      } catch (const std::bad_alloc&) {  // No memory for the list of threads; the next sweep may succeed.
        link = &node->next_released_;
        continue;
      }
      *link = std::exchange(node->next_released_, std::exchange(done, node));
      list.taken[node->number()] = false;
    }
  }
  while (done) delete std::exchange(done, done->next_released_);  // May in turn release the parent.
}

std::vector<std::string> BudgetNode::trace_records() {
  sweep();
  const NodeList& list = NodeList::instance();
  const std::lock_guard lock(NodeList::instance().mutex);
  std::vector<std::string> records;
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    if (!list.taken[i]) continue;
    const BudgetNode& node = *list.nodes[i];
    records.push_back(budget_record(node.name(), node.parent() ? node.parent()->name() : "", node.limit()));
  }
  return records;
}

std::vector<BudgetFigures> list_budgets() {
  NodeList& list = NodeList::instance();
  const std::lock_guard lock(list.mutex);
  std::vector<BudgetFigures> budgets;
  std::vector<std::ptrdiff_t> places(list.nodes.size(), -1);  // By number.
  std::ptrdiff_t next = 0;
  for (std::size_t i = 0; i < list.nodes.size(); ++i)
    if (list.taken[i]) places[i] = next++;
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    if (!list.taken[i]) continue;
    const BudgetNode& node = *list.nodes[i];
    budgets.push_back({.name = node.name(),
                       .parent = node.parent() ? places[node.parent()->number()] : -1,
                       .limit = node.limit(),
                       .used = node.used(),
                       .peak = node.peak()});
  }
  return budgets;
}

void BudgetNode::before_fork() { NodeList::instance().mutex.lock(); }
void BudgetNode::after_fork() { NodeList::instance().mutex.unlock(); }

std::vector<std::shared_ptr<BudgetNode>> BudgetNode::children() const {
  const std::lock_guard lock(NodeList::instance().mutex);
  std::vector<std::shared_ptr<BudgetNode>> alive;
  for (const auto& child : children_)
    if (auto node = child.lock()) alive.push_back(std::move(node));
  return alive;
}

}  // namespace plimsoll::internal
