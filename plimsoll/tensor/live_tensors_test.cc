#include "plimsoll/tensor/live_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "plimsoll/base/clock.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/tensor_testing.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

std::size_t sum_of(const std::vector<LiveTensor>& rows) {
  std::size_t bytes = 0;
  for (const LiveTensor& row : rows) bytes += row.bytes;
  return bytes;
}

// The rows whose operation it is.
std::vector<LiveTensor> rows_of(std::string_view op) {
  std::vector<LiveTensor> rows = live_tensors();
  EXPECT_EQ(sum_of(rows), memory().num_bytes);
  std::erase_if(rows, [&](const LiveTensor& row) { return row.op != op; });
  return rows;
}

TEST(LiveTensors, SaysWhatTheLedgerKnows) {
  const NameScope scope("encoder");
  ThreadContext::current().step = 7;
  const Tensor x = make_tensor({.op = "embed", .category = Category::kParameters}, {2, 3}, i16, current_device());
  ThreadContext::current().step = 0;
  set_name(x, "table");
  const auto rows = rows_of("embed");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].id, x.id());
  EXPECT_EQ(rows[0].name, "table");
  EXPECT_EQ(rows[0].scope, "encoder");
  EXPECT_EQ(rows[0].shape, Shape({2, 3}));
  EXPECT_EQ(rows[0].dtype, i16);
  EXPECT_EQ(rows[0].bytes, 12u);
  EXPECT_EQ(rows[0].category, "parameters");
  EXPECT_EQ(rows[0].step, 7u);
  EXPECT_TRUE(rows[0].site.starts_with("tensor/live_tensors_test.cc:")) << rows[0].site;
}

TEST(LiveTensors, CountsABufferOnceHoweverManyViewsItHas) {
  const Tensor x = some({10}, "owner");
  const Tensor view = make_view(x, "view", {5}, 0), second = make_view(x, "view", {5}, 20);
  EXPECT_EQ(rows_of("owner").at(0).bytes, 40u);
  const auto views = rows_of("view");
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[0].bytes + views[1].bytes, 0u);
}

TEST(LiveTensors, LetsOneViewCarryTheBytesWhenTheOwnerIsGone) {
  const Tensor x = some({10}, "owner");
  const Tensor view = make_view(x, "view", {5}, 0), second = make_view(x, "view", {5}, 20);
  x.dispose();
  EXPECT_TRUE(rows_of("owner").empty());
  const auto views = rows_of("view");
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[0].bytes + views[1].bytes, 40u);
}

TEST(LiveTensors, HasARowForABufferWithoutTensors) {
  Tensor x = some({3, 2}, "saved");
  const StorageRef held = StorageRef::share(x.record()->storage);
  const NameScope elsewhere("elsewhere");
  const Tensor deep = some({1, 1, 1, 1, 1}, "deep");
  const StorageRef held_deep = StorageRef::share(deep.record()->storage);
  deep.dispose();
  x = Tensor();
  const auto rows = rows_of("saved");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].id, 0u);
  EXPECT_EQ(rows[0].bytes, 24u);
  EXPECT_EQ(rows[0].shape, Shape({3, 2}));
  EXPECT_EQ(rows[0].dtype, f32);
  EXPECT_EQ(rows[0].category, "activations");
  EXPECT_FALSE(rows_of("deep").at(0).shape.is_set()) << "A label keeps four sizes.";
}

TEST(LiveTensors, CountsNoBytesForMemoryThatIsNotOursOrNotTakenYet) {
  float theirs[4] = {};
  const Tensor wrapped =
      make_tensor_on(Storage::wrap(current_device(), theirs, sizeof theirs, {}), 0, {4}, f32, {.op = "wrapped"});
  const Tensor lazy = make_tensor_on(Storage::take_lazily(current_device(), 16, {}, {}), 0, {4}, f32, {.op = "lazy"});
  const Tensor empty = some({0}, "empty");
  EXPECT_EQ(rows_of("wrapped").at(0).bytes, 0u);
  EXPECT_EQ(rows_of("lazy").at(0).bytes, 0u);
  EXPECT_EQ(rows_of("empty").at(0).bytes, 0u);
  (void)lazy.view();
  EXPECT_EQ(rows_of("lazy").at(0).bytes, 16u);
}

TEST(LiveTensors, HasARowForWrappedMemoryWithoutTensors) {
  float theirs[4] = {};
  const StorageRef held = Storage::wrap(current_device(), theirs, sizeof theirs, {});
  EXPECT_EQ(rows_of("wrap").at(0).bytes, 0u);
}

TEST(LiveTensors, ForgetsDisposedTensors) {
  const Tensor x = some({4}, "short-lived");
  EXPECT_EQ(rows_of("short-lived").size(), 1u);
  x.dispose();
  EXPECT_TRUE(rows_of("short-lived").empty());
}

TEST(LiveTensors, AddsUpWhileOtherThreadsMakeTensors) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      std::vector<Tensor> held;
      while (!stop)
        tidy([&] {
          held.push_back(keep(some({8}, "busy")));
          set_name(held.back(), "name");
          const Tensor view = make_view(held.back(), "busy view", {4}, 0);
          if (held.size() > 100) held.clear();
        });
    });
  for (int i = 0; i < 200; ++i)
    for (const LiveTensor& row : live_tensors())
      if (row.op == "busy") {
        ASSERT_EQ(row.bytes, 32u);
      }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum_of(live_tensors()), memory().num_bytes);
}

TEST(LiveTensors, TakesTimeInProportionToTheirNumber) {
  const auto ns_per_row = [](std::size_t count) {
    std::vector<Tensor> held;
    held.reserve(count);
    while (held.size() < count) held.push_back(some({1}, "one of many"));
    std::int64_t best = INT64_MAX;
    for (int turn = 0; turn < 3; ++turn) {
      const std::int64_t start = thread_cpu_ns();  // Other work on the machine does not count.
      const std::vector<LiveTensor> rows = live_tensors();
      best = std::min(best, thread_cpu_ns() - start);
      EXPECT_EQ(sum_of(rows), memory().num_bytes);
    }
    return static_cast<double>(best) / static_cast<double>(count);
  };
  const double few = ns_per_row(kSanitized ? 2'000 : 25'000);  // First: a walk passes over all that were ever made.
  const double many = ns_per_row(kSanitized ? 60'000 : 750'000);
  RecordProperty("ns_per_row_of_many", std::to_string(many));
  EXPECT_LT(many, 8 * few) << many << " ns for each of many, " << few << " ns for each of 30 times fewer";
}

}  // namespace
}  // namespace plimsoll
