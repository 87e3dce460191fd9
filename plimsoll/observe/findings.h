// Findings: what is worth knowing about a run's memory, in words: refusals first, then the most important.
//
//   for (const Finding& finding : diagnose(history, summarize(history)))
//     std::cout << finding.title << '\n' << finding.evidence << '\n' << finding.remedy << '\n';
//
// Each relies only on the trace: without steps in it, nothing is said about growth per step. Plain functions of their
// arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/run_summary.h"
#include "plimsoll/observe/trace_history.h"

namespace plimsoll {

enum class FindingLevel : std::uint8_t { kProblem, kWarning, kNote };

struct Finding {
  std::string kind;  // "growth", "refused", "session never closed", ...: one word or phrase for programs.
  FindingLevel level = FindingLevel::kNote;
  std::string title;         // One sentence.
  std::string evidence;      // With numbers.
  std::string remedy;        // What to do; "" for notes that need no action.
  std::uint64_t bytes = 0;   // How many bytes it concerns; orders findings of one level.
  std::uint32_t moment = 0;  // Where to look.
};

PLIMSOLL_API std::vector<Finding> diagnose(const TraceHistory& history, const RunSummary& run);
PLIMSOLL_API const char* finding_level_name(FindingLevel level) noexcept;

// The parts, each in its own file; they append.
void find_growth(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings);
void find_refusals(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings);
void find_open_holders(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings);
void find_peak(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings);
void find_room(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings);

void find_recomputing(const TraceHistory& history, std::vector<Finding>& findings);

// "a step drops 12 values, 14 steps run again, 3 values (6.0 MiB) are stored and loaded; predicted 1.21 x"
std::string describe_recompute(const TracedRecompute& recompute);

// An estimate of the bytes that grow with the batch: gradients beyond those of parameters belong to activations.
std::uint64_t growing_with_batch(const BytesByCategory& bytes);

// "step 12, phase \"backward\"", "" when neither is known.
std::string place_in_run(const TraceHistory& history, const RunSummary& run, std::uint32_t moment);

}  // namespace plimsoll
