// The last pass: produces the tables that running reads.
#include <algorithm>
#include <set>

#include "plimsoll/device/device.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/ops/optimizer_update.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/run_on.h"

namespace plimsoll::internal {
namespace {

using Place = StepList::Place;

std::uint32_t count_of(const auto& list) { return static_cast<std::uint32_t>(list.size()); }

const RandomDraw* draw_of(const StepList::Step& step) {
  return step.op->facts().is_random ? const_cast<Op*>(step.op)->draw() : nullptr;
}

class Emitter {
 public:
  Emitter(StepList& list, ProgramTables& tables) : list_(list), t_(tables) {}

  void run(const BufferPlaces& places) {
    t_.graph = list_.graph;
    t_.ops = list_.ops;
    t_.variables = list_.variables;
    t_.constants = list_.constants;
    t_.keeps_inside = list_.keeps_inside;
    t_.extents = places.extents;
    t_.feed_base.assign(list_.num_feeds, ProgramTables::kNoBase);
    number_storages();
    t_.first_storage = count_of(t_.extents);
    t_.first_feed = t_.first_storage + count_of(t_.storages);
    t_.first_constant = t_.first_feed + static_cast<std::uint32_t>(list_.num_feeds);
    t_.first_variable = t_.first_constant + count_of(t_.constants);
    t_.num_bases = t_.first_variable + count_of(t_.variables);
    for (const StepList::Step& step : list_.steps) emit_step(step);
    t_.first_fetched = count_of(t_.in);
    if (t_.keeps_inside)
      for (const std::uint32_t fetch : list_.fetches) t_.in.push_back(view_of(fetch));
    emit_random();
    emit_seeds();
    emit_effects();
    emit_results();
    emit_fetch_ends();
    emit_bases();
    emit_write_order();
    emit_parked();
    emit_transfers();
    emit_staged();
  }

 private:
  // Host memory for what devices that the host cannot reach leave to it: operands of steps without a kernel there, what
  // is on its way from one to another, and results that are read inside.
  void emit_staged() {
    const auto is_away = [](Device* device) { return device && !device->backend().is_reachable(); };
    const bool any_away =
        std::any_of(list_.roots.begin(), list_.roots.end(), [&](const auto& root) { return is_away(root.device); });
    if (!any_away) return;
    HostRun fallbacks;
    std::size_t moved = 0;
    for (const StepList::Step& step : list_.steps) {
      const bool is_move =
          step.in.size() == 1 && step.device && list_.roots[list_.values[step.in[0]].root].device != step.device;
      if (is_away(step.device) && !is_move) prepare(fallbacks, step);
      if (is_move && is_away(step.device) && is_away(list_.roots[list_.values[step.in[0]].root].device))
        moved = std::max(moved, list_.spec(step.in[0]).bytes());
    }
    t_.staged_bytes = round_up(fallbacks.bytes(), kGranularity) + round_up(moved, kGranularity);
    if (t_.keeps_inside)
      for (const std::uint32_t fetch : list_.fetches)
        t_.staged_bytes += round_up(list_.values[fetch].spec->bytes(), kGranularity);
  }

  // By sizes: there are no addresses yet.
  void prepare(HostRun& fallbacks, const StepList::Step& step) const {
    std::vector<ConstTensorView> in;
    std::vector<TensorView> out;
    for (const std::uint32_t value : step.in) {
      const TensorSpec& spec = *list_.values[value].spec;
      in.emplace_back(nullptr, 0, spec.dtype, spec.shape);
    }
    for (const std::uint32_t value : step.out) {
      const TensorSpec& spec = *list_.values[value].spec;
      out.emplace_back(nullptr, 0, spec.dtype, spec.shape);
    }
    fallbacks.prepare(*step.device, *step.op, {in, out, {static_cast<std::byte*>(nullptr), step.scratch_bytes}});
  }

  std::uint64_t variable_id(std::uint32_t variable) const {
    return list_.graph->variables()[t_.variables[variable].number].id;
  }

  void emit_parked() {
    for (const std::uint32_t root : list_.variable_roots)
      if (root != StepList::kNone && list_.roots[root].is_parked) {
        t_.parked.push_back({list_.roots[root].number, list_.roots[root].bytes});
        t_.variables[list_.roots[root].number].is_parked = true;
      }
    std::sort(t_.parked.begin(), t_.parked.end(),
              [&](const auto& a, const auto& b) { return variable_id(a.variable) < variable_id(b.variable); });
  }

