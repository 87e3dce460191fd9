// OpenCL devices as others: limits, logical devices, budgets, alerts, statistics, checks of indices, and what is left
// when one is lost. Skipped where there is no OpenCL device.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/opencl/opencl_testing.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class OpenclDevices : public OpenclFixture {};

constexpr std::int64_t kMiB = 1024 * 1024 / 4;  // In elements.

TEST_F(OpenclDevices, LogicalOnesHaveTheirOwnLimitsAndQueues) {
  limit({32_MiB, 16_MiB});
  ASSERT_THAT(config::list_logical_devices(device_.type), SizeIs(2));
  const Tensor a = ones({8 * kMiB}).to(name(0)), b = a.to(name(1));
  EXPECT_EQ(b.device(), name(1));
  EXPECT_EQ((b + 1).to_vector<float>().back(), 2);
  EXPECT_THROW(static_cast<void>(a + b), InvalidArgument);
  EXPECT_THROW(static_cast<void>(ones({10 * kMiB}).to(name(1))), OutOfMemory);  // Although the other has room.
  EXPECT_EQ((a * 3).to_vector<float>()[5], 3);
  EXPECT_EQ(memory_stats(name(1)).bytes_in_use, 8_MiB);
}

// Parameters on one, the work on the other, the loss on the host: the gradients of one device.
TEST_F(OpenclDevices, GradientsComeBackThroughMoves) {
  limit({32_MiB, 16_MiB});
  const auto slope = [&](const std::string& parameters, const std::string& work, const std::string& loss) {
    const Tensor w = random_normal({5, 4}, {.seed = 1}).to(parameters), x = random_normal({3, 5}, {.seed = 2}).to(work);
    GradientTape tape;
    tape.watch(w);
    const Tensor y = matmul(x, w.to(work)).to(loss);
    const Tensor dw = tape.gradient((y * y).sum(), {w})[0];
    EXPECT_EQ(dw.device(), parameters);
    return dw.to_vector<float>();
  };
  const std::vector<float> one = slope(name(0), name(0), name(0));
  EXPECT_EQ(slope(name(0), name(1), name(0)), one);
  EXPECT_EQ(slope("CPU:0", name(1), name(0)), one);
}

TEST_F(OpenclDevices, GrowthAndFractionMeanWhatTheyMeanOnTheHost) {
  limit({});
  config::set_memory_fraction(device_, 0.25);
  config::set_memory_growth(device_, true);
  const std::size_t quarter = device_.memory_bytes / 4,
                    found = config::list_logical_devices(device_.type)[0].memory_limit;
  EXPECT_LE(found, quarter);
  EXPECT_GT(found, quarter - 1_MiB);
  EXPECT_EQ(memory_stats(name()).bytes_reserved, 0u);
  const Tensor x = ones({kMiB}).to(name());
  EXPECT_EQ(memory_stats(name()).bytes_reserved, 1_MiB);
}

TEST_F(OpenclDevices, HiddenOnesAreNotThere) {
  config::set_visible_devices({}, device_.type);
  EXPECT_THAT(config::list_logical_devices(device_.type), IsEmpty());
  EXPECT_THROW(static_cast<void>(ones({1}).to(name())), NotFound);
  EXPECT_THROW(config::set_visible_devices({device_}), FailedPrecondition);
}

TEST_F(OpenclDevices, TheDefaultDeviceStaysTheProcessor) {
  config::set_visible_devices({device_});  // It alone, beside CPU:0, which always is there.
  EXPECT_EQ(ones({1}).device(), "CPU:0");
  EXPECT_EQ(ones({1}).to(name()).device(), name());
  config::set_visible_devices({device_});
  config::reset_for_testing();
  setenv("PLIMSOLL_VISIBLE_DEVICES", (device_.name + ",CPU:0").c_str(), 1);
  EXPECT_EQ(ones({1}).device(), "CPU:0");
  EXPECT_EQ(ones({1}).to(name()).device(), name());
  unsetenv("PLIMSOLL_VISIBLE_DEVICES");
}

TEST_F(OpenclDevices, BudgetsAlertsAndStatisticsCountThem) {
  limit({16_MiB});
  std::vector<std::string> alerts;
  const MemoryAlertHandle handle =
      on_memory_alert(0.5, [&](const MemoryAlert& alert) { alerts.push_back(alert.device); });
  const Tensor x = ones({2 * kMiB}).to(name());
  EXPECT_EQ(config::get_memory_info(name()).current, 2_MiB);
  Budget budget("work", 5_MiB);
  {
    const BudgetScope scope(budget);
    const Tensor y = x + 1;
    EXPECT_EQ(budget.used(), 2_MiB);
    EXPECT_THROW(static_cast<void>(concat({x, y})), OutOfMemory);
    EXPECT_EQ(budget.used(), 2_MiB);
    EXPECT_EQ(y.to_vector<float>().back(), 2);
  }
  EXPECT_THAT(alerts, IsEmpty());
  const Tensor large = concat({x, x, x});
  EXPECT_THAT(alerts, ElementsAre(name()));
  EXPECT_EQ(config::get_memory_info(name()).peak, 8_MiB);
  EXPECT_EQ(config::get_memory_info("CPU:0").current, 0u);
}

