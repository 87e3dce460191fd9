// A run's memory made visible: a trace, its findings, a page to look at; and what the process holds.
#include <plimsoll/plimsoll.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <vector>

#include "check.h"

namespace pl = plimsoll;

int main() {
  const std::filesystem::path trace = "26_report.trace", page = "26_report.html";
  std::vector<pl::Tensor> losses;  // The mistake: each holds a tensor of its step.
  {
    const pl::TraceRecorder recorder({.path = trace});
    const pl::Tensor x = pl::random_normal({64, 8}, {.seed = 1});
    pl::Variable w(pl::zeros({8, 1}), {.name = "w"});
    for (std::uint64_t step = 0; step < 30; ++step) {
      pl::trace_step(step);
      const pl::NameScope scope("loss");
      losses.push_back(pl::square(pl::matmul(x, w)));
    }
  }

  const pl::TraceHistory history = pl::read_trace_history(trace);
  const std::vector<pl::Finding> findings = pl::diagnose(history, pl::summarize(history));
  for (const pl::Finding& finding : findings)
    std::cout << pl::finding_level_name(finding.level) << ": " << finding.title << "\n";
  check(!findings.empty() && findings[0].kind == "growth", "the growing list is found first");

  if (pl::has_report_page()) {
    pl::write_report(trace, page);
    check(std::filesystem::file_size(page) > 50'000, "one page with everything in it");
    std::filesystem::remove(page);
  }
  std::filesystem::remove(trace);

  const pl::ResidentParts parts = pl::resident_parts();
  std::cout << parts.to_string() << "\n";
  check(parts.resident == parts.tensors + parts.workspaces + parts.caches + parts.metadata + parts.libraries +
                              parts.heap + parts.remainder,
        "every byte is accounted for");
}
