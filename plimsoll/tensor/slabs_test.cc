#include "plimsoll/tensor/slabs.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/system_memory.h"
#include "plimsoll/tensor/live_tensors.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMany = kSanitized ? 20'000 : 200'000;
constexpr std::size_t kPerTensor = sizeof(TensorRecord) + sizeof(Storage);

class SlabsTest : public testing::Test {
 protected:
  void SetUp() override { config::reset_for_testing(); }
  void TearDown() override { config::reset_for_testing(); }

  static void set_limit(std::size_t bytes) {
    config::set_logical_device_configuration(config::list_physical_devices("CPU").at(0), {{.memory_limit = bytes}});
  }
  static Tensor scalar() { return make_tensor({.op = "Test"}, Shape::scalar(), f32, current_device()); }
  static std::vector<Tensor> scalars(std::size_t count) {
    std::vector<Tensor> tensors;
    tensors.reserve(count);
    for (std::size_t i = 0; i < count; ++i) tensors.push_back(scalar());
    return tensors;
  }
};

TEST_F(SlabsTest, RecordsOfTensorsAreOverheadAndTrimReturnsThem) {
  set_limit(128_MiB);
  scalar();
  trim();
  const std::size_t before = memory_overhead();
  {
    const std::vector<Tensor> tensors = scalars(kMany);
    const std::size_t each = (memory_overhead() - before) / kMany;
    EXPECT_GE(each, kPerTensor + 124) << "a record, a storage and a block's record, some of them there before";
    EXPECT_LE(each, kPerTensor + 128 + 16);
    EXPECT_LE(kPerTensor, 128u);
  }
  EXPECT_GE(trim(), kMany / 100 * 99 * (64 + kPerTensor + 128));
  EXPECT_LE(memory_overhead(), before + 256_KiB);
}

TEST_F(SlabsTest, OverheadAndReservedPagesExplainResidentMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted too";
  set_limit(128_MiB);
  scalar();
  std::vector<Tensor> tensors;
  tensors.reserve(kMany);
  std::fill_n(std::back_inserter(tensors), kMany, Tensor());  // So that the vector's own pages are there.
  const std::size_t resident = resident_bytes(), explained = memory_overhead() + memory_stats().bytes_reserved;
  for (Tensor& tensor : tensors) tensor = scalar();
  const auto unexplained = [&] {
    return static_cast<double>(resident_bytes() - resident) -
           static_cast<double>(memory_overhead() + memory_stats().bytes_reserved - explained);
  };
  EXPECT_GT(resident_bytes(), resident + kMany * kPerTensor);
  EXPECT_LT(unexplained(), 2e6);
  for (Tensor& tensor : tensors) tensor = Tensor();
  trim();
  EXPECT_LT(resident_bytes(), resident + 2_MiB);
}

TEST_F(SlabsTest, TrimKeepsLiveTensorsAndTheLedgerWhole) {
  std::vector<Tensor> tensors = scalars(kMany / 4);
  std::mt19937 random(3);
  std::shuffle(tensors.begin(), tensors.end(), random);
  const std::vector<Tensor> young = scalars(1000);
  for (std::size_t kept : {tensors.size() / 2, std::size_t{100}, std::size_t{1}}) {
    tensors.resize(kept);
    trim();
    ASSERT_EQ(memory().num_tensors, kept + young.size());
    const auto rows = live_tensors();
    ASSERT_EQ(rows.size(), kept + young.size());
    for (const LiveTensor& row : rows) ASSERT_EQ(row.op, "Test");
    for (const Tensor& tensor : tensors) ASSERT_EQ(tensor.shape(), Shape::scalar());
    const std::vector<Tensor> more = scalars(2000);  // On slabs that were away.
    ASSERT_EQ(memory().num_tensors, kept + young.size() + more.size());
  }
}

TEST_F(SlabsTest, TrimMayRunBesideThreadsThatMakeAndDropTensors) {
  set_limit(256_MiB);
  scalar();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      std::vector<Tensor> mine;
      while (!stop) {
        const std::size_t wanted = random() % 3000;
        while (mine.size() < wanted) mine.push_back(scalar());
        mine.resize(std::min(mine.size(), wanted));
        for (const Tensor& tensor : mine) ASSERT_TRUE(tensor.shape().is_scalar());
      }
    });
  for (int round = 0; round < (kSanitized ? 50 : 300); ++round) {
    trim();
    static_cast<void>(live_tensors());
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory().num_tensors, 0u);
}

