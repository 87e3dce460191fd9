#include "plimsoll/kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

// One element with its slots, by the book, in double.
struct Scalar {
  double w, a, b, c;
};
using Reference = std::function<void(Scalar&, double g, int step)>;
using Update = std::function<void(TestTensor& w, const TestTensor& g, TestTensor* slots, int step)>;

struct Rule {
  const char* name;
  double initial_slot;
  Update update;
  Reference reference;
};

double gradient_of(std::int64_t i, int step) {
  return std::sin(double(i) * 0.7 + step * 1.3) * (i % 5 == 0 ? 20 : 0.3);
}
double weight_of(std::int64_t i) { return std::cos(double(i) * 0.37); }

std::vector<Rule> momentum_rules() {
  std::vector<Rule> rules;
  rules.push_back({"sgd", 0,
                   [](TestTensor& w, const TestTensor& g, TestTensor*, int) { update_sgd(0.1, g.view(), w.view()); },
                   [](Scalar& s, double g, int) { s.w -= 0.1 * g; }});
  for (const bool nesterov : {false, true})
    for (const bool outside : {false, true})
      rules.push_back({"momentum", 0,
                       [=](TestTensor& w, const TestTensor& g, TestTensor* slots, int step) {
                         // A changing rate distinguishes the two kinds of velocity.
                         const MomentumUpdate options = {0.1 / step, 0.9, nesterov, outside};
                         update_momentum(options, g.view(), w.view(), slots[0].view());
                       },
                       [=](Scalar& s, double g, int step) {
                         const double rate = 0.1 / step;
                         s.a = outside ? 0.9 * s.a + g : 0.9 * s.a - rate * g;
                         if (outside)
                           s.w -= nesterov ? rate * (g + 0.9 * s.a) : rate * s.a;
                         else
                           s.w += nesterov ? 0.9 * s.a - rate * g : s.a;
                       }});
  return rules;
}

std::vector<Rule> root_rules() {
  std::vector<Rule> rules;
  for (const bool centered : {false, true})
    for (const bool momentum : {false, true})
      rules.push_back({"rmsprop", 0,
                       [=](TestTensor& w, const TestTensor& g, TestTensor* slots, int) {
                         const RmspropUpdate options = {0.01, 0.8, 0.3, 1e-3};
                         update_rmsprop(options, g.view(), w.view(),
                                        {slots[0].view(), centered ? slots[1].view() : TensorView(),
                                         momentum ? slots[2].view() : TensorView()});
                       },
                       [=](Scalar& s, double g, int) {
                         s.a = 0.8 * s.a + 0.2 * g * g;
                         if (centered) s.b = 0.8 * s.b + 0.2 * g;
                         const double step = 0.01 * g / std::sqrt(s.a - s.b * s.b + 1e-3);
                         if (momentum) s.c = 0.3 * s.c + step;
                         s.w -= momentum ? s.c : step;
                       }});
  rules.push_back({"adagrad", 0.1,
                   [](TestTensor& w, const TestTensor& g, TestTensor* slots, int) {
                     update_adagrad({0.1, 1e-3}, g.view(), w.view(), slots[0].view());
                   },
                   [](Scalar& s, double g, int) {
                     s.a += g * g;
                     s.w -= 0.1 * g / std::sqrt(s.a + 1e-3);
                   }});
  for (const bool previous : {false, true})
    rules.push_back(
        {"adadelta", 0,
         [=](TestTensor& w, const TestTensor& g, TestTensor* slots, int) {
           update_adadelta({1.0, 0.9, 1e-3, previous}, g.view(), w.view(), slots[0].view(), slots[1].view());
         },
         [=](Scalar& s, double g, int) {
           const double old = s.a;
           s.a = 0.9 * s.a + 0.1 * g * g;
           const double d = std::sqrt(s.b + 1e-3) / std::sqrt((previous ? old : s.a) + 1e-3) * g;
           s.b = 0.9 * s.b + 0.1 * d * d;
           s.w -= d;
         }});
  return rules;
}

