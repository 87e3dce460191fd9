// Shared by tests of kernels with a gradient: a Problem has all that one call reads and writes, forward(), backward()
// and objective(), a sum to which its gradients belong.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {

struct alignas(64) Line {
  std::byte bytes[64];
};

inline double dot(const TestTensor& a, const TestTensor& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

// The gradient of some elements of p's variable, against differences.
template <class Problem>
void expect_slopes(Problem& p, TestTensor& variable, const TestTensor& gradient, std::size_t elements = 50) {
  for (std::size_t i = 0; i < variable.size(); i += 1 + variable.size() / elements) {
    double& at = variable.data<double>()[i];
    const double before = at, h = 1e-5;
    at = before + h;
    const double above = p.objective();
    at = before - h;
    const double slope = (above - p.objective()) / (2 * h);
    at = before;
    ASSERT_NEAR(gradient.at(i), slope, 1e-6 * (1 + std::fabs(slope))) << variable.shape() << " at " << i;
  }
}

// Both do the same, one with a thread and one with two; the second allocates nothing once its threads run.
template <class Problem>
void run_with_one_and_two_threads(Problem& one, Problem& two) {
  const int threads = num_threads();
  set_num_threads(1);
  one.forward(), one.backward();
  set_num_threads(2);
  two.forward(), two.backward();
  const std::size_t before = heap_allocations();
  two.forward(), two.backward();
  EXPECT_EQ(heap_allocations(), before);
  set_num_threads(threads);
}

inline void expect_same_bits(std::initializer_list<std::pair<const TestTensor*, const TestTensor*>> pairs) {
  for (const auto& [a, b] : pairs)
    EXPECT_EQ(std::memcmp(a->view().bytes(), b->view().bytes(), a->size() * size_of(a->dtype())), 0);
}

}  // namespace plimsoll
