// Training whose weights and optimizer state are in a spill file between their uses: less memory than they take, the
// same bits, and whoever reads them in between sees what the last step made.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/spill/spill_testing.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/model/training/budget_models_testing.h"
#include "plimsoll/model/training/callback.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

class FitPark : public testing::Test {
 protected:
  void SetUp() override {
    SpillIo::FileSystem facts;
    const int opened = ::open(folder_.path().c_str(), O_PATH | O_CLOEXEC);
    SpillIo::system().file_system(opened, facts);
    ::close(opened);
    if (facts.type == TMPFS_MAGIC) GTEST_SKIP() << "the tests' directory is kept in memory";
  }
  std::string directory() const { return folder_.path().string(); }

  const SpillFolder folder_;
};

// Weights and state are most of it; batches large enough that transfers take less than eight times as long.
BudgetModel heavy() { return budget_mlp(6, 160, 96); }

std::size_t of_variables(const MemoryForecast& forecast) {
  return forecast.by_category.at("parameters") + forecast.by_category.at("optimizer");
}

class AfterBatches : public CallbackBase {
 public:
  explicit AfterBatches(std::function<void(Model&, std::size_t)> f) : f_(std::move(f)) {}
  void on_batch_end(Model& model, std::size_t batch, const Logs&) override { f_(model, batch); }

 private:
  std::function<void(Model&, std::size_t)> f_;
};

TEST_F(FitPark, TrainsInLessThanWeightsAndStateTake) {
  const BudgetModel which = heavy();
  const Dataset data = which.batches(3);
  Model free = which.make();
  const History natural = free.fit(data, {.epochs = 2, .validation_data = data, .verbose = 0});
  Model tight = which.make();
  const MemoryForecast forecast = tight.forecast({.batch_size = which.batch, .spill = directory()});
  ASSERT_LT(forecast.smallest_budget, of_variables(forecast) / 2);
  const std::size_t gate = forecast.smallest_budget, room = forecast.peak_bytes - gate;
  for (const std::size_t budget : {gate, gate + room / 3, gate + room * 2 / 3, forecast.peak_bytes}) {
    SCOPED_TRACE(testing::Message() << budget << " of " << forecast.peak_bytes);
    Model model = which.make();
    const History history =
        model.fit(data, {.epochs = 2, .validation_data = data, .verbose = 0, .budget = budget, .spill = directory()});
    for (const std::string& name : natural.names()) EXPECT_EQ(history[name], natural[name]) << name;
    EXPECT_TRUE(values_of(model) == values_of(free));
    EXPECT_LE(history.peak_bytes(), budget);
    EXPECT_EQ(history.spilled_bytes() > 0, budget < forecast.peak_bytes);
  }
  EXPECT_TRUE(folder_.is_empty());
}

TEST_F(FitPark, TheGateIsTrueToTheByteAndNearTheFloor) {
  for (const BudgetModel& which :
       {heavy(), budget_resnet(1, 16, 8, 8), budget_transformer(1, 64, 16, 8), budget_lstm(32, 12, 8)}) {
    SCOPED_TRACE(which.name);
    const Dataset data = which.batches(2);
    Model free = which.make(), model = which.make();
    free.fit(data, {.verbose = 0});
    const MemoryForecast forecast = model.forecast({.batch_size = which.batch, .spill = directory()});
    const std::size_t gate = forecast.smallest_budget;
    EXPECT_LE(gate, model.forecast({.batch_size = which.batch}).smallest_budget);
    EXPECT_LE(static_cast<double>(gate), 1.35 * static_cast<double>(forecast.floor_bytes));
    const Values before = values_of(model);
    try {
      model.fit(data, {.verbose = 0, .budget = gate - 1, .spill = directory()});
      FAIL() << "not refused";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.smallest_sufficient_limit(), gate);
    }
    EXPECT_TRUE(values_of(model) == before);
    const History history = model.fit(data, {.verbose = 0, .budget = gate, .spill = directory()});
    EXPECT_EQ(history.peak_bytes(), gate);
    EXPECT_TRUE(values_of(model) == values_of(free));
  }
}

