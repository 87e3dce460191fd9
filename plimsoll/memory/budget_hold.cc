#include "plimsoll/memory/budget_hold.h"

#include <fmt/format.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll::internal {
namespace {

bool is_charged_by_blocks(const ThreadMemory& thread, const Meter* meter) {
  for (const Meter* charged = thread.budget; charged; charged = charged->parent)
    if (charged == meter) return true;
  return false;
}

[[noreturn]] void refuse(const BudgetNode& node, std::size_t bytes) {
  OutOfMemoryDetails details;
  details.requested = bytes;
  details.limit = node.limit();
  details.in_use = node.used();
  details.smallest_sufficient_limit = details.in_use + bytes;
  details.what =
      fmt::format("budget \"{}\": cannot hold {}; used {} of {}; it takes a limit of at least {}", node.name(),
                  format_bytes_exactly(bytes), format_bytes_exactly(details.in_use),
                  format_bytes_exactly(details.limit), format_bytes_exactly(details.smallest_sufficient_limit));
  throw_refusal(std::move(details), {.budget = node.interned_name(), .op = "hold"});
}

}  // namespace

BudgetHold::BudgetHold(const Budget& budget, std::size_t bytes)
    : budget_(budget),
      bytes_(static_cast<std::int64_t>(bytes)),
      first_(&ThreadMemory::current().meter(*budget.node())),
      end_(first_) {
  ThreadMemory& thread = ThreadMemory::current();
  while (end_ && !is_charged_by_blocks(thread, end_)) end_ = end_->parent;
  const BudgetNode* refused = nullptr;
  {
    const std::lock_guard lock(MeterCenter::mutex());  // While it is held, nobody takes quota back.
    for (Meter* meter = first_; meter != end_ && !refused; meter = meter->parent)
      if (!meter->center->draw(*meter, bytes_)) refused = static_cast<const BudgetNode*>(meter->center);
    if (!refused) {
      const EnterThread inside(thread);
      for (Meter* meter = first_; meter != end_; meter = meter->parent) {
        meter->add(bytes_);
        meter->note_peak();
      }
    } else {
      for (Meter* meter = first_; meter != end_; meter = meter->parent) meter->center->cancel(*meter);
    }
  }
  if (refused) refuse(*refused, bytes);
}

BudgetHold::~BudgetHold() {
  ThreadMemory& thread = ThreadMemory::current();
  const std::lock_guard lock(MeterCenter::mutex());
  {
    const EnterThread inside(thread);
    for (Meter* meter = first_; meter != end_; meter = meter->parent) meter->subtract(bytes_);
  }
  for (Meter* meter = first_; meter != end_; meter = meter->parent) meter->center->give_back(*meter);
}

}  // namespace plimsoll::internal
