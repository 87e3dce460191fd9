#include "plimsoll/kernels/convolution.h"

#include <gtest/gtest.h>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/convolution_testing.h"
#include "plimsoll/kernels/elementwise.h"

namespace plimsoll {
namespace {

struct Case {
  std::int64_t batch, rows, columns, channels, filter_rows, filter_columns, outputs;
  Window window;
  std::int64_t groups = 1;
  std::int64_t lanes = 0;

  Convolution convolution() const { return {window, groups, lanes}; }
  Shape x() const { return {batch, rows, columns, channels}; }
  Shape filter() const { return {filter_rows, filter_columns, channels / groups, outputs}; }
  Shape y() const {
    return {batch, window.positions_down(rows, filter_rows), window.positions_across(columns, filter_columns), outputs};
  }
  std::size_t scratch_bytes(ConvolutionPass pass, DType dtype) const {
    return convolution_scratch_bytes(pass, x(), filter(), y(), convolution(), dtype);
  }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.x() << " * " << c.filter() << " -> " << c.y() << " strides " << c.window.row_stride << ", "
       << c.window.column_stride << " dilations " << c.window.row_dilation << ", " << c.window.column_dilation
       << " padding " << c.window.top << ", " << c.window.bottom << ", " << c.window.left << ", " << c.window.right
       << " groups " << c.groups;
}

const Case kCases[] = {
    {1, 1, 1, 1, 1, 1, 1, {}},
    {2, 5, 7, 3, 1, 1, 5, {}},
    {2, 6, 7, 3, 3, 3, 8, {1, 1, 1, 1, 1, 1, 1, 1}},
    {1, 9, 8, 5, 3, 2, 33, {1, 1, 1, 1, 2, 0, 0, 1}},    // Asymmetric padding.
    {2, 11, 10, 4, 3, 3, 16, {2, 2, 1, 1, 0, 1, 0, 1}},  // TensorFlow's "same" at stride 2.
    {2, 9, 9, 6, 2, 2, 7, {3, 4, 1, 1, 0, 0, 0, 0}},     // Stride beyond the window.
    {2, 9, 9, 6, 2, 2, 7, {3, 3, 1, 1, 2, 2, 1, 3}},     //
    {2, 9, 8, 5, 1, 1, 12, {2, 2, 1, 1, 0, 0, 0, 0}},    //
    {2, 5, 5, 3, 2, 2, 4, {1 << 24, 1 << 24, 1, 1, 1, 0, 1, 1}},
    {2, 9, 8, 5, 1, 5, 12, {2, 2, 1, 1, 0, 0, 1, 1}},        //
    {1, 12, 13, 3, 3, 3, 9, {1, 1, 2, 3, 2, 2, 3, 3}},       // Dilation,
    {1, 12, 13, 3, 3, 3, 9, {2, 3, 3, 2, 4, 1, 3, 0}},       // with strides,
    {1, 13, 14, 2, 4, 3, 3, {4, 2, 2, 4, 1, 1, 2, 2}},       // that have a common divisor.
    {2, 7, 6, 6, 3, 3, 9, {1, 1, 1, 1, 1, 1, 1, 1}, 3},      // Groups.
    {2, 7, 6, 6, 3, 3, 34, {2, 1, 1, 2, 1, 1, 2, 2}, 2},     //
    {2, 7, 6, 37, 3, 3, 37, {1, 1, 1, 1, 1, 1, 1, 1}, 37},   // Depthwise,
    {2, 8, 9, 3, 3, 3, 3, {2, 2, 1, 1, 0, 1, 0, 1}, 3},      // strided,
    {2, 8, 9, 5, 2, 3, 10, {1, 1, 2, 1, 1, 1, 1, 1}, 5},     // with a multiplier,
    {1, 9, 23, 40, 5, 5, 40, {1, 1, 2, 2, 4, 4, 4, 3}, 40},  // wide,
    {1, 3, 4, 16, 3, 3, 16, {1, 2, 1, 1, 4, 3, 5, 4}, 16},   // with windows of padding alone.
    {3, 4, 4, 1, 5, 5, 1, {1, 1, 1, 1, 3, 3, 4, 4}},         // One channel; more padding than taps reach.
    {2, 3, 3, 2, 2, 2, 3, {1, 1, 1, 1, 4, 4, 4, 4}},         // Windows of padding alone.
    {1, 1, 40, 3, 1, 5, 24, {1, 2, 1, 1, 0, 0, 2, 2}},       // One dimension.
    {0, 4, 4, 3, 3, 3, 5, {}},                               // Nothing in.
    {2, 2, 2, 3, 3, 3, 5, {}},                               // Nothing out.
    {2, 0, 3, 3, 1, 1, 5, {1, 1, 1, 1, 1, 0, 0, 0}},         // Padding alone.
    {1, 64, 70, 16, 3, 3, 5, {1, 1, 1, 1, 1, 1, 1, 1}},      // Cut by rows.
    {1, 1, 3000, 17, 1, 3, 9, {1, 1, 1, 1, 0, 0, 1, 1}},     // Cut by columns.
    {2, 12, 13, 16, 3, 3, 32, {1, 1, 1, 1, 1, 1, 1, 1}},     // In tiles,
    {3, 15, 11, 48, 3, 3, 16, {1, 1, 1, 1, 0, 2, 2, 0}},     // odd sizes, asymmetric padding,
    {2, 14, 16, 16, 3, 3, 80, {1, 1, 1, 1, 3, 4, 5, 3}},     // patches of padding alone,
    {1, 20, 22, 64, 3, 3, 64, {}},                           // no padding.
    {1, 6, 6, 80, 3, 3, 90, {1, 1, 1, 1, 1, 1, 1, 1}},       // Filter rows divided.
    {1, 4, 3, 510, 3, 3, 105, {2, 1, 1, 1, 1, 1, 1, 1}},     // A filter packed in passes.
};

// Calls visit(index into x, filter, y) for each product.
template <class F>
void each_product(const Case& c, F visit) {
  const Shape y = c.y();
  const Window& w = c.window;
  const std::int64_t depth = c.channels / c.groups, width = c.outputs / c.groups;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t i = 0; i < y[1]; ++i)
      for (std::int64_t j = 0; j < y[2]; ++j)
        for (std::int64_t k = 0; k < c.filter_rows; ++k)
          for (std::int64_t l = 0; l < c.filter_columns; ++l) {
            const std::int64_t row = i * w.row_stride + k * w.row_dilation - w.top;
            const std::int64_t column = j * w.column_stride + l * w.column_dilation - w.left;
            if (row < 0 || row >= c.rows || column < 0 || column >= c.columns) continue;
            for (std::int64_t p = 0; p < depth; ++p)
              for (std::int64_t o = 0; o < c.outputs; ++o)
                visit(((n * c.rows + row) * c.columns + column) * c.channels + o / width * depth + p,
                      ((k * c.filter_columns + l) * depth + p) * c.outputs + o,
                      ((n * y[1] + i) * y[2] + j) * c.outputs + o);
          }
}

template <class T>
void expect_near(const TestTensor& result, const std::vector<double>& exact, const std::vector<double>& magnitude) {
  const double epsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
  for (std::size_t i = 0; i < exact.size(); ++i)
    ASSERT_NEAR(result.at(i), exact[i], 8 * epsilon * (magnitude[i] + 1e-30)) << "at " << i;
}

class Convolutions : public testing::TestWithParam<Case> {
 protected:
  template <class T>
  void expect_forward() {
    const Case& c = GetParam();
    const TestTensor x = scattered<T>(c.x(), 1), filter = scattered<T>(c.filter(), 2);
    TestTensor y = scattered<T>(c.y(), 3);
    TestScratch scratch(c.scratch_bytes(ConvolutionPass::forward, x.dtype()));
    convolution(x.view(), filter.view(), y.view(), c.convolution(), {}, scratch);
    std::vector<double> exact(y.size()), magnitude(y.size());
    each_product(c, [&](std::int64_t a, std::int64_t b, std::int64_t o) {
      const double product = x.at(static_cast<std::size_t>(a)) * filter.at(static_cast<std::size_t>(b));
      exact[static_cast<std::size_t>(o)] += product;
      magnitude[static_cast<std::size_t>(o)] += std::fabs(product);
    });
    expect_near<T>(y, exact, magnitude);
    EXPECT_TRUE(scratch.is_kept());
  }

