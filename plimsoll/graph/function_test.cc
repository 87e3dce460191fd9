#include "plimsoll/graph/function.h"

#include <gtest/gtest.h>

#include "plimsoll/autograd/custom_gradient.h"
#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/config.h"
#include "plimsoll/graph/control_flow.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using Floats = std::vector<float>;

TEST(Function, TracesOncePerSignatureAndGivesWhatEagerGives) {
  const Variable w(random_normal({16, 16}, {.seed = 1}), {.name = "w"});
  int calls = 0;
  const auto body = [&](Tensor x) {
    ++calls;
    return relu(matmul(relu(matmul(x, w)), w)) + x;
  };
  const auto f = function(body);
  const Tensor x = random_normal({8, 16}, {.seed = 2});
  const Floats eager = body(x).to_vector<float>();
  calls = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).to_vector<float>(), eager);
  EXPECT_EQ(calls, 1);
  f(zeros({4, 16}));
  EXPECT_EQ(f.trace_count(), 2u);
  w.assign(w.value() * 2.f);
  EXPECT_NE(f(x).to_vector<float>(), eager);
  EXPECT_EQ(f(x).to_vector<float>(), body(x).to_vector<float>());
  EXPECT_EQ(f.trace_count(), 2u);
}

TEST(Function, TellsPlainValuesAndStructuresApart) {
  int calls = 0;
  const auto f = function([&](const std::vector<Tensor>& x, float by, const std::string& how) {
    ++calls;
    Tensor sum = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) sum = how == "add" ? sum + x[i] : sum * x[i];
    return std::pair(sum * by, x.size());
  });
  const Tensor a = constant({1.f, 2.f});
  EXPECT_EQ(f(std::vector{a, a}, 2.f, std::string("add")).first.to_vector<float>(), (Floats{4, 8}));
  EXPECT_EQ(f(std::vector{a, a}, 2.f, std::string("multiply")).first.to_vector<float>(), (Floats{2, 8}));
  EXPECT_EQ(f(std::vector{a, a, a}, 1.f, std::string("add")).second, 3u);
  EXPECT_EQ(f(std::vector{a, a}, 2.f, std::string("add")).first.to_vector<float>(), (Floats{4, 8}));
  EXPECT_EQ(calls, 3);
}

TEST(Function, ChangesVariablesInOrderAtEachCall) {
  const Variable counter(zeros({}), {.name = "counter", .trainable = false});
  const auto f = function([&](Tensor x) {
    const Tensor before = counter.value();
    counter.assign_add(x);
    const Tensor between = counter.value();
    counter.assign(counter.value() * 2.f);
    return std::vector{before, between, counter.value()};
  });
  const auto first = f(constant(1.f));
  EXPECT_EQ(first[0].item<float>(), 0);
  EXPECT_EQ(first[1].item<float>(), 1);
  EXPECT_EQ(first[2].item<float>(), 2);
  const auto second = f(constant(1.f));
  EXPECT_EQ(second[0].item<float>(), 2);
  EXPECT_EQ(second[2].item<float>(), 6);
  EXPECT_EQ(first[2].item<float>(), 2);
  EXPECT_EQ(counter.value().item<float>(), 6);
}

TEST(Function, DrawsTheNumbersThatEagerWouldDraw) {
  const auto body = [](Tensor x) { return dropout(x + random_normal({4}), 0.5) * random_uniform({4}); };
  const auto f = function(body);
  const Tensor x = ones({4});
  config::set_seed(5);
  const Floats one = body(x).to_vector<float>(), two = body(x).to_vector<float>();
  config::set_seed(5);
  EXPECT_EQ(f(x).to_vector<float>(), one);
  EXPECT_EQ(f(x).to_vector<float>(), two);
}

TEST(Function, PassesGradientsOn) {
  const Variable w(random_normal({4, 3}, {.seed = 1}), {.name = "w"});
  const auto body = [&](Tensor x) { return tanh(matmul(x, w)); };
  const auto f = function(body);
  const Tensor x = random_normal({2, 4}, {.seed = 2});
  const auto gradient_of = [&](const auto& callable) {
    GradientTape tape;
    tape.watch(x);
    const Tensor loss = square(callable(x)).sum();
    return tape.gradient(loss, {x, w});
  };
  const auto eager = gradient_of(body), traced = gradient_of(f);
  EXPECT_EQ(traced[0].to_vector<float>(), eager[0].to_vector<float>());
  EXPECT_EQ(traced[1].to_vector<float>(), eager[1].to_vector<float>());
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(Function, CanBeDifferentiatedTwice) {
  const auto f = function([](Tensor x) { return x * x * x; });
  const Tensor x = constant({2.f, 3.f});
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(f(x).sum(), x);
  }
  EXPECT_EQ(first.to_vector<float>(), (Floats{12, 27}));
  EXPECT_EQ(outer.gradient(first.sum(), x).to_vector<float>(), (Floats{12, 18}));
}

