#include "plimsoll/graph/spill_option.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

// For variables, which are where the arena put them: they are transferred through a block of the file's own. Part of
// the reported overhead.
constexpr std::size_t kStagingBytes = std::size_t{256} << 10;

}  // namespace

std::optional<SpillFile> open_spill(std::string_view where, const std::string& directory, bool has_budget) {
  if (directory.empty()) return std::nullopt;
  if (!has_budget)
    throw InvalidArgument(
        fmt::format("{}: spills to \"{}\" but has no budget, so it never would; give it a budget", where, directory));
  return SpillFile({.directory = directory, .own_staging_bytes = kStagingBytes});
}

}  // namespace plimsoll::internal