  // For a value, its slot among those of the run; for a parked variable, its number among them.
  std::uint32_t slot_of(const StepList::Transfer& transfer) const {
    const auto variables = count_of(list_.variables);
    if (transfer.slot >= variables) return transfer.slot - variables;
    const auto is_it = [&](const ProgramTables::Parked& parked) { return parked.variable == transfer.slot; };
    return static_cast<std::uint32_t>(std::find_if(t_.parked.begin(), t_.parked.end(), is_it) - t_.parked.begin());
  }

  // Loads are waited for where their bytes are first used; stores where their bytes are free, or overwritten.
  void emit_transfers() {
    using From = StepList::Transfer::Kind;
    using Kind = ProgramTables::Transfer::Kind;
    std::vector<std::uint32_t> begun(list_.roots.size(), StepList::kNone);  // By root: its transfer that is under way.
    const auto add = [&](std::uint32_t number, Kind kind, std::size_t position) {
      const StepList::Transfer& from = list_.transfers[number];
      const StepList::Root& root = list_.roots[list_.find(from.root)];
      const bool is_parked = from.slot < list_.variables.size();
      const std::size_t bytes = is_parked ? list_.roots[from.root].bytes : transferred_bytes(root.bytes);
      t_.transfers.push_back({.kind = kind,
                              .slot = slot_of(from),
                              .is_parked = is_parked,
                              .extent = extent_of(root.device),
                              .offset = root.offset,
                              .bytes = bytes,
                              .position = position});
      begun[from.root] = kind == Kind::kStore || kind == Kind::kLoad ? number : StepList::kNone;
      if (is_parked) return;
      const std::uint32_t slot = t_.transfers.back().slot;
      if (slot >= t_.slot_bytes.size()) t_.slot_bytes.resize(slot + 1);
      t_.slot_bytes[slot] = bytes;
    };
    const auto end = [&](std::uint32_t value, bool is_written, std::size_t position) {
      const std::uint32_t number = begun[list_.values[value].root];
      if (number == StepList::kNone) return;
      const bool is_load = list_.transfers[number].kind == From::kLoad;
      if (is_written || is_load) add(number, is_load ? Kind::kWaitForLoad : Kind::kWait, position);
    };
    std::uint32_t next = 0;
    const auto begin = [&](std::size_t position) {
      for (; next < list_.transfers.size() && list_.transfers[next].position == position; ++next) {
        const From kind = list_.transfers[next].kind;
        add(next, kind == From::kStore ? Kind::kStore : kind == From::kLoad ? Kind::kLoad : Kind::kWait, position);
      }
    };
    for (std::size_t i = 0; i < list_.steps.size(); ++i) {
      begin(i);
      for (const std::uint32_t input : list_.steps[i].in) end(input, false, i);
      for (const std::uint32_t output : list_.steps[i].out) end(output, true, i);
    }
    begin(list_.steps.size());
    t_.transfers.push_back({});
  }

  void number_storages() {
    for (StepList::Root& root : list_.roots)
      if (root.merged == StepList::kNone && root.place == Place::kResult) {
        root.number = count_of(t_.storages);
        t_.storages.push_back({root.device, root.bytes, root.op, root.spec});
      }
  }

  std::uint32_t extent_of(const Device* device) const {  // A device without one gets the first.
    for (std::uint32_t i = 0; i < t_.extents.size(); ++i)
      if (t_.extents[i].device == device) return i;
    return 0;
  }

  ProgramTables::View view_of(std::uint32_t value) {
    const StepList::Root& root = list_.root_of(value);
    ProgramTables::View view{.base = 0, .offset = list_.values[value].offset, .spec = list_.spec(value)};
    switch (root.place) {
      case Place::kPlanned:
        view.base = extent_of(root.device);
        view.offset += root.offset;
        break;
      case Place::kResult:
        view.base = t_.first_storage + root.number;
        break;
      case Place::kFeed:
        view.base = t_.first_feed + root.number;
        t_.feed_base[root.number] = view.base;
        break;
      case Place::kConstant:
        view.base = t_.first_constant + root.number;
        break;
      case Place::kVariable:
        view.base = t_.first_variable + root.number;
        break;
      case Place::kNothing:
        break;
    }
    return view;
  }

