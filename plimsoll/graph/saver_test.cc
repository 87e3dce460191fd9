#include "plimsoll/graph/saver.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/io_testing.h"
#include "plimsoll/io/object_graph.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

// A line that learns, with Adam's slots.
struct Line {
  Graph graph;
  Tensor x, y, loss, train, w, b;
  explicit Line(std::int64_t inputs = 2) {
    const GraphScope in(graph);
    x = placeholder(f32, {-1, inputs}, "x");
    y = placeholder(f32, {-1, 1}, "y");
    const NameScope scope("dense");
    const Variable kernel(ones({inputs, 1}), {.name = "kernel"});
    const Variable bias(zeros({1}), {.name = "bias"});
    w = kernel.value();
    b = bias.value();
    loss = square(matmul(x, kernel) + bias - y).mean();
    train = train::AdamOptimizer(0.1).minimize(loss);
  }
  Feeds feeds() const { return {{x, constant({{1.f, 2.f}, {3.f, 4.f}})}, {y, constant({{1.f}, {2.f}})}}; }
};

class SaverTest : public FileFixture {
 protected:
  std::string at(const char* name) const { return (directory_ / name).string(); }
};

TEST_F(SaverTest, GoesOnWhereItSaved) {
  const Line line;
  Session first(line.graph), second(line.graph);
  first.initialize_variables();
  for (int i = 0; i < 3; ++i) first.run({line.train}, line.feeds());
  Saver saver;
  const std::string path = saver.save(first, at("run/model.ckpt"), 3);
  EXPECT_EQ(path, at("run/model.ckpt-3"));
  EXPECT_EQ(latest_checkpoint(directory_ / "run"), path);
  saver.restore(second, path);  // Without initialize_variables().
  for (int i = 0; i < 3; ++i) {
    first.run({line.train}, line.feeds());
    second.run({line.train}, line.feeds());
  }
  EXPECT_EQ(first.run(line.w).to_vector<float>(), second.run(line.w).to_vector<float>());
  EXPECT_EQ(first.run(line.loss, line.feeds()).item<float>(), second.run(line.loss, line.feeds()).item<float>());
  const BundleReader reader(path);
  EXPECT_TRUE(reader.contains("dense/kernel"));
  EXPECT_EQ(reader.entries().size(), 7u) << "two variables with two slots each, and the number of steps";
}

TEST_F(SaverTest, KeepsTheNewestAndGoesOnAfterARestart) {
  const Line line;
  Session session(line.graph);
  session.initialize_variables();
  {
    Saver saver({.max_to_keep = 2});
    for (int step = 1; step <= 3; ++step) saver.save(session, at("m"), step);
    EXPECT_THAT(saver.checkpoints(), ElementsAre(at("m-2"), at("m-3")));
  }
  EXPECT_THAT(names(), ElementsAre("checkpoint", "m-2.data-00000-of-00001", "m-2.index", "m-3.data-00000-of-00001",
                                   "m-3.index"));
  Saver again({.max_to_keep = 2});
  again.recover(directory_.string());
  EXPECT_EQ(again.save(session, at("m")), at("m"));
  EXPECT_THAT(again.checkpoints(), ElementsAre(at("m-3"), at("m")));
  EXPECT_FALSE(fs::exists(at("m-2.index")));
}

