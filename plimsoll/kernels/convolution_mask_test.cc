#include "plimsoll/kernels/convolution_mask.h"

#include <gtest/gtest.h>

#include <limits>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/convolution_testing.h"
#include "plimsoll/kernels/elementwise.h"

namespace plimsoll {
namespace {

template <class T>
void expect_that_of_elementwise(std::int64_t n) {
  TestTensor y = scattered<T>({n}, 1);
  const TestTensor dy = scattered<T>({n}, 2);
  if (n > 2) y.data<T>()[1] = std::numeric_limits<T>::quiet_NaN(), y.data<T>()[2] = T(0);
  TestTensor exact(y.dtype(), {n}), dx(y.dtype(), {n});
  TestScratch mask(relu_mask_bytes(static_cast<std::size_t>(n)));
  const ConstTensorView result = y.view(), slope = dy.view();
  const TensorView to = dx.view();
  std::byte* const bits = std::span<std::byte>(mask).data();
  const std::size_t before = heap_allocations();
  relu_mask(result, bits);
  relu_mask_gradient(slope, bits, to);
  EXPECT_EQ(heap_allocations(), before);
  binary(BinaryOp::relu_grad, y.view(), dy.view(), exact.view());
  EXPECT_TRUE(same_bits(dx, exact)) << n;
  EXPECT_TRUE(mask.is_kept());
}

TEST(ReluMask, GradientIsThatOfTheElementwiseKernel) {
  parallel_for(2, 1, [](std::int64_t, std::int64_t) {});  // Threads are started now, not in a kernel.
  for (const std::int64_t n : {0, 1, 5, 511, 512, 513, 5000, 70000}) {
    expect_that_of_elementwise<float>(n);
    expect_that_of_elementwise<double>(n);
  }
}

TEST(ReluMask, TakesABitPerElement) {
  EXPECT_EQ(relu_mask_bytes(0), 0u);
  EXPECT_EQ(relu_mask_bytes(1), 64u);
  EXPECT_EQ(relu_mask_bytes(5120), 640u);
}

}  // namespace
}  // namespace plimsoll
