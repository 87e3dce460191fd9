// BlockLabel: what the ledger remembers of a live block, in one cache line.
//
// Names are pointers to text that lives as long as the program (literals or interned), so writing a label costs a few
// stores and reading one never chases freed memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll {

// What a block is for; the rows of every memory report.
enum class Category : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kInputs,
  kWorkspace,
  kCache,
  kOther,
};
inline constexpr std::size_t kCategories = 8;

constexpr const char* category_name(Category category) {
  constexpr const char* kNames[kCategories] = {"parameters", "gradients", "optimizer", "activations",
                                               "inputs",     "workspace", "cache",     "other"};
  return kNames[static_cast<std::size_t>(category)];
}

struct BlockLabel {
  static constexpr std::size_t kSizes = 4;  // Leading sizes of the shape that are kept.

  const char* op = "block";  // The operation or tag that made it.
  const char* scope = "";    // Name scope.
  const char* name = "";     // The user's name for it.
  std::uint64_t id = 0;      // Set by the arena: unique and increasing within a thread.
  std::uint32_t step = 0;    // Training step it was made in.
  std::uint32_t site = 0;    // Call site, when those are recorded; 0 for none.
  std::uint32_t sizes[kSizes] = {0, 0, 0, 0};
  Category category = Category::kOther;
  std::uint8_t dtype = 0;
  std::uint8_t rank = 0;  // Of the shape, even when it has more sizes than are kept.
  std::uint8_t has_shape = 0;
};
static_assert(sizeof(BlockLabel) <= 64);

}  // namespace plimsoll