TEST_F(SaverTest, RestoresInPlaceAndLeavesSnapshotsAlone) {
  const Line line;
  Session session(line.graph);
  session.initialize_variables();
  Saver saver;
  const std::string path = saver.save(session, at("m"));
  session.run({line.train}, line.feeds());
  const Tensor trained = session.run(line.w);
  const std::vector<float> before = trained.to_vector<float>();
  EXPECT_NE(before, (std::vector<float>{1, 1}));
  saver.restore(session, path);
  EXPECT_EQ(session.run(line.w).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(trained.to_vector<float>(), before) << "a value that was fetched is not written over";
}

TEST_F(SaverTest, NamesAllThatDoesNotFitAndChangesNothing) {
  Graph other;
  {
    const GraphScope in(other);
    const Variable kernel(ones({3, 1}), {.name = "dense/kernel"});
    const Variable bias(zeros({1}), {.name = "dense/bias"});
    const Variable extra(zeros({1}), {.name = "more"});
  }
  Saver saver;
  std::string path;
  {
    Session session(other);
    session.initialize_variables();
    path = saver.save(session, at("m"));
  }
  const Line line;
  Session session(line.graph);
  session.initialize_variables();
  session.run({line.train}, line.feeds());
  const std::vector<float> before = session.run(line.w).to_vector<float>();
  const std::string message = message_of<NotFound>([&] { saver.restore(session, path); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("5 missing"), HasSubstr("\"dense/kernel/Adam/m\""), HasSubstr("\"Adam/step\""),
                    HasSubstr("\"dense/kernel\" (float32 [3, 1] in the checkpoint, float32 [2, 1] wanted)"),
                    HasSubstr("1 in the checkpoint but not requested: \"more\""), Not(HasSubstr("\"dense/bias\","))));
  EXPECT_EQ(session.run(line.w).to_vector<float>(), before);

  Session fresh(line.graph);
  EXPECT_THROW(saver.restore(fresh, path), NotFound);
  EXPECT_EQ(fresh.uninitialized_variables().size(), 7u);
  EXPECT_THAT(message_of<NotFound>([&] { saver.restore(session, at("absent")); }), HasSubstr("absent"));

  Saver some({.variables = {"dense/kernel"}});
  EXPECT_THROW(some.restore(session, path), InvalidArgument) << "only shapes differ";
}

TEST_F(SaverTest, ADamagedCheckpointChangesNothing) {
  const Line line;
  Session session(line.graph), fresh(line.graph);
  session.initialize_variables();
  Saver saver;
  const std::string path = saver.save(session, at("m"));
  session.run({line.train}, line.feeds());
  const std::vector<float> before = session.run(line.w).to_vector<float>();
  std::string data = get(path + ".data-00000-of-00001");
  data.back() = static_cast<char>(data.back() ^ 1);
  put(path + ".data-00000-of-00001", data);
  EXPECT_THROW(saver.restore(session, path), Corruption);
  EXPECT_EQ(session.run(line.w).to_vector<float>(), before);
  EXPECT_THROW(saver.restore(fresh, path), Corruption);
  EXPECT_EQ(fresh.uninitialized_variables().size(), 7u);
}

TEST_F(SaverTest, SavesAndRestoresOnlyWhatItIsGiven) {
  const Line line;
  Session session(line.graph);
  session.initialize_variables();
  Saver weights({.variables = {"dense/kernel", "dense/bias"}});
  const std::string path = weights.save(session, at("w"));
  EXPECT_EQ(BundleReader(path).entries().size(), 2u);
  Session fresh(line.graph);
  weights.restore(fresh, path);
  EXPECT_EQ(fresh.run(line.w).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(fresh.uninitialized_variables().size(), 5u);
  Saver wrong({.variables = {"dense/kernel", "dense/kernal"}});
  EXPECT_THAT(message_of<NotFound>([&] { wrong.save(session, at("x")); }), HasSubstr("\"dense/kernal\""));
  EXPECT_THROW(wrong.restore(session, path), NotFound);

  // What is extra is fine, unless exactness is asked for.
  const std::string whole = Saver().save(session, at("all"));
  Session third(line.graph);
  weights.restore(third, whole);
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                Saver({.variables = {"dense/kernel", "dense/bias"}, .exact = true}).restore(third, whole);
              }),
              HasSubstr("5 in the checkpoint but not requested"));
}

TEST_F(SaverTest, RefusesWhatHasNoValueNoVariablesOrOneNameTwice) {
  const Line line;
  Session session(line.graph);
  Saver saver;
  EXPECT_THAT(message_of<FailedPrecondition>([&] { saver.save(session, at("m")); }), HasSubstr("\"dense/kernel\""));
  EXPECT_THAT(names(), ElementsAre());
  session.close();
  EXPECT_THROW(saver.save(session, at("m")), FailedPrecondition);
  const Graph empty;
  Session nothing(empty);
  EXPECT_THROW(saver.save(nothing, at("m")), FailedPrecondition);
  EXPECT_THROW(saver.restore(nothing, at("m")), FailedPrecondition);

  Graph twice;
  const Variable a(ones({1}), {.name = "v"}), b(ones({1}), {.name = "v"});
  {
    const GraphScope in(twice);
    const Tensor sum = Tensor(a) + Tensor(b);
  }
  Session both(twice);
  EXPECT_THAT(message_of<InvalidArgument>([&] { saver.save(both, at("m")); }), HasSubstr("\"v\""));
}

