// Turns consecutive elementwise operations, each the only user of the previous result, into one step.
#include <algorithm>

#include "plimsoll/graph/chain_op.h"
#include "plimsoll/graph/program_passes.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kFewestBytes = 8192;  // Size of a result below which a pass over it costs nothing.
constexpr std::size_t kMostLinks = 8;

bool may_be_link(const StepList& list, const StepList::Step& step) {
  const Node& node = list.graph->node(step.node);
  if (node.kind != NodeKind::kOp || step.op != node.op || step.out.size() != 1 || step.scratch_bytes > 0) return false;
  const TensorSpec& made = list.spec(step.out[0]);
  if (made.bytes() < kFewestBytes) return false;
  std::vector<const TensorSpec*> in;
  for (const std::uint32_t input : step.in) in.push_back(&list.spec(input));
  return ChainOp::takes(*step.op, in, made);
}

// Whether the step can take the result of `before` as the value that moves along the chain.
bool continues(const StepList& list, const StepList::Step& before, const StepList::Step& step, const Uses& uses) {
  const std::uint32_t given = list.values[before.out[0]].root;
  std::uint32_t here = 0;
  for (std::size_t i = 0; i < step.in.size(); ++i) {
    if (list.values[step.in[i]].root != given) continue;
    // In place: the kernel may write where it reads.
    if (step.in[i] != before.out[0] || (step.op->facts().overwrites & slot(i)) == 0) return false;
    ++here;
  }
  return here > 0 && uses[given] == here && list.roots[given].place == StepList::Place::kPlanned &&
         step.device == before.device && list.spec(step.out[0]).bytes() == list.spec(before.out[0]).bytes();
}

StepList::Step joined(StepList& list, std::size_t begin, std::size_t end) {
  StepList::Step chain;
  std::vector<ChainOp::Link> links;
  for (std::size_t i = begin; i < end; ++i) {
    const StepList::Step& step = list.steps[i];
    ChainOp::Link link{.op = step.op, .num_in = static_cast<std::uint8_t>(step.in.size())};
    for (std::size_t k = 0; k < step.in.size(); ++k) {
      if (i > begin && step.in[k] == list.steps[i - 1].out[0]) {
        link.in[k] = ChainOp::kBefore;
        continue;
      }
      // A tensor and a view of all of it are one operand: ChainOp must know that its bytes are still read.
      const auto is_same = [&](std::uint32_t operand) {
        const auto &a = list.values[operand], &b = list.values[step.in[k]];
        return a.root == b.root && a.offset == b.offset && a.spec->shape.size() == b.spec->shape.size();
      };
      auto known = std::find_if(chain.in.begin(), chain.in.end(), is_same);
      if (known == chain.in.end()) known = chain.in.insert(chain.in.end(), step.in[k]);
      link.in[k] = static_cast<std::uint8_t>(known - chain.in.begin());
    }
    links.push_back(link);
    if (i + 1 < end) forget_value(list, step.out[0]);
  }
  chain.node = list.steps[end - 1].node;
  chain.out = list.steps[end - 1].out;
  chain.device = list.steps[end - 1].device;
  list.ops.push_back(std::make_shared<ChainOp>(std::move(links)));
  chain.op = list.ops.back().get();
  return chain;
}

}  // namespace

Uses count_uses(const StepList& list) {
  Uses uses(list.roots.size(), 0);
  for (const StepList::Step& step : list.steps)
    for (const std::uint32_t input : step.in) ++uses[list.values[input].root];
  for (const std::uint32_t fetch : list.fetches)
    if (fetch != StepList::kNone) uses[list.values[fetch].root] += 2;
  return uses;
}

void forget_value(StepList& list, std::uint32_t value) {
  StepList::Root& root = list.roots[list.values[value].root];
  root.place = StepList::Place::kNothing;
  root.bytes = 0;
}

void fuse_chains(StepList& list) {
  const Uses uses = count_uses(list);
  std::vector<StepList::Step> fused;
  for (std::size_t i = 0; i < list.steps.size();) {
    std::size_t end = i + 1;
    if (may_be_link(list, list.steps[i]))
      while (end < list.steps.size() && end - i < kMostLinks && may_be_link(list, list.steps[end]) &&
             continues(list, list.steps[end - 1], list.steps[end], uses))
        ++end;
    if (end - i > 1)
      fused.push_back(joined(list, i, end));
    else
      fused.push_back(std::move(list.steps[i]));
    i = end;
  }
  list.steps = std::move(fused);
}

}  // namespace plimsoll::internal