TEST(Function, DropsTheSameElementsForwardAndBackward) {
  const auto f = function([](Tensor x) { return dropout(x, 0.5); });
  const Tensor x = ones({64});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_EQ(tape.gradient(y.sum(), x).to_vector<float>(), y.to_vector<float>());
}

TEST(Function, HasTapesInside) {
  const Variable w(constant({1.f, 2.f}), {.name = "w"});
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Tensor loss = square(w * x).sum();
    w.assign_sub(tape.gradient(loss, w) * 0.1f);
    return loss;
  });
  EXPECT_EQ(step(constant({1.f, 1.f})).item<float>(), 5);
  EXPECT_FLOAT_EQ(w.value().at<float>({0}), 0.8f);
  EXPECT_FLOAT_EQ(w.value().at<float>({1}), 1.6f);
}

TEST(Function, MayCallFunctions) {
  const auto twice = function([](Tensor x) { return x + x; });
  const auto f = function([&](Tensor x) { return twice(twice(x)); });
  EXPECT_EQ(f(constant({1.f})).item<float>(), 4);
  EXPECT_EQ(twice.trace_count(), 0u);
}

TEST(Function, RefusesToBranchOnATracedValue) {
  const auto f = function([](Tensor x) { return x.sum().item<float>() > 0 ? x : -x; });
  try {
    f(constant({1.f}));
    FAIL();
  } catch (const FailedPrecondition& error) {
    EXPECT_NE(std::string(error.what()).find("cond"), std::string::npos);
  }
}

TEST(Function, LeavesNothingBehind) {
  const MemoryInfo before = memory();
  {
    const auto f = function([](Tensor x) { return tidy([&] { return (x * 2.f + constant({1.f, 2.f})).sum(); }); });
    tidy([&] {
      for (int i = 0; i < 10; ++i) f(constant({1.f, 2.f}));
    });
    EXPECT_EQ(f(constant({1.f, 2.f})).item<float>(), 9);
  }
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

TEST(Function, KeepsCustomGradients) {
  const auto body = [](Tensor x) {
    return custom_gradient(
        {x}, [](const std::vector<Tensor>& in) { return square(in[0]); },
        [](const Tensor& dy, const std::vector<Tensor>&) { return std::vector{dy * 10.f}; });
  };
  const Tensor x = constant({3.f});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = function(body)(x);
  EXPECT_EQ(y.item<float>(), 9);
  EXPECT_EQ(tape.gradient(y, x).item<float>(), 10);
  const auto inside = function([&](Tensor v) {
    GradientTape inner;
    inner.watch(v);
    return inner.gradient(body(v), v);
  });
  EXPECT_EQ(inside(x).item<float>(), 10);
}

TEST(ControlFlow, TakesTheBranchOfTheValue) {
  const auto f = function([](Tensor x) {
    return cond(
        x.sum() > 0.f, [&] { return x; }, [&] { return -x * 2.f; });
  });
  EXPECT_EQ(f(constant({-3.f, 1.f})).to_vector<float>(), (Floats{6, -2}));
  EXPECT_EQ(f(constant({3.f, 1.f})).to_vector<float>(), (Floats{3, 1}));
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(ControlFlow, RepeatsWhileItHolds) {
  const auto collatz = [](Tensor n) {
    return while_loop([](const TensorTree& s) { return s[0].tensor() != 1; },
                      [](const TensorTree& s) {
                        const Tensor v = s[0].tensor();
                        return TensorTree{where(v % 2 == 0, v / 2, v * 3 + 1), s[1].tensor() + 1};
                      },
                      TensorTree{n, constant(0)})[1]
        .tensor();
  };
  EXPECT_EQ(collatz(constant(27)).item<int>(), 111);
  EXPECT_EQ(function(collatz)(constant(27)).item<int>(), 111);
}

TEST(Function, ThatIsTracedTooOftenSaysHowOftenForHowManyCalls) {
  std::string logged;
  LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged += text; });
  const auto f = function([](Tensor x) { return x + 1.f; }, {.name = "grows"});
  for (int i = 1; i <= 14; ++i) f(zeros({i}));
  set_log_sink(std::move(before));
  EXPECT_NE(logged.find("function \"grows\": traced 12 times in 12 calls"), std::string::npos) << logged;
}

