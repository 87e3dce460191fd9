#include "plimsoll/model/training/distributed_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/distributed/shard_store.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/training/gradient_clipper.h"
#include "plimsoll/model/training/step_plan.h"

namespace plimsoll::internal {
namespace {

using distributed::FlatSpace;
using distributed::SliceTree;
using distributed::TensorExchange;

// Groups, and cells for norms, that do not depend on the number of ranks. Gradients are known in about the opposite
// order of the parameters, statistics of normalizations at any time.
FlatSpace space_for(const StepPlan& plan, const GradientClipping& clipping, int ranks) {
  std::vector<FlatSpace::Part> parts;
  for (const Variable& variable : plan.changed()) parts.push_back({variable.dtype(), variable.size()});
  const FlatSpace whole(parts, ranks);
  const bool has_norms = clipping.norm > 0 || clipping.global_norm > 0;
  return FlatSpace(parts, ranks,
                   {.grain = has_norms ? GradientClipper::grain(whole) : std::size_t{64},
                    .group_bytes = TensorExchange::group_bytes(whole),
                    .last_group = plan.num_parameters()});
}

}  // namespace

DistributedLayout::DistributedLayout(const StepPlan& plan, const GradientClipping& clipping, const RankOfJob& rank)
    : changed_(plan.changed()),
      num_parameters_(plan.num_parameters()),
      rank_(rank),
      space_(space_for(plan, clipping, rank.ranks)) {
  visit_updated([&](std::size_t part, std::size_t first, std::size_t bytes) {
    if (part >= num_parameters_) return;
    const std::size_t size = size_of(changed_[part].dtype());
    stretches_.push_back(
        {changed_[part], static_cast<std::int64_t>(first / size), static_cast<std::int64_t>((first + bytes) / size)});
    stretch_parts_.push_back(part);
  });
}

std::vector<std::size_t> DistributedLayout::spread_parts(const StepPlan& plan) const {
  const auto end = changed_.begin() + static_cast<std::ptrdiff_t>(rank_.shards_parameters ? num_parameters_ : 0);
  std::vector<std::size_t> parts;
  for (const Variable& variable : plan.variables()) {
    const auto is_same = [&](const Variable& each) { return each.id() == variable.id(); };
    const auto found = std::find_if(changed_.begin(), end, is_same);
    parts.push_back(found == end ? kNotSpread : static_cast<std::size_t>(found - changed_.begin()));
  }
  return parts;
}

std::size_t DistributedLayout::window_bytes(const StepPlan& plan) const {
  std::vector<bool> is_borrowed;
  for (const std::size_t part : spread_parts(plan)) is_borrowed.push_back(part != kNotSpread);
  return plan.program().borrowed_bytes(is_borrowed);
}

void DistributedLayout::require_no_constraints(const StepPlan& plan, const char* where) {
  if (plan.constrained().empty()) return;
  throw Unsupported(
      fmt::format("{}: shard_parameters does not work with constraints, as that of \"{}\"; leave one of them out",
                  where, plan.constrained()[0].first.name()));
}

BesideStep DistributedLayout::beside(const StepPlan& plan, const SliceTree& tree, const Optimizer& optimizer) const {
  std::size_t gradient = 0;
  for (std::size_t i = 0; i < changed_.size(); ++i) gradient += whole_blocks(space_.bytes_of(i));
  BesideStep beside;
  beside.gradients = std::max<std::size_t>(tree.most_held(rank_.rank), 1) * gradient;
  beside.inputs = whole_blocks(sizeof(float));  // The scale of the slice.
  if (plan.has_program()) {                     // What is measured comes out with the gradients.
    const std::size_t results = plan.program().block_bytes() - plan.program().extent_bytes();
    beside.activations = results - std::min(results, gradient);
  }
  for (const Optimizer::Stretch& stretch : stretches_) {
    const auto count = static_cast<std::size_t>(stretch.end - stretch.begin);
    beside.optimizer += optimizer.num_slots() * whole_blocks(count * size_of(stretch.parameter.dtype()));
  }
  beside.workspace = whole_blocks(TensorExchange::room_bytes(space_, tree));
  if (rank_.shards_parameters && plan.has_program()) {
    beside.workspace += whole_blocks(window_bytes(plan));
    beside.shards = whole_blocks(distributed::ShardStore::own_bytes(space_, num_parameters_, rank_.rank));
    for (std::size_t i = 0; i < num_parameters_; ++i) beside.whole += whole_blocks(space_.bytes_of(i));
  }
  return beside;
}

}  // namespace plimsoll::internal
