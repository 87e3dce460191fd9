// Each pass by itself, over lists of steps.
#include "plimsoll/graph/program_passes.h"

#include <gmock/gmock.h>

#include "plimsoll/graph/function.h"
#include "plimsoll/graph/program_recompute.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using Place = StepList::Place;

// What `f` does with a placeholder of this shape, rewritten.
Rewritten rewritten_of(const Shape& shape, const std::function<std::vector<Tensor>(Tensor)>& f) {
  const auto graph = GraphState::make(GraphState::Role::kTrace);
  std::vector<ValueId> fetches;
  std::vector<Feed> feeds;
  {
    const TraceWith tracing(graph.get());
    const Tensor x = graph->add_placeholder({shape, f32}, device_of(zeros({})), "x");
    feeds.push_back({graph->resolve(x, "test", "x"), {shape, f32}});
    for (const Tensor& fetch : f(x)) fetches.push_back(graph->resolve(fetch, "test", "a fetch"));
  }
  return rewrite(*graph, feeds, fetches, true, {});
}

std::vector<std::string> names_of(const StepList& list) {
  std::vector<std::string> names;
  for (const StepList::Step& step : list.steps) names.emplace_back(step.op->name());
  return names;
}

TEST(ListSteps, HasAStepForEachOperationAndNoneForViews) {
  const StepList list =
      list_steps(rewritten_of({4, 6}, [](const Tensor& x) { return std::vector{tanh(x.reshape({24}))}; }), false);
  ASSERT_THAT(names_of(list), ElementsAre("tanh"));
  EXPECT_EQ(list.root_of(list.steps[0].in[0]).place, Place::kFeed);
  EXPECT_EQ(list.spec(list.steps[0].in[0]).shape, Shape({24}));
  EXPECT_EQ(list.fetches, list.steps[0].out);
}

TEST(ListSteps, CopiesAReadThatOutlivesAChange) {
  const Variable v(ones({8}));
  const StepList list = list_steps(rewritten_of({8},
                                                [&](const Tensor& x) {
                                                  const Tensor before(v);
                                                  v.assign(x);
                                                  return std::vector{before * x};
                                                }),
                                   false);
  ASSERT_THAT(names_of(list), ElementsAre("assign", "assign", "multiply"));
  EXPECT_EQ(list.root_of(list.steps[0].in[0]).place, Place::kVariable);  // The copy's operand.
  EXPECT_EQ(list.root_of(list.steps[0].out[0]).place, Place::kPlanned);
  EXPECT_EQ(list.root_of(list.steps[1].out[0]).place, Place::kVariable);
  EXPECT_TRUE(list.changes_variables(list.steps[1]));
  EXPECT_FALSE(list.changes_variables(list.steps[0]));
}

TEST(ChooseOrder, ChangesVariablesAsSoonAsTheirNewValuesAreThere) {
  const Variable v(ones({8}));
  StepList list = list_steps(rewritten_of({8},
                                          [&](const Tensor& x) {
                                            const Tensor next = exp(x), other = tanh(x);
                                            v.assign(next);
                                            return std::vector{other};
                                          }),
                             false);
  EXPECT_THAT(names_of(list), ElementsAre("exp", "tanh", "assign"));
  choose_order(list, {});
  EXPECT_THAT(names_of(list), ElementsAre("exp", "assign", "tanh"));
}

TEST(FuseLayers, MakesOneStepOfAProductItsBiasAndActivation) {
  const Tensor w = ones({6, 3}), b = ones({3});
  StepList list =
      list_steps(rewritten_of({4, 6}, [&](const Tensor& x) { return std::vector{relu(matmul(x, w) + b)}; }), false);
  const std::size_t planned = list.roots.size();
  fuse_layers(list, {});
  EXPECT_THAT(names_of(list), ElementsAre("dense"));
  EXPECT_EQ(list.steps[0].in.size(), 3u);
  EXPECT_EQ(list.roots.size(), planned);  // What nobody sees any more takes no bytes.
  std::size_t bytes = 0;
  for (const StepList::Root& root : list.roots)
    if (root.place == Place::kPlanned) bytes += root.bytes;
  EXPECT_EQ(bytes, 4u * 3 * 4);
}

// A tape would keep a mask of a large relu: an output that the plan has no place for.
TEST(FuseLayers, MakesStepsThatGiveNoMoreThanIsPlanned) {
  const Tensor w = ones({512, 512}), b = ones({512});
  StepList list =
      list_steps(rewritten_of({256, 512}, [&](const Tensor& x) { return std::vector{relu(matmul(x, w) + b)}; }), false);
  fuse_layers(list, {});
  ASSERT_THAT(names_of(list), ElementsAre("dense"));
  std::vector<SpecRef> operands;
  for (const std::uint32_t in : list.steps[0].in) operands.push_back({&list.spec(in).shape, list.spec(in).dtype});
  SpecList out;
  list.steps[0].op->infer(Specs(operands), out);
  EXPECT_EQ(out.size(), list.steps[0].out.size());
}

