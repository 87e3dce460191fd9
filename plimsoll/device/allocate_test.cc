#include "plimsoll/device/allocate.h"

#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/pages/host_page_source.h"
#include "plimsoll/memory/pmr_resource.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

class Allocate : public DeviceFixture {};

TEST_F(Allocate, ReturnsBytesThatAreCounted) {
  const Block block = allocate(1_MiB, {.device = "CPU:0", .tag = "lookup table"});
  ASSERT_TRUE(block);
  EXPECT_EQ(block.size(), 1_MiB);
  std::memset(block.data(), 1, block.size());
  EXPECT_EQ(memory_stats("CPU:0").bytes_in_use, 1_MiB);
  EXPECT_EQ(config::get_memory_info("CPU:0").current, 1_MiB);
  deallocate(block);
  EXPECT_EQ(config::get_memory_info("CPU:0").current, 0u);
  EXPECT_EQ(config::get_memory_info("CPU:0").peak, 1_MiB);
  reset_memory_stats("CPU:0");
  EXPECT_EQ(config::get_memory_info("CPU:0").peak, 0u);
}

TEST_F(Allocate, ReturnsAnEmptyBlockForNoBytes) {
  const Block block = allocate(0);
  EXPECT_FALSE(block);
  deallocate(block);
  deallocate({});
  EXPECT_EQ(memory_stats().num_allocs, 0u);
}

TEST_F(Allocate, RefusesASecondDeallocationAndForeignBlocks) {
  const Block block = allocate(1000), kept = allocate(1000);
  deallocate(block);
  EXPECT_THAT([&] { deallocate(block); }, ThrowsMessage<InvalidArgument>(HasSubstr("was deallocated before")));
  int own = 0;
  EXPECT_THROW(deallocate(Block(&own, sizeof(own), nullptr, 0)), InvalidArgument);
  HostPageSource pages;
  Arena arena(pages, {.limit = 1_MiB});
  const Block other = arena.allocate(100);
  EXPECT_THROW(deallocate(other), InvalidArgument);
  EXPECT_EQ(memory_stats().bytes_in_use, 1024u);
  deallocate(kept);
}

TEST_F(Allocate, WritesTheTagInTheLedgerAndInTheRefusal) {
  set_limit(8_MiB);
  const OwnedBlock table(6_MiB, {.tag = "lookup table"});
  const Arena& arena = Runtime::instance().device("").arena();
  arena.for_each_live([](const Chunk& chunk) { EXPECT_STREQ(chunk.label.op, "lookup table"); });
  try {
    (void)allocate(4_MiB, {.tag = "decoder"});
    FAIL() << "expected a refusal";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.requested(), 4_MiB);
    EXPECT_EQ(error.limit(), 8_MiB);
    EXPECT_EQ(error.in_use(), 6_MiB);
    EXPECT_EQ(error.smallest_sufficient_limit(), 10_MiB);
    ASSERT_THAT(error.holders(), SizeIs(1));
    EXPECT_EQ(error.holders()[0].op, "lookup table");
    EXPECT_THAT(error.what(), HasSubstr("CPU:0"));
    EXPECT_THAT(error.what(), HasSubstr("decoder"));
  }
  EXPECT_EQ(memory_stats().bytes_in_use, 6_MiB);
  EXPECT_EQ(memory_stats().num_ooms, 1u);
}

TEST_F(Allocate, RefusesSizesThatOverflow) {
  set_limit(8_MiB);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, std::size_t{1} << 47, 8_MiB + 1}) {
    EXPECT_THROW((void)allocate(bytes), OutOfMemory) << bytes;
    EXPECT_EQ(memory_stats().bytes_in_use, 0u);
  }
  deallocate(allocate(8_MiB));
}

TEST_F(Allocate, KeepsGrowthWithinTheLimit) {
  set_limit(64_MiB);
  config::set_memory_growth(cpu(), true);
  {
    const OwnedBlock small(4_KiB);
    EXPECT_LE(memory_stats().bytes_reserved, 2_MiB);
    const OwnedBlock larger(8_MiB);
    std::memset(larger.data(), 1, larger.size());
    EXPECT_LE(memory_stats().bytes_reserved, 12_MiB);
    EXPECT_THROW((void)allocate(64_MiB), OutOfMemory);
    std::vector<OwnedBlock> rest;
    EXPECT_THROW(for (;;) rest.emplace_back(1_MiB), OutOfMemory);
    EXPECT_THAT(rest, SizeIs(55));
    EXPECT_LE(memory_stats().peak_bytes_reserved, 64_MiB);
  }
  EXPECT_EQ(config::get_memory_info("CPU:0").current, 0u);
  EXPECT_GE(trim(), 4_MiB);
  EXPECT_EQ(memory_stats().bytes_reserved, 0u);
}