// By the call that reads, in the host's words; nothing waits before, and what follows works.
TEST_F(OpenclDevices, LabelsAndIndicesAreChecked) {
  limit({16_MiB});
  const Tensor x = random_normal({4, 3}, {.seed = 1}), there = x.to(name());
  const std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> operations = {
      [](const Tensor& rows, const Tensor& wrong) { return gather(rows, wrong, 0); },
      [](const Tensor& rows, const Tensor& wrong) { return gather(rows, wrong.cast(i64), 0); },
      [](const Tensor& rows, const Tensor& wrong) { return embedding_lookup(rows, wrong); },
      [](const Tensor& rows, const Tensor& wrong) {
        return scatter(wrong, rows.slice({0, 0}, {2, 3}), {3, 3});
      },
      [](const Tensor& rows, const Tensor& wrong) {
        return scatter_add(rows, wrong, rows.slice({0, 0}, {2, 3}));
      },
      [](const Tensor& rows, const Tensor& wrong) {
        return scatter_update(rows, wrong, rows.slice({0, 0}, {2, 3}));
      },
      [](const Tensor& rows, const Tensor& wrong) {
        return take_along_axis(rows, wrong.reshape({2, 1}), 0);
      },
      [](const Tensor& rows, const Tensor& wrong) {
        return sparse_categorical_cross_entropy(wrong, rows.slice({0, 0}, {2, 3}), {.from_logits = true});
      },
  };
  for (const auto& wrong : {std::vector<std::int32_t>{1, 7}, std::vector<std::int32_t>{-3, 1}})
    for (const auto& operation : operations) {
      const Tensor indices = from_vector(wrong, {2}), moved = indices.to(name());
      const std::string expected = refusal([&] { operation(x, indices); });
      EXPECT_EQ(refusal([&] { operation(there, moved).to_vector<float>(); }), expected);
      EXPECT_EQ(refusal([&] { operation(there, moved).to("CPU:0"); }), expected);
      EXPECT_EQ(gather(there, constant({3, 0}).to(name()), 0).to_vector<float>(),
                gather(x, constant({3, 0}), 0).to_vector<float>());
    }
}

TEST_F(OpenclDevices, IndicesThatAreComputedThereAreNotWaitedFor) {
  limit({16_MiB});
  const Tensor scores = random_normal({8, 5}, {.seed = 1}).to(name());
  const Tensor table = random_normal({5, 6}, {.seed = 2}).to(name());
  const Tensor logits = random_normal({8, 5}, {.seed = 3}).to(name());
  const auto compute = [&] {
    const Tensor best = scores.argmax(-1);
    return embedding_lookup(table, best).sum() +
           sparse_categorical_cross_entropy(best, logits, {.from_logits = true}).sum();
  };
  const float expected = compute().item<float>();
  backend().reset_counters();
  const Tensor sum = compute();
  EXPECT_EQ(backend().counters().waits, 0u);
  EXPECT_EQ(backend().counters().bytes_out, 0u);
  EXPECT_EQ(sum.item<float>(), expected);
  EXPECT_EQ(backend().counters().waits, 1u);
  EXPECT_EQ(backend().counters().bytes_out, 16u + 4);  // What was refused: nothing. And the sum.
  EXPECT_EQ(backend().counters().fallbacks, 0u);
}

// Neither variables nor the optimizer's state.
TEST_F(OpenclDevices, ARefusedIndexChangesNothing) {
  limit({16_MiB});
  const DeviceScope on(name());
  const Variable w(random_normal({4, 3}, {.seed = 1}).to(name()), {.name = "w"}), sum(zeros({2, 3}), {.name = "sum"});
  const Optimizer optimizer{AdamOptions{.learning_rate = 0.1f}};
  const auto step = [&](const Tensor& at) {
    GradientTape tape;
    const Tensor rows = gather(w, at), loss = square(rows).sum();
    const Tensor gradient = tape.gradient(loss, w);
    const std::vector<Variable> parameters = {w};
    const std::vector<Tensor> gradients = {gradient};
    optimizer.apply(parameters, gradients);
  };
  const Tensor good = constant({0, 3}).to(name()), wrong = constant({0, 4}).to(name());
  step(good);
  const auto before = w.value().to_vector<float>();
  EXPECT_THROW(step(wrong), InvalidArgument);
  EXPECT_EQ(optimizer.step(), 1);
  EXPECT_EQ(w.value().to_vector<float>(), before);
  EXPECT_THROW(sum.assign(gather(w.value(), wrong)), InvalidArgument);
  EXPECT_THROW(sum.assign_add(gather(w.value(), wrong)), InvalidArgument);
  EXPECT_EQ(sum.value().to_vector<float>(), std::vector<float>(6, 0.f));
  step(good);
  EXPECT_NE(w.value().to_vector<float>(), before);
}

// As a forked child sees it: its threads are gone.
TEST_F(OpenclDevices, ALostOneThrowsFromEveryCallThatReads) {
  limit({16_MiB});
  const Tensor x = ones({100}).to(name());
  const auto throws = [](const auto& work) {
    try {
      work();
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);               // Nothing hangs.
    const Tensor y = x + 1;  // Dropped.
    for (int i = 0; i < 2; ++i)
      if (!throws([&] { static_cast<void>(y.to_vector<float>()); }) ||
          !throws([&] { static_cast<void>(y.to("CPU:0")); }))
        _exit(1);
    _exit(ones({2}).to_vector<float>()[1] == 1 ? 0 : 2);  // The host works.
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ((x + 1).to_vector<float>()[99], 2);
}

}  // namespace
}  // namespace plimsoll
