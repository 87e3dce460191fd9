// The second half of building a program: offsets for all buffers, and the tables that running reads.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/program_builder.h"
#include "plimsoll/ops/optimizer_update.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::uint64_t kPlanNodes = 20'000;  // Placements tried after the first plan.

std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void ProgramBuilder::place_buffers() {
  std::vector<std::uint32_t> planned;
  for (std::uint32_t i = 0; i < roots_.size(); ++i)
    if (roots_[i].merged == UINT32_MAX && roots_[i].place == Place::kPlanned && roots_[i].bytes > 0)
      planned.push_back(i);
  for (const std::uint32_t root : planned)
    if (std::find(devices_.begin(), devices_.end(), roots_[root].device) == devices_.end())
      devices_.push_back(roots_[root].device);
  for (const BuildStep& step : steps_)
    if (std::find(devices_.begin(), devices_.end(), step.device) == devices_.end()) devices_.push_back(step.device);
  std::size_t lower_bound = 0;
  for (Device* device : devices_) {
    std::vector<Buffer> buffers;
    std::vector<std::size_t*> offsets;
    for (const std::uint32_t index : planned) {
      Root& root = roots_[index];
      if (root.device != device) continue;
      buffers.push_back(
          {.size = rounded(root.bytes), .lower = root.first, .upper = root.last + 1, .alignment = kAlignment});
      offsets.push_back(&root.offset);
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].device != device || steps_[i].scratch_bytes == 0) continue;
      const auto position = static_cast<std::int64_t>(i);
      buffers.push_back({.size = rounded(steps_[i].scratch_bytes),
                         .lower = position,
                         .upper = position + 1,
                         .alignment = kAlignment});
      offsets.push_back(&steps_[i].scratch_offset);
    }
    const Plan placed = plan(buffers, {}, {.nodes = kPlanNodes, .seconds = 2, .threads = 1});
    for (std::size_t i = 0; i < offsets.size(); ++i) *offsets[i] = placed.offsets[i];
    program_.extents_.push_back({device, buffers.empty() ? 0 : placed.peak});
    lower_bound += buffers.empty() ? 0 : placed.lower_bound;
  }
  if (program_.extents_.empty()) program_.extents_.push_back({nullptr, 0});
  for (Root& root : roots_)
    if (root.merged == UINT32_MAX && root.place == Place::kResult) {
      root.number = static_cast<std::uint32_t>(program_.storages_.size());
      program_.storages_.push_back({root.device, root.bytes, root.op, root.spec});
    }
  describe_plan(planned, lower_bound);
  describe_values(planned);
  describe_phases();
}

// By root: what lies in its bytes, one after the other.
std::vector<std::vector<std::uint32_t>> ProgramBuilder::stages_of_roots() {
  std::vector<std::vector<std::uint32_t>> stages(roots_.size());
  for (std::uint32_t i = 0; i < roots_.size(); ++i) stages[find(i)].push_back(i);
  for (std::vector<std::uint32_t>& each : stages)
    if (each.size() > 1)
      std::stable_sort(each.begin(), each.end(), [&](auto x, auto y) { return roots_[x].made < roots_[y].made; });
  return stages;
}

