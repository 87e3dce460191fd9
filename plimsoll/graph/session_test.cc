#include "plimsoll/graph/session.h"

#include <gmock/gmock.h>

#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/log.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
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

TEST(Session, AddsAndLeavesOutAxesOfSeveralUnknownSizes) {
  Graph g;
  Tensor x, wide, narrow, slope;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, -1, 2}, "x");
    wide = x.expand_dims(1) * 3.f;
    narrow = wide.squeeze({1});
    slope = gradients(square(narrow).sum(), {x})[0];
  }
  EXPECT_EQ(wide.shape(), (Shape{-1, 1, -1, 2}));
  EXPECT_EQ(narrow.shape(), (Shape{-1, -1, 2}));
  Session session(g);
  const auto out = session.run({wide, narrow, slope}, {{x, ones({4, 3, 2})}});
  EXPECT_EQ(out[0].shape(), (Shape{4, 1, 3, 2}));
  EXPECT_EQ(out[1].shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(out[2].to_vector<float>(), std::vector<float>(24, 18.f));
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

struct Doubler {
  Graph graph;
  Tensor x, y, z;
  Doubler() {
    const GraphScope in(graph);
    const NameScope scope("In");
    x = placeholder(f32, {-1, 2}, "x");
    y = placeholder(f32, {2}, "y");
    z = x * 2.f + y;
  }
};

TEST(Session, NamesThePlaceholderThatDoesNotFit) {
  const Doubler d;
  Session session(d.graph);
  const auto run = [&](const Feeds& feeds) { return [&, feeds] { session.run(d.z, feeds); }; };
  const Tensor x = zeros({3, 2}), y = zeros({2});
  using testing::HasSubstr;
  using testing::ThrowsMessage;
  EXPECT_THAT(run({{d.x, x}}), ThrowsMessage<InvalidArgument>(HasSubstr("In/y")));
  EXPECT_THAT(run({{d.x, zeros({3, 3})}, {d.y, y}}), ThrowsMessage<InvalidArgument>(HasSubstr("In/x")));
  EXPECT_THAT(run({{d.x, zeros({3, 2}, f64)}, {d.y, y}}), ThrowsMessage<InvalidArgument>(HasSubstr("float64")));
  EXPECT_THAT(run({{d.x, x}, {d.x, x}, {d.y, y}}), ThrowsMessage<InvalidArgument>(HasSubstr("twice")));
  EXPECT_THAT(run({{d.x, d.x}, {d.y, y}}), ThrowsMessage<InvalidArgument>(HasSubstr("symbolic")));
  EXPECT_THAT(run({{x, x}, {d.y, y}}), ThrowsMessage<InvalidArgument>(HasSubstr("not symbolic")));
  const Tensor disposed = zeros({3, 2});
  disposed.dispose();
  EXPECT_THROW(run({{d.x, disposed}, {d.y, y}})(), Disposed);
  EXPECT_EQ(session.run(d.z, {{d.x, x}, {d.y, y}}).shape(), (Shape{3, 2}));
}

struct Twice {
  Graph graph;
  Tensor x, y;
  Twice() {
    const GraphScope in(graph);
    x = placeholder(f32, {-1, 2}, "x");
    y = x * 2.f;
  }
};

TEST(Session, SaysWhatIsWrongWithAFeedOrFetch) {
  const Twice d;
  Session session(d.graph);
  const Tensor value = zeros({1, 2});
  const auto error_of = [&](const Tensor& fetch, const Feeds& feeds) -> std::string {
    try {
      session.run(fetch, feeds);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  using testing::HasSubstr;
  EXPECT_EQ(error_of(d.y, {{d.x, value}}), "");
  EXPECT_THAT(error_of(d.y, {{d.x, Tensor()}}), HasSubstr("the value fed to \"x\""));
  EXPECT_THAT(error_of(d.y, {{d.x, d.x}}), HasSubstr("is symbolic"));
  EXPECT_THAT(error_of(d.y, {{d.x, value}, {d.x, value}}), HasSubstr("\"x\" is fed twice"));
  EXPECT_THAT(error_of(d.y, {{value, value}}), HasSubstr("is not symbolic"));
  EXPECT_THAT(error_of(value, {{d.x, value}}), HasSubstr("is not symbolic"));
  EXPECT_THAT(error_of(Tensor(), {{d.x, value}}), HasSubstr("fetch"));
  const Twice other;
  EXPECT_THAT(error_of(other.y, {{d.x, value}}), HasSubstr("belongs to another graph"));
  EXPECT_THAT(error_of(d.y, {{other.x, value}}), HasSubstr("belongs to another graph"));
  Tensor orphan;
  {
    const Twice gone;
    orphan = gone.y;
  }
  EXPECT_THAT(error_of(orphan, {{d.x, value}}), HasSubstr("graph"));
  EXPECT_THROW(session.run(orphan, {{d.x, value}}), FailedPrecondition);
  EXPECT_THROW(orphan + d.x, FailedPrecondition);
  const GraphScope in(d.graph);
  EXPECT_THROW(ControlDependencies({other.y}), FailedPrecondition);  // So there is no way to a cycle.
  EXPECT_THROW(group({d.y, other.y}), FailedPrecondition);
}

TEST(Session, ARunAllocatesNothingOnTheHeapButTheListItGives) {
  const Twice d;
  Session session(d.graph);
  const Feeds feeds{{d.x, zeros({1, 2})}};
  const std::vector<Tensor> both = {d.y, d.x};
  for (int i = 0; i < 3; ++i) session.run(d.y, feeds), session.run(both, feeds);
  std::size_t before = heap_allocations();
  for (int i = 0; i < 100; ++i) session.run(d.y, feeds);
  EXPECT_EQ(heap_allocations(), before);
  before = heap_allocations();
  for (int i = 0; i < 100; ++i) session.run(both, feeds);
  EXPECT_EQ(heap_allocations(), before + 100);
}

TEST(Session, FeedsAndFetchesAnyNode) {
  Graph g;
  Tensor x, y, z;
  {
    const GraphScope in(g);
    x = placeholder(f32, {2}, "x");
    y = x * 2.f;
    z = y + 1.f;
  }
  Session session(g);
  EXPECT_EQ(session.run(z, {{y, constant({1.f, 2.f})}}).to_vector<float>(), (std::vector<float>{2, 3}));
  const auto both = session.run({y, z}, {{y, constant({1.f, 2.f})}});
  EXPECT_EQ(both[0].to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_TRUE(session.run(std::vector<Tensor>{}).empty());
}

TEST(Session, ReadsEagerVariablesAsTheyAre) {
  const Variable w(ones({2}), {.name = "w"});
  Graph g;
  Tensor x;
  {
    const GraphScope in(g);
    x = placeholder(f32, {2}, "x");
  }
  const Tensor y = x * w;  // Outside the scope: still the variable, not its value.
  Session session(g);
  EXPECT_EQ(session.run(y, {{x, ones({2})}}).to_vector<float>(), (std::vector<float>{1, 1}));
  w.assign(full({2}, 3.f));
  EXPECT_EQ(session.run(y, {{x, ones({2})}}).to_vector<float>(), (std::vector<float>{3, 3}));
}

TEST(Session, HandsOutSnapshotsOfVariables) {
  Graph g;
  Tensor read, increment;
  {
    const GraphScope in(g);
    const Variable w(zeros({2}), {.name = "w"});
    read = w.value();
    increment = w.assign_add(ones({2}));
  }
  Session session(g);
  session.initialize_variables();
  const Tensor before = session.run(read);
  const auto both = session.run({read, increment});
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(both[0].to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(both[1].to_vector<float>(), (std::vector<float>{1, 1}));
  session.run(increment);
  EXPECT_EQ(both[1].to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Session, StaysTheSameOverManyRuns) {
  const Doubler d;
  Session session(d.graph);
  const Feeds feeds{{d.x, zeros({3, 2})}, {d.y, zeros({2})}};
  session.run(d.z, feeds);
  const MemoryInfo before = memory();
  const std::size_t nodes = d.graph.size();
  for (int i = 0; i < 10000; ++i) session.run(d.z, feeds);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(d.graph.size(), nodes);
  EXPECT_EQ(session.memory_report().plans, 1u);
}

TEST(Session, RefusesWhatPassesItsBudget) {
  Graph g;
  Tensor x, y;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 1024}, "x");
    y = (x * 2.f + x.sum({0})).sum();
  }
  Session session(g, {.budget = 64 << 10});
  EXPECT_EQ(session.run(y, {{x, zeros({4, 1024})}}).item<float>(), 0);
  const Tensor large = zeros({64, 1024});
  EXPECT_THROW(session.run(y, {{x, large}}), OutOfMemory);
  EXPECT_EQ(session.run(y, {{x, zeros({4, 1024})}}).item<float>(), 0);
}

TEST(Session, RunsOnSeveralThreadsAtOnce) {
  Graph g;
  Tensor x, y, increment, read;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 8}, "x");
    const Variable w(ones({8, 8}), {.name = "w"});
    const Variable counter(zeros({}), {.name = "counter"});
    y = relu(matmul(x, w)) + x;
    increment = counter.assign_add(ones({}));
    read = counter.value();
  }
  Session session(g);
  session.initialize_variables();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Tensor value = full({t + 1, 8}, static_cast<float>(t));
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(session.run(y, {{x, value}}).at<float>({t, 7}), static_cast<float>(9 * t));
        session.run(increment);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(session.run(read).item<float>(), 800);
}

