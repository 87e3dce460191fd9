// Training that stores values on a disk: the gate is true to the byte, results are the same to the bit, and what fails
// leaves the model as it was.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/spill/spill_testing.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/model/training/budget_models_testing.h"
#include "plimsoll/model/training/progress.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

using FitSpill = OnDisk;

// Large activations, few weights, products that take longer than storing what they give.
BudgetModel wide() { return budget_mlp(8, 192, 1024); }

// The largest budget below the peak: storing what does not fit is the cheapest there.
std::size_t spilling_budget(const MemoryForecast& forecast) { return forecast.front.at(1).bytes; }

TEST_F(FitSpill, GivesTheSameBitsAtEveryBudget) {
  std::size_t spilled = 0;
  for (const BudgetModel& which : {wide(), budget_transformer(2, 64, 32, 8)}) {
    SCOPED_TRACE(which.name);
    const Dataset data = which.batches(2);
    Model free = which.make();
    const History natural = free.fit(data, {.validation_data = data, .verbose = 0});
    EXPECT_EQ(natural.spilled_bytes(), 0u);
    const MemoryForecast forecast = free.forecast({.batch_size = which.batch, .spill = directory()});
    EXPECT_LE(forecast.smallest_budget, free.forecast({.batch_size = which.batch}).smallest_budget);
    const std::size_t gate = forecast.smallest_budget, room = forecast.peak_bytes - gate;
    for (const std::size_t budget : {gate, gate + room / 3, gate + room * 2 / 3}) {
      SCOPED_TRACE(testing::Message() << budget << " of " << forecast.peak_bytes);
      Model tight = which.make();
      const History history =
          tight.fit(data, {.validation_data = data, .verbose = 0, .budget = budget, .spill = directory()});
      for (const std::string& name : natural.names()) EXPECT_EQ(history[name], natural[name]) << name;
      EXPECT_TRUE(values_of(tight) == values_of(free));
      EXPECT_LE(history.peak_bytes(), budget);
      spilled += history.spilled_bytes();
    }
  }
  EXPECT_GT(spilled, 0u) << "nothing was ever stored";
  EXPECT_TRUE(folder_.is_empty());
}

TEST_F(FitSpill, TheGateIsTrueToTheByte) {
  const BudgetModel which = wide();
  const Dataset data = which.batches(2);
  Model model = which.make();
  const MemoryForecast forecast = model.forecast({.batch_size = which.batch, .spill = directory()});
  EXPECT_LE(forecast.smallest_budget, model.forecast({.batch_size = which.batch}).smallest_budget);
  EXPECT_GE(forecast.smallest_budget, forecast.floor_bytes);
  const Values before = values_of(model);
  try {
    model.fit(data, {.verbose = 0, .budget = forecast.smallest_budget - 1, .spill = directory()});
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.smallest_sufficient_limit(), forecast.smallest_budget);
    EXPECT_THAT(error.what(), HasSubstr("recomputing and spilling never need less"));
    EXPECT_THAT(error.what(), HasSubstr(forecast.floor_step));
  }
  EXPECT_TRUE(values_of(model) == before);
  const History history = model.fit(data, {.verbose = 0, .budget = forecast.smallest_budget, .spill = directory()});
  EXPECT_EQ(history.peak_bytes(), forecast.smallest_budget);
  EXPECT_EQ(model.forecast({.batch_size = which.batch, .spill = directory()}).smallest_budget,
            forecast.smallest_budget);
}