TEST_F(FitPark, WhoReadsWeightsSeesWhatTheLastStepMade) {
  const BudgetModel which = heavy();
  const Dataset data = which.batches(4);
  const auto record = [](std::vector<Values>& seen) {
    return make_callback<AfterBatches>([&](Model& model, std::size_t) { seen.push_back(values_of(model)); });
  };
  std::vector<Values> expected, seen;
  Model free = which.make(), model = which.make();
  free.fit(data, {.verbose = 0, .callbacks = {record(expected)}});
  const std::size_t gate = model.forecast({.batch_size = which.batch, .spill = directory()}).smallest_budget;
  model.fit(data, {.verbose = 0, .callbacks = {record(seen)}, .budget = gate, .spill = directory()});
  EXPECT_TRUE(seen == expected);
}

TEST_F(FitPark, SavingWeightsLeavesThemInTheFileAndStaysInsideTheBudget) {
  const BudgetModel which = heavy();
  const Dataset data = which.batches(3);
  Model model = which.make();
  const std::size_t budget = model.forecast({.batch_size = which.batch, .spill = directory()}).smallest_budget;
  const SpillFolder saved;
  std::size_t saves = 0;
  const auto save = [&](Model& trained, std::size_t) {
    const std::size_t parked = memory().spilled_bytes;
    EXPECT_GT(parked, budget / 2);
    const std::size_t before = memory().num_bytes;
    trained.save_weights((saved.path() / "weights").string());
    EXPECT_EQ(memory().spilled_bytes, parked);
    EXPECT_EQ(memory().num_bytes, before);
    ++saves;
  };
  const History history = model.fit(
      data, {.verbose = 0, .callbacks = {make_callback<AfterBatches>(save)}, .budget = budget, .spill = directory()});
  EXPECT_EQ(saves, 3u);
  EXPECT_LE(history.peak_bytes(), budget);
  Model again = which.make();
  again.load_weights((saved.path() / "weights").string());
  EXPECT_TRUE(values_of(again) == values_of(model));
}

TEST_F(FitPark, AnErrorInBetweenLeavesWhatTheStepBeforeMade) {
  const BudgetModel which = heavy();
  const Dataset data = which.batches(4);
  Model free = which.make(), model = which.make();
  free.fit(which.batches(4).take(2), {.verbose = 0});
  const std::size_t gate = model.forecast({.batch_size = which.batch, .spill = directory()}).smallest_budget;
  const Callback stop = make_callback<AfterBatches>([](Model&, std::size_t batch) {
    if (batch == 1) throw InvalidArgument("enough");
  });
  EXPECT_THROW(model.fit(data, {.verbose = 0, .callbacks = {stop}, .budget = gate, .spill = directory()}),
               InvalidArgument);
  EXPECT_TRUE(values_of(model) == values_of(free));
  EXPECT_EQ(model.optimizer().step(), 2);
  // The optimizer goes on, with or without a file.
  const Dataset rest = which.batches(4).skip(2);
  free.fit(rest, {.verbose = 0});
  model.fit(rest, {.verbose = 0});
  EXPECT_TRUE(values_of(model) == values_of(free));
}

TEST_F(FitPark, WeightsAreInMemoryAfterwards) {
  const BudgetModel which = heavy();
  const Dataset data = which.batches(2);
  Model model = which.make();
  const std::size_t gate = model.forecast({.batch_size = which.batch, .spill = directory()}).smallest_budget;
  const std::size_t before = memory().num_bytes, spilled = memory().spilled_bytes;
  const std::size_t weights = 6 * 160 * 160 * sizeof(float);
  model.fit(data, {.verbose = 0, .budget = gate, .spill = directory()});
  EXPECT_LT(memory().num_bytes, before + weights / 2);
  EXPECT_GT(memory().num_bytes + weights / 2, before);
  EXPECT_NEAR(static_cast<double>(memory().spilled_bytes - spilled), 2.0 * weights, 0.1 * weights) << "the state";
  values_of(model);  // Copies the state, which stays where it is.
  EXPECT_NEAR(static_cast<double>(memory().spilled_bytes - spilled), 2.0 * weights, 0.1 * weights);
  const Logs natural = model.evaluate(data);
  EXPECT_EQ(model.evaluate(data, {.budget = 2 * gate, .spill = directory()})["loss"], natural["loss"]);
}

}  // namespace
}  // namespace plimsoll
