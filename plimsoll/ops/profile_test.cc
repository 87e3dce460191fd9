#include "plimsoll/tensor/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "plimsoll/device/device_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;

class ProfileOps : public DeviceFixture {
 protected:
  static std::vector<std::string> names(const ProfileInfo& info) {
    std::vector<std::string> result;
    for (const ProfiledKernel& kernel : info.kernels) result.push_back(kernel.name);
    return result;
  }
};

TEST_F(ProfileOps, RecordsEveryKernelExactly) {
  const Tensor x = constant({1.f, 2.f, 3.f});
  const auto info = profile([&] {
    square(x).dispose();
    return square(x);
  });
  EXPECT_EQ(info.new_bytes, 12);
  EXPECT_EQ(info.new_tensors, 1);
  EXPECT_EQ(info.peak_bytes, 24u);
  EXPECT_EQ(info.relative_peak_bytes, 12u);
  EXPECT_THAT(names(info), ElementsAre("square", "square"));
  EXPECT_THAT(info.kernel_names(), ElementsAre("square"));
  for (const ProfiledKernel& kernel : info.kernels) {
    EXPECT_THAT(kernel.input_shapes, ElementsAre(Shape({3})));
    EXPECT_THAT(kernel.output_shapes, ElementsAre(Shape({3})));
    EXPECT_EQ(kernel.bytes_added, 12u);
    EXPECT_EQ(kernel.total_bytes, 24u);
    EXPECT_GE(kernel.nanoseconds, 0);
  }
  EXPECT_EQ(info.result.at<float>({2}), 9.f);
}

TEST_F(ProfileOps, SeesWhatIsNotDisposedOf) {
  const Tensor x = constant({1.f, 2.f, 3.f});
  Tensor first, second;
  const ProfileInfo info = profile([&] {
    first = square(x);
    second = square(x);
  });
  EXPECT_EQ(info.new_bytes, 24);
  EXPECT_EQ(info.new_tensors, 2);
  EXPECT_EQ(info.peak_bytes, 36u);
  EXPECT_EQ(info.kernels[1].total_bytes, 36u);
}

TEST_F(ProfileOps, SeesTemporariesOfATidyInItsPeak) {
  const Tensor x = ones({100});
  const auto info = profile([&] { return tidy([&] { return exp(negative(square(x)).reshape({10, 10})); }); });
  EXPECT_THAT(info.kernel_names(), ElementsAre("square", "negative", "exp"));
  EXPECT_EQ(info.new_tensors, 1);
  EXPECT_EQ(info.new_bytes, 400);
  EXPECT_EQ(info.relative_peak_bytes, 800u) << "square gives its memory to negative; what the view shows stays.";
}

TEST_F(ProfileOps, CountsAViewAsNoKernel) {
  const Tensor x = ones({4});
  const auto info = profile([&] { return x.reshape({2, 2}); });
  EXPECT_TRUE(info.kernels.empty());
  EXPECT_EQ(info.new_tensors, 1);
  EXPECT_EQ(info.new_bytes, 0);
  EXPECT_EQ(info.relative_peak_bytes, 0u);
}

TEST_F(ProfileOps, IsOffAgainAfterAnException) {
  const Tensor x = ones({4});
  EXPECT_THROW(profile([&] {
                 square(x);
                 throw std::logic_error("stop");
               }),
               std::logic_error);
  EXPECT_THROW(profile([&] { x + ones({3}); }), InvalidArgument);
  square(x);
  EXPECT_THAT(names(profile([&] { negative(x); })), ElementsAre("negative"));
}

TEST_F(ProfileOps, LetsAnOuterOneSeeTheKernelsOfAnInnerOne) {
  const Tensor x = ones({4});
  ProfileInfo inner;
  const ProfileInfo outer = profile([&] {
    square(x);
    inner = profile([&] { negative(x); });
    exp(x);
  });
  EXPECT_THAT(names(inner), ElementsAre("negative"));
  EXPECT_THAT(names(outer), ElementsAre("square", "negative", "exp"));
}

TEST_F(ProfileOps, CountsAKernelsScratchInThePeak) {
  const Tensor x = arange(1000.f);
  const ProfileInfo info = profile([&] { argsort(x); });
  std::size_t most = 0;
  for (const ProfiledKernel& kernel : info.kernels) most = std::max(most, kernel.total_bytes);
  EXPECT_GE(info.peak_bytes, most);
}

TEST_F(ProfileOps, TimesTheWholeAndTheKernels) {
  const Tensor x = ones({100'000});
  const TimeInfo info = time([&] { return exp(square(x)); });
  EXPECT_GT(info.kernel_ms, 0);
  EXPECT_GE(info.wall_ms, info.kernel_ms);
  const ProfileInfo outer = profile([&] { time([&] { square(x); }); });
  EXPECT_THAT(names(outer), ElementsAre("square"));
}

}  // namespace
}  // namespace plimsoll