  void emit_step(const StepList::Step& step) {
    ProgramTables::Step made{};
    made.op = step.op;
    made.extent = extent_of(step.device);
    made.scratch_offset = step.scratch_offset;
    made.scratch_bytes = step.scratch_bytes;
    made.checks = step.checks;
    made.changes = list_.changes_variables(step);
    t_.changes_variables = t_.changes_variables || made.changes;
    made.first_in = count_of(t_.in);
    for (const std::uint32_t input : step.in) t_.in.push_back(view_of(input));
    made.num_in = count_of(t_.in) - made.first_in;
    made.first_out = count_of(t_.out);
    for (const std::uint32_t output : step.out) t_.out.push_back(view_of(output));
    made.num_out = count_of(t_.out) - made.first_out;
    t_.steps.push_back(made);
  }

  // Numbers are drawn in the order of the tickets, the order in which the operations were written. A repeated step has
  // the ticket of its first run.
  void emit_random() {
    auto& tickets = t_.tickets;
    const auto ticket_of = [](const StepList::Step& step) -> std::uint64_t {
      const RandomDraw* const draw = draw_of(step);
      return draw ? draw->ticket : 0;
    };
    for (const StepList::Step& step : list_.steps)
      if (ticket_of(step) != 0) tickets.push_back({ticket_of(step), list_.spec(step.out[0]).shape.size()});
    const auto before = [](const ProgramTables::Ticket& a, const ProgramTables::Ticket& b) {
      return a.number < b.number;
    };
    const auto same = [](const ProgramTables::Ticket& a, const ProgramTables::Ticket& b) {
      return a.number == b.number;
    };
    std::sort(tickets.begin(), tickets.end(), before);
    tickets.erase(std::unique(tickets.begin(), tickets.end(), same), tickets.end());
    for (std::uint32_t i = 0; i < list_.steps.size(); ++i) {
      if (ticket_of(list_.steps[i]) == 0) continue;
      const auto found =
          std::lower_bound(tickets.begin(), tickets.end(), ProgramTables::Ticket{ticket_of(list_.steps[i]), 0}, before);
      t_.random_steps.push_back({i, static_cast<std::uint32_t>(found - tickets.begin())});
    }
  }

  // Seeds of a stream: which steps use which, and how many a run takes, including those of steps that were dropped.
  void emit_seeds() {
    if (!list_.graph->seeds()) return;
    const GraphState::SeedTable& seeds = *list_.graph->seeds();
    for (std::uint32_t i = 0; i < list_.steps.size(); ++i) {
      const RandomDraw* const draw = draw_of(list_.steps[i]);
      if (!draw || draw->ticket != 0) continue;
      for (std::uint32_t seed = 0; seed < seeds.size(); ++seed)
        if (seeds[seed].stands_for == draw->key) t_.seeded_steps.push_back({i, seed});
    }
    for (const GraphState::DeferredSeed& seed : seeds) {
      const auto same = [&](const ProgramTables::Advance& known) { return known.stream == seed.stream; };
      auto found = std::find_if(t_.advances.begin(), t_.advances.end(), same);
      if (found == t_.advances.end()) found = t_.advances.insert(t_.advances.end(), {seed.stream, 0});
      ++found->count;
    }
  }

  void emit_effects() {
    auto& effects = t_.effects;
    for (const StepList::Step& step : list_.steps) {
      const auto* update = dynamic_cast<const ScheduledUpdate*>(step.op);
      if (!update) continue;
      const auto same = [&](const ProgramTables::Effect& known) { return known.effect == update->effect(); };
      auto found = std::find_if(effects.begin(), effects.end(), same);
      if (found == effects.end()) found = effects.insert(effects.end(), {update->effect(), 0});
      found->times = std::max(found->times, update->nth() + 1);
    }
    std::sort(effects.begin(), effects.end(),
              [](const ProgramTables::Effect& a, const ProgramTables::Effect& b) { return a.effect < b.effect; });
  }

  void emit_results() {
    t_.fetch_values = list_.fetched_outputs;
    for (const std::uint32_t fetch : list_.fetches) {
      ProgramTables::Result result;
      if (fetch != StepList::kNone) {
        const StepList::Root& root = list_.root_of(fetch);
        using Kind = ProgramTables::Result::Kind;
        result.kind = root.place == Place::kResult     ? Kind::kStorage
                      : root.place == Place::kFeed     ? Kind::kFeed
                      : root.place == Place::kConstant ? Kind::kConstant
                      : root.place == Place::kVariable ? Kind::kVariable
                                                       : Kind::kNothing;
        result.number = root.number;
        result.offset = list_.values[fetch].offset;
      }
      t_.fetches.push_back(result);
    }
  }

