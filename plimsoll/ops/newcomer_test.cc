// What people try first and get wrong: each gets an error of the right kind, and nothing crashes.
#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/tensor_array.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Newcomer, IsToldOfSizesWhoseBytesAreNoNumber) {
  const MemoryInfo before = memory();
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_THROW(zeros({huge}), InvalidArgument);
  EXPECT_THROW(zeros({huge + 16}), InvalidArgument);
  EXPECT_THROW(zeros({huge, 0}), InvalidArgument);
  EXPECT_THROW(arange(std::int64_t{0}, huge), InvalidArgument);
  EXPECT_THROW(linspace(0, 1, huge), InvalidArgument);
  EXPECT_THROW(eye(std::int64_t{1} << 31), InvalidArgument);
  EXPECT_THROW(full({huge / 2}, 1.0), InvalidArgument);
  EXPECT_THROW(random_uniform({huge}), InvalidArgument);
  EXPECT_THROW(one_hot(constant({0}), huge), InvalidArgument);
  EXPECT_THROW(broadcast_to(constant(1.f), {huge}), InvalidArgument);
  EXPECT_THROW(pad(ones({2}), {{huge / 2, huge / 2}}), InvalidArgument);
  EXPECT_THROW(matmul(zeros({std::int64_t{1} << 40, 0}), zeros({0, std::int64_t{1} << 22})), InvalidArgument);
  EXPECT_THROW(zeros({std::int64_t{1} << 58}), OutOfMemory);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

TEST(Newcomer, MayUseAHandleThatWasMovedFrom) {
  Variable w(ones({2}), {.name = "w"});
  const Variable moved = std::move(w);
  EXPECT_EQ(w.name(), "w");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(w.id(), moved.id());
  TensorArray array(f32, {.size = 3});
  const TensorArray other = std::move(array);
  EXPECT_EQ(array.size(), other.size());  // NOLINT(bugprone-use-after-move)
  Optimizer sgd(SGDOptions{});
  const Optimizer same = std::move(sgd);
  EXPECT_EQ(sgd.step(), 0);  // NOLINT(bugprone-use-after-move)
}

TEST(Newcomer, IsToldWhenANumberIsNotOneOfTheTensors) {
  const Tensor x = constant({1, 2, 3});
  EXPECT_THAT([&] { x == 1.5f; },
              ThrowsMessage<InvalidArgument>(HasSubstr("equal: 1.5 is not a value of int32; cast")));
  EXPECT_THROW(x < 2.5f, InvalidArgument);
  EXPECT_THROW(x / 0.5f, InvalidArgument);
  EXPECT_THROW(2.5f * x, InvalidArgument);
  EXPECT_THROW(x + std::nan(""), InvalidArgument);
  EXPECT_THROW(x + (std::int64_t{1} << 40), InvalidArgument);
  EXPECT_THROW(x.cast(u8) + 300, InvalidArgument);
  EXPECT_THROW(x.cast(u8) + -1, InvalidArgument);
  EXPECT_THAT((x * 2.0).to_vector<int>(), ElementsAre(2, 4, 6));
  EXPECT_THAT((x.cast(f32) * 2.5f).to_vector<float>(), ElementsAre(2.5f, 5.f, 7.5f));
}

TEST(Newcomer, ReadsElementsAsCastsGiveThem) {
  EXPECT_EQ(constant(std::nanf("")).item<int>(), 0);
  EXPECT_EQ(constant(1e20).item<int>(), INT32_MAX);
  EXPECT_EQ(constant(-1e20f).item<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(constant(-2.75f).item<int>(), -2);
  EXPECT_EQ(constant(300).item<unsigned char>(), constant(300).cast(u8).item<unsigned char>());
  EXPECT_TRUE(constant(0.5f).item<bool>());
}

TEST(Newcomer, JoinsMasksAndBools) {
  const Tensor mask = constant({true, false});
  EXPECT_THAT((mask && true).to_vector<bool>(), ElementsAre(true, false));
  EXPECT_THAT((false && mask).to_vector<bool>(), ElementsAre(false, false));
  EXPECT_THAT((mask || true).to_vector<bool>(), ElementsAre(true, true));
  EXPECT_THAT((false || mask).to_vector<bool>(), ElementsAre(true, false));
}

TEST(Newcomer, IsToldOfDisposedTensorsAlsoWhereNothingWouldBeDone) {
  const Tensor x = ones({2});
  x.dispose();
  EXPECT_THROW(x.cast(f32), Disposed);
  EXPECT_THROW(clip(ones({2}), 5.f, 1.f), InvalidArgument);
}

TEST(NewcomerDeathTest, IsToldOfAScopeThatEndsOnAnotherThread) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        auto* scope = new TidyScope;
        std::thread([&] { delete scope; }).join();
      },
      "TidyScope: ended on another thread");
}

}  // namespace
}  // namespace plimsoll
