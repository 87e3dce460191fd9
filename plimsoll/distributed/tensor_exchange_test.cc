#include "plimsoll/distributed/tensor_exchange.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <random>

#include "plimsoll/distributed/distributed_testing.h"

namespace plimsoll::distributed {
namespace {

// Two lists of floats and one of doubles, as the gradient of one slice has them.
struct Values {
  std::vector<float> a, b;
  std::vector<double> c;
  explicit Values(unsigned seed) : a(1000), b(37), c(501) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (float& x : a) x = static_cast<float>(normal(random));
    for (float& x : b) x = static_cast<float>(normal(random));
    for (double& x : c) x = normal(random);
  }
  PartAddresses addresses() {
    return {reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data()),
            reinterpret_cast<std::byte*>(c.data())};
  }
  bool operator==(const Values&) const = default;
};

FlatSpace space_of(int ranks, std::size_t group_bytes = 0) {
  return FlatSpace({{f32, 1000}, {f32, 37}, {f64, 501}}, ranks, {.group_bytes = group_bytes});
}
constexpr std::size_t kBytes = 1000 * 4 + 37 * 4 + 501 * 8;

std::vector<Values> pieces_of(const SliceTree& tree, const FlatSpace& space, int rank) {
  SliceSums<Values> sums(tree);
  for (std::size_t slice = tree.begin(rank); slice < tree.end(rank); ++slice)
    sums.add({slice, slice + 1, rank}, Values(static_cast<unsigned>(slice)),
             [&](Values& left, Values& right) { add_parts(space, left.addresses(), right.addresses()); });
  return sums.values();
}

struct Summed {
  std::vector<Values> of_ranks;
  std::uint64_t sent = 0;
};

Summed sum_over(std::size_t slices, int ranks, std::size_t room_bytes = 0, std::size_t group_bytes = 0) {
  Summed result{std::vector<Values>(static_cast<std::size_t>(ranks), Values(0))};
  std::mutex mutex;
  run_ranks(ranks, [&](Job& job) {
    const SliceTree tree(slices, ranks);
    const FlatSpace space = space_of(ranks, group_bytes);
    std::vector<Values> pieces = pieces_of(tree, space, job.rank());
    std::vector<PartAddresses> addresses;
    for (Values& piece : pieces) addresses.push_back(piece.addresses());
    Values sum(999);
    std::vector<std::byte> room(room_bytes > 0 ? room_bytes : TensorExchange::room_bytes(space, tree));
    TensorExchange exchange(job, space, room);
    exchange.reduce_scatter(tree, addresses, sum.addresses());
    exchange.all_gather(sum.addresses());
    const std::lock_guard lock(mutex);
    result.of_ranks[static_cast<std::size_t>(job.rank())] = sum;
    result.sent += job.traffic().sent_bytes;
  });
  return result;
}

TEST(TensorExchange, GivesTheSameBitsForEveryNumberOfRanks) {
  for (const std::size_t slices : {1, 2, 7, 12, 32}) {
    const Values alone = sum_over(slices, 1).of_ranks[0];
    for (const int ranks : {2, 3, 4, 7})
      for (const Values& sum : sum_over(slices, ranks).of_ranks) EXPECT_TRUE(sum == alone) << slices << " " << ranks;
  }
}

TEST(TensorExchange, GivesTheSameBitsThroughSmallBuckets) {
  const Values alone = sum_over(12, 1).of_ranks[0];
  for (const std::size_t room : {2048, 4096, 20000})
    for (const std::size_t group : {0, 1, 4100})
      for (const Values& sum : sum_over(12, 3, room, group).of_ranks) EXPECT_TRUE(sum == alone) << room;
}

