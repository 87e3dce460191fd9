#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

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

// What a fit leaves: weights, bit for bit, and the history.
struct Trained {
  std::vector<std::vector<float>> weights;
  std::vector<float> losses, values;
  std::uint64_t sent_bytes = 0;
  bool operator==(const Trained& other) const {
    return weights == other.weights && losses == other.losses && values == other.values;
  }
};

Trained result_of(const Model& model, const History& history) {
  Trained result;
  for (const Variable& variable : model.weights()) result.weights.push_back(variable.value().to_vector<float>());
  result.losses = history["loss"];
  for (const std::string& name : history.names())
    for (const float value : history[name]) result.values.push_back(value);
  return result;
}

struct Case {
  std::size_t slices = 8;
  bool shard = false, shard_parameters = false;
  int epochs = 2;
  std::size_t batches = 3;
};

// Of the first rank; the others have the same, or the test fails.
Trained train(const BudgetModel& which, int ranks, const Case& how = {}) {
  std::vector<Trained> results(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Job& job) {
    Model model = which.make();
    const History history =
        model.fit(which.batches(how.batches), {.epochs = how.epochs,
                                               .validation_data = which.batches(2),
                                               .verbose = 0,
                                               .distributed = {.job = &job,
                                                               .slices = how.slices,
                                                               .shard_optimizer = how.shard,
                                                               .shard_parameters = how.shard_parameters}});
    Trained& result = results[static_cast<std::size_t>(job.rank())];
    result = result_of(model, history);
    result.sent_bytes = job.traffic().sent_bytes;
  });
  for (const Trained& result : results) EXPECT_TRUE(result == results[0]) << which.name << ", ranks differ";
  return results[0];
}

void expect_same_bits(const BudgetModel& which, const Case& how = {}) {
  const Trained alone = train(which, 1, how);
  EXPECT_LT(alone.losses.back(), 1e6);
  for (const int ranks : {2, 3, 4, 7}) EXPECT_TRUE(train(which, ranks, how) == alone) << which.name << ", " << ranks;
  Case sharded = how;
  sharded.shard = true;
  for (const int ranks : {3, 7}) EXPECT_TRUE(train(which, ranks, sharded) == alone) << "sharded, " << ranks;
  sharded = how;
  sharded.shard_parameters = true;
  for (const int ranks : {2, 4}) EXPECT_TRUE(train(which, ranks, sharded) == alone) << "spread, " << ranks;
}

TEST(DistributedFit, GivesTheSameBitsForEveryNumberOfRanks) { expect_same_bits(budget_mlp(3, 12, 16)); }

TEST(DistributedFit, GivesTheSameBitsWithBatchNorm) { expect_same_bits(budget_resnet(1, 2, 8, 16)); }

TEST(DistributedFit, GivesTheSameBitsForSequences) { expect_same_bits(budget_lstm(6, 5, 16)); }

TEST(DistributedFit, GivesTheSameBitsForAttention) { expect_same_bits(budget_transformer(1, 8, 6, 16)); }

BudgetModel lenet() {
  const auto make = [] {
    Sequential model({layers::Conv2D(4, {3, 3}, {.activation = "relu", .input_shape = {10, 10, 1}, .seed = 1}),
                      layers::MaxPooling2D({2, 2}), layers::Conv2D(6, {3, 3}, {.activation = "relu", .seed = 2}),
                      layers::Flatten(), layers::Dense(10, {.activation = "relu", .seed = 3}),
                      layers::Dense(4, {.activation = "softmax", .seed = 4})});
    model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
    return model;
  };
  return {"LeNet", make, {10, 10, 1}, Shape({}), 16, 4};
}

TEST(DistributedFit, GivesTheSameBitsForConvolutions) { expect_same_bits(lenet()); }

TEST(DistributedFit, TakesAnyNumberOfSlicesAndUnevenBatches) {
  const auto odd = [](std::size_t batch) { return budget_mlp(2, 8, batch); };
  for (const std::size_t slices : {7, 12, 32}) {
    const Trained alone = train(odd(13), 1, {.slices = slices});
    for (const bool spread : {false, true})
      for (const int ranks : {3, 7})
        EXPECT_TRUE(train(odd(13), ranks, {.slices = slices, .shard_parameters = spread}) == alone) << slices;
  }
  const Trained few = train(odd(3), 1, {.slices = 8});  // Examples: fewer than ranks.
  EXPECT_TRUE(train(odd(3), 4, {.slices = 8}) == few);
  EXPECT_TRUE(train(odd(3), 4, {.slices = 8, .shard_parameters = true}) == few);
}