TEST(ControlFlow, ABranchMayAssignToVariables) {
  const auto outcome = [](bool traced, float x) {
    const Variable a(constant({1.f, 2.f}), {.name = "a"}), b(constant(10.f), {.name = "b"});
    const auto body = [&](Tensor in) {
      const Tensor y = cond(
          in > 0.f,
          [&] {
            a.assign_add(Tensor(a) * in);
            const Tensor seen = a.value().sum();  // Sees what was assigned.
            cond(
                in > 2.f,
                [&] {
                  b.assign(in);
                  return in;
                },
                [&] { return in; });
            return seen;
          },
          [&] {
            b.assign_sub(constant(1.f));
            return constant(0.f);
          });
      return y + b.value();
    };
    const Tensor y = traced ? function(body)(constant(x)) : body(constant(x));
    Floats values = a.value().to_vector<float>();
    values.push_back(b.value().item<float>());
    values.push_back(y.item<float>());
    return values;
  };
  for (const float x : {-1.f, 1.f, 3.f}) EXPECT_EQ(outcome(true, x), outcome(false, x)) << x;
  EXPECT_EQ(outcome(true, 3.f), (Floats{4, 8, 3, 15}));
  const Variable w(constant(0.f), {.name = "w"});
  const auto in_loop = function([&](Tensor x) {
    return while_loop([](const Tensor& s) { return s < 3.f; },
                      [&](const Tensor& s) {
                        w.assign(s);
                        return s + 1.f;
                      },
                      x);
  });
  EXPECT_THROW(in_loop(constant(0.f)), Unsupported);
  const auto wrong = function([&](Tensor x) {
    return cond(
        x > 0.f,
        [&] {
          w.assign(ones({2}));
          return x;
        },
        [&] { return x; });
  });
  EXPECT_THROW(wrong(constant(0.f)), InvalidArgument);
}

TEST(ControlFlow, ATapeInABranchWatchesVariables) {
  const Variable w(constant({2.f, 3.f}), {.name = "w"});
  const auto f = function([&](Tensor x) {
    return cond(
        x.sum() > 0.f,
        [&] {
          GradientTape tape;
          const Tensor gradient = tape.gradient((w * x * w).sum(), w);
          return gradient.is_empty_handle() ? x : gradient;
        },
        [&] { return x; });
  });
  EXPECT_EQ(f(constant({1.f, 10.f})).to_vector<float>(), (Floats{4, 60}));
}

TEST(ControlFlow, ALoopThatChangesAShapeSaysWhatToDo) {
  const auto grows = function([](Tensor x) {
    return while_loop([](const Tensor& s) { return s.sum() < 9.f; },
                      [](const Tensor& s) {
                        return concat({s, s}, 0);
                      },
                      x);
  });
  try {
    grows(ones({2}));
    FAIL() << "not refused";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("pad it to the largest shape"), std::string::npos) << error.what();
  }
}

TEST(ControlFlow, HasGradients) {
  const Variable w(constant({0.5f, 2.f}), {.name = "w"});
  const auto body = [&](Tensor x) {
    const Tensor grown = while_loop([](const std::vector<Tensor>& s) { return s[1] < 4; },
                                    [&](const std::vector<Tensor>& s) {
                                      return std::vector{tanh(s[0] * w), s[1] + 1};
                                    },
                                    std::vector{x, constant(0)})[0];
    return cond(
        grown.sum() > 0.f, [&] { return grown * w; }, [&] { return grown; });
  };
  const Tensor x = constant({0.3f, -0.1f});
  const auto gradient_of = [&](const auto& callable) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(callable(x).sum(), {x, w});
  };
  const auto eager = gradient_of(body), traced = gradient_of(function(body));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) EXPECT_FLOAT_EQ(traced[i].at<float>({j}), eager[i].at<float>({j}));
}

}  // namespace
}  // namespace plimsoll
