#include "plimsoll/base/call_site.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "plimsoll/base/names.h"

namespace plimsoll {
namespace {

constexpr std::uint32_t kMostSites = 65536;

struct Table {
  std::mutex mutex;
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

}  // namespace

std::uint32_t site_number(const CallSite& site) noexcept try {
  struct Recent {
    const char* file;
    std::uint32_t line, number;
  };
  thread_local constinit std::array<Recent, 64> recent{};
  Recent& entry = recent[(reinterpret_cast<std::uintptr_t>(site.file) / 16 + site.line) % recent.size()];
  if (entry.file != site.file || entry.line != site.line) entry = {site.file, site.line, add(site)};
  return entry.number;
} catch (const std::exception&) {
  return 0;  // Out of memory: losing the place is better than failing.
}

const char* site_text(std::uint32_t number) noexcept {
  const char* const text =
      number == 0 || number >= kMostSites ? nullptr : table().texts[number].load(std::memory_order_acquire);
  return text ? text : "";
}

}  // namespace plimsoll
