#include "plimsoll/tensor/host_access.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/far/far_kind.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/run_on.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;

// Tests with a device that the host reaches elsewhere, and with one whose operands are copied.
class HostAccess : public testing::TestWithParam<bool> {
 protected:
  Device device_{{.name = "FAR:9", .type = "FAR", .memory_limit = 8_MiB, .physical_device = "FAR:9"},
                 false,
                 false,
                 far_kind(GetParam()).make({})};
  DeviceCounters counters() const { return device_.backend().counters(); }
  Tensor make(const Shape& shape) { return make_tensor({.op = "test"}, shape, f32, device_); }
  Tensor counted(std::int64_t count) {
    Tensor tensor = make({count});
    const HostWrite to(tensor);
    std::iota(to.span<float>().begin(), to.span<float>().end(), 0.f);
    return tensor;
  }
};
INSTANTIATE_TEST_SUITE_P(Far, HostAccess, testing::Bool(),
                         [](const auto& info) { return info.param ? "staged" : "reached"; });

TEST_P(HostAccess, ReadsWhatWasWritten) {
  const Tensor x = counted(4);
  EXPECT_THAT(HostRead(x).span<float>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(x.at<float>({2}), 2);
  EXPECT_EQ(x.data<float>()[3], 3);
  EXPECT_EQ(to_string(x), "<Tensor: shape=(4,), dtype=float32, device=FAR:9, values=[0, 1, 2, 3]>");
  const Tensor part = make_view(x, "slice", {2}, 8);
  EXPECT_THAT(part.to_vector<float>(), ElementsAre(2, 3));
}

TEST_P(HostAccess, AnElementIsAllThatIsCopied) {
  const Tensor x = counted(1000);
  device_.backend().reset_counters();
  EXPECT_EQ(x.at<float>({999}), 999);
  EXPECT_EQ(counters().bytes_out, sizeof(float));
}

TEST_P(HostAccess, KeepsElementsThatAreNotWritten) {
  const Tensor x = counted(3);
  {
    HostWrite to(x, HostWrite::Elements::kKept);
    to.data<float>()[1] = 9;
    to.finish();
    EXPECT_THAT(x.to_vector<float>(), ElementsAre(0, 9, 2));
  }
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(0, 9, 2));
}

TEST_P(HostAccess, CopiesAreChargedToTheBudget) {
  const Tensor x = counted(1 << 16);
  const Budget budget("small", 64_KiB);
  const BudgetScope charged(budget);
  EXPECT_THROW(HostRead{x}, OutOfMemory);
  EXPECT_THROW(HostWrite{x}, OutOfMemory);
  EXPECT_EQ(x.at<float>({5}), 5);
  EXPECT_EQ(budget.used(), 0u);
}

TEST_P(HostAccess, LazyTensorsAreFilledThere) {
  const float three = 3;
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, &three, sizeof(three));
  const Tensor x = make_tensor_on(Storage::take_lazily(device_, 12, {}, {.pattern = pattern, .element_bytes = 4}), 0,
                                  {3}, f32, {.op = "test"});
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(3, 3, 3));
}

TEST_P(HostAccess, CopiesBetweenDevices) {
  Device& host = Runtime::instance().host_device();
  const Tensor x = counted(3), y = make_tensor({.op = "test"}, {3}, f32, host), z = make({3});
  copy_between(device_, x.view(), host, writable(y));
  copy_between(host, y.view(), device_, writable(z));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 1, 2));
  EXPECT_THAT(z.to_vector<float>(), ElementsAre(0, 1, 2));
  const Tensor back = make({3});
  copy_between(device_, z.view(), device_, writable(back));
  EXPECT_THAT(back.to_vector<float>(), ElementsAre(0, 1, 2));
}

// x + 1, through scratch; also where the result lies on its operand.
class AddOne final : public OpOf<AddOne> {
 public:
  const char* name() const noexcept override { return "add_one"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override {
    auto* const scratch = reinterpret_cast<float*>(run.scratch.data());
    for (std::size_t i = 0; i < run.in[0].size(); ++i) scratch[i] = run.in[0].data<float>()[i] + 1;
    for (std::size_t i = 0; i < run.in[0].size(); ++i) run.out[0].data<float>()[i] = scratch[i];
  }
  void check(std::span<const ConstTensorView> in) const override {
    if (in[1].data<std::int32_t>()[0] < 0) throw InvalidArgument("add_one: negative");
  }
};

TEST_P(HostAccess, OpsRunThere) {
  const Tensor x = counted(3), y = make({3}), scratch = make({16});
  const ConstTensorView in[] = {x.view()};
  const TensorView out[] = {writable(y)};
  const std::span<std::byte> bytes(writable(scratch).bytes(), 64);
  const LogSink before = set_log_sink([](LogLevel, std::string_view) {});
  run_on(device_, AddOne(), {in, out, bytes});
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(1, 2, 3));
  const TensorView itself[] = {writable(x)};
  run_on(device_, AddOne(), {in, itself, bytes});
  EXPECT_THAT(x.to_vector<float>(), ElementsAre(1, 2, 3));
  set_log_sink(before);
  EXPECT_EQ(counters().fallbacks, GetParam() ? 2u : 0u);
  EXPECT_EQ(device_.backend().fallbacks().count("add_one"), GetParam() ? 1u : 0u);
}

TEST_P(HostAccess, WhatOpsNeedIsTakenBefore) {
  const Tensor x = counted(1 << 14), y = make({1 << 14});
  const ConstTensorView in[] = {x.view()};
  const TensorView out[] = {writable(y)};
  const Tensor scratch = make({1 << 14});
  const OpRun run{in, out, {writable(scratch).bytes(), std::size_t{1} << 16}};
  HostRun there;
  there.prepare(device_, AddOne(), run);
  EXPECT_EQ(there.bytes(), GetParam() ? std::size_t{3} << 16 : 0);
  there.take();
  const Budget budget("none", 4_KiB);
  const BudgetScope charged(budget);
  there.run(device_, AddOne(), run);  // Takes nothing more.
  EXPECT_EQ(y.at<float>({16383}), 16384);
}

TEST_P(HostAccess, ChecksReadIntegers) {
  const Tensor x = counted(2), index = make_tensor({.op = "test"}, {1}, i32, device_);
  HostWrite(index).data<std::int32_t>()[0] = 0;
  const ConstTensorView in[] = {x.view(), index.view()};
  const TensorView out[] = {writable(x)};
  HostRun there;
  device_.backend().reset_counters();
  EXPECT_NO_THROW(there.check(device_, AddOne(), {in, out, {}}));
  EXPECT_EQ(counters().bytes_out, GetParam() ? sizeof(std::int32_t) : 0);
  HostWrite(index).data<std::int32_t>()[0] = -1;
  EXPECT_THROW(there.check(device_, AddOne(), {in, out, {}}), InvalidArgument);
}

TEST(HostAccessOnTheHost, IsTheTensorItself) {
  const Tensor x = make_tensor({.op = "test"}, {2}, f32, Runtime::instance().host_device());
  HostWrite to(x);
  to.data<float>()[0] = 4;
  EXPECT_EQ(static_cast<const void*>(to.bytes()), x.view().bytes());
  EXPECT_EQ(HostRead(x).bytes(), x.view().bytes());
  EXPECT_NO_THROW(require_host(x, "test"));
}

TEST_P(HostAccess, WhatWorksInPlaceIsRefused) { EXPECT_THROW(require_host(make({2}), "test"), Unsupported); }

}  // namespace
}  // namespace plimsoll