TEST(FuseLayers, LeavesIntegersAlone) {
  const auto f = function([](const Tensor& x, const Tensor& w, const Tensor& b) { return relu(matmul(x, w) + b); });
  const Tensor x = cast(ones({2, 3}), i32), w = cast(ones({3, 4}), i32), b = cast(ones({4}), i32);
  EXPECT_EQ(f(x, w, b).to_vector<std::int32_t>(), std::vector<std::int32_t>(8, 4));
}

TEST(FuseChains, JoinsWhatOnlyTheNextStepReads) {
  const auto f = [](const Tensor& x) {
    const Tensor shared = exp(x);
    return std::vector{tanh(sigmoid(shared)) + shared};
  };
  StepList list = list_steps(rewritten_of({64, 64}, f), false);
  EXPECT_THAT(names_of(list), ElementsAre("exp", "sigmoid", "tanh", "add"));
  fuse_chains(list);
  EXPECT_THAT(names_of(list), ElementsAre("exp", "chain"));
}

TEST(ShareBytes, LetsAResultTakeThePlaceOfAnOperandThatEnds) {
  StepList list = list_steps(rewritten_of({8, 8},
                                          [](const Tensor& x) {
                                            const Tensor a = matmul(x, x), b = tanh(a);
                                            return std::vector{matmul(b, b)};
                                          }),
                             false);
  find_lifetimes(list);
  place_results(list);
  const std::uint32_t a = list.values[list.steps[0].out[0]].root, b = list.values[list.steps[1].out[0]].root;
  EXPECT_EQ(list.roots[a].first, 0);
  EXPECT_EQ(list.roots[a].last, 1);
  const std::vector<std::uint32_t> taken = share_bytes(list);
  EXPECT_THAT(taken, ElementsAre(StepList::kNone, a, StepList::kNone));
  EXPECT_EQ(list.find(a), b);
  EXPECT_EQ(list.roots[b].first, 0);
  EXPECT_EQ(list.root_of(list.fetches[0]).place, Place::kResult);
}

TEST(PlaceBuffers, PutsBuffersThatLiveAtOnceApart) {
  StepList list = list_steps(rewritten_of({8, 8},
                                          [](const Tensor& x) {
                                            const Tensor a = matmul(x, x), b = matmul(a, x);
                                            return std::vector{matmul(a, b)};
                                          }),
                             false);
  find_lifetimes(list);
  place_results(list);
  const BufferPlaces places = place_buffers(list);
  ASSERT_EQ(places.extents.size(), 1u);
  const std::uint32_t a = list.values[list.steps[0].out[0]].root, b = list.values[list.steps[1].out[0]].root;
  EXPECT_NE(places.root_offsets[a], places.root_offsets[b]);
  EXPECT_GE(places.extent_bytes(), places.lower_bound);
  EXPECT_GE(places.extent_bytes(), 2u * 256);
  const ProgramTables tables = emit(list, places);
  EXPECT_EQ(tables.steps.size(), 3u);
  EXPECT_EQ(tables.plan.extent_bytes, places.extent_bytes());
  EXPECT_EQ(tables.block_bytes(), places.extent_bytes() + 256);
}

TEST(StepCost, CountsBytesAndMultiplications) {
  const Tensor w = ones({6, 3}), filter = ones({3, 3, 2, 4});
  const auto cost_of = [](const Shape& shape, const std::function<std::vector<Tensor>(Tensor)>& f) {
    const StepList list = list_steps(rewritten_of(shape, f), false);
    std::uint64_t cost = 0;
    for (const StepList::Step& step : list.steps) cost += list.cost_of(step);
    return cost;
  };
  EXPECT_EQ(cost_of({4, 6}, [](const Tensor& x) { return std::vector{tanh(x)}; }), 2u * 24 * 4);
  EXPECT_EQ(cost_of({4, 6}, [&](const Tensor& x) { return std::vector{matmul(x, w)}; }), (24u + 18 + 12) * 4 + 12 * 6);
  EXPECT_EQ(cost_of({6, 4}, [&](const Tensor& x) { return std::vector{matmul(x, w, {.transpose_a = true})}; }),
            (24u + 18 + 12) * 4 + 12 * 6);
  EXPECT_EQ(cost_of({1, 5, 5, 2}, [&](const Tensor& x) { return std::vector{conv2d(x, filter, {.padding = "same"})}; }),
            (50u + 72 + 100) * 4 + 100 * 18);
  EXPECT_EQ(cost_of({2, 4, 8, 16}, [&](const Tensor& x) { return std::vector{scaled_dot_product_attention(x, x, x)}; }),
            4u * 1024 * 4 + 2 * 2 * 1024 * 8);
}

