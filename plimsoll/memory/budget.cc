#include "plimsoll/memory/budget.h"

#include <fmt/format.h>

#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll {
namespace {

std::shared_ptr<BudgetNode> make_node(std::string name, std::size_t limit, std::shared_ptr<BudgetNode> parent,
                                      const BudgetOptions& options) {
  if (limit == 0) throw InvalidArgument(fmt::format("budget \"{}\": the limit is 0 bytes; give it at least 1", name));
  if (limit > INT64_MAX)
    throw InvalidArgument(
        fmt::format("budget \"{}\": the limit is {} bytes, which is {} as a signed number; give a "
                    "positive number of bytes below 8 EiB",
                    name, limit, static_cast<std::int64_t>(limit)));
  if (!options.spill.empty() && !options.evict)
    throw InvalidArgument(
        fmt::format("budget \"{}\": .spill = \"{}\" without .evict; set .evict = true as well", name, options.spill));
  if (!options.spill.empty() && parent && parent->evictor())
    throw InvalidArgument(fmt::format(
        "budget \"{}\": .spill = \"{}\" inside of a budget that evicts; give .spill to the outermost one that does",
        name, options.spill));
  return BudgetNode::make(std::move(name), limit, std::move(parent), options);
}

void add_row(std::string& table, const BudgetNode& node, int depth) {
  table +=
      fmt::format("{:<32} {:>12} {:>12} {:>12}\n", std::string(static_cast<std::size_t>(depth) * 2, ' ') + node.name(),
                  format_bytes(node.used()), format_bytes(node.peak()), format_bytes(node.limit()));
  for (const auto& child : node.children()) add_row(table, *child, depth + 1);
}

}  // namespace

Budget::Budget(std::string name, std::size_t limit, const BudgetOptions& options)
    : node_(make_node(std::move(name), limit, nullptr, options)) {}

Budget::Budget(std::string name, std::size_t limit, const Budget& parent, const BudgetOptions& options)
    : node_(make_node(std::move(name), limit, parent.node_, options)) {}

std::optional<Budget> Budget::current() {
  const Meter* const meter = ThreadMemory::current().budget;
  if (!meter) return std::nullopt;
  return Budget(static_cast<BudgetNode*>(meter->center)->shared_from_this());
}

const std::string& Budget::name() const noexcept { return node_->name(); }
std::size_t Budget::limit() const noexcept { return node_->limit(); }
std::size_t Budget::used() const { return node_->used(); }
std::size_t Budget::peak() const { return node_->peak(); }
void Budget::reset_peak() { node_->reset_peak(); }

MemoryAlertHandle Budget::on_alert(double fraction, std::function<void(const MemoryAlert&)> callback) const {
  return AlertList::instance().add("Budget::on_alert", node_, fraction, std::move(callback));
}

std::string Budget::report() const {
  std::string table = fmt::format("{:<32} {:>12} {:>12} {:>12}\n", "budget", "used", "peak", "limit");
  add_row(table, *node_, 0);
  return table;
}

BudgetScope::BudgetScope(const Budget& budget) : node_(budget.node()), before_(ThreadMemory::current().budget) {
  ThreadMemory& thread = ThreadMemory::current();
  thread.budget = &thread.meter(*node_);
}

BudgetScope::~BudgetScope() { ThreadMemory::current().budget = before_; }

}  // namespace plimsoll
