#include "plimsoll/graph/session.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll {
namespace {

TEST(Session, RunsWhatIsAskedFor) {
  Graph g;
  Tensor x, y, z;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 2}, "x");
    y = x * 2.f;
    z = y + x;
  }
  EXPECT_EQ(y.name(), "multiply");
  Session session(g);
  const Tensor value = constant({{1.f, 2.f}, {3.f, 4.f}});
  const auto out = session.run({y, z, y}, {{x, value}});
  EXPECT_EQ(out[0].to_vector<float>(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(out[1].to_vector<float>(), (std::vector<float>{3, 6, 9, 12}));
  EXPECT_EQ(out[2].to_vector<float>(), out[0].to_vector<float>());
  EXPECT_EQ(session.run(z, {{x, constant({{1.f, 1.f}})}}).shape(), (Shape{1, 2}));
}

TEST(Session, GivesEachVariableAValueOfItsOwn) {
  Graph g;
  Tensor read, increment;
  {
    const GraphScope in(g);
    const Variable counter(zeros({2}), {.name = "counter"});
    read = counter.value();
    increment = counter.assign_add(ones({2}));
  }
  Session a(g), b(g);
  EXPECT_THROW(a.run(read), FailedPrecondition);
  a.initialize_variables();
  b.initialize_variables();
  for (int i = 0; i < 3; ++i) a.run(increment);
  EXPECT_EQ(a.run(read).to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(b.run(read).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Session, LearnsALine) {
  Graph g;
  Tensor x, y, loss, train;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 4}, "x");
    y = placeholder(f32, {-1, 1}, "y");
    const Variable w(random_normal({4, 1}, {.seed = 3}), {.name = "w"});
    const Variable b(zeros({1}), {.name = "b"});
    loss = square(matmul(x, w) + b - y).mean();
    const auto gradient = gradients(loss, {w, b});
    train = group({w.assign_sub(gradient[0] * 0.1f), b.assign_sub(gradient[1] * 0.1f)});
  }
  const Tensor xs = random_normal({64, 4}, {.seed = 1}), ys = xs.sum({1}, {.keep_dims = true});
  Session session(g);
  session.initialize_variables();
  const float first = session.run(loss, {{x, xs}, {y, ys}}).item<float>();
  for (int step = 0; step < 100; ++step) EXPECT_TRUE(session.run({train}, {{x, xs}, {y, ys}})[0].is_empty_handle());
  EXPECT_LT(session.run(loss, {{x, xs}, {y, ys}}).item<float>(), first / 10);
}

TEST(Session, GivesEverythingBackWhenClosed) {
  const MemoryInfo before = memory();
  {
    Graph g;
    Tensor x, y;
    {
      const GraphScope in(g);
      x = placeholder(f32, {-1, 64}, "x");
      const Variable w(random_normal({64, 64}), {.name = "w"});
      y = matmul(x, w);
    }
    Session session(g);
    session.initialize_variables();
    session.run(y, {{x, zeros({8, 64})}});
    EXPECT_EQ(memory().num_bytes, before.num_bytes + 64 * 64 * 4);
    session.close();
    session.close();
    EXPECT_TRUE(session.is_closed());
    EXPECT_EQ(memory().num_bytes, before.num_bytes);
    EXPECT_THROW(session.run(y), FailedPrecondition);
  }
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

}  // namespace
}  // namespace plimsoll