// What a trace says of each: as it would of a tensor of its own. Those that are read after the run end with it.
void ProgramBuilder::describe_values(const std::vector<std::uint32_t>& planned) {
  PlacedValues& placed = program_.placed_;
  placed.steps = static_cast<std::uint32_t>(steps_.size());
  const auto extent_of = [&](const Device* device) {
    return static_cast<std::uint32_t>(std::find(devices_.begin(), devices_.end(), device) - devices_.begin());
  };
  const auto label_of = [&](const char* op, Category category, std::uint32_t node, const Shape& shape, DType dtype) {
    BlockLabel label = block_label({.op = op, .category = category}, shape, dtype);
    label.scope = graph_.node(node).scope;
    label.site = graph_.node(node).site;
    return label;
  };
  const std::vector<std::vector<std::uint32_t>> lies = stages_of_roots();
  for (const std::uint32_t index : planned) {
    const Root& root = roots_[index];
    const std::vector<std::uint32_t>& stages = lies[index];
    std::int64_t first = std::max<std::int64_t>(root.first, 0);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const Root& stage = roots_[stages[i]];
      const std::int64_t last = i + 1 < stages.size() ? roots_[stages[i + 1]].made : root.last + 1;
      const std::int64_t end = std::clamp<std::int64_t>(last, first, placed.steps);
      placed.values.push_back(
          {.label = label_of(stage.op, stage.category, stage.node, stage.spec.shape, stage.spec.dtype),
           .extent = extent_of(root.device),
           .offset = root.offset,
           .bytes = stage.bytes,
           .first = static_cast<std::uint32_t>(first),
           .end = static_cast<std::uint32_t>(end)});
      first = end;
    }
  }
  for (std::uint32_t i = 0; i < steps_.size(); ++i) {
    const BuildStep& step = steps_[i];
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

void ProgramBuilder::describe_plan(const std::vector<std::uint32_t>& planned, std::size_t lower_bound) {
  MemoryPlan& plan = program_.plan_;
  const auto add = [&](const Root& root, bool is_result) {
    const std::string name = fmt::format("{}#{}", root.op, std::max<std::int64_t>(root.first, 0));
    plan.buffers.push_back({.name = name,
                            .bytes = root.bytes,
                            .offset = root.offset,
                            .first = std::max<std::int64_t>(root.first, 0),
                            .end = root.last + 1,
                            .is_result = is_result,
                            .category = root.category});
  };
  const std::vector<std::vector<std::uint32_t>> lies = stages_of_roots();
  for (const std::uint32_t index : planned) {
    add(roots_[index], false);
    if (lies[index].size() == 1) continue;
    for (const std::uint32_t stage : lies[index])
      plan.buffers.back().stages.push_back({roots_[stage].made, roots_[stage].category});
  }
  for (const Root& root : roots_)
    if (root.merged == UINT32_MAX && root.place == Place::kResult) add(root, true);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    plan.order.push_back(steps_[i].op->name());
    if (steps_[i].scratch_bytes == 0) continue;
    const auto position = static_cast<std::int64_t>(i);
    plan.buffers.push_back({.name = fmt::format("{}#{} scratch", steps_[i].op->name(), i),
                            .bytes = steps_[i].scratch_bytes,
                            .offset = steps_[i].scratch_offset,
                            .first = position,
                            .end = position + 1,
                            .is_scratch = true,
                            .category = Category::kWorkspace});
  }
  for (const Program::Extent& extent : program_.extents_) plan.extent_bytes += extent.bytes;
  for (const Program::ResultStorage& storage : program_.storages_) plan.result_bytes += storage.bytes;
  plan.peak_bytes = plan.extent_bytes + plan.result_bytes;
  plan.lower_bound_bytes = lower_bound + plan.result_bytes;
}

Program::View ProgramBuilder::view_of(ValueId id) {
  const Value& at = value(id);
  const Root& root = roots_[find(at.root)];
  Program::View view{.base = 0, .offset = at.offset, .spec = spec(id)};
  switch (root.place) {
    case Place::kPlanned: {
      const auto device = std::find(devices_.begin(), devices_.end(), root.device);
      view.base = device == devices_.end() ? 0 : static_cast<std::uint32_t>(device - devices_.begin());
      view.offset += root.offset;
      break;
    }
    case Place::kResult:
      view.base = program_.first_storage_ + root.number;
      break;
    case Place::kFeed:
      view.base = program_.first_feed_ + root.number;
      program_.feed_base_[root.number] = view.base;
      break;
    case Place::kConstant:
      view.base = program_.first_constant_ + root.number;
      break;
    case Place::kVariable:
      view.base = program_.first_variable_ + root.number;
      break;
    case Place::kNothing:
      break;
  }
  return view;
}

