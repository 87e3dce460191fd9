#include "plimsoll/observe/process_memory.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/arena_list.h"

namespace plimsoll {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Range {
  std::uintptr_t from, to;
};

// The totals of all mappings in smaps.
struct Mappings {
  std::size_t resident = 0, arenas = 0, files = 0;
};

// The first line of a mapping: "7f00-7f10 rw-p 00000000 08:01 123   /usr/lib/x.so". False for other lines.
bool parse_head(std::string_view line, Range& range, bool& of_file) {
  const char* const end = line.data() + line.size();
  const auto from = std::from_chars(line.data(), end, range.from, 16);
  if (from.ec != std::errc() || from.ptr == end || *from.ptr != '-') return false;
  const auto to = std::from_chars(from.ptr + 1, end, range.to, 16);
  if (to.ec != std::errc() || to.ptr == end || *to.ptr != ' ') return false;
  of_file = line.find('/') != std::string_view::npos || line.find("[vdso]") != std::string_view::npos;
  return true;
}

Mappings read_mappings(const std::vector<Range>& arenas) {
  Mappings sum;
  std::ifstream file("/proc/self/smaps");
  std::string line;
  bool of_file = false, of_arena = false;
  while (std::getline(file, line)) {
    Range range{};
    if (parse_head(line, range, of_file)) {
      of_arena = std::any_of(arenas.begin(), arenas.end(),
                             [&](const Range& arena) { return range.from >= arena.from && range.to <= arena.to; });
    } else if (line.starts_with("Rss:")) {
      const std::size_t bytes = parse_kilobytes(line, "Rss");
      sum.resident += bytes;
      if (of_arena)
        sum.arenas += bytes;
      else if (of_file)
        sum.files += bytes;
    }
  }
  return sum;
}

// Takes at most what is left of `rest`.
std::size_t take(std::size_t wanted, std::size_t& rest) {
  const std::size_t taken = std::min(wanted, rest);
  rest -= taken;
  return taken;
}

}  // namespace

ProcessMemory process_memory(const std::string& root) {
  const std::string status = text_of(root + "/proc/self/status");
  ProcessMemory memory;
  memory.resident = resident_bytes(root);
  memory.peak_resident = std::max(parse_kilobytes(status, "VmHWM"), memory.resident);
  memory.anonymous = parse_kilobytes(status, "RssAnon");
  memory.file_backed = parse_kilobytes(status, "RssFile") + parse_kilobytes(status, "RssShmem");
  memory.swapped = parse_kilobytes(status, "VmSwap");
  memory.address_space = parse_kilobytes(status, "VmSize");
  memory.threads =
      parse_kilobytes("Threads:" + status.substr(std::min(status.size(), status.find("Threads:") + 8)), "Threads") >>
      10;
  return memory;
}

ResidentParts resident_parts() {
  std::vector<Range> ranges;
  std::size_t workspaces = 0, cached = 0, live = 0, metadata = 0;
  ArenaList::instance().for_each([&](Arena& arena) {
    const auto base = reinterpret_cast<std::uintptr_t>(arena.base());
    ranges.push_back({base, base + arena.range_bytes()});
    metadata += arena.overhead_bytes();
    arena.for_each_live([&](const Chunk& chunk) {
      live += chunk.size;
      if (chunk.label.category == Category::kWorkspace) workspaces += chunk.size;
      if (chunk.label.category == Category::kCache) cached += chunk.size;
    });
  });
  const Mappings mappings = read_mappings(ranges);
  ResidentParts parts;
  parts.resident = mappings.resident;
  std::size_t in_arenas = mappings.arenas;
  parts.workspaces = take(workspaces, in_arenas);
  parts.caches = take(cached, in_arenas);
  parts.tensors = take(live - workspaces - cached, in_arenas);
  parts.caches += in_arenas;  // Pages without blocks.
  parts.libraries = mappings.files;
  std::size_t others = mappings.resident - mappings.arenas - mappings.files;
  parts.metadata = take(metadata, others);
  const struct mallinfo2 heap = mallinfo2();
  parts.heap = take(heap.uordblks + heap.hblkhd, others);
  parts.remainder = others;
  return parts;
}

std::string ResidentParts::to_string() const {
  return fmt::format(
      "resident {} = tensors {} + workspaces {} + caches {} + metadata {} + libraries {} + heap {} + remainder {}",
      format_bytes(resident), format_bytes(tensors), format_bytes(workspaces), format_bytes(caches),
      format_bytes(metadata), format_bytes(libraries), format_bytes(heap), format_bytes(remainder));
}

}  // namespace plimsoll
