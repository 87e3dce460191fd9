#include <gmock/gmock.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using namespace literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class DeviceCopyTest : public DeviceFixture {
 protected:
  void SetUp() override {
    DeviceFixture::SetUp();
    config::set_logical_device_configuration(cpu(), {{.memory_limit = 64_MiB}, {.memory_limit = 64_MiB}});
  }
};

TEST_F(DeviceCopyTest, CopiesToAnotherDeviceAndBack) {
  const Tensor x = constant({1.f, 2.f});
  const Tensor there = x.to("CPU:1");
  EXPECT_EQ(there.device(), "CPU:1");
  EXPECT_THAT(there.to_vector<float>(), ElementsAre(1, 2));
  EXPECT_EQ(there.to("CPU:0").device(), "CPU:0");
  EXPECT_EQ((there + there).device(), "CPU:1");
  EXPECT_EQ(zeros({0, 2}).to("CPU:1").shape(), Shape({0, 2}));
  for (std::size_t i = 0; i < kNumDTypes; ++i)
    EXPECT_THAT(constant({0, 1}).cast(static_cast<DType>(i)).to("CPU:1").cast(i32).to_vector<int>(), ElementsAre(0, 1));
}

TEST_F(DeviceCopyTest, ChargesTheDeviceThatHoldsTheCopy) {
  const Tensor x = zeros({1024});
  const std::size_t before = memory_stats("CPU:1").bytes_in_use;
  const Tensor there = x.to("CPU:1");
  EXPECT_GE(memory_stats("CPU:1").bytes_in_use, before + 4096);
}

TEST_F(DeviceCopyTest, IsTheTensorItselfWhenItIsThere) {
  const Tensor x = constant({1.f, 2.f});
  const MemoryInfo before = memory();
  const Tensor same = x.to("CPU:0");
  EXPECT_EQ(same.id(), x.id());
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

TEST_F(DeviceCopyTest, SendsItsGradientBack) {
  const Tensor x = constant({1.f, 2.f});
  Recording recording;
  const Tensor y = recording.watch([&] { return x.to("CPU:1"); });
  ASSERT_EQ(recording.size(), 1u);
  const Tensor gradient = recording.gradient(y, full_like(y, 3), x);
  EXPECT_EQ(gradient.device(), "CPU:0");
  EXPECT_THAT(gradient.to_vector<float>(), ElementsAre(3, 3));
}

TEST_F(DeviceCopyTest, LetsOtherOpsRefuseOperandsOnTwoDevices) {
  const Tensor x = constant({1.f, 2.f}), there = x.to("CPU:1");
  EXPECT_THAT(
      [&] {
        concat({x, there});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("concat: operand 0 is on CPU:0, operand 1 on CPU:1")));
  EXPECT_THROW(boolean_mask(there, x > 1.f), InvalidArgument);
  EXPECT_THROW(gather(there, constant({0})), InvalidArgument);
}

TEST_F(DeviceCopyTest, MovementStaysOnTheDevice) {
  const Tensor x = constant({{1.f, 2.f}, {3.f, 4.f}}).to("CPU:1"), rows = constant({1}).to("CPU:1");
  EXPECT_EQ(boolean_mask(x, x > 2.f).device(), "CPU:1");
  EXPECT_EQ(where_true(x > 2.f).device(), "CPU:1");
  EXPECT_EQ(take_along_axis(x, constant({{1, 0}}).to("CPU:1"), 0).device(), "CPU:1");
  EXPECT_EQ(one_hot(rows, 3, f32, 5, 4).device(), "CPU:1");
  EXPECT_EQ(scatter(rows, x.slice({0}, {1}), {2, 2}).device(), "CPU:1");
}

TEST_F(DeviceCopyTest, RefusesDevicesThatDoNotExist) {
  const Tensor x = constant(1.f);
  EXPECT_THROW(x.to("CPU:2"), NotFound);
  EXPECT_THROW(x.to("table"), InvalidArgument);
  EXPECT_THROW(Tensor().to("CPU:1"), InvalidArgument);
  x.dispose();
  EXPECT_THROW(x.to("CPU:1"), Disposed);
}

TEST(Clone, HasBytesOfItsOwn) {
  const Tensor x = constant({{1, 2}, {3, 4}});
  const MemoryInfo before = memory();
  const Tensor y = x.clone(), row = x.slice({1}, {1}).clone();
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers + 2);
  EXPECT_EQ(memory().num_bytes, before.num_bytes + 24);
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(row.to_vector<int>(), ElementsAre(3, 4));
  EXPECT_NE(y.view().bytes(), x.view().bytes());
  EXPECT_EQ(zeros({0}).clone().shape(), Shape({0}));
  EXPECT_THROW(Tensor().clone(), InvalidArgument);
  check_linear([](const Tensor& z) { return z.clone(); }, whole_numbers({2, 2}));
}

}  // namespace
}  // namespace plimsoll
