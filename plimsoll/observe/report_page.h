// The report: one offline HTML file that shows a run's memory.
//
//   {
//     TraceRecorder recorder({.path = "run.trace"});
//     train();
//   }
//   write_report("run.trace", "report.html");     // opens from disk in any browser
//
// It contains all events: the page shows fewer where there is no room, and more when you zoom in. Thread safety: plain
// functions. Cost: for 10^6 events about two seconds and 200 MB, and a file of about 5 MB.
#pragma once

#include <filesystem>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll {

// Whether this library was built with the page (it needs Node and npm while building).
PLIMSOLL_API bool has_report_page() noexcept;

// Throws Unsupported without the page, what read_trace_file() throws, Error when the file cannot be written.
PLIMSOLL_API void write_report(const std::filesystem::path& trace, const std::filesystem::path& html);

// The page as text. `title` is what the page calls the run.
PLIMSOLL_API std::string report_page(const TraceHistory& history, const RunSummary& run,
                                     const std::vector<Finding>& findings, const std::string& title);

// The page without data, for `plimsoll serve`: it fetches its data from /data with the token of its address, again and
// again. Throws Unsupported without the page.
PLIMSOLL_API std::string live_page();

// The page's data, as elements to insert into it. For report_page() and tests.
PLIMSOLL_API std::string report_data(const TraceHistory& history, const RunSummary& run,
                                     const std::vector<Finding>& findings, const std::string& title);

}  // namespace plimsoll