// Unseeded weights, dropout and order: the first rank's are everybody's.
TEST(DistributedFit, RanksAgreeOnWhatIsRandom) {
  std::vector<Trained> results(3);
  run_ranks(3, [&](Job& job) {
    Sequential model({layers::Dense(8, {.input_shape = {4}}), layers::Dropout(0.5), layers::Dense(1)});
    model.compile({.optimizer = "adam", .loss = "mse"});
    const Tensor x = random_normal({50, 4}, {.seed = 1}), y = random_normal({50, 1}, {.seed = 2});
    const History history =
        model.fit(x, y, {.epochs = 3, .batch_size = 16, .verbose = 0, .distributed = {.job = &job, .slices = 6}});
    results[static_cast<std::size_t>(job.rank())] = result_of(model, history);
  });
  EXPECT_TRUE(results[1] == results[0]);
  EXPECT_TRUE(results[2] == results[0]);
}

TEST(DistributedFit, LearnsWhatOneProcessLearns) {
  // Without dropout both are the same function of the data, up to the order of sums.
  const auto make = [] {
    Sequential model(
        {layers::Dense(6, {.activation = "tanh", .input_shape = {4}, .seed = 1}), layers::Dense(1, {.seed = 2})});
    model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
    return model;
  };
  const Tensor x = random_normal({60, 4}, {.seed = 1}), y = random_normal({60, 1}, {.seed = 2});
  Model alone = make();
  const History expected = alone.fit(x, y, {.epochs = 3, .batch_size = 16, .verbose = 0, .shuffle = false});
  run_ranks(2, [&](Job& job) {
    Model model = make();
    const History history = model.fit(x, y,
                                      {.epochs = 3,
                                       .batch_size = 16,
                                       .verbose = 0,
                                       .shuffle = false,
                                       .distributed = {.job = &job, .slices = 4, .shard_optimizer = true}});
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(history["loss"][i], expected["loss"][i], 1e-5);
      EXPECT_NEAR(history["mae"][i], expected["mae"][i], 1e-5);
    }
  });
}

TEST(DistributedFit, ClipsByNormsOfTheWhole) {
  const auto clipped = [](double CompileOptions::*which) {
    BudgetModel result = budget_mlp(2, 8, 16);
    result.make = [=] {
      CompileOptions options{.optimizer = optimizers::SGD({.learning_rate = 0.1}), .loss = "mse"};
      options.*which = 0.05;
      Sequential model({layers::Dense(8, {.input_shape = {8}, .seed = 1}), layers::Dense(1, {.seed = 2})});
      model.compile(options);
      return model;
    };
    return result;
  };
  expect_same_bits(clipped(&CompileOptions::clip_norm), {.epochs = 1});
  expect_same_bits(clipped(&CompileOptions::global_clip_norm), {.epochs = 1});
  expect_same_bits(clipped(&CompileOptions::clip_value), {.epochs = 1});
}

TEST(DistributedFit, ShardsTheOptimizersState) {
  const BudgetModel which = budget_mlp(2, 64, 16);
  std::size_t all = 0;
  run_ranks(1, [&](Job& job) {
    Model model = which.make();
    model.fit(which.batches(1), {.verbose = 0, .distributed = {.job = &job, .slices = 4}});
    all = model.optimizer().state_bytes();
  });
  run_ranks(4, [&](Job& job) {
    Model model = which.make();
    model.fit(which.batches(1), {.verbose = 0, .distributed = {.job = &job, .slices = 4, .shard_optimizer = true}});
    EXPECT_LT(model.optimizer().state_bytes(), all / 4 + 1024);
    EXPECT_THROW(model.fit(which.batches(1), {.verbose = 0}), FailedPrecondition);  // Without the job.
  });
}

