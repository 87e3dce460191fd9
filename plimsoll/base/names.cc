#include "plimsoll/base/names.h"

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_set>

namespace plimsoll::internal {
namespace {

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

// A node of the set never moves, so the characters of its string do not either.
struct Table {
  std::shared_mutex mutex;
  std::unordered_set<std::string, Hash, std::equal_to<>> names;
  std::size_t bytes = 0;
};

Table& table() {
  static Table* const table = new Table;  // Never destroyed: names outlive everything.
  return *table;
}

std::string_view find_or_add(std::string_view name) {
  Table& all = table();
  {
    const std::shared_lock lock(all.mutex);
    if (const auto found = all.names.find(name); found != all.names.end()) return *found;
  }
  const std::unique_lock lock(all.mutex);
  const auto [position, added] = all.names.emplace(name);
  // A node holds the string, its hash and a link; the bucket array adds a pointer.
  constexpr std::size_t kInside = 15;  // Characters a string keeps without allocating.
  if (added) {
    const std::size_t outside = position->size() > kInside ? position->capacity() + 1 : 0;
    all.bytes += sizeof(std::string) + 3 * sizeof(void*) + outside;
  }
  return *position;
}

}  // namespace

const char* intern(std::string_view name) {
  name = name.empty() ? "" : name.substr(0, name.find('\0'));  // Never a null pointer.
  // By hash, for all threads: thread-local bytes must stay few, so that programs can load the library while they run.
  static constinit std::array<std::atomic<const char*>, 256> recent{};
  std::atomic<const char*>& entry = recent[Hash{}(name) % recent.size()];
  const char* found = entry.load(std::memory_order_acquire);
  if (found == nullptr || std::strncmp(found, name.data(), name.size()) != 0 || found[name.size()] != '\0') {
    found = find_or_add(name).data();
    entry.store(found, std::memory_order_release);
  }
  return found;
}

InternedNames interned_names() noexcept {
  Table& all = table();
  const std::shared_lock lock(all.mutex);
  return {.count = all.names.size(), .bytes = all.bytes};
}

}  // namespace plimsoll::internal