  template <class T>
  void expect_input_gradient() {
    const Case& c = GetParam();
    const TestTensor dy = scattered<T>(c.y(), 1), filter = scattered<T>(c.filter(), 2);
    TestTensor dx = scattered<T>(c.x(), 3);
    TestScratch scratch(c.scratch_bytes(ConvolutionPass::input_gradient, dx.dtype()));
    convolution_input_gradient(dy.view(), filter.view(), dx.view(), c.convolution(), {}, scratch);
    std::vector<double> exact(dx.size()), magnitude(dx.size());
    each_product(c, [&](std::int64_t a, std::int64_t b, std::int64_t o) {
      const double product = dy.at(static_cast<std::size_t>(o)) * filter.at(static_cast<std::size_t>(b));
      exact[static_cast<std::size_t>(a)] += product;
      magnitude[static_cast<std::size_t>(a)] += std::fabs(product);
    });
    expect_near<T>(dx, exact, magnitude);
    EXPECT_TRUE(scratch.is_kept());
  }

  template <class T>
  void expect_filter_gradient() {
    const Case& c = GetParam();
    const TestTensor x = scattered<T>(c.x(), 1), dy = scattered<T>(c.y(), 2);
    TestTensor dfilter = scattered<T>(c.filter(), 3);
    TestScratch scratch(c.scratch_bytes(ConvolutionPass::filter_gradient, x.dtype()));
    convolution_filter_gradient(x.view(), dy.view(), dfilter.view(), c.convolution(), scratch);
    std::vector<double> exact(dfilter.size()), magnitude(dfilter.size());
    each_product(c, [&](std::int64_t a, std::int64_t b, std::int64_t o) {
      const double product = x.at(static_cast<std::size_t>(a)) * dy.at(static_cast<std::size_t>(o));
      exact[static_cast<std::size_t>(b)] += product;
      magnitude[static_cast<std::size_t>(b)] += std::fabs(product);
    });
    expect_near<T>(dfilter, exact, magnitude);
    EXPECT_TRUE(scratch.is_kept());
  }
};

TEST_P(Convolutions, ForwardIsTheSumOfProducts) {
  expect_forward<float>();
  expect_forward<double>();
}

TEST_P(Convolutions, InputGradientIsTheSumOfProducts) {
  expect_input_gradient<float>();
  expect_input_gradient<double>();
}

TEST_P(Convolutions, FilterGradientIsTheSumOfProducts) {
  expect_filter_gradient<float>();
  expect_filter_gradient<double>();
}

// Fused and unfused agree bit for bit.
TEST_P(Convolutions, FusedBiasAndReluAreThoseOfTheElementwiseKernels) {
  const Case& c = GetParam();
  const TestTensor x = scattered<float>(c.x(), 1), filter = scattered<float>(c.filter(), 2);
  const TestTensor bias = scattered<float>({c.outputs}, 4);
  TestTensor plain(f32, c.y()), fused(f32, c.y());
  TestScratch scratch(c.scratch_bytes(ConvolutionPass::forward, f32));
  const ConstTensorView bias_view = bias.view();
  convolution(x.view(), filter.view(), plain.view(), c.convolution(), {}, scratch);
  convolution(x.view(), filter.view(), fused.view(), c.convolution(), {&bias_view, {.on = true}}, scratch);
  binary(BinaryOp::add, plain.view(), bias_view, plain.view());
  TestTensor capped = plain;
  unary(UnaryOp::relu, plain.view(), plain.view());
  EXPECT_TRUE(same_bits(plain, fused));
  // The numbers are small: cut at 0.25 instead of relu6's 6.
  convolution(x.view(), filter.view(), fused.view(), c.convolution(), {&bias_view, {true, 0.25}}, scratch);
  for (std::size_t i = 0; i < capped.size(); ++i)
    capped.data<float>()[i] = std::clamp(capped.data<float>()[i], 0.f, 0.25f);
  for (std::size_t i = 0; i < capped.size(); ++i) ASSERT_EQ(capped.at(i), fused.at(i)) << i;
}

INSTANTIATE_TEST_SUITE_P(, Convolutions, testing::ValuesIn(kCases));

double loss(const Case& c, const TestTensor& x, const TestTensor& filter, const TestTensor& weight) {
  TestTensor y(f64, c.y());
  TestScratch scratch(c.scratch_bytes(ConvolutionPass::forward, f64));
  convolution(x.view(), filter.view(), y.view(), c.convolution(), {}, scratch);
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * weight.at(i);
  return sum;
}

TEST(Convolution, GradientsAreThoseOfSmallSteps) {
  const Case c = {2, 6, 5, 4, 3, 2, 6, {2, 1, 1, 2, 1, 1, 2, 0}, 2};
  TestTensor x = scattered<double>(c.x(), 1), filter = scattered<double>(c.filter(), 2);
  const TestTensor dy = scattered<double>(c.y(), 3);
  TestTensor dx(f64, c.x()), dfilter(f64, c.filter());
  TestScratch back(c.scratch_bytes(ConvolutionPass::input_gradient, f64));
  TestScratch filters(c.scratch_bytes(ConvolutionPass::filter_gradient, f64));
  convolution_input_gradient(dy.view(), filter.view(), dx.view(), c.convolution(), {}, back);
  convolution_filter_gradient(x.view(), dy.view(), dfilter.view(), c.convolution(), filters);
  const auto expect_slope = [&](TestTensor& of, const TestTensor& gradient) {
    for (std::size_t i = 0; i < of.size(); ++i) {
      double& value = of.data<double>()[i];
      const double before = value, step = 1e-3;
      value = before + step;
      const double above = loss(c, x, filter, dy);
      value = before - step;
      const double below = loss(c, x, filter, dy);
      value = before;
      ASSERT_NEAR(gradient.at(i), (above - below) / (2 * step), 1e-9) << i;
    }
  };
  expect_slope(x, dx);
  expect_slope(filter, dfilter);
}

TEST(Convolution, TransposedConvolutionTakesBiasAndRelu) {
  const Case c = {2, 8, 8, 5, 3, 3, 4, {2, 2, 1, 1, 0, 1, 0, 1}};  // [2, 4, 4, 4] becomes [2, 8, 8, 5].
  const TestTensor dy = scattered<float>(c.y(), 1), filter = scattered<float>(c.filter(), 2);
  const TestTensor bias = scattered<float>({5}, 3);
  TestTensor plain(f32, c.x()), fused(f32, c.x());
  TestScratch scratch(c.scratch_bytes(ConvolutionPass::input_gradient, f32));
  const ConstTensorView bias_view = bias.view();
  convolution_input_gradient(dy.view(), filter.view(), plain.view(), c.convolution(), {}, scratch);
  convolution_input_gradient(dy.view(), filter.view(), fused.view(), c.convolution(), {&bias_view, {.on = true}},
                             scratch);
  binary(BinaryOp::add, plain.view(), bias_view, plain.view());
  unary(UnaryOp::relu, plain.view(), plain.view());
  EXPECT_TRUE(same_bits(plain, fused));
}

TEST(Convolution, TakesDepthwiseFiltersInTheirOwnShape) {
  const Case c = {2, 5, 6, 3, 2, 2, 6, {}, 3};
  const TestTensor x = scattered<float>(c.x(), 1), filter = scattered<float>(c.filter(), 2);
  TestTensor y(f32, c.y()), z(f32, c.y());
  TestScratch scratch(c.scratch_bytes(ConvolutionPass::forward, f32));
  convolution(x.view(), filter.view(), y.view(), c.convolution(), {}, scratch);
  convolution(x.view(), filter.view().reshaped({2, 2, 3, 2}), z.view(), c.convolution(), {}, scratch);
  EXPECT_TRUE(same_bits(y, z));
}

TEST(Convolution, OneDimensionIsAHeightOfOne) {
  const TestTensor x = scattered<float>({2, 9, 3}, 1), filter = scattered<float>({3, 3, 4}, 2);
  TestTensor y(f32, {2, 7, 4});
  const Case c = {2, 1, 9, 3, 1, 3, 4, {}};
  TestScratch scratch(c.scratch_bytes(ConvolutionPass::forward, f32));
  convolution(with_height_1(x.view()), with_height_1(filter.view(), true), with_height_1(y.view()), {}, {}, scratch);
  double sum = 0;  // For batch 1, column 4, channel 2.
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t p = 0; p < 3; ++p) sum += x.at((9 + 4 + k) * 3 + p) * filter.at((k * 3 + p) * 4 + 2);
  EXPECT_NEAR(y.at((7 + 4) * 4 + 2), sum, 1e-6);
}

