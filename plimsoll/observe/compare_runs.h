// compare_runs(): compares two recorded runs: peaks by category, and what grew.
//
//   const RunComparison both = compare_runs(read("before.trace"), read("after.trace"));
//   std::cout << both.groups[0].what << " grew by " << both.groups[0].change() << " bytes\n";
//   file.write(comparison_page(both, "before", "after"));                     // one HTML file, without scripts
//
// Groups are operations in a scope, with their live bytes at each run's own peak. Plain functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll::internal {

struct ComparedRun {
  RunSummary summary;
  std::int64_t duration_ns = 0;
  std::uint64_t events = 0;
  std::vector<Finding> findings;
};

struct ComparedGroup {
  std::string what;  // "matmul in dense_1".
  Category category = Category::kOther;
  std::uint64_t before = 0, after = 0;  // Bytes live at the peak of the first run, and of the second.
  std::int64_t change() const noexcept { return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before); }
};

struct RunComparison {
  ComparedRun before, after;
  std::vector<ComparedGroup> groups;  // The largest change first; those that did not change last.
  std::vector<Finding> fresh, gone;   // Problems and warnings that only the second run has, or only the first.
};

PLIMSOLL_API RunComparison compare_runs(const TraceHistory& before, const TraceHistory& after);

// One figure of both runs, for tables.
struct ComparedFigure {
  std::string name;
  std::uint64_t before = 0, after = 0;
  bool is_bytes = true;
};
// Peak, peak by category, reserved, live at the end, steps, refusals.
PLIMSOLL_API std::vector<ComparedFigure> compared_figures(const RunComparison& runs);

PLIMSOLL_API std::string comparison_page(const RunComparison& runs, const std::string& before_name,
                                         const std::string& after_name);
PLIMSOLL_API std::string comparison_json(const RunComparison& runs, const std::string& before_name,
                                         const std::string& after_name, int indent = 2);

// "+1.5 MiB", "-512 B", "0 B".
PLIMSOLL_API std::string format_change(std::int64_t bytes);

}  // namespace plimsoll::internal
