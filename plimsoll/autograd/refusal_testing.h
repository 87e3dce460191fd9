// What tests of refusals share.
//
//   expect_refusal([&] { dense(x, w); }, "x [2, 3] and w [4, 2]");
//   expect_refused_anywhere("add", [](const Tensors& x) { return x[0] + x[1]; }, x);
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/refusal_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {

// InvalidArgument, whose text has this in it.
template <class F>
void expect_refusal(F&& f, const std::string& text) {
  EXPECT_THAT(refusal(f), testing::HasSubstr(text));
}

// Forward and backward within limits below what it needs, about so many or one for each block: x is untouched, nothing
// leaked, and with enough memory it succeeds.
inline void expect_refused_anywhere(const std::string& name, const TensorFunction& f, const Tensors& x,
                                    std::size_t limits = 40) {
  SCOPED_TRACE(name);
  const auto run = [&] {
    GradientTape tape;
    for (const Tensor& source : x) tape.watch(source);
    const Tensor y = f(x);
    const Tensors gradients = tape.gradient(y, x);
  };
  const auto values = [&] {
    std::vector<std::vector<double>> all;
    for (const Tensor& each : x) all.push_back(each.to_vector<double>());
    return all;
  };
  const auto given = values();
  run();  // Makes what is static.
  std::size_t need = 0;
  {
    const Budget probe("probe", 1 << 30);
    const BudgetScope use(probe);
    run();
    need = probe.peak();
  }
  ASSERT_GT(need, 0u);
  const MemoryInfo before = memory();
  const std::size_t apart = std::max<std::size_t>(64, need / limits / 64 * 64);
  for (std::size_t limit = 64; limit < need; limit += apart) {
    const Budget tight("tight", limit);
    const BudgetScope use(tight);
    EXPECT_THROW(run(), OutOfMemory) << limit << " of " << need;
    EXPECT_EQ(memory().num_tensors, before.num_tensors) << limit;
    EXPECT_EQ(memory().num_bytes, before.num_bytes) << limit;
    EXPECT_EQ(tight.used(), 0u) << limit;
    EXPECT_EQ(ThreadContext::current().interceptor, nullptr) << limit;
  }
  const Budget enough("enough", need);
  const BudgetScope use(enough);
  EXPECT_NO_THROW(run()) << need;
  EXPECT_EQ(values(), given);
}

}  // namespace plimsoll
