#include "plimsoll/tensor/storage.h"

#include <gmock/gmock.h>

#include <cstring>
#include <thread>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/reclaimer.h"
#include "plimsoll/tensor/ledger_walk.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/parked.h"
#include "plimsoll/tensor/tensor_testing.h"

namespace plimsoll {
namespace {

class StorageTest : public DeviceFixture {};

TEST_F(StorageTest, IsCountedWhileItLives) {
  {
    const StorageRef storage = Storage::take(current_device(), 100, {});
    EXPECT_TRUE(storage->is_resident());
    EXPECT_EQ(storage->bytes(), 100u);
    EXPECT_EQ(memory().num_tensors, 0u);
    EXPECT_EQ(memory().num_data_buffers, 1u);
    EXPECT_EQ(memory().num_bytes, 100u);
    EXPECT_EQ(current_device().arena().stats().num_allocs, 1u);
  }
  EXPECT_EQ(memory().num_data_buffers, 0u);
  EXPECT_EQ(memory().num_bytes, 0u);
}

TEST_F(StorageTest, GoesWithItsLastReference) {
  StorageRef first = Storage::take(current_device(), 64, {});
  StorageRef second = first;
  EXPECT_EQ(first->references(), 2u);
  StorageRef third = std::move(first);
  EXPECT_FALSE(first);
  EXPECT_EQ(third->references(), 2u);
  third = StorageRef();
  EXPECT_EQ(memory().num_bytes, 64u);
  second = StorageRef();
  EXPECT_EQ(memory().num_bytes, 0u);
}

TEST_F(StorageTest, TakesNoMemoryForNoBytes) {
  const StorageRef empty = Storage::take(current_device(), 0, {});
  EXPECT_EQ(empty->resident(), nullptr);
  EXPECT_EQ(empty->chunk(), nullptr);
  EXPECT_EQ(memory().num_data_buffers, 1u);
  EXPECT_EQ(memory().num_bytes, 0u);
}

TEST_F(StorageTest, TakesLazyMemoryAtItsFirstUseAndFillsIt) {
  const float one = 1;
  Storage::Fill fill{.element_bytes = 4};
  std::memcpy(&fill.pattern, &one, sizeof one);
  const StorageRef lazy = Storage::take_lazily(current_device(), 12, {.op = "ones"}, fill);
  EXPECT_FALSE(lazy->is_resident());
  EXPECT_EQ(lazy->chunk(), nullptr);
  EXPECT_FALSE(lazy->is_wrapped());
  EXPECT_EQ(memory().num_data_buffers, 0u);
  const void* const elements = lazy->resident();
  float copied[3];
  current_device().backend().copy_out(copied, elements, sizeof(copied));
  EXPECT_THAT(copied, testing::ElementsAre(1, 1, 1));
  EXPECT_EQ(memory().num_data_buffers, 1u);
  EXPECT_EQ(memory().num_bytes, 12u);
  EXPECT_STREQ(lazy->chunk()->label.op, "ones");
  EXPECT_FALSE(lazy->is_wrapped());
  EXPECT_EQ(lazy->resident(), elements);
}

TEST_F(StorageTest, GivesBackALazyStorageThatWasNeverUsed) {
  { const StorageRef lazy = Storage::take_lazily(current_device(), 1 << 20, {}, {}); }
  EXPECT_EQ(memory().num_data_buffers, 0u);
  EXPECT_EQ(current_device().arena().stats().num_allocs, 0u);
}

TEST_F(StorageTest, StaysLazyWhenItsMemoryIsRefused) {
  set_limit(1_MiB);
  const StorageRef large = Storage::take_lazily(current_device(), 64_MiB, {}, {});
  EXPECT_THROW(large->resident(), OutOfMemory);
  EXPECT_FALSE(large->is_resident());
  EXPECT_EQ(memory().num_bytes, 0u);
  EXPECT_THROW(large->resident(), OutOfMemory);
}

TEST_F(StorageTest, ChangesNothingWhenMemoryIsRefused) {
  set_limit(1_MiB);
  EXPECT_THROW(Storage::take(current_device(), 64_MiB, {}), OutOfMemory);
  EXPECT_EQ(memory().num_data_buffers, 0u);
  EXPECT_EQ(memory().num_bytes, 0u);
}

// Drops storages when memory is short, as caches do.
class Cache final : public Reclaimer {
 public:
  const char* name() const noexcept override { return "cache"; }
  Rung rung() const noexcept override { return Rung::kPlanCaches; }
  std::size_t reclaim(const char*, std::size_t) override {
    const std::size_t bytes = held.size() * 64_KiB;
    held.clear();
    return bytes;
  }
  std::vector<StorageRef> held;
};

TEST_F(StorageTest, IsItsOwnWhenOthersAreDroppedToMakeRoom) {
  set_limit(1_MiB);
  Cache cache;
  const ReclaimerHandle registered(cache);
  for (int i = 0; i < 12; ++i) cache.held.push_back(Storage::take(current_device(), 64_KiB, {}));
  const StorageRef large = Storage::take(current_device(), 900_KiB, {.op = "large"});
  EXPECT_TRUE(cache.held.empty());
  std::vector<StorageRef> next;
  for (int i = 0; i < 100; ++i) {
    next.push_back(Storage::take(current_device(), 64, {}));
    ASSERT_NE(next.back().get(), large.get());
  }
  EXPECT_EQ(large->bytes(), 900_KiB);
  EXPECT_EQ(memory().num_bytes, 900_KiB + 6400);
}

TEST_F(StorageTest, BecomesResidentOnceWhenThreadsUseItTogether) {
  for (int turn = 0; turn < 50; ++turn) {
    const StorageRef lazy = Storage::take_lazily(current_device(), 4096, {}, {});
    std::vector<void*> seen(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < seen.size(); ++t) threads.emplace_back([&, t] { seen[t] = lazy->resident(); });
    for (std::thread& thread : threads) thread.join();
    for (void* address : seen) ASSERT_EQ(address, seen[0]);
    ASSERT_EQ(memory().num_bytes, 4096u);
  }
}

TEST_F(StorageTest, CallsTheDeleterOfWrappedMemoryOnce) {
  float theirs[4] = {};
  int deleted = 0;
  {
    const StorageRef wrapped = Storage::wrap(current_device(), theirs, sizeof theirs, [&](void* memory) {
      EXPECT_EQ(memory, theirs);
      ++deleted;
    });
    const StorageRef same = wrapped;
    EXPECT_TRUE(wrapped->is_wrapped());
    EXPECT_EQ(wrapped->resident(), theirs);
    EXPECT_EQ(memory().num_data_buffers, 1u);
    EXPECT_EQ(memory().num_bytes, 0u);
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(memory().num_data_buffers, 0u);
}

TEST_F(StorageTest, CountsPinsAndWrites) {
  const StorageRef storage = Storage::take(current_device(), 64, {});
  storage->pin();
  storage->pin();
  EXPECT_EQ(LedgerWalk::num_pins(*storage), 2u);
  storage->unpin();
  EXPECT_TRUE(storage->is_pinned());
  storage->unpin();
  EXPECT_FALSE(storage->is_pinned());
  EXPECT_EQ(storage->version(), 0u);
  storage->note_write();
  EXPECT_EQ(storage->version(), 1u);
}

TEST_F(StorageTest, CanBeRelabelledAlsoBeforeItIsResident) {
  const StorageRef storage = Storage::take(current_device(), 64, {}),
                   lazy = Storage::take_lazily(current_device(), 64, {}, {});
  for (const StorageRef& each : {storage, lazy}) {
    each->relabel(Category::kParameters, "kernel");
    each->resident();
    EXPECT_EQ(each->chunk()->label.category, Category::kParameters);
    EXPECT_STREQ(each->chunk()->label.name, "kernel");
  }
}

TEST_F(StorageTest, MayBeDroppedOnAnotherThread) {
  for (int turn = 0; turn < 100; ++turn) {
    std::vector<StorageRef> made;
    for (int i = 0; i < 50; ++i) made.push_back(Storage::take(current_device(), 64, {}));
    std::thread([&] { made.clear(); }).join();
    ASSERT_EQ(memory().num_bytes, 0u);
  }
}

TEST_F(StorageTest, KeepsTheDataViewsBytesWhenTheTensorIsDisposed) {
  const Tensor x = tensor_of<float>({2}, {3, 4});
  {
    const auto data = x.data<float>(), copy = data;
    x.dispose();
    EXPECT_EQ(data[0], 3.f);
    EXPECT_EQ(copy[1], 4.f);
    EXPECT_EQ(memory().num_bytes, 8u);
    EXPECT_EQ(memory().num_tensors, 0u);
  }
  EXPECT_EQ(memory().num_bytes, 0u);
}

TEST_F(StorageTest, LoadsBytesThatAreElsewhereAtTheirFirstUse) {
  int loads = 0;
  bool fails = true;
  {
    const StorageRef storage = Parking::take_elsewhere(current_device(), 8, {}, [&](void* to) {
      ++loads;
      if (fails) throw Error("not there");
      std::memcpy(to, "elephant", 8);
    });
    EXPECT_TRUE(Parking::is_elsewhere(*storage));
    EXPECT_EQ(memory().num_bytes, 0u);
    EXPECT_THROW(storage->resident(), Error);
    EXPECT_TRUE(Parking::is_elsewhere(*storage));
    EXPECT_EQ(current_device().arena().stats().bytes_in_use, 0u);
    fails = false;
    EXPECT_EQ(std::memcmp(storage->resident(), "elephant", 8), 0);
    EXPECT_FALSE(Parking::is_elsewhere(*storage));
    EXPECT_EQ(memory().num_bytes, 8u);
    storage->resident();
    EXPECT_EQ(loads, 2);
  }
  EXPECT_EQ(memory().num_bytes, 0u);
}

TEST_F(StorageTest, HasRecordsForMoreTensorsThanAThreadKeeps) {
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<Tensor> held;
    for (int i = 0; i < 40'000; ++i) held.push_back(some({1}));
    EXPECT_EQ(memory().num_tensors, 40'000u);
    std::thread([&] { held.clear(); }).join();
    EXPECT_EQ(memory().num_tensors, 0u);
  }
}

}  // namespace
}  // namespace plimsoll
