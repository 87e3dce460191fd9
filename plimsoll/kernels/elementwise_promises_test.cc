// What every kernel of the lists promises: no allocation, results that do not depend on threads, nothing to do for
// empty tensors, and the special values of floats.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/kernel_testing.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/kernels/order.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll {
namespace {

// Calls f(name, call) for every kernel of this dtype, with operands and an output of the shape; call(y) writes it.
using Call = std::function<void(TestTensor& out)>;
using Visit = std::function<void(const std::string& name, DType result, const Shape& out, const Call& call)>;

TestTensor awkward_of(DType dtype, const Shape& shape, std::int64_t start = 0) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) { return awkward<T>(shape, true, start); });
}

void each_elementwise(DType dtype, const Shape& shape, const Visit& visit) {
  const TestTensor a = awkward_of(dtype, shape), b = awkward_of(dtype, shape, 17), c = awkward_of(dtype, {1}, 3);
  const TestTensor mask = awkward<bool>(shape);
  for (int i = 0; i < static_cast<int>(UnaryOp::kCount); ++i)
    if (const auto op = static_cast<UnaryOp>(i); is_supported(op, dtype))
      visit(op_name(op), result_dtype(op, dtype), shape, [&](TestTensor& y) { unary(op, a.view(), y.view()); });
  for (int i = 0; i < static_cast<int>(BinaryOp::kCount); ++i)
    if (const auto op = static_cast<BinaryOp>(i); is_supported(op, dtype)) {
      const DType result = result_dtype(op, dtype);
      visit(op_name(op), result, shape, [&](TestTensor& y) { binary(op, a.view(), b.view(), y.view()); });
      visit(op_name(op), result, shape, [&](TestTensor& y) { binary(op, a.view(), c.view(), y.view()); });
      visit(op_name(op), result, shape, [&](TestTensor& y) { binary(op, c.view(), b.view(), y.view()); });
    }
  for (int i = 0; i < static_cast<int>(TernaryOp::kCount); ++i)
    if (const auto op = static_cast<TernaryOp>(i); is_supported(op, dtype))
      visit(op_name(op), result_dtype(op, dtype), shape,
            [&](TestTensor& y) { ternary(op, a.view(), b.view(), c.view(), y.view()); });
  visit("select", dtype, shape, [&](TestTensor& y) { select(mask.view(), a.view(), b.view(), y.view()); });
  visit("copy", f32, shape, [&](TestTensor& y) { copy(a.view(), y.view()); });
  visit("fill", f16, shape, [&](TestTensor& y) { copy(c.view(), y.view()); });
}

// For shapes of rank 2.
void each_other(DType dtype, const Shape& shape, const Visit& visit) {
  const TestTensor a = awkward_of(dtype, shape), b = awkward_of(dtype, shape, 17);
  const Shape rows = {shape[0]}, columns = {shape[1]}, turned = {shape[1], shape[0]};
  for (int i = 0; i <= static_cast<int>(ReduceOp::all); ++i)
    if (const auto op = static_cast<ReduceOp>(i); is_supported(op, dtype)) {
      visit("reduce first", dtype, columns, [&](TestTensor& y) { reduce(op, a.view(), 1, y.view()); });
      visit("reduce last", dtype, rows, [&](TestTensor& y) { reduce(op, a.view(), 2, y.view()); });
      visit("reduce all", dtype, {1}, [&](TestTensor& y) { reduce(op, a.view(), 3, y.view()); });
    }
  const std::int64_t flip[] = {1, 0};
  visit("transpose", dtype, turned, [&](TestTensor& y) { transpose(a.view(), flip, y.view()); });
  if (shape.size() > 0) {
    visit("argmax first", i64, columns, [&](TestTensor& y) { argmax(a.view(), 0, y.view()); });
    visit("argmin last", i64, rows, [&](TestTensor& y) { argmin(a.view(), 1, y.view()); });
  }
  if (dtype != boolean)
    for (const std::size_t axis : {std::size_t{0}, std::size_t{1}})
      visit("cumsum", dtype, shape, [&](TestTensor& y) { cumsum(a.view(), axis, {}, y.view()); });
  if (!is_floating(dtype)) return;
  visit("softmax", dtype, shape, [&](TestTensor& y) { softmax(a.view(), y.view()); });
  visit("log_softmax", dtype, shape, [&](TestTensor& y) { log_softmax(a.view(), y.view()); });
  visit("softmax_grad", dtype, shape, [&](TestTensor& y) { softmax_grad(a.view(), b.view(), y.view()); });
  visit("log_softmax_grad", dtype, shape, [&](TestTensor& y) { log_softmax_grad(a.view(), b.view(), y.view()); });
}

void each_kernel(const Shape& shape, const Visit& visit) {
  for (std::size_t d = 0; d < kNumDTypes; ++d) {
    each_elementwise(static_cast<DType>(d), shape, visit);
    each_other(static_cast<DType>(d), shape, visit);
  }
}

std::vector<std::byte> bytes_of(TestTensor& tensor) {
  const std::byte* data = tensor.view().bytes();
  return {data, data + tensor.view().nbytes()};
}