TEST_F(Allocate, KeepsLogicalDevicesApart) {
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 32_MiB}, {.memory_limit = 16_MiB}});
  std::vector<MemoryAlert> alerts;
  const auto handle = on_memory_alert(0.8, [&](const MemoryAlert& alert) { alerts.push_back(alert); });
  const OwnedBlock first(1_MiB);
  {
    const DeviceScope second("CPU:1");
    const OwnedBlock most(14_MiB);
    ASSERT_THAT(alerts, SizeIs(1));  // Each device has its own share and its own alert.
    EXPECT_EQ(alerts[0].device, "CPU:1");
    EXPECT_EQ(alerts[0].bytes_limit, 16_MiB);
    EXPECT_THAT([] { (void)allocate(4_MiB); }, ThrowsMessage<OutOfMemory>(HasSubstr("CPU:1")));
    EXPECT_EQ(memory_stats("CPU:0").bytes_in_use, 1_MiB);
    EXPECT_EQ(memory_stats("CPU:1").bytes_in_use, 14_MiB);
    const OwnedBlock fine(20_MiB, {.device = "CPU:0"});
    EXPECT_THAT(alerts, SizeIs(1));
    const OwnedBlock nearly(6_MiB, {.device = "cpu:0"});
    ASSERT_THAT(alerts, SizeIs(2));
    EXPECT_EQ(alerts[1].device, "CPU:0");
    EXPECT_GE(alerts[1].bytes_in_use, 26_MiB);
  }
  const OwnedBlock again(14_MiB, {.device = "CPU:1"});  // Use fell below in between.
  EXPECT_THAT(alerts, SizeIs(3));
}

TEST_F(Allocate, ChargesTheBudgetOnEveryDevice) {
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 32_MiB}, {.memory_limit = 32_MiB}});
  const Budget budget("both", 12_MiB);
  const BudgetScope use(budget);
  const OwnedBlock first(8_MiB, {.device = "CPU:0"});
  EXPECT_THAT([] { (void)allocate(8_MiB, {.device = "CPU:1"}); },
              ThrowsMessage<OutOfMemory>(HasSubstr("budget \"both\"")));
  EXPECT_EQ(budget.used(), 8_MiB);
  EXPECT_EQ(memory_stats("CPU:1").bytes_in_use, 0u);
}

TEST_F(Allocate, DefersReleaseUntilASafePoint) {
  config::set_deferred_release(true);
  deallocate(allocate(1_MiB));
  EXPECT_EQ(memory_stats().bytes_in_use, 1_MiB);
  collect_garbage();
  EXPECT_EQ(memory_stats().bytes_in_use, 0u);
}

TEST_F(Allocate, OwnsABlockUntilTheEndOfItsScope) {
  {
    OwnedBlock first(1_MiB, {.tag = "first"});
    OwnedBlock second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): empty, as promised.
    EXPECT_EQ(second.size(), 1_MiB);
    OwnedBlock third(2_MiB);
    third = std::move(second);
    EXPECT_EQ(memory_stats().bytes_in_use, 1_MiB);
    third = OwnedBlock();
    EXPECT_EQ(memory_stats().bytes_in_use, 0u);
    OwnedBlock fourth(1_KiB);
    const Block released = fourth.release();
    OwnedBlock fifth(released);
    fifth.reset();
    EXPECT_EQ(fifth.data(), nullptr);
    EXPECT_EQ(memory_stats().bytes_in_use, 0u);
  }
  EXPECT_EQ(memory_stats().bytes_in_use, 0u);
}

TEST_F(Allocate, LogsABlockThatWasDeallocatedBehindItsOwnersBack) {
  {
    const OwnedBlock owned(1_KiB);
    deallocate(owned.block());
  }
  ASSERT_THAT(logged_, SizeIs(1));
  EXPECT_THAT(logged_[0], HasSubstr("was deallocated before"));
}

TEST_F(Allocate, FeedsStandardContainersOfEachDevice) {
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 32_MiB}, {.memory_limit = 16_MiB}});
  EXPECT_EQ(&memory_resource("CPU:1"), &memory_resource("/device:CPU:1"));
  const std::size_t before = memory_overhead("CPU:1");
  {
    std::pmr::vector<float> values(1_MiB / 4, &memory_resource("CPU:1"));
    EXPECT_EQ(memory_stats("CPU:1").bytes_in_use, 1_MiB);
    EXPECT_EQ(memory_stats("CPU:0").bytes_in_use, 0u);
    EXPECT_GT(memory_overhead("CPU:1"), before);
    EXPECT_THROW(values.resize(16_MiB), PmrOutOfMemory);
    EXPECT_THROW(config::reset_for_testing(), FailedPrecondition);
    EXPECT_THROW(memory_resource("CPU:0").deallocate(values.data(), 1_MiB, 4), InvalidArgument);
  }
  EXPECT_EQ(memory_stats("CPU:1").bytes_in_use, 0u);
}

}  // namespace
}  // namespace plimsoll
