// heaptrack's text format: strings, frames, traces and allocations are numbered as they first appear; numbers are hex.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "plimsoll/observe/internal/exporters.h"

namespace plimsoll::internal {
namespace {

class Heaptrack {
 public:
  Heaptrack(const ExportedRun& run, ExportFile& file)
      : run_(run), file_(file), traces_(run.history().labels.size(), 0) {}

  std::uint64_t write() {
    line("v 10400 3");
    line("X plimsoll");
    line("I 1000 0");
    module_ = string("plimsoll");
    std::uint64_t births = 0;
    std::int64_t last_ms = -1;
    run_.for_each([&](const BlockEvent& event) {
      const std::int64_t ms = (event.time_ns - run_.begin_ns()) / 1'000'000;
      if (ms > last_ms) line(fmt::format("c {:x}", ms));
      last_ms = std::max(last_ms, ms);
      const std::uint64_t allocation = allocation_of(*event.block);
      line(fmt::format("{} {:x}", event.is_birth ? '+' : '-', allocation));
      births += event.is_birth;
    });
    return births;
  }

 private:
  void line(const std::string& text) {
    file_.write(text);
    file_.write("\n");
  }

  std::uint64_t string(const std::string& text) {
    if (text.empty()) return 0;
    const auto [place, is_new] = strings_.try_emplace(text, strings_.size() + 1);
    if (is_new) line(fmt::format("s {:x} {}", text.size(), text));
    return place->second;
  }

  std::uint64_t frame(const std::string& name, const ExportedRun::Site& site) {
    const auto [place, is_new] = frames_.try_emplace(name, frames_.size() + 1);
    if (!is_new) return place->second;
    const std::uint64_t function = string(name), source = string(site.file);
    std::string text = fmt::format("i {:x} {:x} {:x}", place->second, module_, function);
    if (source != 0) text += fmt::format(" {:x} {:x}", source, site.line);
    line(text);
    return place->second;
  }

  std::uint64_t trace_of(std::uint32_t label_number) {
    std::uint64_t& trace = traces_[label_number];
    if (trace != 0) return trace;
    const TracedLabel& label = run_.history().labels[label_number];
    const ExportedRun::Site site = run_.site(label);
    std::uint64_t parent = 0;
    for (const std::string& name : run_.frames(label)) {
      const std::uint64_t number = frame(name, site);
      const auto [place, is_new] = trace_numbers_.try_emplace({number, parent}, trace_numbers_.size() + 1);
      if (is_new) line(fmt::format("t {:x} {:x}", number, parent));
      parent = place->second;
    }
    return trace = parent;
  }

  std::uint64_t allocation_of(const TracedBlock& block) {
    const std::uint64_t trace = trace_of(block.label);
    const auto [place, is_new] = allocations_.try_emplace({block.size, trace}, allocations_.size());
    if (is_new) line(fmt::format("a {:x} {:x}", block.size, trace));
    return place->second;
  }

  const ExportedRun& run_;
  ExportFile& file_;
  std::uint64_t module_ = 0;
  std::vector<std::uint64_t> traces_;  // By label; 0: not written yet.
  std::unordered_map<std::string, std::uint64_t> strings_, frames_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> trace_numbers_, allocations_;
};

}  // namespace

std::uint64_t export_heaptrack(const ExportedRun& run, std::uint32_t, ExportFile& file) {
  return Heaptrack(run, file).write();
}

}  // namespace plimsoll::internal
