#include "plimsoll/memory/memory_resource_testing.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

constexpr std::size_t kStride = 4096;  // Large blocks are marked once per page.

template <class Visit>
void visit_marks(const Block& block, Visit visit) {
  auto* bytes = static_cast<unsigned char*>(block.data());
  for (std::size_t at = 0; at < block.size(); at += block.size() < kStride ? 1 : kStride) visit(bytes[at], at);
  if (block.size() > 0) visit(bytes[block.size() - 1], block.size() - 1);
}

unsigned char pattern(std::uint32_t mark, std::size_t at) {
  return static_cast<unsigned char>((mark * 2654435761u + at / 64 * 97 + 1) >> 5);
}

}  // namespace

MarkedBlock::MarkedBlock(const Block& block, std::uint32_t mark) : block_(block), mark_(mark) {
  visit_marks(block_, [&](unsigned char& byte, std::size_t at) { byte = pattern(mark_, at); });
}

bool MarkedBlock::intact() const noexcept {
  bool same = true;
  visit_marks(block_, [&](const unsigned char& byte, std::size_t at) { same = same && byte == pattern(mark_, at); });
  return same;
}

MarkedBlock MemoryResourceConformance::marked(std::size_t bytes, std::size_t alignment) {
  return MarkedBlock(memory().allocate(bytes, alignment), marks_++);
}

bool same_use(const MemoryStats& left, const MemoryStats& right) noexcept {
  return left.bytes_in_use == right.bytes_in_use && left.peak_bytes_in_use == right.peak_bytes_in_use &&
         left.num_allocs == right.num_allocs && left.largest_alloc_bytes == right.largest_alloc_bytes &&
         left.bytes_limit == right.bytes_limit;
}

namespace {

// What should be live, by address.
class Model {
 public:
  void add(const MarkedBlock& block) {
    auto* begin = static_cast<std::byte*>(block.block().data());
    const auto next = live_.lower_bound(begin);
    if (next != live_.end()) {
      EXPECT_LE(begin + block.block().size(), next->first) << "overlaps the next block";
    }
    if (next != live_.begin()) {
      const auto& previous = std::prev(next)->second.block();
      EXPECT_LE(static_cast<std::byte*>(previous.data()) + previous.size(), begin) << "overlaps the previous block";
    }
    requested_ += block.block().size();
    EXPECT_TRUE(live_.emplace(begin, block).second);
  }
  MarkedBlock take(std::size_t which) {
    const auto place = std::next(live_.begin(), static_cast<std::ptrdiff_t>(which % live_.size()));
    const MarkedBlock block = place->second;
    requested_ -= block.block().size();
    live_.erase(place);
    return block;
  }
  bool empty() const { return live_.empty(); }
  std::size_t requested() const { return requested_; }

 private:
  std::map<std::byte*, MarkedBlock> live_;
  std::size_t requested_ = 0;
};

// A size that is small mostly and a good part of the limit sometimes.
std::size_t size_of(std::uint32_t command) {
  const std::uint32_t bits = command >> 1;
  return 1 + (bits >> 4) % (std::size_t{1} << (4 + bits % 19));
}

}  // namespace

void MemoryResourceConformance::run_against_model(const std::vector<std::uint32_t>& commands) {
  Model model;
  const auto give_back = [&](std::size_t which) {
    const MarkedBlock block = model.take(which);
    EXPECT_TRUE(block.intact()) << "a live block of " << block.block().size() << " bytes was overwritten";
    memory().deallocate(block.block());
  };
  for (const std::uint32_t command : commands) {
    if (command % 2 == 1 && !model.empty()) {
      give_back(command >> 1);
    } else {
      const std::size_t alignment = std::size_t{1} << (command / 2 % 13);
      try {
        const MarkedBlock block = marked(size_of(command), alignment);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.block().data()) % std::max(alignment, kDefaultAlignment), 0u);
        model.add(block);
      } catch (const OutOfMemory& error) {
        EXPECT_GT(error.smallest_sufficient_limit(), kLimit);
      }
    }
    const MemoryStats stats = memory().stats();
    ASSERT_GE(stats.bytes_in_use, model.requested());
    ASSERT_LE(stats.bytes_in_use, stats.peak_bytes_in_use);
    ASSERT_LE(stats.bytes_reserved, kLimit);
    ASSERT_LE(stats.peak_bytes_reserved, kLimit);
  }
  while (!model.empty()) give_back(0);
  EXPECT_EQ(memory().stats().bytes_in_use, 0u);
}

}  // namespace plimsoll
