// Elementwise operations that follow each other, each taking what only the one before gives, become one step.
#include <algorithm>

#include "plimsoll/graph/chain_op.h"
#include "plimsoll/graph/program_builder.h"

namespace plimsoll {
namespace {

constexpr std::size_t kFewestBytes = 8192;  // Of a result; below, a pass over it is no cost.
constexpr std::size_t kMostLinks = 8;

}  // namespace

// How many steps and fetches use each value, views of it included.
std::vector<std::uint32_t> ProgramBuilder::count_uses() {
  std::vector<std::uint32_t> uses(roots_.size(), 0);
  for (const BuildStep& step : steps_)
    for (const ValueId& input : step.in) ++uses[value(input).root];
  for (const ValueId& fetch : rewritten_.fetches)
    if (fetch.node != kNoNode) uses[value(fetch).root] += 2;
  return uses;
}

bool ProgramBuilder::may_be_link(const BuildStep& step) const {
  const Node& node = graph_.node(step.node);
  if (node.kind != NodeKind::kOp || step.op != node.op || step.out.size() != 1 || step.scratch_bytes > 0) return false;
  const TensorSpec& made = spec(step.out[0]);
  if (made.bytes() < kFewestBytes) return false;
  std::vector<const TensorSpec*> in;
  for (const ValueId& input : step.in) in.push_back(&spec(input));
  return ChainOp::takes(*step.op, in, made);
}

// Whether the step can take what `before` gives as the value that goes along the chain.
bool ProgramBuilder::continues(const BuildStep& before, const BuildStep& step, const std::vector<std::uint32_t>& uses) {
  const std::uint32_t given = value(before.out[0]).root;
  std::uint32_t here = 0;
  for (std::size_t i = 0; i < step.in.size(); ++i) {
    if (value(step.in[i]).root != given) continue;
    // In place: the kernel may write where it reads.
    if (step.in[i] != before.out[0] || (step.op->facts().overwrites & slot(i)) == 0) return false;
    ++here;
  }
  return here > 0 && uses[given] == here && roots_[given].place == Place::kPlanned && step.device == before.device &&
         spec(step.out[0]).bytes() == spec(before.out[0]).bytes();
}

ProgramBuilder::BuildStep ProgramBuilder::joined(std::size_t begin, std::size_t end) {
  BuildStep chain;
  std::vector<ChainOp::Link> links;
  for (std::size_t i = begin; i < end; ++i) {
    const BuildStep& step = steps_[i];
    ChainOp::Link link{.op = step.op, .num_in = static_cast<std::uint8_t>(step.in.size())};
    for (std::size_t k = 0; k < step.in.size(); ++k) {
      if (i > begin && step.in[k] == steps_[i - 1].out[0]) {
        link.in[k] = ChainOp::kBefore;
        continue;
      }
      auto known = std::find(chain.in.begin(), chain.in.end(), step.in[k]);
      if (known == chain.in.end()) known = chain.in.insert(chain.in.end(), step.in[k]);
      link.in[k] = static_cast<std::uint8_t>(known - chain.in.begin());
    }
    links.push_back(link);
    if (i + 1 < end) forget(step.out[0]);
  }
  chain.node = steps_[end - 1].node;
  chain.out = steps_[end - 1].out;
  chain.device = steps_[end - 1].device;
  program_.own_ops_.push_back(std::make_unique<ChainOp>(std::move(links)));
  chain.op = program_.own_ops_.back().get();
  return chain;
}

// Nobody sees the value any more.
void ProgramBuilder::forget(ValueId id) {
  roots_[value(id).root].place = Place::kNothing;
  roots_[value(id).root].bytes = 0;
}

void ProgramBuilder::fuse_chains() {
  const std::vector<std::uint32_t> uses = count_uses();
  std::vector<BuildStep> fused;
  for (std::size_t i = 0; i < steps_.size();) {
    std::size_t end = i + 1;
    if (may_be_link(steps_[i]))
      while (end < steps_.size() && end - i < kMostLinks && may_be_link(steps_[end]) &&
             continues(steps_[end - 1], steps_[end], uses))
        ++end;
    if (end - i > 1)
      fused.push_back(joined(i, end));
    else
      fused.push_back(std::move(steps_[i]));
    i = end;
  }
  steps_ = std::move(fused);
}

}  // namespace plimsoll