void ProgramBuilder::emit() {
  Program& p = program_;
  p.first_storage_ = static_cast<std::uint32_t>(p.extents_.size());
  p.first_feed_ = p.first_storage_ + static_cast<std::uint32_t>(p.storages_.size());
  p.first_constant_ = p.first_feed_ + static_cast<std::uint32_t>(rewritten_.feeds.size());
  p.first_variable_ = p.first_constant_ + static_cast<std::uint32_t>(p.constants_.size());
  p.num_bases_ = p.first_variable_ + static_cast<std::uint32_t>(p.variables_.size());
  for (const BuildStep& step : steps_) {
    const auto device = std::find(devices_.begin(), devices_.end(), step.device);
    Program::Step made{};
    made.op = step.op;
    made.extent = static_cast<std::uint32_t>(device - devices_.begin());
    made.scratch_offset = step.scratch_offset;
    made.scratch_bytes = step.scratch_bytes;
    made.checks = step.op->facts().checks;
    made.first_in = static_cast<std::uint32_t>(p.in_.size());
    const bool copies_variable = graph_.node(step.node).kind == NodeKind::kRead;
    if (copies_variable) {
      const Root& variable = roots_[variable_roots_[graph_.node(step.node).variable]];
      p.in_.push_back({p.first_variable_ + variable.number, 0, variable.spec});
    }
    for (const ValueId& input : step.in) p.in_.push_back(view_of(input));
    made.num_in = static_cast<std::uint32_t>(p.in_.size()) - made.first_in;
    made.first_out = static_cast<std::uint32_t>(p.out_.size());
    for (const ValueId& output : step.out) p.out_.push_back(view_of(output));
    made.num_out = static_cast<std::uint32_t>(p.out_.size()) - made.first_out;
    p.steps_.push_back(made);
  }
  p.first_fetched_ = static_cast<std::uint32_t>(p.in_.size());
  if (p.inside_)
    for (const ValueId& fetch : rewritten_.fetches) p.in_.push_back(view_of(fetch));
  emit_random();
  emit_seeds();
  emit_effects();
  emit_results();
  emit_bases();
}

// Numbers are drawn in the order of the tickets, which is that in which the operations were written down.
void ProgramBuilder::emit_random() {
  auto& tickets = program_.tickets_;
  const auto ticket_of = [](const BuildStep& step) -> std::uint64_t {
    const RandomDraw* draw = step.op->facts().is_random ? const_cast<Op*>(step.op)->draw() : nullptr;
    return draw ? draw->ticket : 0;
  };
  for (const BuildStep& step : steps_)
    if (ticket_of(step) != 0) tickets.push_back({ticket_of(step), spec(step.out[0]).shape.size()});
  const auto before = [](const Program::Ticket& a, const Program::Ticket& b) { return a.number < b.number; };
  const auto same = [](const Program::Ticket& a, const Program::Ticket& b) { return a.number == b.number; };
  std::sort(tickets.begin(), tickets.end(), before);
  tickets.erase(std::unique(tickets.begin(), tickets.end(), same), tickets.end());
  for (std::uint32_t i = 0; i < steps_.size(); ++i) {
    if (ticket_of(steps_[i]) == 0) continue;
    const auto found =
        std::lower_bound(tickets.begin(), tickets.end(), Program::Ticket{ticket_of(steps_[i]), 0}, before);
    program_.random_steps_.push_back({i, static_cast<std::uint32_t>(found - tickets.begin())});
  }
}

// Seeds of a stream: which steps have which, and how many a run takes, also for steps that were left out.
void ProgramBuilder::emit_seeds() {
  if (!graph_.seeds()) return;
  const GraphState::SeedTable& seeds = *graph_.seeds();
  for (std::uint32_t i = 0; i < steps_.size(); ++i) {
    const RandomDraw* draw = steps_[i].op->facts().is_random ? const_cast<Op*>(steps_[i].op)->draw() : nullptr;
    if (!draw || draw->ticket != 0) continue;
    for (std::uint32_t seed = 0; seed < seeds.size(); ++seed)
      if (seeds[seed].stands_for == draw->key) program_.seeded_steps_.push_back({i, seed});
  }
  for (const GraphState::DeferredSeed& seed : seeds) {
    auto& advances = program_.advances_;
    const auto same = [&](const Program::Advance& known) { return known.stream == seed.stream; };
    auto found = std::find_if(advances.begin(), advances.end(), same);
    if (found == advances.end()) found = advances.insert(advances.end(), {seed.stream, 0});
    ++found->count;
  }
}

