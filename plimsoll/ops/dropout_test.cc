#include "plimsoll/ops/dropout.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

TEST(Dropout, DropsAsOftenAsAskedAndScalesTheRest) {
  const std::vector<float> y = dropout(full({100000}, 3.f), 0.25, {.seed = 7}).to_vector<float>();
  std::size_t dropped = 0;
  for (const float value : y) {
    ASSERT_TRUE(value == 0 || value == 4) << value;
    dropped += value == 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped), 25000, 500);
}

TEST(Dropout, KeepsWhatABernoulliDrawOfTheSeedKeeps) {
  // Over the end of a block of its mask, so that blocks meet.
  const Tensor kept = random_bernoulli({65545}, 0.5, {.seed = 11});
  EXPECT_EQ(dropout(ones({65545}), 0.5, {.seed = 11}).to_vector<float>(), (kept * 2).to_vector<float>());
}

TEST(Dropout, DropsAlsoWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = dropout(full({100}, nan), 0.5, {.seed = 7}).to_vector<float>();
  const std::vector<float> kept = random_bernoulli({100}, 0.5, {.seed = 7}).to_vector<float>();
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), kept[i] == 1) << i;
}

TEST(Dropout, WorksInEveryFloat) {
  const Tensor x = full({64}, 2.f);
  for (const DType dtype : {f16, bf16, f64})
    EXPECT_EQ(dropout(x.cast(dtype), 0.5, {.seed = 7}).cast(f32).to_vector<float>(),
              dropout(x, 0.5, {.seed = 7}).to_vector<float>());
}

TEST(Dropout, GivesTheTensorItselfWhenNothingIsDropped) {
  const Tensor x = ones({4});
  EXPECT_EQ(dropout(x, 0).id(), x.id());
  EXPECT_EQ(dropout(x, 0.5, {.training = false}).id(), x.id());
}

TEST(Dropout, FollowsTheStreamOfTheProcess) {
  const Tensor x = ones({64});
  config::set_seed(5);
  const std::vector<float> first = dropout(x, 0.5).to_vector<float>(), second = dropout(x, 0.5).to_vector<float>();
  EXPECT_NE(first, second);
  config::set_seed(5);
  EXPECT_EQ(dropout(x, 0.5).to_vector<float>(), first);
}

TEST(Dropout, RefusesRatesThatAreNoneAndIntegers) {
  for (const double rate : {-0.1, 1.0, std::nan("")}) EXPECT_THROW(dropout(ones({2}), rate), InvalidArgument);
  EXPECT_THROW(dropout(constant({1, 2}), 0.5), InvalidArgument);
  EXPECT_THROW(dropout(Tensor(), 0), Error);
  EXPECT_EQ(dropout(zeros({0, 3}), 0.5).shape(), Shape({0, 3}));
}

}  // namespace
}  // namespace plimsoll