std::vector<Rule> adam_rules() {
  std::vector<Rule> rules;
  for (const double decay : {0.0, 0.1})
    for (const bool corrected : {false, true})
      rules.push_back({"adam", 0,
                       [=](TestTensor& w, const TestTensor& g, TestTensor* slots, int step) {
                         const AdamUpdate options = {0.02, 0.9, 0.99, 1e-2, decay, step, corrected};
                         update_adam(options, g.view(), w.view(), slots[0].view(), slots[1].view());
                       },
                       [=](Scalar& s, double g, int step) {
                         s.w -= 0.02 * decay * s.w;
                         s.a = 0.9 * s.a + 0.1 * g;
                         s.b = 0.99 * s.b + 0.01 * g * g;
                         const double first = 1 - std::pow(0.9, step), second = 1 - std::pow(0.99, step);
                         s.w -= corrected ? 0.02 * (s.a / first) / (std::sqrt(s.b / second) + 1e-2)
                                          : 0.02 * std::sqrt(second) / first * s.a / (std::sqrt(s.b) + 1e-2);
                       }});
  rules.push_back({"adamax", 0,
                   [](TestTensor& w, const TestTensor& g, TestTensor* slots, int step) {
                     update_adamax({0.02, 0.9, 0.99, 1e-3, step}, g.view(), w.view(), slots[0].view(), slots[1].view());
                   },
                   [](Scalar& s, double g, int step) {
                     s.a = 0.9 * s.a + 0.1 * g;
                     s.b = std::max(0.99 * s.b, std::fabs(g));
                     s.w -= 0.02 / (1 - std::pow(0.9, step)) * s.a / (s.b + 1e-3);
                   }});
  return rules;
}

std::vector<Rule> all_rules() {
  std::vector<Rule> rules = momentum_rules();
  for (auto* more : {root_rules, adam_rules})
    for (Rule& rule : more()) rules.push_back(std::move(rule));
  return rules;
}

template <class T>
TestTensor train(const Rule& rule, std::int64_t n, int steps) {
  TestTensor w = TestTensor::from<T>({n}, weight_of);
  TestTensor slots[3] = {TestTensor::from<T>({n}, [&](std::int64_t) { return rule.initial_slot; }),
                         TestTensor::from<T>({n}, [](std::int64_t) { return 0; }),
                         TestTensor::from<T>({n}, [](std::int64_t) { return 0; })};
  for (int step = 1; step <= steps; ++step) {
    const TestTensor g = TestTensor::from<T>({n}, [&](std::int64_t i) { return gradient_of(i, step); });
    rule.update(w, g, slots, step);
  }
  return w;
}

TEST(Optimizer, EveryRuleMatchesItsFormulaOverManySteps) {
  for (const Rule& rule : all_rules())
    for (const std::int64_t n : {1, 3, 37, 17000}) {
      const TestTensor in_f32 = train<float>(rule, n, 6), in_f64 = train<double>(rule, n, 6);
      for (std::int64_t i = 0; i < n; ++i) {
        Scalar s = {weight_of(i), rule.initial_slot, 0, 0};
        for (int step = 1; step <= 6; ++step) rule.reference(s, gradient_of(i, step), step);
        ASSERT_NEAR(in_f64.at(static_cast<std::size_t>(i)), s.w, 1e-12 * (1 + std::fabs(s.w))) << rule.name << i;
        ASSERT_NEAR(in_f32.at(static_cast<std::size_t>(i)), s.w, 2e-5 * (1 + std::fabs(s.w))) << rule.name << i;
      }
    }
}

TEST(Optimizer, ResultsDoNotDependOnTheNumberOfThreads) {
  const int threads = num_threads();
  for (const Rule& rule : all_rules()) {
    set_num_threads(1);
    const TestTensor one = train<float>(rule, 100003, 2);
    set_num_threads(2);
    const TestTensor two = train<float>(rule, 100003, 2);
    EXPECT_EQ(std::memcmp(one.data<float>(), two.data<float>(), one.size() * 4), 0) << rule.name;
  }
  set_num_threads(threads);
}

TEST(Optimizer, UpdatesAllocateNothing) {
  TestTensor w(f32, {50000}), g(f32, {50000});
  TestTensor slots[3] = {w, w, w};
  const std::vector<Rule> rules = all_rules();
  for (const Rule& rule : rules) rule.update(w, g, slots, 1);
  const std::size_t before = heap_allocations();
  for (const Rule& rule : rules) rule.update(w, g, slots, 2);
  EXPECT_EQ(heap_allocations(), before);
}

TEST(SumOfSquares, IsInDouble) {
  // A hundred thousand squares below half of the last place of the first one: a sum in f32 would lose them all.
  const TestTensor a = TestTensor::from<float>({100001}, [](std::int64_t i) { return i == 0 ? 4096.f : 0.5f; });
  const TestTensor b = TestTensor::from<double>({3}, [](std::int64_t i) { return double(i); });
  EXPECT_DOUBLE_EQ(sum_of_squares(a.view()), 4096.0 * 4096.0 + 0.25 * 100000);
  EXPECT_DOUBLE_EQ(sum_of_squares(b.view()), 5);
}

TEST(SumOfSquares, DoesNotDependOnTheNumberOfThreads) {
  const TestTensor x = TestTensor::from<float>({300007}, [](std::int64_t i) { return 1.f / float(i + 1); });
  const int threads = num_threads();
  set_num_threads(1);
  const double one = sum_of_squares(x.view());
  set_num_threads(2);
  EXPECT_EQ(sum_of_squares(x.view()), one);
  set_num_threads(threads);
}

}  // namespace
}  // namespace plimsoll
