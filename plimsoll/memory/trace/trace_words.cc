#include "plimsoll/memory/trace/trace_words.h"

#include <fmt/format.h>

#include <cstdint>

#include "plimsoll/base/json.h"
#include "plimsoll/memory/trace/trace_recorder.h"

namespace plimsoll {
namespace {

// As a JSON string, quotes included; bytes that are not UTF-8 are replaced. Short, so that a record fits a text.
std::string quoted(std::string_view text) { return json_text(nlohmann::json(text.substr(0, 200))); }

// Builds and records a text, if a recorder is active; left out when memory runs out.
template <class MakeText>
void record(MakeText&& make_text) noexcept {
  if (!trace_is_recording()) return;
  try {
    trace_text(make_text());
  } catch (const std::exception&) {
  }
}

std::uintptr_t number(const void* id) { return reinterpret_cast<std::uintptr_t>(id); }

}  // namespace

std::string internal::budget_record(std::string_view name, std::string_view parent, std::size_t limit) {
  return fmt::format(R"(@budget {{"name":{},"parent":{},"limit_bytes":{}}})", quoted(name), quoted(parent), limit);
}

void trace_budget(std::string_view name, std::string_view parent, std::size_t limit) noexcept {
  record([&] { return budget_record(name, parent, limit); });
}

void trace_opened(const char* kind, const void* id, bool persistent) noexcept {
  record([&] {
    return fmt::format(R"(@opened {{"kind":{},"id":{},"persistent":{}}})", quoted(kind), number(id), persistent);
  });
}

void trace_closed(const char* kind, const void* id) noexcept {
  record([&] { return fmt::format(R"(@closed {{"kind":{},"id":{}}})", quoted(kind), number(id)); });
}

void trace_size(const char* kind, const void* id, std::size_t count) noexcept {
  record([&] { return fmt::format(R"(@size {{"kind":{},"id":{},"count":{}}})", quoted(kind), number(id), count); });
}

void trace_named(std::uint64_t block, const char* category, std::string_view name) noexcept {
  record([&] {
    return fmt::format(R"(@named {{"block":{},"category":{},"name":{}}})", block, quoted(category), quoted(name));
  });
}

void trace_ladder(std::string_view rung, std::size_t freed_bytes) noexcept {
  record([&] { return fmt::format(R"(@ladder {{"rung":{},"freed_bytes":{}}})", quoted(rung), freed_bytes); });
}

}  // namespace plimsoll
