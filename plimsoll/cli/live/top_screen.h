// The screen of `plimsoll top` as lines of text: a pure function of the counters and of the user's choices.
//
//   std::cout << top_screen(read_live_processes(), {.width = 100});
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plimsoll/observe/live/live_counters.h"

namespace plimsoll::internal {

enum class TopSection { kProcesses, kBudgets, kHolders, kDevices };

struct TopView {
  TopSection section = TopSection::kProcesses;  // What is shown of the chosen process, below the list.
  std::uint32_t chosen = 0;                     // Its number; 0 for none.
  std::size_t width = 120;                      // Lines are cut there.
  std::size_t height = 0;                       // Most lines; 0 for no limit.
  bool color = false, unicode = false;
  bool keys = false;  // Whether the last line says which keys there are.
  std::string note;   // Replaces that line: an answer, an error.
  std::int64_t now =
      0;  // Unix time in nanoseconds; counters much older than their interval are marked. 0: not looked at.
};

std::string top_screen(const std::vector<LiveCounters>& processes, const TopView& view);

// Everything known about one process, for a pipe.
std::string top_details(const LiveCounters& process, const TopView& view);

}  // namespace plimsoll::internal
