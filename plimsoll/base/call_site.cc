#include "plimsoll/base/call_site.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "plimsoll/base/names.h"

namespace plimsoll {
namespace {

constexpr std::uint32_t kMostSites = 65536;

// A place in a program and its number. Never changed, never destroyed.
struct Site {
  const char* file;
  std::uint32_t line, number;
  bool operator==(const Site& other) const noexcept { return file == other.file && line == other.line; }
};

struct SiteHash {
  std::size_t operator()(const Site& site) const noexcept {
    return reinterpret_cast<std::uintptr_t>(site.file) / 16 + site.line;
  }
};

struct Table {
  std::mutex mutex;
  std::unordered_set<Site, SiteHash> sites;                // Every place asked for so far, up to kMostSites.
  std::unordered_map<const char*, std::uint32_t> numbers;  // By text.
  std::uint32_t count = 1;
  std::array<std::atomic<const char*>, kMostSites> texts{};  // [0] stays nullptr.
};

Table& table() {
  static Table* const table = new Table;  // Never destroyed: labels refer to it.
  return *table;
}

// Whether a file belongs to this library; its tests count as user programs.
bool is_ours(std::string_view file) {
  constexpr std::string_view kHere = "base/call_site.cc";
  static constexpr std::string_view kThis = __FILE__;
  return file.starts_with(kThis.substr(0, kThis.size() - kHere.size())) && file.find("_test") == std::string_view::npos;
}

std::uint32_t add(const CallSite& site) {
  std::string_view file = site.file;
  if (site.line == 0 || file.empty() || is_ours(file)) return 0;
  if (const std::size_t name = file.rfind('/'); name != std::string_view::npos && name > 0) {
    const std::size_t folder = file.rfind('/', name - 1);
    if (folder != std::string_view::npos) file.remove_prefix(folder + 1);
  }
  const char* const text = intern(fmt::format("{}:{}", file, site.line));
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.numbers.find(text); known != all.numbers.end()) return known->second;
  if (all.count == kMostSites) return 0;
  all.numbers.emplace(text, all.count);
  all.texts[all.count].store(text, std::memory_order_release);
  return all.count++;
}

// Returns where the copy is kept; nullptr when there are too many.
const Site* keep(const Site& site) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.sites.find(site); found != all.sites.end()) return &*found;
  return all.sites.size() < kMostSites ? &*all.sites.insert(site).first : nullptr;
}

}  // namespace

std::uint32_t site_number(const CallSite& site) noexcept try {
  // For all threads: thread-local bytes must stay few, so that programs can load the library while they run.
  static constinit std::array<std::atomic<const Site*>, 256> recent{};
  const Site wanted = {site.file, site.line, 0};
  std::atomic<const Site*>& entry = recent[SiteHash{}(wanted) % recent.size()];
  const Site* const known = entry.load(std::memory_order_acquire);
  if (known && *known == wanted) return known->number;
  const std::uint32_t number = add(site);
  if (const Site* const kept = keep({site.file, site.line, number})) entry.store(kept, std::memory_order_release);
  return number;
} catch (const std::exception&) {
  return 0;  // Out of memory: losing the place is better than failing.
}

const char* site_text(std::uint32_t number) noexcept {
  const char* const text =
      number == 0 || number >= kMostSites ? nullptr : table().texts[number].load(std::memory_order_acquire);
  return text ? text : "";
}

}  // namespace plimsoll