TEST_F(SaverTest, TakesEagerVariablesThatTheGraphUses) {
  Graph graph;
  const Variable eager(constant({1.f, 2.f}), {.name = "eager"});
  {
    const GraphScope in(graph);
    const Tensor twice = Tensor(eager) * 2.f;
  }
  Session session(graph);
  Saver saver;
  const std::string path = saver.save(session, at("m"));
  eager.assign(constant({5.f, 6.f}));
  saver.restore(session, path);
  EXPECT_EQ(eager.value().to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST_F(SaverTest, ReadsObjectBasedCheckpointsByFullNames) {
  const std::vector<ObjectVariable> objects = {{{"layer_with_weights-0", "kernel"}, "dense/kernel"},
                                               {{"layer_with_weights-0", "bias"}, "dense/bias"}};
  const std::string graph = make_object_graph(objects);
  BundleWriter writer(at("keras"));
  writer.add(object_key(objects[0].path), tensor_of<float>({2, 1}, {7, 8}));
  writer.add(object_key(objects[1].path), tensor_of<float>({1}, {9}));
  writer.add_strings(kObjectGraphKey, {}, {&graph, 1});
  writer.commit();
  const Line line;
  Session session(line.graph);
  Saver({.variables = {"dense/kernel", "dense/bias"}, .exact = true}).restore(session, at("keras"));
  EXPECT_EQ(session.run(line.w).to_vector<float>(), (std::vector<float>{7, 8}));
  EXPECT_EQ(session.run(line.b).to_vector<float>(), (std::vector<float>{9}));
}

// 4 MiB of weights in a session of 5: neither saving nor restoring makes a second copy.
TEST_F(SaverTest, StaysWithinTheSessionsBudget) {
  Graph graph;
  Tensor w;
  {
    const GraphScope in(graph);
    w = Variable(full({1024, 1024}, 0.5f), {.name = "w"}).value();
  }
  Saver saver;
  std::string path;
  {
    Session session(graph);
    session.initialize_variables();
    path = saver.save(session, at("m"));
    const std::size_t before = memory().num_bytes;
    const Budget budget("restore", 1_MiB);
    const BudgetScope use(budget);
    saver.restore(session, path);
    EXPECT_EQ(memory().num_bytes, before);
    EXPECT_LE(budget.peak(), 1_MiB / 16);
  }
  Session fits(graph, {.budget = 5_MiB}), too_small(graph, {.budget = 3_MiB});
  saver.restore(fits, path);
  EXPECT_EQ(fits.run(w).at<float>({1023, 1023}), 0.5f);
  saver.restore(fits, path);  // In place.
  EXPECT_THROW(saver.restore(too_small, path), OutOfMemory);
  EXPECT_EQ(too_small.uninitialized_variables().size(), 1u);
}

// Values come from between two runs: all counters are equal in every checkpoint.
TEST_F(SaverTest, SavesWhileAnotherThreadTrains) {
  Graph graph;
  Tensor step;
  {
    const GraphScope in(graph);
    std::vector<Tensor> changes;
    for (int i = 0; i < 8; ++i) {
      const Variable counter(zeros({100}), {.name = "c" + std::to_string(i)});
      changes.push_back(counter.assign_add(ones({100})));
    }
    step = group(changes);
  }
  Session session(graph);
  session.initialize_variables();
  std::atomic<bool> stop{false};
  std::thread trainer([&] {
    while (!stop) session.run({step});
  });
  Saver saver({.max_to_keep = 1});
  for (int i = 0; i < 10; ++i) {
    const BundleReader reader(saver.save(session, at("m"), i));
    const float first = reader.read("c0").at<float>({0});
    for (const BundleEntry& entry : reader.entries())
      for (const float value : reader.read(entry.key).to_vector<float>()) ASSERT_EQ(value, first) << entry.key;
  }
  saver.restore(session, saver.checkpoints().back());
  stop = true;
  trainer.join();
}

}  // namespace
}  // namespace plimsoll
