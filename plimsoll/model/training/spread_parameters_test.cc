#include "plimsoll/model/training/spread_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "plimsoll/base/error.h"
#include "plimsoll/distributed/distributed_testing.h"
#include "plimsoll/distributed/unavailable.h"
#include "plimsoll/model/training/budget_models_testing.h"
#include "plimsoll/model/training/callbacks.h"

namespace plimsoll {
namespace {

using distributed::Job;
using distributed::run_ranks;
using ::testing::HasSubstr;

std::vector<std::vector<float>> weights_of(const Model& model) {
  std::vector<std::vector<float>> weights;
  for (const Variable& variable : model.weights()) weights.push_back(variable.value().to_vector<float>());
  return weights;
}

std::size_t resident_bytes(const Model& model) {
  std::size_t bytes = 0;
  for (const Variable& variable : model.weights())
    if (variable.share_bytes()->is_resident()) bytes += variable.nbytes();
  return bytes;
}

// Within a budget that is too small for whole parameters.
TEST(SpreadParameters, FitABudgetThatWholeOnesDoNot) {
  const BudgetModel which = budget_mlp(6, 64, 16);
  const Model model = which.make();
  ForecastOptions options{.batch_size = 16, .ranks = 4, .slices = 4, .shard_optimizer = true};
  const std::size_t whole = model.forecast(options).smallest_budget;
  options.shard_parameters = true;
  const std::size_t least = model.forecast(options).smallest_budget;
  EXPECT_LT(least + resident_bytes(model) / 3, whole);
  std::vector<std::vector<std::vector<float>>> weights(4), expected(4);
  std::atomic<int> ranks_that_need_most = 0;
  // The last batch is smaller, and has a plan of its own.
  const Dataset data =
      Dataset::from_tensors(random_normal({43, 64}, {.seed = 1}), random_normal({43, 1}, {.seed = 2})).batch(16);
  run_ranks(4, [&](Job& job) {
    const auto fit = [&](bool spreads, std::optional<std::size_t> budget) {
      Model own = which.make();
      const History history = own.fit(
          data, {.epochs = 2,
                 .verbose = 0,
                 .budget = budget,
                 .distributed = {.job = &job, .slices = 4, .shard_optimizer = true, .shard_parameters = spreads}});
      EXPECT_LE(history.peak_bytes(), budget.value_or(SIZE_MAX));
      return weights_of(own);
    };
    std::string text;
    try {
      fit(false, least);
    } catch (const OutOfMemory& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("spread the parameters over the ranks (shard_parameters), which needs 20"));
    if (text.find("needs " + std::to_string(least) + " bytes") != std::string::npos) ++ranks_that_need_most;
    EXPECT_THROW(fit(true, least - 64), OutOfMemory);
    weights[static_cast<std::size_t>(job.rank())] = fit(true, least);
    expected[static_cast<std::size_t>(job.rank())] = fit(false, {});
  });
  for (const auto& each : weights) EXPECT_EQ(each, expected[0]);
  EXPECT_GT(ranks_that_need_most, 0);
}

// Plans that recompute, too, find all that they read in the window.
TEST(SpreadParameters, RunInTheSmallestBudgetOfOtherModels) {
  for (const BudgetModel& which :
       {budget_resnet(1, 4, 8, 16), budget_transformer(1, 16, 6, 16), budget_lstm(16, 6, 16)}) {
    const MemoryForecast forecast =
        which.make().forecast({.batch_size = 16, .ranks = 2, .slices = 2, .shard_parameters = true});
    EXPECT_LT(forecast.smallest_budget, forecast.peak_bytes) << which.name;
    run_ranks(2, [&](Job& job) {
      const auto fit = [&](std::optional<std::size_t> budget, bool spreads) {
        Model own = which.make();
        const History history = own.fit(
            which.batches(2),
            {.epochs = 2, .verbose = 0, .budget = budget, .distributed = {.job = &job, .shard_parameters = spreads}});
        EXPECT_LE(history.peak_bytes(), budget.value_or(SIZE_MAX)) << which.name;
        return weights_of(own);
      };
      EXPECT_EQ(fit(forecast.smallest_budget, true), fit({}, false)) << which.name;
    });
  }
}

// A callback in the middle of an epoch sees, and may change, the weights of its step.
TEST(SpreadParameters, AreReadAndAssignedByCallbacks) {
  const BudgetModel which = budget_mlp(3, 16, 16);
  const auto train = [&](bool spreads) {
    std::vector<std::vector<float>> seen;
    run_ranks(3, [&](Job& job) {
      Model model = which.make();
      const Callback read = callbacks::OnBatchEnd([&](Model& self, std::size_t batch, const Logs&) {
        if (batch == 0) {
          EXPECT_EQ(resident_bytes(self) == 0, spreads);
        }
        if (job.rank() == 0 && batch < 2) seen.push_back(self.weights()[2].value().to_vector<float>());
        if (batch == 2) self.weights()[0].assign(ones(self.weights()[0].shape()));
      });
      model.fit(which.batches(4), {.epochs = 2,
                                   .verbose = 0,
                                   .callbacks = {read},
                                   .distributed = {.job = &job, .slices = 6, .shard_parameters = spreads}});
      if (job.rank() == 2)
        for (const std::vector<float>& values : weights_of(model)) seen.push_back(values);
    });
    return seen;
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(SpreadParameters, AreWholeAfterAnErrorInOneRank) {
  const BudgetModel which = budget_mlp(2, 8, 16);
  run_ranks(3, [&](Job& job) {
    Model model = which.make();
    int loaded = 0;
    const Dataset data = which.batches(4).map([&](const Example& batch) {
      if (++loaded == 3 && job.rank() == 1) throw Corruption("file x: damaged");
      return batch;
    });
    const distributed::TrainingOptions together{.job = &job, .slices = 4, .shard_parameters = true};
    EXPECT_THROW(model.fit(data, {.verbose = 0, .distributed = together}), Corruption);
    Model same = which.make();
    same.fit(which.batches(2), {.verbose = 0, .distributed = {.job = &job, .slices = 4}});
    EXPECT_EQ(weights_of(model), weights_of(same));
    loaded = 10;
    model.fit(data, {.verbose = 0, .distributed = together});
    EXPECT_EQ(model.optimizer().step(), 6);
  });
}

TEST(SpreadParameters, SayThatTheyAreLostWhenARankIs) {
  const BudgetModel which = budget_mlp(2, 8, 16);
  std::atomic<int> gave_up = 0;
  run_ranks(
      2,
      [&](Job& job) {
        Model model = which.make();
        const Callback wait = callbacks::OnBatchEnd([&](Model&, std::size_t, const Logs&) {
          for (int i = 0; job.rank() == 1 && i < 3000 && gave_up == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
        EXPECT_THROW(
            model.fit(which.batches(3),
                      {.verbose = 0, .callbacks = {wait}, .distributed = {.job = &job, .shard_parameters = true}}),
            Unavailable);
        ++gave_up;
        std::string text;
        try {
          weights_of(model);
        } catch (const FailedPrecondition& error) {
          text = error.what();
        }
        EXPECT_THAT(text, HasSubstr("parts of it were in other processes, and the job is over; load a checkpoint"));
      },
      std::chrono::milliseconds(300));
}

TEST(SpreadParameters, AreRefusedWithConstraintsAndWithoutAPlan) {
  run_ranks(2, [&](Job& job) {
    const distributed::TrainingOptions together{.job = &job, .shard_parameters = true};
    Sequential model({layers::Dense(3, {.input_shape = {4}, .kernel_constraint = "non_neg"}), layers::Dense(1)});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    EXPECT_THROW(model.fit(zeros({8, 4}), zeros({8, 1}), {.verbose = 0, .distributed = together}), Unsupported);
    Sequential eager({layers::Dense(3, {.input_shape = {4}}), layers::Dense(1)});
    eager.compile({.optimizer = "sgd", .loss = "mse", .run_eagerly = true});
    EXPECT_THROW(eager.fit(zeros({8, 4}), zeros({8, 1}), {.verbose = 0, .distributed = together}), Unsupported);
  });
}

// A slice fetches (n-1)/n of the parameters for its forward pass, and those that its backward pass reads once more.
TEST(SpreadParameters, SendWhatIsDerived) {
  const BudgetModel which = budget_mlp(2, 64, 16);
  std::uint64_t parameters = 0;
  for (const Variable& variable : which.make().weights()) parameters += variable.nbytes();
  for (const int ranks : {2, 4}) {
    std::atomic<std::uint64_t> sent = 0;
    run_ranks(ranks, [&](Job& job) {
      Model model = which.make();
      const auto fit = [&](std::size_t batches) {
        const std::uint64_t before = job.traffic().sent_bytes;
        model.fit(which.batches(batches),
                  {.verbose = 0, .distributed = {.job = &job, .slices = 4, .shard_parameters = true}});
        return job.traffic().sent_bytes - before;
      };
      const std::uint64_t few = fit(1);
      sent += fit(5) - few;
    });
    // Four steps of four slices; the gradients of each rank's sum.
    const auto n = static_cast<std::uint64_t>(ranks);
    const std::uint64_t slices = 4, steps = 4, reduced = (n - 1) * parameters;
    EXPECT_GE(sent, steps * (reduced + slices * (n - 1) * parameters / n));
    EXPECT_LE(sent, steps * (reduced + 2 * slices * (n - 1) * parameters / n + 4000 * n));
  }
}

}  // namespace
}  // namespace plimsoll