class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(num_threads()) { set_num_threads(threads); }
  ~ThreadCount() { set_num_threads(before_); }

 private:
  const int before_;
};

TEST(Kernels, GiveTheSameBitsWithOneAndTwoThreadsAndNeverAllocate) {
  each_kernel({310, 331}, [](const std::string& name, DType result, const Shape& out, const Call& call) {
    TestTensor one(result, out), two(result, out);
    std::size_t allocated = 0;
    for (const int threads : {1, 2}) {
      const ThreadCount count(threads);
      TestTensor& target = threads == 1 ? one : two;
      call(target);  // Threads are started.
      const std::size_t before = heap_allocations();
      call(target);
      allocated += heap_allocations() - before;
    }
    EXPECT_EQ(allocated, 0u) << name;
    EXPECT_EQ(bytes_of(one), bytes_of(two)) << name << " " << result;
  });
}

TEST(Kernels, DoNotAllocateForTinyTensors) {
  each_kernel({2, 3}, [](const std::string& name, DType result, const Shape& out, const Call& call) {
    TestTensor y(result, out);
    call(y);
    const std::size_t before = heap_allocations();
    call(y);
    EXPECT_EQ(heap_allocations(), before) << name;
  });
}

TEST(Kernels, TakeEmptyTensors) {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{0, 0}})
    each_kernel(shape, [](const std::string&, DType result, const Shape& out, const Call& call) {
      TestTensor y(result, out);
      call(y);
    });
}

TEST(Kernels, TreatAnElementAlikeWhateverItsPlaceAndNeighbours) {
  for (const DType dtype : {f32, f64, i32})
    for (int i = 0; i < static_cast<int>(UnaryOp::kCount); ++i) {
      const auto op = static_cast<UnaryOp>(i);
      if (!is_supported(op, dtype)) continue;
      const TestTensor x = awkward_of(dtype, {41});
      TestTensor together(result_dtype(op, dtype), {41}), alone(result_dtype(op, dtype), {1});
      unary(op, x.view(), together.view());
      for (std::int64_t k = 0; k < 41; ++k) {
        unary(op, x.view().rows(k, k + 1), alone.view());
        const std::size_t size = size_of(alone.dtype());
        const double value = alone.at(0);
        EXPECT_TRUE(std::memcmp(together.view().bytes() + static_cast<std::size_t>(k) * size, alone.view().bytes(),
                                size) == 0 ||
                    (std::isnan(value) && std::isnan(together.at(static_cast<std::size_t>(k)))))
            << op_name(op) << " " << dtype << " " << k;
      }
    }
}

TEST(Kernels, KeepTheSignOfZero) {
  const auto sign_of = [](UnaryOp op, float x) {
    float y = 1;
    unary(op, {&x, 0, f32, {1}}, {&y, 0, f32, {1}});
    EXPECT_EQ(y, 0.f) << op_name(op);
    return std::signbit(y);
  };
  for (const UnaryOp op : {UnaryOp::sqrt, UnaryOp::floor, UnaryOp::ceil, UnaryOp::round, UnaryOp::tanh, UnaryOp::sin,
                           UnaryOp::tan, UnaryOp::asinh, UnaryOp::atanh, UnaryOp::expm1, UnaryOp::log1p, UnaryOp::erf,
                           UnaryOp::softsign, UnaryOp::elu, UnaryOp::gelu, UnaryOp::swish}) {
    EXPECT_TRUE(sign_of(op, -0.f)) << op_name(op);
    EXPECT_FALSE(sign_of(op, 0.f)) << op_name(op);
  }
  EXPECT_TRUE(sign_of(UnaryOp::negative, 0.f));
  EXPECT_FALSE(sign_of(UnaryOp::abs, -0.f));
  EXPECT_TRUE(sign_of(UnaryOp::ceil, -0.5f));
}

TEST(Kernels, KeepSubnormals) {
  const float tiny = 1e-40f;
  const TestTensor x = TestTensor::from<float>({19}, [&](auto) { return tiny; });
  for (const UnaryOp op : {UnaryOp::abs, UnaryOp::relu, UnaryOp::tanh, UnaryOp::sin, UnaryOp::expm1, UnaryOp::log1p,
                           UnaryOp::softsign, UnaryOp::elu, UnaryOp::asinh, UnaryOp::atanh, UnaryOp::tan}) {
    TestTensor y(f32, {19});
    unary(op, x.view(), y.view());
    for (std::size_t i = 0; i < 19; ++i) EXPECT_EQ(y.data<float>()[i], tiny) << op_name(op) << " " << i;
  }
  TestTensor y(f32, {19});
  binary(BinaryOp::add, x.view(), x.view(), y.view());
  EXPECT_EQ(y.data<float>()[18], 2 * tiny);
  binary(BinaryOp::maximum, x.view(), y.view(), y.view());
  EXPECT_EQ(y.data<float>()[18], 2 * tiny);
}

}  // namespace
}  // namespace plimsoll
