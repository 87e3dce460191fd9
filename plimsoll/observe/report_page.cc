#include "plimsoll/observe/report_page.h"

#include <fmt/format.h>
#include <zlib.h>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/observe/page_template.h"

namespace plimsoll {
namespace {

constexpr std::string_view kPlaceOfData = "<!--plimsoll:data-->";

std::string inflated_template() {
  const PageTemplate page = page_template();
  if (page.bytes == 0)
    throw Unsupported(
        "report: this library was built without the page because Node or npm was missing; install both (tools/setup "
        "page) and build again");
  std::string text(page.bytes, '\0');
  uLongf size = page.bytes;
  const int code = uncompress(reinterpret_cast<Bytef*>(text.data()), &size, page.deflated.data(), page.deflated.size());
  PLIMSOLL_CHECK(code == Z_OK && size == page.bytes);
  return text;
}

std::string page_with(const std::string& data) {
  std::string page = inflated_template();
  const std::size_t place = page.find(kPlaceOfData);
  PLIMSOLL_CHECK(place != std::string::npos);
  page.replace(place, kPlaceOfData.size(), data);
  return page;
}

}  // namespace

bool has_report_page() noexcept { return page_template().bytes > 0; }

std::string report_page(const TraceHistory& history, const RunSummary& run, const std::vector<Finding>& findings,
                        const std::string& title) {
  return page_with(report_data(history, run, findings, title));
}

std::string live_page() { return page_with("<script type=\"text/plain\" id=\"live-source\"></script>"); }

void write_report(const std::filesystem::path& trace, const std::filesystem::path& html) {
  if (!has_report_page()) inflated_template();
  const TraceHistory history = read_trace_history(trace);
  const RunSummary run = summarize(history);
  AtomicFile file(html);
  file.write(report_page(history, run, diagnose(history, run), trace.filename().string()));
  file.commit();
}

}  // namespace plimsoll
