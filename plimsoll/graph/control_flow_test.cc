// cond and while_loop in a Graph, with variables that it declares; in functions see function_test.cc.
#include "plimsoll/graph/control_flow.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

struct Counting {
  Graph graph;
  Tensor flag, result;
  std::optional<Variable> count;
  Session session;

  template <class Then, class Otherwise>
  Counting(Then&& then, Otherwise&& otherwise) : session(graph) {
    const GraphScope in(graph);
    flag = placeholder(boolean, {}, "flag");
    count.emplace(constant(10.f), VariableOptions{.name = "count"});
    result = cond(
        flag, [&] { return Tensor(then(*count)); }, [&] { return Tensor(otherwise(*count)); });
    session.initialize_variables();
  }
  float run(bool taken) { return session.run(result, {{flag, constant(taken)}}).item<float>(); }
  float value() { return session.run(count->value()).item<float>(); }
};

TEST(ControlFlowInAGraph, ABranchAssignsADeclaredVariableOnlyWhenItIsTaken) {
  Counting counting([](const Variable& v) { return v.assign_add(constant(1.f)); },
                    [](const Variable& v) { return v.value(); });
  EXPECT_EQ(counting.run(false), 10.f);
  EXPECT_EQ(counting.value(), 10.f);
  EXPECT_EQ(counting.run(true), 11.f);
  EXPECT_EQ(counting.run(true), 12.f);
  EXPECT_EQ(counting.run(false), 12.f);
  EXPECT_EQ(counting.value(), 12.f);
}

TEST(ControlFlowInAGraph, AnAssignmentHappensAlsoWhenTheBranchGivesSomethingElse) {
  Counting counting(
      [](const Variable& v) {
        v.assign(constant(3.f));
        return constant(100.f);
      },
      [](const Variable& v) {
        v.assign_sub(constant(1.f));
        return v.value() * 2.f;  // Sees what was assigned.
      });
  EXPECT_EQ(counting.run(false), 18.f);
  EXPECT_EQ(counting.value(), 9.f);
  EXPECT_EQ(counting.run(true), 100.f);
  EXPECT_EQ(counting.value(), 3.f);
}

TEST(ControlFlowInAGraph, BranchesInsideOfBranchesAssignToo) {
  Counting counting(
      [](const Variable& v) {
        v.assign_add(constant(5.f));
        cond(
            v.value() > 20.f,
            [&] {
              v.assign(constant(0.f));
              return constant(0.f);
            },
            [&] { return v.value(); });
        return v.value();
      },
      [](const Variable& v) { return v.value(); });
  EXPECT_EQ(counting.run(true), 15.f);
  EXPECT_EQ(counting.run(true), 20.f);
  EXPECT_EQ(counting.run(true), 0.f) << "25 is above 20";
  EXPECT_EQ(counting.value(), 0.f);
}

TEST(ControlFlowInAGraph, ResultsHaveGradientsBesideAssignments) {
  Graph graph;
  Tensor x, slope;
  {
    const GraphScope in(graph);
    x = placeholder(f32, {-1}, "x");
    const Variable seen(constant(0.f), {.name = "seen"});
    const Tensor y = cond(
        x.sum() > 0.f,
        [&] {
          seen.assign_add(constant(1.f));
          return square(x);
        },
        [&] { return x; });
    slope = gradients(y.sum(), {x})[0];
  }
  Session session(graph);
  session.initialize_variables();
  EXPECT_EQ(session.run(slope, {{x, constant({1.f, 3.f})}}).to_vector<float>(), (std::vector<float>{2, 6}));
  EXPECT_EQ(session.run(slope, {{x, constant({-1.f})}}).to_vector<float>(), (std::vector<float>{1}));
}

TEST(ControlFlowInAGraph, ALoopThatAssignsADeclaredVariableSaysWhatToDo) {
  Graph graph;
  const GraphScope in(graph);
  const Variable v(constant(0.f), {.name = "v"});
  const Tensor start = placeholder(f32, {}, "start");
  try {
    while_loop([](const Tensor& s) { return s < 3.f; },
               [&](const Tensor& s) {
                 v.assign(s);
                 return s + 1.f;
               },
               start);
    FAIL() << "not refused";
  } catch (const Unsupported& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"v\" is changed inside of a loop; carry the value in the loop's state"));
  }
}

TEST(ControlFlowInAGraph, ALoopWhoseTensorGrowsSaysWhatToDo) {
  Graph graph;
  const GraphScope in(graph);
  const Tensor start = placeholder(f32, {2}, "start");
  try {
    while_loop([](const Tensor& s) { return s.sum() < 9.f; }, [](const Tensor& s) { return concat({s, s}, 0); }, start);
    FAIL() << "not refused";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("pad it to the largest shape"));
  }
}

}  // namespace
}  // namespace plimsoll