TEST(Session, RefusesIndicesOutsideWhenItRuns) {
  Graph g;
  Tensor i, y;
  {
    const GraphScope in(g);
    i = placeholder(i32, {-1}, "i");
    y = gather(constant({1.f, 2.f, 3.f}), i);
  }
  Session session(g);
  EXPECT_EQ(session.run(y, {{i, constant({2, 0})}}).to_vector<float>(), (std::vector<float>{3, 1}));
  EXPECT_THROW(session.run(y, {{i, constant({3})}}), InvalidArgument);
}

TEST(Session, SaysOnceThatTheGraphGrows) {
  std::vector<std::string> logged;
  LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged.emplace_back(text); });
  const Doubler d;
  Session session(d.graph);
  for (int i = 0; i < 40; ++i) session.run(d.x * 2.f, {{d.x, zeros({1, 2})}});
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_THAT(logged[0], testing::HasSubstr("\"multiply"));
  EXPECT_THAT(logged[0], testing::HasSubstr("operation multiply"));
  EXPECT_THAT(logged[0], testing::HasSubstr("site unknown"));
  Session another(d.graph);
  for (int i = 0; i < 40; ++i) {
    // As if the call stood in a program's own source: places in the library's are not told.
    const GraphScope in(d.graph, {"somewhere/train.cc", 42});
    const NameScope scope("loop", {"", 0});
    const Tensor y = d.x + 1.f;
    const TraceWith nobody(nullptr);
    another.run(y, {{d.x, zeros({1, 2})}});
  }
  set_log_sink(std::move(before));
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_THAT(logged[1], testing::HasSubstr("operation add, scope \"loop_16\", site somewhere/train.cc:42"));
}

