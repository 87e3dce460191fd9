#include "plimsoll/graph/growth_watch.h"

#include <fmt/format.h>

#include "plimsoll/base/call_site.h"
#include "plimsoll/base/log.h"

namespace plimsoll::internal {
namespace {

constexpr int kGrowingRuns = 16;

}  // namespace

void GraphGrowthWatch::look(const GraphState& graph) {
  const auto locked = graph.lock();
  const std::size_t size = graph.nodes().size();
  const bool grew = seen_size_ != 0 && size > seen_size_;
  growing_ = grew ? growing_ + 1 : 0;
  seen_size_ = size;
  if (growing_ < kGrowingRuns || warned_) return;
  warned_ = true;
  const Node& last = graph.nodes().back();
  const char* const site = site_text(last.site);
  log_message(LogLevel::warning,
              fmt::format("session: the graph grew before each of the last {} runs, to {} nodes, lastly by \"{}\" "
                          "(operation {}, scope \"{}\", site {}); build it before the loop, and finalize() it to find "
                          "the place",
                          growing_, size, last.name, kind_name(last), last.scope,
                          *site ? site : "unknown: no GraphScope or NameScope was open"));
}

}  // namespace plimsoll::internal