struct Results {
  TestTensor y, dx, dfilter;
  std::size_t allocations = 0;
};

Results run_all(const Case& c) {
  const TestTensor x = scattered<float>(c.x(), 1), filter = scattered<float>(c.filter(), 2);
  const TestTensor dy = scattered<float>(c.y(), 3);
  Results results = {TestTensor(f32, c.y()), TestTensor(f32, c.x()), TestTensor(f32, c.filter())};
  TestScratch forward(c.scratch_bytes(ConvolutionPass::forward, f32));
  TestScratch back(c.scratch_bytes(ConvolutionPass::input_gradient, f32));
  TestScratch filters(c.scratch_bytes(ConvolutionPass::filter_gradient, f32));
  const TensorView y = results.y.view(), dx = results.dx.view(), dfilter = results.dfilter.view();
  const ConstTensorView from = x.view(), by = filter.view(), slope = dy.view();
  const std::size_t before = heap_allocations();
  convolution(from, by, y, c.convolution(), {}, forward);
  convolution_input_gradient(slope, by, dx, c.convolution(), {}, back);
  convolution_filter_gradient(from, slope, dfilter, c.convolution(), filters);
  results.allocations = heap_allocations() - before;
  return results;
}

const Case kLarge[] = {{8, 32, 32, 16, 3, 3, 20, {1, 1, 1, 1, 1, 1, 1, 1}},
                       {8, 32, 32, 32, 3, 3, 16, {1, 1, 1, 1, 1, 1, 1, 1}},
                       {3, 18, 17, 64, 3, 3, 64, {1, 1, 1, 1, 1, 1, 1, 1}},
                       {9, 33, 31, 5, 5, 5, 24, {2, 2, 1, 1, 2, 2, 2, 2}},
                       {5, 32, 32, 40, 3, 3, 40, {1, 1, 1, 1, 1, 1, 1, 1}, 40}};

