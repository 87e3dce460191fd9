// MemoryResourceConformance: what every MemoryResource must do. A resource joins with one line in its own test file:
//
//   INSTANTIATE_TEST_SUITE_P(Bfc, MemoryResourceConformance,
//       testing::Values(ResourceUnderTest{"Fixed", [](std::size_t limit) {
//         return std::make_shared<BfcResource>(BfcOptions{.limit = limit}); }}), resource_name);
//
// `make` gives a fresh resource that never holds more than `limit` bytes. A resource that borrows something else gives
// a pointer that owns both (the aliasing constructor of std::shared_ptr).
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/memory_resource.h"

namespace plimsoll {

struct ResourceUnderTest {
  std::string name;
  std::function<std::shared_ptr<MemoryResource>(std::size_t limit)> make;

  friend void PrintTo(const ResourceUnderTest& resource, std::ostream* out) { *out << resource.name; }
};

inline std::string resource_name(const testing::TestParamInfo<ResourceUnderTest>& info) { return info.param.name; }

// A block filled with a pattern of its own, so that overlap, loss and reuse show.
class MarkedBlock {
 public:
  MarkedBlock() = default;
  MarkedBlock(const Block& block, std::uint32_t mark);
  const Block& block() const noexcept { return block_; }
  bool intact() const noexcept;

 private:
  Block block_;
  std::uint32_t mark_ = 0;
};

class MemoryResourceConformance : public testing::TestWithParam<ResourceUnderTest> {
 protected:
  static constexpr std::size_t kLimit = 64_MiB;

  MemoryResource& memory() { return *memory_; }
  MarkedBlock marked(std::size_t bytes, std::size_t alignment = kDefaultAlignment);

  // Runs commands, each an allocation of about that size or (odd) a free of one live block, against a map of what
  // should be live; checks alignment, overlap, contents and sums on the way and that all is free at the end.
  void run_against_model(const std::vector<std::uint32_t>& commands);

 private:
  std::shared_ptr<MemoryResource> memory_ = GetParam().make(kLimit);
  std::uint32_t marks_ = 0;
};

// True when both say the same about what is handed out.
bool same_use(const MemoryStats& left, const MemoryStats& right) noexcept;

}  // namespace plimsoll
