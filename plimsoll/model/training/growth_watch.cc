#include "plimsoll/model/training/growth_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plimsoll/base/bytes.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/tensor/live_tensors.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll::internal {
namespace {

// The category with most of the live bytes of this operation in this scope.
std::string category_of(const GrowthRow& row) {
  std::map<std::string, std::size_t> bytes;
  for (const LiveTensor& tensor : live_tensors())
    if (tensor.op == row.op && tensor.scope == row.scope) bytes[tensor.category] += tensor.bytes;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "other" : most->first;
}

}  // namespace

std::optional<std::string> GrowthWatch::step_ended() {
  if (told_ || ++steps_ < warm_up_) return std::nullopt;
  least_ = std::min(least_, memory().num_bytes);
  if ((steps_ - warm_up_) % window_ != 0) return std::nullopt;
  const std::size_t least = std::exchange(least_, std::numeric_limits<std::size_t>::max());
  const bool risen = before_ != 0 && least > before_;
  before_ = least;
  if (!risen) {  // The current state is the new baseline.
    rises_ = 0;
    bytes_at_start_ = least;
    steps_at_start_ = steps_;
    growth_.emplace();
    return std::nullopt;
  }
  if (++rises_ < kRises) return std::nullopt;
  told_ = true;
  return report();
}

std::string GrowthWatch::report() {
  const std::vector<GrowthRow> rows = growth_->take();
  growth_.reset();
  std::string text = fmt::format("fit: live memory has grown by {} in the last {}, {} after it began",
                                 format_bytes(before_ - bytes_at_start_), plural(steps_ - steps_at_start_, phase_),
                                 plural(steps_at_start_, phase_));
  if (rows.empty()) return text;
  const GrowthRow& most = rows[0];
  text += fmt::format("; most of it is {} in {} of {} made by {}",
                      format_bytes(static_cast<std::size_t>(std::max<std::int64_t>(0, most.bytes))),
                      plural(static_cast<std::size_t>(most.count), "tensor"), category_of(most),
                      most.op.empty() ? "the program" : most.op);
  if (!most.scope.empty()) text += fmt::format(" in scope \"{}\"", most.scope);
  if (!most.site.empty()) text += fmt::format(" at {}", most.site);
  return text + "; dispose of them, or hold numbers (item) instead of tensors";
}

}  // namespace plimsoll::internal