TEST(Convolution, AllocatesNothingAndDoesNotDependOnTheNumberOfThreads) {
  const int threads = num_threads();
  for (const Case& c : kLarge) {
    set_num_threads(1);
    const Results one = run_all(c);
    for (const int count : {2, 3}) {
      set_num_threads(count);
      run_all(c);  // Starts the threads.
      const Results many = run_all(c);
      EXPECT_EQ(many.allocations, 0u);
      EXPECT_TRUE(same_bits(one.y, many.y));
      EXPECT_TRUE(same_bits(one.dx, many.dx));
      EXPECT_TRUE(same_bits(one.dfilter, many.dfilter));
    }
  }
  set_num_threads(threads);
}

TEST(Convolution, FewerLanesTakeLessScratchForTheSameBits) {
  for (const Case& c : kLarge) {
    const Results natural = run_all(c);
    for (const std::int64_t lanes : {4, 3, 1}) {
      Case few = c;
      few.lanes = lanes;
      const Results lean = run_all(few);
      EXPECT_TRUE(same_bits(natural.y, lean.y));
      EXPECT_TRUE(same_bits(natural.dx, lean.dx));
      EXPECT_TRUE(same_bits(natural.dfilter, lean.dfilter));
      for (const auto pass :
           {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::filter_gradient})
        EXPECT_LE(few.scratch_bytes(pass, f32), c.scratch_bytes(pass, f32));
      if (lanes > 1) continue;
      EXPECT_LT(few.scratch_bytes(ConvolutionPass::filter_gradient, f32) * 2,
                c.scratch_bytes(ConvolutionPass::filter_gradient, f32));
    }
  }
}

TEST(Convolution, ScratchDoesNotGrowWithTheBatch) {
  const auto bytes = [](std::int64_t batch, ConvolutionPass pass) {
    return Case{batch, 64, 64, 64, 3, 3, 64, {1, 1, 1, 1, 1, 1, 1, 1}}.scratch_bytes(pass, f32);
  };
  for (const auto pass :
       {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::filter_gradient}) {
    EXPECT_EQ(bytes(64, pass), bytes(1024, pass));
    EXPECT_LE(bytes(64, pass), 3u << 20);
  }
}

}  // namespace
}  // namespace plimsoll
