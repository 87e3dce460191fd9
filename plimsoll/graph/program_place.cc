// Offsets for all buffers of a program: one extent for each device.
#include <algorithm>
#include <limits>

#include "plimsoll/graph/program_passes.h"

namespace plimsoll::internal {

std::size_t BufferPlaces::extent_bytes() const noexcept {
  std::size_t total = 0;
  for (const ProgramTables::Extent& extent : extents) total += extent.bytes;
  return total;
}

BufferPlaces place_buffers(const StepList& list, const PlaceLimits& limits) {
  BufferPlaces places;
  places.root_offsets.assign(list.roots.size(), 0);
  places.scratch_offsets.assign(list.steps.size(), 0);
  const auto is_planned = [](const StepList::Root& root) {
    return root.merged == StepList::kNone && root.place == StepList::Place::kPlanned && root.bytes > 0;
  };
  std::vector<Device*> devices;
  const auto add_device = [&](Device* device) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  };
  for (const StepList::Root& root : list.roots)
    if (is_planned(root)) add_device(root.device);
  for (const StepList::Step& step : list.steps) add_device(step.device);
  for (Device* device : devices) {
    std::vector<Buffer> buffers;
    std::vector<std::size_t*> offsets;
    std::size_t slack = 0;
    const auto add = [&](std::size_t bytes, std::int64_t lower, std::int64_t upper, std::size_t& offset) {
      buffers.push_back({.size = buffer_bytes(bytes), .lower = lower, .upper = upper, .alignment = kBufferAlignment});
      offsets.push_back(&offset);
    };
    for (std::size_t i = 0; i < list.roots.size(); ++i) {
      const StepList::Root& root = list.roots[i];
      if (!is_planned(root) || root.device != device) continue;
      add(root.bytes, root.first, root.last + 1, places.root_offsets[i]);
      if (!root.is_transferred) continue;
      buffers.back().size = transferred_bytes(root.bytes);
      buffers.back().alignment = kSpillAlignment;
      slack = kSpillSlack;
    }
    for (std::size_t i = 0; i < list.steps.size(); ++i) {
      const StepList::Step& step = list.steps[i];
      const auto position = static_cast<std::int64_t>(i);
      if (step.device == device && step.scratch_bytes > 0)
        add(step.scratch_bytes, position, position + 1, places.scratch_offsets[i]);
    }
    places.extents.push_back({.device = device, .bytes = 0});
    if (buffers.empty()) continue;
    constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
    const std::size_t capacity = devices.size() == 1 && limits.capacity > slack ? limits.capacity - slack : kNoLimit;
    const Plan placed = plan(buffers, {.capacity = capacity},
                             {.nodes = limits.nodes, .seconds = std::numeric_limits<double>::infinity(), .threads = 1});
    for (std::size_t i = 0; i < offsets.size(); ++i) *offsets[i] = placed.offsets[i];
    places.extents.back().bytes = placed.peak + slack;
    places.extents.back().alignment = slack > 0 ? kSpillAlignment : 1;
    places.lower_bound += placed.lower_bound;
  }
  if (places.extents.empty()) places.extents.push_back({.device = nullptr, .bytes = 0});
  return places;
}

}  // namespace plimsoll::internal
