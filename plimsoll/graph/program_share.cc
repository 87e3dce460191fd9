// How long values live, which have memory of their own, and which lie where an operand lay before.
#include "plimsoll/graph/program_passes.h"

namespace plimsoll::internal {
namespace {

// Whether the step's first output may be written where that input lies.
bool may_overwrite(StepList& list, const StepList::Step& step, std::size_t input, std::int64_t position) {
  const auto root_of = [&](std::uint32_t value) { return list.find(list.values[value].root); };
  const std::uint32_t from = root_of(step.in[input]), to = root_of(step.out[0]);
  const StepList::Root &old = list.roots[from], &made = list.roots[to];
  if (from == to || old.place != StepList::Place::kPlanned || old.last != position || old.device != made.device)
    return false;
  if (old.is_stored) return false;
  if (list.values[step.in[input]].offset != 0 || old.bytes != made.bytes || made.bytes == 0) return false;
  for (std::size_t i = 0; i < step.in.size(); ++i) {  // Another operand in the same bytes has to be the same elements.
    if (i == input || root_of(step.in[i]) != from) continue;
    if (list.values[step.in[i]].offset != 0 || list.spec(step.in[i]).bytes() != old.bytes) return false;
  }
  return true;
}

}  // namespace

void find_lifetimes(StepList& list) {
  for (std::size_t i = 0; i < list.steps.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    for (const std::uint32_t output : list.steps[i].out) {
      StepList::Root& root = list.roots[list.values[output].root];
      if (root.first < 0) root.first = position;
      root.last = std::max(root.last, position);
    }
    for (const std::uint32_t input : list.steps[i].in) {
      StepList::Root& root = list.roots[list.values[input].root];
      root.last = std::max(root.last, position);
    }
  }
  for (const StepList::Transfer& transfer : list.transfers) {
    StepList::Root& root = list.roots[transfer.root];
    const auto position = static_cast<std::int64_t>(transfer.position);
    if (transfer.kind == StepList::Transfer::Kind::kLoad) root.first = position;
    if (transfer.kind == StepList::Transfer::Kind::kStored) root.last = std::max(root.last, position - 1);
  }
  for (StepList::Root& root : list.roots) root.made = root.first;
}

void place_results(StepList& list) {
  for (const std::uint32_t fetch : list.fetches) {
    if (fetch == StepList::kNone) continue;
    StepList::Root& root = list.root_of(fetch);
    if (root.place != StepList::Place::kPlanned) continue;
    if (!list.keeps_inside) root.place = StepList::Place::kResult;
    root.last = static_cast<std::int64_t>(list.steps.size());
  }
}

std::vector<std::uint32_t> share_bytes(StepList& list) {
  std::vector<std::uint32_t> taken(list.steps.size(), StepList::kNone);
  for (std::size_t i = 0; i < list.steps.size(); ++i) {
    const StepList::Step& step = list.steps[i];
    const std::uint32_t overwrites = step.op->facts().overwrites;
    if (overwrites == 0 || step.out.empty() || StepList::is_variable(list.root_of(step.out[0]))) continue;
    for (std::size_t input = 0; input < step.in.size(); ++input) {
      if ((overwrites & slot(input)) == 0 || !may_overwrite(list, step, input, static_cast<std::int64_t>(i))) continue;
      const std::uint32_t from = list.find(list.values[step.in[input]].root);
      const std::uint32_t to = list.find(list.values[step.out[0]].root);
      list.roots[to].first = list.roots[from].first;  // The result's root takes the operand in.
      list.roots[from].merged = to;
      list.roots[to].is_transferred |= list.roots[from].is_transferred;
      taken[i] = list.values[step.in[input]].root;
      break;
    }
  }
  for (std::uint32_t i = 0; i < list.roots.size(); ++i)
    if (list.roots[i].merged != StepList::kNone) list.roots[i].merged = list.find(i);
  return taken;
}

}  // namespace plimsoll::internal