TEST_F(SlabsTest, AChargedLimitCoversRecords) {
  config::set_charge_overhead(true);
  EXPECT_TRUE(config::get_charge_overhead());
  set_limit(16_MiB);
  std::vector<Tensor> tensors;
  tensors.reserve(100'000);
  try {
    for (;;) {
      tensors.push_back(scalar());
      if (tensors.size() % 64 == 0) {
        ASSERT_LE(memory_stats().bytes_reserved + memory_overhead(), 16_MiB + 64_KiB);
      }
    }
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.limit(), 16_MiB);
  }
  EXPECT_GT(tensors.size(), 16_MiB * 8 / 10 / (64 + 128 + kPerTensor));
  EXPECT_LE(tensors.size(), 16_MiB / (64 + 128 + kPerTensor));
  tensors.clear();
  EXPECT_NO_THROW(make_tensor({.op = "Test"}, {14 * 1024 * 1024}, u8, current_device()))
      << "records that nothing uses make way";
}

TEST_F(SlabsTest, ShapesAreKeptOnceAndGoWithTheLastTensor) {
  scalar();
  trim();
  const std::size_t before = ShapeTable::instance().size(), overhead = memory_overhead();
  std::vector<Tensor> tensors;
  for (std::int64_t i = 1; i <= 5000; ++i)
    for (int twice = 0; twice < 2; ++twice)
      tensors.push_back(make_tensor({.op = "Test"}, {i % 7, i}, u8, current_device()));
  EXPECT_GE(ShapeTable::instance().size(), before + 4900);
  EXPECT_LE(ShapeTable::instance().size(), before + 5000);
  for (std::size_t i = 0; i < tensors.size(); i += 2) {
    const auto size = static_cast<std::int64_t>(i / 2 + 1);
    ASSERT_EQ(tensors[i].shape(), (Shape{size % 7, size}));
    ASSERT_EQ(&tensors[i].shape(), &tensors[i + 1].shape());
  }
  tensors.clear();
  trim();
  EXPECT_LE(ShapeTable::instance().size(), before + 64) << "those that this thread used last may stay";
  EXPECT_LE(memory_overhead(), overhead + 256_KiB);
}

TEST_F(SlabsTest, EverNewShapesDoNotPileUp) {
  for (std::int64_t i = 1; i <= 100'000; ++i) make_tensor({.op = "Test"}, {0, i}, u8, current_device());
  EXPECT_LE(ShapeTable::instance().size(), 8192u);
}

TEST_F(SlabsTest, AShapeStaysWhereItIsWhenItsTensorGetsAName) {
  const Tensor tensor = make_tensor({.op = "Test"}, {3, 5, 7}, u8, current_device());
  const Shape& shape = tensor.shape();
  set_name(tensor, "x");
  set_name(tensor, "a longer one");
  trim();
  EXPECT_EQ(shape, (Shape{3, 5, 7}));
  EXPECT_EQ(tensor.shape(), (Shape{3, 5, 7}));
  EXPECT_EQ(tensor.name(), "a longer one");
}

TEST_F(SlabsTest, ThreadsMayMakeEverNewShapesSideBySide) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([i] {
      std::vector<Tensor> kept;
      for (std::int64_t n = 1; n <= (kSanitized ? 2'000 : 20'000); ++n) {
        const Shape shape = {0, n, i};
        kept.push_back(make_tensor({.op = "Test"}, shape, u8, current_device()));
        ASSERT_EQ(kept.back().shape(), shape);
        if (kept.size() == 100) {
          for (std::size_t k = 0; k < kept.size(); ++k)
            ASSERT_EQ(kept[k].shape(), (Shape{0, n - 99 + static_cast<std::int64_t>(k), i}));
          kept.clear();
        }
      }
    });
  for (int round = 0; round < 50; ++round) trim();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SlabsTest, NamesAndWrappedMemoryAreOverhead) {
  Tensor named = scalar();
  const std::size_t before = memory_overhead();
  set_name(named, std::string(100'000, 'x'));
  EXPECT_EQ(memory_overhead(), before + sizeof(NamedShape) + 100'001);
  set_name(named, "short");
  EXPECT_EQ(memory_overhead(), before + sizeof(NamedShape) + 6);
  named = Tensor();
  EXPECT_EQ(memory_overhead(), before);
}

}  // namespace
}  // namespace plimsoll
