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

FlatSpace space_of(int ranks) { return FlatSpace({{f32, 1000}, {f32, 37}, {f64, 501}}, ranks); }
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

Summed sum_over(std::size_t slices, int ranks, std::size_t room_bytes = 0) {
  Summed result{std::vector<Values>(static_cast<std::size_t>(ranks), Values(0))};
  std::mutex mutex;
  run_ranks(ranks, [&](Job& job) {
    const SliceTree tree(slices, ranks);
    const FlatSpace space = space_of(ranks);
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
    for (const Values& sum : sum_over(12, 3, room).of_ranks) EXPECT_TRUE(sum == alone) << room;
}

TEST(TensorExchange, SendsWhatIsDerived) {
  EXPECT_EQ(sum_over(8, 1).sent, 0u);
  for (const int ranks : {2, 4, 8})  // Of all ranks together: 2 (n - 1) times all bytes.
    EXPECT_EQ(sum_over(8, ranks).sent, 2 * static_cast<std::uint64_t>(ranks - 1) * kBytes);
}

TEST(FlatSpace, IsCutIntoStretchesThatCoverIt) {
  for (const int ranks : {1, 2, 3, 7, 200}) {
    const FlatSpace space = space_of(ranks);
    EXPECT_EQ(space.cut(0), 0u);
    EXPECT_EQ(space.cut(ranks), space.end());
    std::size_t bytes = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_LE(space.cut(rank), space.cut(rank + 1));
      EXPECT_EQ(space.cut(rank) % 64, 0u);
      bytes += space.bytes_in(space.cut(rank), space.cut(rank + 1));
    }
    EXPECT_EQ(bytes, kBytes);
  }
}

}  // namespace
}  // namespace plimsoll::distributed