TEST(Train, EveryOptimizerLearns) {
  const auto loss_after = [](const train::Optimizer& optimizer) {
    Graph g;
    Tensor x, loss, step;
    {
      const GraphScope in(g);
      x = placeholder(f32, {-1, 2}, "x");
      const Variable w(full({2, 1}, 2.f), {.name = "w"});
      loss = square(matmul(x, w)).mean();
      step = optimizer.minimize(loss);
    }
    Session session(g);
    session.initialize_variables();
    const Tensor xs = ones({4, 2});
    for (int i = 0; i < 100; ++i) session.run(step, {{x, xs}});
    return session.run(loss, {{x, xs}}).item<float>();
  };
  EXPECT_LT(loss_after(train::GradientDescentOptimizer(0.1)), 0.1f);
  EXPECT_LT(loss_after(train::MomentumOptimizer(0.01, 0.9)), 0.1f);
  EXPECT_LT(loss_after(train::AdagradOptimizer(0.5)), 0.1f);
  EXPECT_LT(loss_after(train::RMSPropOptimizer(0.05)), 0.1f);
  EXPECT_LT(loss_after(train::AdamOptimizer(0.1)), 0.1f);
}

TEST(Train, RefusesALossThatDependsOnNothing) {
  Graph g;
  const GraphScope in(g);
  const Tensor loss = placeholder(f32, {}, "x") * 2.f;
  EXPECT_THROW(train::AdamOptimizer(0.1).minimize(loss), InvalidArgument);
  const TraceWith eager(nullptr);
  EXPECT_THROW(train::AdamOptimizer(0.1).minimize(zeros({})), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