TEST_F(FitSpill, ServesEvaluationsAndPredictions) {
  const BudgetModel which = wide();
  const Dataset data = which.batches(1);
  Model model = which.make();
  const Logs natural = model.evaluate(data);
  const Tensor x = data.begin()->x();
  const Tensor expected = model.predict(x, {.batch_size = which.batch});
  const auto gate_of = [&](auto&& work) {
    try {
      work(std::size_t{1});
      ADD_FAILURE() << "not refused";
      return std::size_t{0};
    } catch (const OutOfMemory& error) {
      return error.smallest_sufficient_limit();
    }
  };
  const auto evaluate = [&](std::size_t budget) {
    EXPECT_EQ(model.evaluate(data, {.budget = budget, .spill = directory()})["loss"], natural["loss"]);
  };
  const auto predict = [&](std::size_t budget) {
    const Tensor y = model.predict(x, {.batch_size = which.batch, .budget = budget, .spill = directory()});
    EXPECT_TRUE(std::ranges::equal(y.data<float>(), expected.data<float>()));
  };
  const std::size_t evaluated = gate_of(evaluate), predicted = gate_of(predict);
  evaluate(evaluated);
  predict(predicted);
  EXPECT_THROW(evaluate(evaluated - 1), OutOfMemory);
  EXPECT_THROW(predict(predicted - 1), OutOfMemory);
}

TEST_F(FitSpill, AWrongDirectoryIsRefusedBeforeTheFirstStep) {
  const BudgetModel which = budget_mlp(2, 8, 8);
  const Dataset data = which.batches(1);
  Model model = which.make();
  const Values before = values_of(model);
  const auto fit = [&](const std::string& directory) {
    model.fit(data, {.verbose = 0, .budget = std::size_t{1} << 30, .spill = directory});
  };
  EXPECT_THROW(fit("not/there"), NotFound);
  EXPECT_THROW(model.forecast({.spill = "not/there"}), NotFound);
  EXPECT_THROW(model.max_batch_size(1 << 20, 8, "not/there"), NotFound);
  EXPECT_THROW(model.evaluate(data, {.budget = 1 << 20, .spill = "not/there"}), NotFound);
  EXPECT_THROW(model.predict(data.begin()->x(), {.budget = 1 << 20, .spill = "not/there"}), NotFound);
  if (std::filesystem::exists("/dev/shm")) {  // It is memory.
    EXPECT_THROW(fit("/dev/shm"), InvalidArgument);
  }
  EXPECT_EQ(model.optimizer().step(), 0);
  EXPECT_TRUE(values_of(model) == before);
}

// A disk that has no room, as the file size limit of the process makes it.
class SmallFiles {
 public:
  explicit SmallFiles(std::size_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST_F(FitSpill, AFullDiskIsRefusedBeforeTheFirstStep) {
  const BudgetModel which = wide();
  const Dataset data = which.batches(2);
  Model model = which.make();
  const MemoryForecast forecast = model.forecast({.batch_size = which.batch, .spill = directory()});
  const FitOptions options{.verbose = 0, .budget = spilling_budget(forecast), .spill = directory()};
  const Values before = values_of(model);
  {
    const SmallFiles full(4096);
    try {
      model.fit(data, options);
      ADD_FAILURE() << "not refused";
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.what(), HasSubstr("spill directory"));
    }
  }
  EXPECT_TRUE(values_of(model) == before);
  EXPECT_EQ(model.optimizer().step(), 0);
  Model peer = which.make();
  peer.fit(data, {.verbose = 0});
  model.fit(data, options);
  EXPECT_TRUE(values_of(model) == values_of(peer));
}

TEST_F(FitSpill, TheProgressSaysWhatAStepStored) {
  EXPECT_EQ(Progress::spilled(0), "");
  EXPECT_EQ(Progress::spilled(3 << 19), ", spilled 1.5 MiB");
  const BudgetModel which = wide();
  const Dataset data = which.batches(2);
  Model model = which.make();
  const MemoryForecast forecast = model.forecast({.batch_size = which.batch, .spill = directory()});
  testing::internal::CaptureStdout();
  const History history = model.fit(data, {.verbose = 2, .budget = spilling_budget(forecast), .spill = directory()});
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_GT(history.spilled_bytes(), 0u);
  EXPECT_THAT(shown, HasSubstr(Progress::spilled(history.spilled_bytes() / 2)));
}

}  // namespace
}  // namespace plimsoll
