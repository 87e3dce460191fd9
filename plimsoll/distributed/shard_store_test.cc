#include "plimsoll/distributed/shard_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/distributed_testing.h"

namespace plimsoll::distributed {
namespace {

// Three parts, of which the last is not the store's.
FlatSpace space_for(int ranks) { return FlatSpace({{f32, 1000}, {f32, 5}, {f32, 300}}, ranks, {.group_bytes = 1}); }

std::vector<float> part_of(std::size_t part, float factor) {
  std::vector<float> values(part == 0 ? 1000 : 5);
  std::iota(values.begin(), values.end(), static_cast<float>(part) * 10000);
  for (float& value : values) value *= factor;
  return values;
}

void fill(ShardStore& store, float factor) {
  for (std::size_t part = 0; part < 2; ++part) {
    const std::vector<float> whole = part_of(part, factor);
    const ShardStore::Stretch& own = store.own(part);
    if (own.bytes > 0) std::memcpy(own.memory, reinterpret_cast<const std::byte*>(whole.data()) + own.first, own.bytes);
  }
}

std::vector<float> fetch(ShardStore& store, std::size_t part) {
  std::vector<float> values(part == 0 ? 1000 : 5);
  store.begin_fetch(part, reinterpret_cast<std::byte*>(values.data()));
  store.wait();
  return values;
}

TEST(ShardStore, GivesEveryRankWhatTheOthersKeep) {
  for (const int ranks : {1, 2, 3, 7})
    run_ranks(ranks, [&](Job& job) {
      const FlatSpace space = space_for(ranks);
      std::vector<std::byte> own(ShardStore::own_bytes(space, 2, job.rank()) + 64);
      EXPECT_LE(own.size(), (4064u / static_cast<std::size_t>(ranks)) + 256);
      ShardStore store(job, space, 2);
      store.set_memory(own.data());
      store.open();
      fill(store, 1);
      barrier(job);
      for (int i = 0; i < job.rank() + 2; ++i)  // Each as often as it likes, in its own order.
        for (const std::size_t part : {0, 1})
          EXPECT_EQ(fetch(store, (part + static_cast<std::size_t>(job.rank())) % 2),
                    part_of((part + static_cast<std::size_t>(job.rank())) % 2, 1));
      barrier(job);
      fill(store, 2);
      barrier(job);
      EXPECT_EQ(fetch(store, 0), part_of(0, 2));
      store.close();
      barrier(job);  // Nothing is left over.
    });
}

TEST(ShardStore, CanBeOpenedAgain) {
  run_ranks(3, [&](Job& job) {
    const FlatSpace space = space_for(3);
    for (int i = 1; i < 4; ++i) {
      std::vector<std::byte> own(ShardStore::own_bytes(space, 2, job.rank()) + 64);
      ShardStore store(job, space, 2);
      store.set_memory(own.data());
      store.open();
      fill(store, static_cast<float>(i));
      barrier(job);
      EXPECT_EQ(fetch(store, 1), part_of(1, static_cast<float>(i)));
      store.close();
    }
  });
}

}  // namespace
}  // namespace plimsoll::distributed