  // Values may share a storage: the last step that touches any of them ends all.
  void emit_fetch_ends() {
    std::vector<std::uint32_t> last(t_.storages.size(), 0);
    const auto touch = [&](const ProgramTables::View& view, std::uint32_t step) {
      if (view.base >= t_.first_storage && view.base < t_.first_feed) last[view.base - t_.first_storage] = step;
    };
    for (std::uint32_t i = 0; i < t_.steps.size(); ++i) {
      const ProgramTables::Step& step = t_.steps[i];
      for (std::uint32_t k = 0; k < step.num_in; ++k) touch(t_.in[step.first_in + k], i);
      for (std::uint32_t k = 0; k < step.num_out; ++k) touch(t_.out[step.first_out + k], i);
    }
    for (std::uint32_t i = 0; i < t_.fetches.size(); ++i) {
      const bool is_own = t_.fetches[i].kind == ProgramTables::Result::Kind::kStorage;
      t_.fetch_ends.push_back({is_own ? last[t_.fetches[i].number] : 0, i});
    }
    std::stable_sort(t_.fetch_ends.begin(), t_.fetch_ends.end(),
                     [](const auto& a, const auto& b) { return a.step < b.step; });
  }

  // Which views have each base.
  void emit_bases() {
    t_.base_views_begin.assign(t_.num_bases + 1, 0);
    const auto each = [&](auto&& f) {
      for (std::uint32_t i = 0; i < t_.in.size(); ++i) f(t_.in[i].base, i);
      for (std::uint32_t i = 0; i < t_.out.size(); ++i) f(t_.out[i].base, i | ProgramTables::kOutBit);
    };
    each([&](std::uint32_t base, std::uint32_t) { ++t_.base_views_begin[base + 1]; });
    for (std::uint32_t base = 0; base < t_.num_bases; ++base)
      t_.base_views_begin[base + 1] += t_.base_views_begin[base];
    t_.base_views.resize(t_.in.size() + t_.out.size());
    std::vector<std::uint32_t> next(t_.base_views_begin.begin(), t_.base_views_begin.end() - 1);
    each([&](std::uint32_t base, std::uint32_t view) { t_.base_views[next[base]++] = view; });
  }

  // Variables that only updates of one optimizer change: its state, which it locks while the program runs.
  std::vector<bool> guarded_variables() {
    std::vector<bool> guarded(t_.variables.size(), false), changed(t_.variables.size(), false);
    for (const StepList::Step& step : list_.steps) {
      const bool scheduled = dynamic_cast<const ScheduledUpdate*>(step.op) != nullptr;
      for (std::size_t i = 0; i < step.out.size(); ++i) {
        const StepList::Root& root = list_.root_of(step.out[i]);
        if (!StepList::is_variable(root)) continue;
        (scheduled && i > 0 ? guarded : changed)[root.number] = true;
      }
    }
    for (std::size_t i = 0; i < guarded.size(); ++i) guarded[i] = guarded[i] && !changed[i];
    return guarded;
  }

  void emit_write_order() {
    const std::vector<bool> guarded = guarded_variables();
    for (std::uint32_t i = 0; i < t_.variables.size(); ++i)
      if (t_.variables[i].writes && !guarded[i]) t_.write_order.push_back(i);
    std::sort(t_.write_order.begin(), t_.write_order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return variable_id(a) < variable_id(b); });
  }

  StepList& list_;
  ProgramTables& t_;
};

}  // namespace

ProgramTables emit(StepList list, const BufferPlaces& places) {
  for (std::size_t i = 0; i < list.roots.size(); ++i) list.roots[i].offset = places.root_offsets[i];
  for (std::size_t i = 0; i < list.steps.size(); ++i) list.steps[i].scratch_offset = places.scratch_offsets[i];
  ProgramTables tables;
  Emitter(list, tables).run(places);
  describe_plan(list, places, tables);
  describe_values(list, tables);
  describe_phases(list, tables);
  return tables;
}

std::size_t ProgramTables::block_bytes() const noexcept {
  std::size_t total = plan.extent_bytes + staged_bytes;
  for (const ResultStorage& result : storages) total += round_up(result.bytes, kGranularity);
  return total;
}

std::size_t ProgramTables::bytes() const noexcept {
  return steps.size() * (sizeof(Step) + sizeof(void*)) + (in.size() + out.size()) * 2 * sizeof(View) +
         placed.values.size() * sizeof(PlacedValue) + placed.phases.size() * sizeof(PlacedPhase);
}

}  // namespace plimsoll::internal
