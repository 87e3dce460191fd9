// Describes a program's plan for people and for traces.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/device/device.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

// By root: what is in its bytes, one after the other.
std::vector<std::vector<std::uint32_t>> stages_of_roots(const StepList& list) {
  std::vector<std::vector<std::uint32_t>> stages(list.roots.size());
  for (std::uint32_t i = 0; i < list.roots.size(); ++i) stages[list.find(i)].push_back(i);
  for (std::vector<std::uint32_t>& each : stages)
    if (each.size() > 1)
      std::stable_sort(each.begin(), each.end(),
                       [&](auto x, auto y) { return list.roots[x].made < list.roots[y].made; });
  return stages;
}

std::vector<std::uint32_t> planned_roots(const StepList& list) {
  std::vector<std::uint32_t> planned;
  for (std::uint32_t i = 0; i < list.roots.size(); ++i) {
    const StepList::Root& root = list.roots[i];
    if (root.merged == StepList::kNone && root.place == StepList::Place::kPlanned && root.bytes > 0)
      planned.push_back(i);
  }
  return planned;
}

}  // namespace

// The labels of values in a trace, as for tensors of their own. Those read after the run end with it.
void describe_values(const StepList& list, ProgramTables& tables) {
  const std::vector<std::uint32_t> planned = planned_roots(list);
  PlacedValues& placed = tables.placed;
  placed.steps = static_cast<std::uint32_t>(list.steps.size());
  const auto extent_of = [&](const Device* device) {
    const auto on = [&](const ProgramTables::Extent& extent) { return extent.device == device; };
    return static_cast<std::uint32_t>(std::find_if(tables.extents.begin(), tables.extents.end(), on) -
                                      tables.extents.begin());
  };
  const auto label_of = [&](const char* op, Category category, std::uint32_t node, const Shape& shape, DType dtype) {
    BlockLabel label = block_label({.op = op, .category = category}, shape, dtype);
    if (node == kNoNode) return label;  // A variable.
    label.scope = list.graph->node(node).scope;
    label.site = list.graph->node(node).site;
    return label;
  };
  const std::vector<std::vector<std::uint32_t>> lies = stages_of_roots(list);
  for (const std::uint32_t index : planned) {
    const StepList::Root& root = list.roots[index];
    const std::vector<std::uint32_t>& stages = lies[index];
    std::int64_t first = std::max<std::int64_t>(root.first, 0);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const StepList::Root& stage = list.roots[stages[i]];
      const std::int64_t last = i + 1 < stages.size() ? list.roots[stages[i + 1]].made : root.last + 1;
      const std::int64_t end = std::clamp<std::int64_t>(last, first, placed.steps);
      BlockLabel label = label_of(stage.op, stage.category, stage.node, stage.spec.shape, stage.spec.dtype);
      if (stage.returned[0]) label.name = stage.returned;
      placed.values.push_back({.label = label,
                               .extent = extent_of(root.device),
                               .offset = root.offset,
                               .bytes = stage.bytes,
                               .first = static_cast<std::uint32_t>(first),
                               .end = static_cast<std::uint32_t>(end)});
      first = end;
    }
  }
  for (std::uint32_t i = 0; i < list.steps.size(); ++i) {
    const StepList::Step& step = list.steps[i];
    if (step.scratch_bytes == 0) continue;
    const Shape shape({static_cast<std::int64_t>(step.scratch_bytes)});
    placed.values.push_back({.label = label_of(step.op->name(), Category::kWorkspace, step.node, shape, u8),
                             .extent = extent_of(step.device),
                             .offset = step.scratch_offset,
                             .bytes = step.scratch_bytes,
                             .first = i,
                             .end = i + 1});
  }
}

void describe_plan(const StepList& list, const BufferPlaces& places, ProgramTables& tables) {
  const std::vector<std::uint32_t> planned = planned_roots(list);
  MemoryPlan& plan = tables.plan;
  const auto add = [&](const StepList::Root& root, bool is_result) {
    const std::string name = fmt::format("{}#{}", root.op, std::max<std::int64_t>(root.first, 0));
    plan.buffers.push_back({.name = name,
                            .bytes = root.bytes,
                            .offset = root.offset,
                            .first = std::max<std::int64_t>(root.first, 0),
                            .end = root.last + 1,
                            .is_result = is_result,
                            .category = root.category});
  };
  const std::vector<std::vector<std::uint32_t>> lies = stages_of_roots(list);
  for (const std::uint32_t index : planned) {
    add(list.roots[index], false);
    if (lies[index].size() == 1) continue;
    for (const std::uint32_t stage : lies[index])
      plan.buffers.back().stages.push_back({list.roots[stage].made, list.roots[stage].category});
  }
  for (const StepList::Root& root : list.roots)
    if (root.merged == StepList::kNone && root.place == StepList::Place::kResult) add(root, true);
  for (std::size_t i = 0; i < list.steps.size(); ++i) {
    plan.order.push_back(list.steps[i].is_again ? fmt::format("{} again", list.steps[i].op->name())
                                                : list.steps[i].op->name());
    if (list.steps[i].scratch_bytes == 0) continue;
    const auto position = static_cast<std::int64_t>(i);
    plan.buffers.push_back({.name = fmt::format("{}#{} scratch", list.steps[i].op->name(), i),
                            .bytes = list.steps[i].scratch_bytes,
                            .offset = list.steps[i].scratch_offset,
                            .first = position,
                            .end = position + 1,
                            .is_scratch = true,
                            .category = Category::kWorkspace});
  }
  for (const ProgramTables::Extent& extent : tables.extents) plan.extent_bytes += extent.bytes;
  for (const ProgramTables::ResultStorage& storage : tables.storages) plan.result_bytes += storage.bytes;
  plan.peak_bytes = plan.extent_bytes + plan.result_bytes;
  plan.lower_bound_bytes = places.lower_bound + plan.result_bytes;
}

}  // namespace plimsoll::internal