// The optimizer's state comes together for files: the same bytes as those of one process.
TEST(DistributedFit, ShardedStateIsSavedAsThatOfOneProcess) {
  const BudgetModel which = budget_mlp(2, 20, 16);
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "sharded_state";
  const auto file_of = [&](int ranks, bool shard) {
    const std::string path = (folder / std::to_string(ranks) / "weights").string();
    run_ranks(ranks, [&](Job& job) {
      Model model = which.make();
      model.fit(which.batches(2), {.verbose = 0,
                                   .callbacks = {callbacks::ModelCheckpoint(path, {.save_weights_only = true})},
                                   .distributed = {.job = &job, .slices = 4, .shard_optimizer = shard}});
    });
    std::ifstream file(path + ".data-00000-of-00001", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string alone = file_of(1, false);
  EXPECT_GT(alone.size(), 3u * 20 * 20 * 4);  // Weights and both slots.
  EXPECT_EQ(file_of(2, true), alone);
  EXPECT_EQ(file_of(3, true), alone);
  EXPECT_EQ(file_of(4, false), alone);
  // Any number of ranks goes on from it.
  run_ranks(2, [&](Job& job) {
    Model model = which.make();
    model.load_weights((folder / "3" / "weights").string());
    EXPECT_EQ(model.optimizer().step(), 2);
    model.fit(which.batches(1), {.verbose = 0, .distributed = {.job = &job, .slices = 4, .shard_optimizer = true}});
    EXPECT_EQ(model.optimizer().step(), 3);
  });
  std::filesystem::remove_all(folder);
}

// Rows that are skipped and batches that are cut give the same.
TEST(DistributedFit, RanksLoadTheirOwnRows) {
  const Tensor x = random_normal({50, 4}, {.seed = 1}), y = random_normal({50, 1}, {.seed = 2});
  for (const std::size_t buffer : {1, 7, 50}) {
    std::vector<std::vector<float>> found;
    for (const bool whole : {false, true})
      for (const int ranks : {1, 3}) {
        std::vector<float> losses;
        run_ranks(ranks, [&](Job& job) {
          Sequential model({layers::Dense(1, {.input_shape = {4}, .seed = 1})});
          model.compile({.optimizer = "sgd", .loss = "mse"});
          Dataset data = Dataset::from_tensors(x, y).shuffle(buffer, {.seed = 3}).batch(16);
          if (whole) data = data.map([](const Example& batch) { return batch; });
          const History history =
              model.fit(data.prefetch(2), {.epochs = 2, .verbose = 0, .distributed = {.job = &job, .slices = 6}});
          if (job.rank() == 0) losses = history["loss"];
        });
        found.push_back(losses);
      }
    for (const std::vector<float>& losses : found) EXPECT_EQ(losses, found[0]) << buffer;
  }
}

TEST(DistributedFit, TakesWhatIsForecastToTheByte) {
  for (const BudgetModel& which : {budget_mlp(3, 32, 32), budget_resnet(1, 4, 8, 32), budget_transformer(1, 8, 6, 32)})
    for (const auto& [shard, spread] : {std::pair(false, false), std::pair(true, false), std::pair(false, true)})
      for (const int ranks : {1, 2, 4}) {
        if (ranks == 1 && (shard || spread)) continue;
        const Model model = which.make();
        const MemoryForecast forecast = model.forecast(
            {.batch_size = 32, .ranks = ranks, .slices = 8, .shard_optimizer = shard, .shard_parameters = spread});
        const distributed::TrainingOptions how{.slices = 8, .shard_optimizer = shard, .shard_parameters = spread};
        std::atomic<std::size_t> most = 0;
        run_ranks(ranks, [&](Job& job) {
          Model own = which.make();
          distributed::TrainingOptions together = how;
          together.job = &job;
          const History history = own.fit(which.batches(3), {.epochs = 2, .verbose = 0, .distributed = together});
          for (std::size_t seen = most;
               seen < history.peak_bytes() && !most.compare_exchange_weak(seen, history.peak_bytes());) {
          }
        });
        EXPECT_EQ(most.load(), forecast.peak_bytes)
            << which.name << ", " << ranks << " ranks, sharded " << shard << ", spread " << spread;
      }
}

TEST(DistributedFit, RunsAtTheSmallestBudgetAndIsRefusedBelowByAll) {
  const BudgetModel which = budget_mlp(6, 32, 64);
  const MemoryForecast forecast =
      which.make().forecast({.batch_size = 64, .ranks = 2, .slices = 4, .shard_optimizer = true});
  EXPECT_LT(forecast.smallest_budget, forecast.peak_bytes);
  run_ranks(2, [&](Job& job) {
    const auto fit = [&](std::size_t budget) {
      Model model = which.make();
      return model.fit(
          which.batches(2),
          {.verbose = 0, .budget = budget, .distributed = {.job = &job, .slices = 4, .shard_optimizer = true}});
    };
    EXPECT_LE(fit(forecast.smallest_budget).peak_bytes(), forecast.smallest_budget);
    EXPECT_THROW(fit(forecast.smallest_budget - 4096), OutOfMemory);
    EXPECT_LE(fit(forecast.peak_bytes).peak_bytes(), forecast.peak_bytes);
  });
}

// A model that has no room in one process has it in four with as much each.
TEST(DistributedFit, FourRanksTrainWhatOneCannot) {
  const BudgetModel which = budget_mlp(4, 96, 64);
  const Model model = which.make();
  const std::size_t alone = model.forecast({.batch_size = 64}).smallest_budget;
  const std::size_t four =
      model.forecast({.batch_size = 64, .ranks = 4, .slices = 4, .shard_optimizer = true}).smallest_budget;
  EXPECT_LT(four, alone);
  EXPECT_THROW(which.make().fit(which.batches(1), {.verbose = 0, .budget = four}), OutOfMemory);
  run_ranks(4, [&](Job& job) {
    Model own = which.make();
    own.fit(which.batches(2),
            {.verbose = 0, .budget = four, .distributed = {.job = &job, .slices = 4, .shard_optimizer = true}});
  });
}

TEST(DistributedFit, SendsWhatIsDerived) {
  const BudgetModel which = budget_mlp(2, 64, 16);
  std::uint64_t parameters = 0;
  for (const Variable& variable : which.make().weights()) parameters += variable.nbytes();
  for (const int ranks : {2, 4}) {
    std::atomic<std::uint64_t> sent = 0;
    run_ranks(ranks, [&](Job& job) {
      Model model = which.make();
      const auto fit = [&] {
        const std::uint64_t before = job.traffic().sent_bytes;
        model.fit(which.batches(4), {.verbose = 0, .distributed = {.job = &job, .slices = 4}});
        return job.traffic().sent_bytes - before;
      };
      fit();
      sent += fit();
    });
    // Four steps, the weights at the beginning, and a little to agree.
    const auto n = static_cast<std::uint64_t>(ranks);
    const std::uint64_t derived = 4 * 2 * (n - 1) * parameters + (n - 1) * parameters;
    EXPECT_GE(sent, derived);
    EXPECT_LE(sent, derived + 12000 * n);
  }
}

TEST(DistributedFit, OnlyTheFirstRankShowsProgressWithTheMemoryOfAll) {
  const BudgetModel which = budget_mlp(2, 64, 16);
  testing::internal::CaptureStdout();
  run_ranks(3, [&](Job& job) {
    Model model = which.make();
    model.fit(which.batches(2), {.epochs = 2, .verbose = 2, .distributed = {.job = &job, .slices = 6}});
  });
  const std::string shown = testing::internal::GetCapturedStdout();
  const auto count = [&](std::string_view words) {
    std::size_t found = 0;
    for (std::size_t at = shown.find(words); at != std::string::npos; at = shown.find(words, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("Epoch "), 2u) << shown;
  EXPECT_EQ(count(", 3 ranks "), 2u) << shown;
}

// From the second step on gradients leave while the backward pass still computes others.
TEST(DistributedFit, SendsGradientsWhileItComputesOthers) {
  for (const BudgetModel& which : {budget_mlp(8, 32, 16), budget_transformer(2, 16, 6, 16), budget_lstm(8, 5, 16)})
    for (const std::size_t slices : {2, 6}) {
      std::atomic<std::uint64_t> early = 0, reduced = 0;
      run_ranks(2, [&](Job& job) {
        Model model = which.make();
        std::uint64_t parameters = 0;
        for (const Variable& variable : model.weights()) parameters += variable.nbytes();
        model.fit(which.batches(5), {.verbose = 0, .distributed = {.job = &job, .slices = slices}});
        early += job.traffic().early_bytes;
        reduced += 2 * 4 * parameters;  // At most: in four steps, two pieces of each rank.
      });
      // How much depends on who is ahead: that one waits after its first group.
      EXPECT_GT(early, 0u) << which.name << ", " << slices;
      EXPECT_LE(early, reduced) << which.name << ", " << slices;
    }
}

// What ends a rank in the middle of its slice, when others have sent some of their sums.
TEST(DistributedFit, AnErrorAmongGradientsThatAreSentLeavesNothingBehind) {
  const Tensor x = random_normal({48, 10, 10, 1}, {.seed = 1});
  std::vector<std::int32_t> labels(48, 1);
  labels[16 + 15] = 77;  // Of the second batch, the last row: the last rank's.
  const Tensor bad = from_vector(labels), good = zeros({48}, i32);
  run_ranks(3, [&](Job& job) {
    Model model = lenet().make();
    const distributed::TrainingOptions together{.job = &job, .slices = 6};
    std::string text;
    try {
      model.fit(Dataset::from_tensors(x, bad).batch(16), {.verbose = 0, .distributed = together});
    } catch (const InvalidArgument& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("77"));
    if (job.rank() != 2) {
      EXPECT_THAT(text, HasSubstr("rank 2 (host "));
    }
    EXPECT_EQ(model.optimizer().step(), 1);
    model.fit(Dataset::from_tensors(x, good).batch(16), {.verbose = 0, .distributed = together});
    EXPECT_EQ(model.optimizer().step(), 4);
  });
}

TEST(DistributedFit, AnErrorInOneRankIsThrownInAllAndNothingHasChanged) {
  const BudgetModel which = budget_mlp(2, 8, 16);
  run_ranks(3, [&](Job& job) {
    Model model = which.make();
    int loaded = 0;
    const Dataset data = which.batches(3).map([&](const Example& batch) {
      if (++loaded == 2 && job.rank() == 1) throw Corruption("file x: damaged");
      return batch;
    });
    std::string text;
    try {
      model.fit(data, {.verbose = 0, .distributed = {.job = &job, .slices = 4}});
    } catch (const Corruption& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("file x: damaged"));
    if (job.rank() != 1) {
      EXPECT_THAT(text, HasSubstr("rank 1 (host "));
    }
    EXPECT_EQ(model.optimizer().step(), 1);
    loaded = 10;
    model.fit(data, {.verbose = 0, .distributed = {.job = &job, .slices = 4}});  // And it can go on.
    EXPECT_EQ(model.optimizer().step(), 4);
  });
}

TEST(DistributedFit, AnErrorOfACallbackReachesAll) {
  const BudgetModel which = budget_mlp(2, 8, 16);
  run_ranks(2, [&](Job& job) {
    Model model = which.make();
    const Callback fail = callbacks::OnEpochEnd([&](Model&, int, const Logs&) {
      if (job.rank() == 0) throw Error("the disk is full");
    });
    std::string text;
    try {
      model.fit(which.batches(1), {.epochs = 2, .verbose = 0, .callbacks = {fail}, .distributed = {.job = &job}});
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("the disk is full"));
  });
}

TEST(DistributedFit, StopsEverywhereWhenOneIsAskedTo) {
  const BudgetModel which = budget_mlp(2, 8, 16);
  run_ranks(3, [&](Job& job) {
    Model model = which.make();
    const Callback stop = callbacks::OnBatchEnd([&](Model& self, std::size_t batch, const Logs&) {
      if (job.rank() == 2 && batch == 0) self.stop_training();
    });
    model.fit(which.batches(4), {.epochs = 5, .verbose = 0, .callbacks = {stop}, .distributed = {.job = &job}});
    EXPECT_EQ(model.optimizer().step(), 2);
  });
}

TEST(DistributedFit, ARankThatStandsStillIsUnavailable) {
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
        std::string text;
        try {
          model.fit(which.batches(3), {.verbose = 0, .callbacks = {wait}, .distributed = {.job = &job}});
        } catch (const Unavailable& error) {
          text = error.what();
        }
        ++gave_up;
        if (job.rank() == 0) {
          EXPECT_THAT(text, HasSubstr("rank 1 (host "));
        }
        if (job.rank() == 0) {
          EXPECT_THAT(text, HasSubstr("did not answer for 0.3 s in step 2"));
        }
      },
      std::chrono::milliseconds(300));
}

TEST(DistributedFit, RefusesWhatRanksCannotShare) {
  run_ranks(2, [&](Job& job) {
    const BudgetModel which = budget_mlp(2, 8, 16);
    Model model = which.make();
    EXPECT_THROW(model.fit(which.batches(1), {.verbose = 0, .distributed = {.job = &job, .slices = 1}}),
                 InvalidArgument);
    const BudgetModel other = budget_mlp(2, 8, job.rank() == 0 ? 16 : 12);  // Batches of different sizes.
    EXPECT_THROW(model.fit(other.batches(1), {.verbose = 0, .distributed = {.job = &job}}), InvalidArgument);
    Sequential stateful({layers::LSTM(3, {.stateful = true, .input_shape = {4, 2}}), layers::Dense(1)});
    stateful.compile({.optimizer = "sgd", .loss = "mse"});
    EXPECT_THROW(
        stateful.fit(zeros({8, 4, 2}), zeros({8, 1}), {.batch_size = 8, .verbose = 0, .distributed = {.job = &job}}),
        InvalidArgument);
  });
}

}  // namespace
}  // namespace plimsoll