// A step of y = f(x), read once more at the end.
StepList with_late_reader(bool random) {
  return list_steps(rewritten_of({16, 16},
                                 [&](const Tensor& x) {
                                   const Tensor early = random ? dropout(x, 0.5) : exp(x);
                                   const Tensor late = softmax(matmul(early, x));
                                   return std::vector{matmul(late, early)};
                                 }),
                    false);
}

TEST(StepProgram, RepeatsPureAndRandomStepsOnly) {
  const Variable v(ones({16, 16}));
  const Rewritten rewritten = rewritten_of({16, 16}, [&](const Tensor& x) {
    const Tensor a = exp(x) * Tensor(v);
    v.assign_add(a);
    return std::vector{dropout(a, 0.5) * Tensor(v)};
  });
  const StepList list = list_steps(rewritten, false);
  const StepProgram program = step_program_of(list, {});
  check_program(program);
  ASSERT_EQ(program.steps.size(), list.steps.size());
  int changes = 0;
  for (std::size_t i = 0; i < list.steps.size(); ++i) {
    const bool is_change = list.changes_variables(list.steps[i]);
    EXPECT_EQ(program.steps[i].may_repeat, !is_change) << list.steps[i].op->name();
    EXPECT_GT(program.steps[i].cost, 0u);
    if (!is_change) continue;
    ++changes;  // The variable is another value from here on, which takes over the one before.
    ASSERT_EQ(program.steps[i].takes_over.size(), 1u);
    const int before = program.steps[i].takes_over[0];
    EXPECT_TRUE(program.values[static_cast<std::size_t>(before)].is_given);
    EXPECT_EQ(program.values[static_cast<std::size_t>(before)].bytes, 0u);
    EXPECT_THAT(program.steps[i].reads, testing::Contains(before));
    for (std::size_t k = i + 1; k < list.steps.size(); ++k)
      EXPECT_THAT(program.steps[k].reads, testing::Not(testing::Contains(before)));
  }
  EXPECT_EQ(changes, 1);
}

TEST(WithRepeats, GivesLaterReadersACopy) {
  for (const bool random : {false, true}) {
    const StepList list = with_late_reader(random);
    ASSERT_EQ(list.steps.size(), 4u);
    const StepProgram program = step_program_of(list, {});
    const int early = program.steps[0].writes[0];
    StepSchedule schedule{.completed = true};
    schedule.entries = {{Action::kRun, 0}, {Action::kRun, 1},   {Action::kDrop, early},
                        {Action::kRun, 2}, {Action::kAgain, 0}, {Action::kRun, 3}};
    StepList leaner = with_repeats(list, program, schedule);
    ASSERT_EQ(leaner.steps.size(), 5u);
    EXPECT_TRUE(leaner.steps[3].is_again);
    EXPECT_FALSE(leaner.steps[3].checks);
    EXPECT_EQ(leaner.steps[3].in, list.steps[0].in);
    EXPECT_NE(leaner.steps[3].out, list.steps[0].out);
    EXPECT_EQ(leaner.steps[4].in[1], leaner.steps[3].out[0]);
    EXPECT_EQ(&leaner.spec(leaner.steps[3].out[0]), &list.spec(list.steps[0].out[0]));
    find_lifetimes(leaner);
    EXPECT_EQ(leaner.root_of(leaner.steps[0].out[0]).last, 1);
    EXPECT_EQ(leaner.root_of(leaner.steps[3].out[0]).first, 3);
    EXPECT_EQ(list.steps.size(), 4u);
    if (!random) continue;
    place_results(leaner);
    const ProgramTables tables = emit(leaner, place_buffers(leaner));  // Both draw by one ticket.
    EXPECT_EQ(tables.tickets.size(), 1u);
    EXPECT_EQ(tables.random_steps.size(), 2u);
  }
}

TEST(WithRepeats, WritesWhatIsStillThereOnceMore) {
  const StepList list = with_late_reader(false);
  const StepProgram program = step_program_of(list, {});
  StepSchedule schedule{.completed = true};
  schedule.entries = {{Action::kRun, 0}, {Action::kAgain, 0}, {Action::kRun, 1}, {Action::kRun, 2}, {Action::kRun, 3}};
  const StepList longer = with_repeats(list, program, schedule);
  ASSERT_EQ(longer.steps.size(), 5u);
  EXPECT_EQ(longer.steps[1].out, list.steps[0].out);
  EXPECT_EQ(longer.roots.size(), list.roots.size());
}

}  // namespace
}  // namespace plimsoll