// Parts that are ready early are sent before the others; the sum is the same.
TEST(TensorExchange, AddsGroupsAsTheyGetReady) {
  const Values alone = sum_over(12, 1).of_ranks[0];
  for (const int ranks : {2, 3, 7})
    run_ranks(ranks, [&](Job& job) {
      const SliceTree tree(12, ranks);
      const FlatSpace space = space_of(ranks, 1);
      std::vector<Values> pieces = pieces_of(tree, space, job.rank());
      std::vector<PartAddresses> addresses;
      for (Values& piece : pieces) addresses.push_back(piece.addresses());
      Values sum(999);
      std::vector<std::byte> room(TensorExchange::room_bytes(space, tree));
      TensorExchange exchange(job, space, room);
      exchange.begin_reduce(tree, addresses, sum.addresses());
      EXPECT_EQ(exchange.early_bytes(), 0u);
      const bool hurries = job.rank() != 1;  // One rank sends nothing before all of it is ready.
      for (const std::size_t part : {0, 2}) {
        exchange.set_ready(part);
        for (int i = 0; hurries && i < 100; ++i) exchange.advance();
      }
      EXPECT_EQ(exchange.early_bytes() > 0, hurries);
      EXPECT_TRUE(exchange.is_reducing());
      exchange.set_ready(1);
      exchange.finish_reduce();
      EXPECT_FALSE(exchange.is_reducing());
      exchange.all_gather(sum.addresses());
      EXPECT_TRUE(sum == alone) << ranks;
    });
}

// Nothing is left over when a rank has no values to send: what comes after is received as what it is.
TEST(TensorExchange, IsDrainedWhereARankHasFailed) {
  run_ranks(3, [&](Job& job) {
    const SliceTree tree(6, 3);
    const FlatSpace space = space_of(3, 1);
    std::vector<Values> pieces = pieces_of(tree, space, job.rank());
    std::vector<PartAddresses> addresses;
    for (Values& piece : pieces) addresses.push_back(piece.addresses());
    std::vector<std::byte> room(TensorExchange::room_bytes(space, tree));
    TensorExchange exchange(job, space, room);
    Values sum(999);
    exchange.begin_reduce(tree, job.rank() == 2 ? std::vector<PartAddresses>() : addresses, sum.addresses());
    if (job.rank() == 0) {
      exchange.set_ready(2);
      exchange.advance();
    }
    exchange.drain_reduce();
    exchange.reduce_scatter(tree, addresses, sum.addresses());
    exchange.all_gather(sum.addresses());
    EXPECT_TRUE(sum == sum_over(6, 1).of_ranks[0]);
  });
}

TEST(TensorExchange, SendsWhatIsDerived) {
  EXPECT_EQ(sum_over(8, 1).sent, 0u);
  for (const int ranks : {2, 4, 8})  // Of all ranks together: 2 (n - 1) times all bytes.
    EXPECT_EQ(sum_over(8, ranks).sent, 2 * static_cast<std::uint64_t>(ranks - 1) * kBytes);
}

TEST(FlatSpace, IsCutIntoStretchesThatCoverIt) {
  for (const int ranks : {1, 2, 3, 7, 200})
    for (const std::size_t group_bytes : {0, 1, 4100})
      for (const std::size_t grain : {64, 512}) {
        const FlatSpace space({{f32, 1000}, {f32, 37}, {f64, 501}}, ranks,
                              {.grain = grain, .group_bytes = group_bytes});
        EXPECT_EQ(space.num_groups(), group_bytes == 0 ? 1u : group_bytes == 1 ? 3u : 2u);
        std::size_t bytes = 0;
        for (std::size_t group = 0; group < space.num_groups(); ++group) {
          EXPECT_EQ(space.cut(group, ranks), group + 1 < space.num_groups() ? space.cut(group + 1, 0) : space.end());
          for (int rank = 0; rank < ranks; ++rank) {
            EXPECT_LE(space.cut(group, rank), space.cut(group, rank + 1));
            EXPECT_EQ(space.cut(group, rank) % grain, 0u);
            if (space.cut(group, rank) < space.cut(group, rank + 1)) {
              EXPECT_EQ(space.owner_of(space.cut(group, rank)), rank);
            }
            bytes += space.bytes_in(space.cut(group, rank), space.cut(group, rank + 1));
          }
        }
        EXPECT_EQ(bytes, kBytes);
      }
}

}  // namespace
}  // namespace plimsoll::distributed
