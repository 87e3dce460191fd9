#include "plimsoll/memory/system_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/internal/memory_groups.h"
#include "plimsoll/memory/internal/text_files.h"

namespace plimsoll {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// Leaves a margin for the rest of the process and our records.
std::size_t less_margin(std::size_t left) {
  const std::size_t margin = std::min(std::max(left / 20, 32_MiB), left / 4);
  return left - margin;
}

std::size_t first_number(std::string_view text, std::size_t otherwise) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return otherwise;
  std::size_t number = 0;
  const auto read = std::from_chars(text.data() + start, text.data() + text.size(), number);
  return read.ec == std::errc() ? number : otherwise;
}

}  // namespace

std::size_t parse_kilobytes(std::string_view text, std::string_view key) {
  const std::string_view value = value_of_line(text, key);
  return value.starts_with(':') ? first_number(value.substr(1), 0) << 10 : 0;
}

std::size_t parse_group_limit(std::string_view text) {
  constexpr std::size_t kVersionOneNone = std::size_t{1} << 62;  // "No limit" is LONG_MAX rounded down to a page.
  const std::size_t bytes = first_number(text, kNoMemoryLimit);
  return bytes >= kVersionOneNone ? kNoMemoryLimit : bytes;
}

std::size_t parse_address_space_limit(std::string_view limits) {
  return first_number(value_of_line(limits, "Max address space"), kNoMemoryLimit);
}

std::size_t resident_bytes(const std::string& root) {
  if (const std::size_t bytes = parse_kilobytes(read_text_file(root + "/proc/self/smaps_rollup"), "Rss")) return bytes;
  std::istringstream pages(read_text_file(root + "/proc/self/statm"));
  std::size_t all = 0, resident = 0;
  pages >> all >> resident;
  return resident * page_bytes();
}

SystemMemory read_system_memory(const std::string& root) {
  SystemMemory system;
  const std::string machine = read_text_file(root + "/proc/meminfo");
  system.total = parse_kilobytes(machine, "MemTotal");
  system.available = parse_kilobytes(machine, "MemAvailable");
  system.swap_total = parse_kilobytes(machine, "SwapTotal");
  system.swap_free = parse_kilobytes(machine, "SwapFree");
  if (system.total == 0 && root.empty()) {  // There is no /proc.
    system.total = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
    system.available = static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * page_bytes();
  }
  system.resident = resident_bytes(root);
  system.address_space = first_number(read_text_file(root + "/proc/self/statm"), 0) * page_bytes();
  system.address_space_limit = parse_address_space_limit(read_text_file(root + "/proc/self/limits"));
  system.groups = read_memory_groups(root);
  return system;
}

std::size_t SystemMemory::capacity() const noexcept {
  std::size_t bytes = std::min(total > 0 ? total : kNoMemoryLimit, address_space_limit);
  for (const MemoryGroup& group : groups) bytes = std::min(bytes, group.limit);
  return bytes;
}

DefaultLimit default_memory_limit(const SystemMemory& system) {
  DefaultLimit limit;
  limit.candidates.push_back({"available memory", system.available, less_margin(system.available)});
  for (const MemoryGroup& group : system.groups)
    limit.candidates.push_back({"control group " + group.name, group.left(), less_margin(group.left())});
  if (system.address_space_limit != kNoMemoryLimit) {
    const std::size_t left = system.address_space_limit - std::min(system.address_space, system.address_space_limit);
    limit.candidates.push_back({"RLIMIT_AS", left, left / 3});
  }
  const auto least = std::min_element(limit.candidates.begin(), limit.candidates.end(),
                                      [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  limit.bytes = std::max(least->bytes / 64_KiB * 64_KiB, 1_MiB);
  limit.from = least->from;
  return limit;
}

}  // namespace plimsoll
