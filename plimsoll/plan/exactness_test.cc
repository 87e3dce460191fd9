// The planner against brute force on small instances, and against the validator on strange ones.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/validate.h"

namespace plimsoll {
namespace {

bool meet(const Buffer& a, const Buffer& b) { return a.lower < b.upper && b.lower < a.upper; }

// Smallest peak over all orders in which each buffer is put at the lowest place above those before it; every plan can
// be pushed down into one of these.
std::size_t brute_force(const std::vector<Buffer>& buffers, std::vector<std::size_t>& offsets, unsigned placed,
                        std::size_t peak, std::size_t best) {
  if (peak >= best) return best;
  if (placed + 1 == 1u << buffers.size()) return peak;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (placed >> i & 1) continue;
    std::size_t offset = 0;
    for (std::size_t j = 0; j < buffers.size(); ++j)
      if ((placed >> j & 1) && meet(buffers[i], buffers[j])) offset = std::max(offset, offsets[j] + buffers[j].size);
    offset = (offset + buffers[i].alignment - 1) / buffers[i].alignment * buffers[i].alignment;
    offsets[i] = offset;
    best = brute_force(buffers, offsets, placed | 1u << i, std::max(peak, offset + buffers[i].size), best);
  }
  return best;
}

std::size_t optimum(const std::vector<Buffer>& buffers) {
  std::vector<std::size_t> offsets(buffers.size());
  return brute_force(buffers, offsets, 0, 0, std::numeric_limits<std::size_t>::max());
}

Buffer random_buffer(int largest_size, int times) {
  Buffer buffer;
  buffer.size = *rc::gen::inRange(1, largest_size + 1);
  buffer.lower = *rc::gen::inRange(0, times);
  buffer.upper = *rc::gen::inRange<std::int64_t>(buffer.lower + 1, times + 1);
  return buffer;
}

std::vector<Buffer> random_buffers(int most, int largest_size, int times) {
  std::vector<Buffer> buffers(*rc::gen::inRange(1, most + 1));
  for (Buffer& buffer : buffers) buffer = random_buffer(largest_size, times);
  return buffers;
}

void check_optimal(const std::vector<Buffer>& buffers) {
  const std::size_t expected = optimum(buffers);
  const Plan got = plan(buffers, {}, {.seconds = 30});
  RC_ASSERT(validate_plan(buffers, got.offsets) == "");
  RC_ASSERT(got.peak == expected);
  RC_ASSERT(got.proof == Proof::kOptimal);
  RC_ASSERT(got.lower_bound == expected);
  RC_ASSERT(plan(buffers, {.capacity = expected}, {.seconds = 30}).peak == expected);
  RC_ASSERT(plan(buffers, {.capacity = expected - 1}, {.seconds = 30}).proof == Proof::kInfeasible);
}

TEST(Exactness, EqualsBruteForceUpToNineBuffers) {
  EXPECT_TRUE(rc::check([] { check_optimal(random_buffers(9, 6, 8)); }));
}

TEST(Exactness, EqualsBruteForceOnHundredsOfInstancesOfNineBuffers) {
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int instance = 0; instance < 400; ++instance) {
    std::vector<Buffer> buffers(9);
    for (Buffer& buffer : buffers) {
      buffer.size = 1 + below(9);
      buffer.lower = below(8);
      buffer.upper = buffer.lower + 1 + below(4);
    }
    const Plan got = plan(buffers, {}, {.seconds = 30});
    ASSERT_EQ(validate_plan(buffers, got.offsets), "") << instance;
    ASSERT_EQ(got.peak, optimum(buffers)) << instance;
    ASSERT_EQ(got.proof, Proof::kOptimal) << instance;
  }
}

TEST(Exactness, EqualsBruteForceWithAlignments) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Buffer> buffers = random_buffers(7, 12, 6);
    for (Buffer& buffer : buffers) buffer.alignment = *rc::gen::element(1, 2, 4, 8, 3);
    check_optimal(buffers);
  }));
}

void add_gaps(Buffer& buffer) {
  std::int64_t from = buffer.lower;
  while (from < buffer.upper && *rc::gen::inRange(0, 2) == 1) {
    Gap gap;
    gap.lower = *rc::gen::inRange(from, buffer.upper);
    gap.upper = *rc::gen::inRange<std::int64_t>(gap.lower + 1, buffer.upper + 1);
    if (*rc::gen::inRange(0, 2) == 1) {
      gap.window_lower = *rc::gen::inRange<std::size_t>(0, buffer.size + 1);
      gap.window_upper = *rc::gen::inRange<std::size_t>(gap.window_lower, buffer.size + 1);
    }
    buffer.gaps.push_back(gap);
    from = gap.upper;
  }
}

TEST(Exactness, AlignmentsAliasSetsAndGapsGiveValidPlansWithinTheirBounds) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Buffer> buffers = random_buffers(25, 40, 20);
    for (Buffer& buffer : buffers) {
      buffer.alignment = *rc::gen::element(1, 1, 2, 4, 16);
      if (*rc::gen::inRange(0, 3) == 0) add_gaps(buffer);
      if (*rc::gen::inRange(0, 4) == 0) {
        buffer.alias_set = *rc::gen::inRange(0, 3);
        buffer.alias_offset = buffer.alignment * *rc::gen::inRange<std::size_t>(0, 4);
      }
    }
    const Plan got = plan(buffers, {}, {.nodes = 20000, .seconds = 30});
    RC_ASSERT(validate_plan(buffers, got.offsets) == "");
    RC_ASSERT(got.peak >= got.lower_bound);
    const Plan again = plan(buffers, {}, {.nodes = 20000, .seconds = 30, .threads = 1});
    RC_ASSERT(again.offsets == got.offsets);
  }));
}

// Gaps without windows only remove conflicts, so brute force over all orders still finds the optimum.
bool meet_with_gaps(const Buffer& a, const Buffer& b) {
  const auto lives = [](const Buffer& x, std::int64_t t) {
    return x.lower <= t && t < x.upper &&
           std::none_of(x.gaps.begin(), x.gaps.end(), [&](const Gap& g) { return g.lower <= t && t < g.upper; });
  };
  for (std::int64_t t = a.lower; t < a.upper; ++t)
    if (lives(a, t) && lives(b, t)) return true;
  return false;
}

TEST(Exactness, EqualsBruteForceWithGaps) {
  EXPECT_TRUE(rc::check([] {
    std::vector<Buffer> buffers = random_buffers(7, 6, 8);
    for (Buffer& buffer : buffers) {
      add_gaps(buffer);
      for (Gap& gap : buffer.gaps) gap.window_lower = gap.window_upper = 0;
    }
    std::vector<int> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::size_t expected = std::numeric_limits<std::size_t>::max();
    do {
      std::vector<std::size_t> offsets(buffers.size());
      std::size_t peak = 0;
      for (std::size_t p = 0; p < order.size(); ++p) {
        for (std::size_t q = 0; q < p; ++q)
          if (meet_with_gaps(buffers[order[p]], buffers[order[q]]))
            offsets[order[p]] = std::max(offsets[order[p]], offsets[order[q]] + buffers[order[q]].size);
        peak = std::max(peak, offsets[order[p]] + buffers[order[p]].size);
      }
      expected = std::min(expected, peak);
    } while (std::next_permutation(order.begin(), order.end()));
    const Plan got = plan(buffers, {}, {.seconds = 30});
    RC_ASSERT(validate_plan(buffers, got.offsets) == "");
    RC_ASSERT(got.peak == expected);
    RC_ASSERT(got.proof == Proof::kOptimal);
  }));
}

}  // namespace
}  // namespace plimsoll
