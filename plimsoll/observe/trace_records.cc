#include "plimsoll/observe/trace_records.h"
#include "plimsoll/base/json.h"

#include <algorithm>
#include <string_view>

#include "plimsoll/observe/findings.h"

namespace plimsoll::internal {
namespace {

using Json = nlohmann::json;

std::uint64_t number(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}
std::string text(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

void read_budget(const Json& record, const TracedMark& mark, TraceHistory& history) {
  history.budgets.push_back({text(record, "name"), text(record, "parent"), number(record, "limit_bytes"), mark.moment});
}

void read_forecast(const Json& record, TraceHistory& history) {
  TracedForecast& forecast = history.forecast;
  forecast = {.known = true,
              .peak_bytes = number(record, "peak_bytes"),
              .smallest_budget_bytes = number(record, "smallest_budget_bytes"),
              .batch_size = number(record, "batch_size")};
  const auto shares = record.find("by_category");
  if (shares == record.end() || !shares->is_object()) return;
  for (std::size_t i = 0; i < kCategories; ++i)
    forecast.by_category[i] = number(*shares, category_name(static_cast<Category>(i)));
}

TracedRecompute::Point point(const Json& pair) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() || !pair[1].is_number()) return {};
  return {pair[0].get<std::uint64_t>(), pair[1].get<double>()};
}

// Turns the mark's text into readable text.
void read_recompute(const Json& record, TracedMark& mark, TraceHistory& history) {
  TracedRecompute read{.where = text(record, "where"),
                       .natural_bytes = number(record, "natural_bytes"),
                       .repeats = number(record, "repeats"),
                       .drops = number(record, "drops"),
                       .stores = number(record, "stores"),
                       .loads = number(record, "loads"),
                       .stored_bytes = number(record, "stored_bytes"),
                       .moment = mark.moment};
  if (const auto now = record.find("now"); now != record.end()) read.now = point(*now);
  if (const auto larger = record.find("larger"); larger != record.end() && larger->is_array())
    for (const Json& pair : *larger) read.larger.push_back(point(pair));
  mark.text = describe_recompute(read);
  history.recomputes.push_back(std::move(read));
}

void read_evicted(const Json& record, TraceHistory& history) {
  TracedEvictions& all = history.evictions;
  all.budget = text(record, "budget");
  all.drops += number(record, "drops");
  all.dropped_bytes += number(record, "dropped_bytes");
  all.stores += number(record, "stores");
  all.stored_bytes += number(record, "stored_bytes");
  all.repeats += number(record, "repeats");
  all.loads += number(record, "loads");
  all.loaded_bytes += number(record, "loaded_bytes");
}

// The open holder of this kind and number; a new one if there is none.
TracedHolder& holder_of(const Json& record, TraceHistory& history, bool fresh) {
  const std::string kind = text(record, "kind");
  const std::uint64_t id = number(record, "id");
  if (!fresh)
    for (auto it = history.holders.rbegin(); it != history.holders.rend(); ++it)
      if (it->id == id && it->kind == kind && !it->closed) return *it;
  TracedHolder holder;
  holder.kind = kind;
  holder.id = id;
  holder.number = 1 + static_cast<std::size_t>(std::count_if(history.holders.begin(), history.holders.end(),
                                                             [&](const TracedHolder& h) { return h.kind == kind; }));
  history.holders.push_back(std::move(holder));
  return history.holders.back();
}

TracedName read_name(const Json& record) {
  TracedName name{.block = number(record, "block"), .name = text(record, "name")};
  const std::string category = text(record, "category");
  for (std::size_t i = 0; i < kCategories; ++i)
    if (category == category_name(static_cast<Category>(i))) name.category = static_cast<Category>(i);
  return name;
}

void read_holder(std::string_view word, const Json& record, const TracedMark& mark, TraceHistory& history) {
  TracedHolder& holder = holder_of(record, history, word == "opened");
  if (holder.name.empty()) holder.name = text(record, "name");
  if (word == "opened") {
    holder.opened = true;
    holder.opened_ns = mark.time_ns;
    holder.opened_moment = mark.moment;
    holder.persistent = record.value("persistent", false);
  } else if (word == "closed") {
    holder.closed = true;
    holder.closed_ns = mark.time_ns;
    holder.closed_moment = mark.moment;
  } else {
    holder.sizes.push_back({mark.moment, number(record, "count")});
  }
}

}  // namespace

bool read_trace_record(TracedMark& mark, TraceHistory& history, std::vector<TracedName>& names) try {
  const std::string_view all = mark.text;
  const std::size_t space = all.find(" {");
  if (!all.starts_with('@') || space == std::string_view::npos) return false;
  const std::string_view word = all.substr(1, space - 1);
  const Json record = try_parse_json(all.substr(space + 1));
  if (!record.is_object()) return false;
  if (word == "budget") {
    read_budget(record, mark, history);
  } else if (word == "forecast") {
    read_forecast(record, history);
  } else if (word == "opened" || word == "closed" || word == "size") {
    read_holder(word, record, mark, history);
  } else if (word == "named") {
    names.push_back(read_name(record));
  } else if (word == "recompute") {
    read_recompute(record, mark, history);
    return false;
  } else if (word == "evicted") {
    read_evicted(record, history);
  } else if (word == "ladder") {
    mark.kind = MarkKind::kLadder;
    mark.number = number(record, "freed_bytes");
    mark.text = text(record, "rung");
    return false;
  } else {
    return false;
  }
  return true;
} catch (const Json::exception&) {
  return false;
}

}  // namespace plimsoll::internal
