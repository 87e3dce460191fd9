#include "plimsoll/ops/confusion_matrix.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/refusal_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;

TEST(ConfusionMatrix, CountsLabelsByRowAndPredictionsByColumn) {
  const Tensor labels = constant({0, 1, 2, 2, 2, 0}), predictions = constant({0, 2, 2, 2, 1, 0}).cast(i64);
  const Tensor counts = confusion_matrix(labels, predictions, 3);
  EXPECT_EQ(counts.dtype(), i32);
  EXPECT_EQ(counts.shape(), Shape({3, 3}));
  EXPECT_THAT(counts.to_vector<int>(), ElementsAre(2, 0, 0, 0, 0, 1, 0, 1, 2));
}

TEST(ConfusionMatrix, OfNothingIsZero) {
  EXPECT_THAT(confusion_matrix(zeros({0}, i32), zeros({0}, i32), 2).to_vector<int>(), ElementsAre(0, 0, 0, 0));
}

TEST(ConfusionMatrix, NamesTheBadValueAndLeavesNothingBehind) {
  const Tensor good = constant({0, 1, 2}), bad = constant({0, 1, 3});
  const MemoryInfo before = memory();
  EXPECT_EQ(refusal([&] { confusion_matrix(bad, good, 3); }),
            "confusion_matrix: label 3 at position 2 is not one of the 3 classes, which count from 0");
  EXPECT_EQ(refusal([&] { confusion_matrix(good, good - 1, 3); }),
            "confusion_matrix: prediction -1 at position 0 is not one of the 3 classes, which count from 0");
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  confusion_matrix(good, good, 3);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(ConfusionMatrix, RefusesWhatAreNotTwoVectorsOfClasses) {
  EXPECT_EQ(refusal([] {
              confusion_matrix(constant({0, 1}), constant({0}), 2);
            }),
            "confusion_matrix: labels are [2], predictions [1]; give two vectors of one size");
  EXPECT_EQ(refusal([] {
              confusion_matrix(constant({0, 1}), constant({0.f, 1.f}), 2);
            }),
            "confusion_matrix: predictions [2] are float32; cast them to int32 or int64");
  EXPECT_EQ(refusal([] { confusion_matrix(constant({0}), constant({0}), 0); }),
            "confusion_matrix: 0 classes; give at least one");
  EXPECT_THROW(confusion_matrix(constant({{0}}), constant({{0}}), 2), InvalidArgument);
  EXPECT_THROW(confusion_matrix(Tensor(), constant({0}), 2), Error);
}

}  // namespace
}  // namespace plimsoll