void ProgramBuilder::emit_effects() {
  auto& effects = program_.effects_;
  for (const BuildStep& step : steps_) {
    const auto* update = dynamic_cast<const ScheduledUpdate*>(step.op);
    if (!update) continue;
    const auto same = [&](const Program::Effect& known) { return known.effect == update->effect(); };
    auto found = std::find_if(effects.begin(), effects.end(), same);
    if (found == effects.end()) found = effects.insert(effects.end(), {update->effect(), 0});
    found->times = std::max(found->times, update->nth() + 1);
  }
  std::sort(effects.begin(), effects.end(),
            [](const Program::Effect& a, const Program::Effect& b) { return a.effect < b.effect; });
}

void ProgramBuilder::emit_results() {
  for (const ValueId& fetch : rewritten_.fetches) {
    Program::Result result;
    program_.fetch_values_.push_back(fetch);
    if (fetch.node != kNoNode) {
      const Root& root = roots_[root_of(fetch)];
      using Kind = Program::Result::Kind;
      result.kind = root.place == Place::kResult     ? Kind::kStorage
                    : root.place == Place::kFeed     ? Kind::kFeed
                    : root.place == Place::kConstant ? Kind::kConstant
                    : root.place == Place::kVariable ? Kind::kVariable
                                                     : Kind::kNothing;
      result.number = root.number;
      result.offset = value(fetch).offset;
    }
    program_.fetches_.push_back(result);
  }
}

// Variables that only updates of one optimizer change: its state, which it keeps others from while the program runs.
std::vector<bool> ProgramBuilder::guarded_variables() {
  std::vector<bool> guarded(program_.variables_.size(), false), changed(program_.variables_.size(), false);
  const auto number = [&](ValueId id) { return roots_[root_of(id)].number; };
  for (const BuildStep& step : steps_) {
    const bool scheduled = dynamic_cast<const ScheduledUpdate*>(step.op) != nullptr;
    for (std::size_t i = 0; i < step.out.size(); ++i) {
      if (roots_[root_of(step.out[i])].place != Place::kVariable) continue;
      (scheduled && i > 0 ? guarded : changed)[number(step.out[i])] = true;
    }
  }
  for (std::size_t i = 0; i < guarded.size(); ++i) guarded[i] = guarded[i] && !changed[i];
  return guarded;
}

// Which views have each base.
void ProgramBuilder::emit_bases() {
  Program& p = program_;
  p.base_views_begin_.assign(p.num_bases_ + 1, 0);
  const auto each = [&](auto&& f) {
    for (std::uint32_t i = 0; i < p.in_.size(); ++i) f(p.in_[i].base, i);
    for (std::uint32_t i = 0; i < p.out_.size(); ++i) f(p.out_[i].base, i | Program::kOutBit);
  };
  each([&](std::uint32_t base, std::uint32_t) { ++p.base_views_begin_[base + 1]; });
  for (std::uint32_t base = 0; base < p.num_bases_; ++base) p.base_views_begin_[base + 1] += p.base_views_begin_[base];
  p.base_views_.resize(p.in_.size() + p.out_.size());
  std::vector<std::uint32_t> next(p.base_views_begin_.begin(), p.base_views_begin_.end() - 1);
  each([&](std::uint32_t base, std::uint32_t view) { p.base_views_[next[base]++] = view; });
  const std::vector<bool> guarded = guarded_variables();
  for (std::uint32_t i = 0; i < p.variables_.size(); ++i)
    if (p.variables_[i].writes && !guarded[i]) p.write_order_.push_back(i);
  std::sort(p.write_order_.begin(), p.write_order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return graph_.variables()[p.variables_[a].number].id < graph_.variables()[p.variables_[b].number].id;
  });
}

}  // namespace plimsoll
