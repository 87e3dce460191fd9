#include "plimsoll/device/opencl/program_cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/make_directories.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kMostBytes = 64 << 20;

std::filesystem::path cache_folder() {
  const auto value = [](const char* name) {
    const char* const text = std::getenv(name);
    return std::filesystem::path(text ? text : "");
  };
  if (value("PLIMSOLL_PROGRAM_CACHE") == "off") return {};
  if (const auto folder = value("XDG_CACHE_HOME"); folder.is_absolute()) return folder / "plimsoll";
  if (const auto home = value("HOME"); home.is_absolute()) return home / ".cache" / "plimsoll";
  return {};
}

}  // namespace

ProgramCache::ProgramCache(std::string_view made_from) : made_from_(made_from) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return;
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : made_from) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  path_ = folder / fmt::format("opencl-{:016x}.bin", hash);
}

std::string ProgramCache::header(std::string_view binary) const {
  std::string text = fmt::format("plimsoll opencl 1 {:08x} {:08x} {} {}", crc32c(made_from_), crc32c(binary),
                                 made_from_.size(), binary.size());
  text.resize(kHeaderBytes, '\n');
  return text;
}

std::string ProgramCache::read() const {
  if (path_.empty()) return "";
  std::ifstream file(path_, std::ios::binary);
  if (!file) return "";
  std::string all;
  all.reserve(4096);
  for (char piece[4096]; all.size() <= kMostBytes;) {
    file.read(piece, sizeof(piece));
    all.append(piece, static_cast<std::size_t>(file.gcount()));
    if (!file) break;
  }
  if (all.size() <= kHeaderBytes || all.size() > kMostBytes) return "";
  std::string binary = all.substr(kHeaderBytes);
  return all.compare(0, kHeaderBytes, header(binary)) == 0 ? binary : "";
}

void ProgramCache::write(std::string_view binary) const noexcept {
  if (path_.empty() || binary.size() > kMostBytes) return;
  try {
    make_directories(path_.parent_path());
    AtomicFile file(path_);
    file.write(header(binary));
    file.write(binary);
    file.commit();
  } catch (const std::exception&) {  // Without a cache the next run compiles again.
  }
}

}  // namespace plimsoll::internal
