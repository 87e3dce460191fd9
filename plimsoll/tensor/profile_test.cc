#include "plimsoll/tensor/profile.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tensor_testing.h"

namespace plimsoll {
namespace {

TEST(Profile, HasItsStartAsPeakWhenNothingIsTaken) {
  const Tensor before = some({100});
  const ProfileInfo info = profile([] {});
  EXPECT_EQ(info.peak_bytes, memory().num_bytes);
  EXPECT_EQ(info.relative_peak_bytes, 0u);
  EXPECT_EQ(info.new_bytes, 0);
  EXPECT_EQ(info.new_tensors, 0);
  EXPECT_TRUE(info.kernels.empty());
  EXPECT_TRUE(info.kernel_names().empty());
}

TEST(Profile, SeesMemoryTakenWithoutAKernel) {
  const std::size_t start = memory().num_bytes;
  const auto info = profile([] {
    { const Tensor a = some({100}), b = some({50}); }
    return some({10});
  });
  EXPECT_EQ(info.relative_peak_bytes, 600u);
  EXPECT_EQ(info.peak_bytes, start + 600);
  EXPECT_EQ(info.new_bytes, 40);
  EXPECT_EQ(info.new_tensors, 1);
  EXPECT_EQ(info.result.size(), 10u);
}

TEST(Profile, SeesLazyMemoryWhenItIsTaken) {
  const ProfileInfo info = profile([] {
    const Tensor lazy =
        make_tensor_on(Storage::take_lazily(current_device(), 64, {}, {}), 0, {16}, f32, {.op = "zeros"});
    const Tensor never =
        make_tensor_on(Storage::take_lazily(current_device(), 64, {}, {}), 0, {16}, f32, {.op = "zeros"});
    (void)lazy.view();
  });
  EXPECT_EQ(info.relative_peak_bytes, 64u);
}

TEST(Profile, CountsWhatTheWorkGivesBackAsLess) {
  Tensor held = some({100});
  const ProfileInfo info = profile([&] { held.dispose(); });
  EXPECT_EQ(info.new_bytes, -400);
  EXPECT_EQ(info.new_tensors, -1);
  EXPECT_EQ(info.relative_peak_bytes, 0u);
}

TEST(Profile, KeepsAnOuterPeakApartFromAnInnerOne) {
  ProfileInfo inner, later;
  const ProfileInfo outer = profile([&] {
    { const Tensor first = some({100}); }
    inner = profile([] { some({50}); });
    later = profile([] { some({200}); });
  });
  EXPECT_EQ(inner.relative_peak_bytes, 200u);
  EXPECT_EQ(later.relative_peak_bytes, 800u);
  EXPECT_EQ(outer.relative_peak_bytes, 800u);
}

TEST(Profile, EndsWhenTheWorkThrows) {
  EXPECT_THROW(profile([] {
                 some({1000});
                 throw std::logic_error("stop");
               }),
               std::logic_error);
  EXPECT_EQ(ThreadContext::current().observer, nullptr);
  EXPECT_EQ(profile([] { some({10}); }).relative_peak_bytes, 40u);
}

TEST(Profile, GivesEachCallAResultOfItsOwn) {
  const ProfileInfo first = profile([] { some({10}); });
  const ProfileInfo second = profile([] { some({20}); });
  EXPECT_EQ(first.relative_peak_bytes, 40u);
  EXPECT_EQ(second.relative_peak_bytes, 80u);
}

TEST(Profile, HandsOnResultsThatCanOnlyBeMoved) {
  const auto info = profile([] { return std::make_unique<int>(7); });
  EXPECT_EQ(*info.result, 7);
}

TEST(Time, EndsWhenTheWorkThrows) {
  EXPECT_THROW(time([] { throw std::logic_error("stop"); }), std::logic_error);
  EXPECT_EQ(ThreadContext::current().observer, nullptr);
}

}  // namespace
}  // namespace plimsoll
