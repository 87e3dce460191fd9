// ProgramCache: stores compiled kernels in $XDG_CACHE_HOME/plimsoll (~/.cache/plimsoll), so that the next run need not
// compile them.
//
//   const ProgramCache cache(device + driver + source);
//   std::string binary = cache.read();          // empty: there is none, or it is damaged
//   cache.write(binary);                        // whole or not at all; failing is fine
//
// A file contains the length and checksum of its source and of its contents: a file that is damaged, or made from
// another source, is not used. PLIMSOLL_PROGRAM_CACHE=off turns it off.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plimsoll::internal {

class ProgramCache {
 public:
  explicit ProgramCache(std::string_view made_from);
  std::string read() const;
  void write(std::string_view binary) const noexcept;
  const std::filesystem::path& path() const noexcept { return path_; }  // Empty: nothing is kept.

 private:
  std::string header(std::string_view binary) const;
  std::string made_from_;
  std::filesystem::path path_;
};

}  // namespace plimsoll::internal
