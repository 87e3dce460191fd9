#include "plimsoll/cli/live/serve_source.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/observe/live/live_file.h"
#include "plimsoll/observe/live/trace_counters.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll::internal {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

int number_in(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

int only_process() {
  const std::vector<LiveCounters> all = read_live_processes();
  if (all.size() == 1) return static_cast<int>(all[0].process);
  if (all.empty())
    throw NotFound(
        "serve: no process publishes its memory; give a trace file, or start a process with PLIMSOLL_LIVE=1");
  std::string numbers;
  for (const LiveCounters& one : all) numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", one.process);
  throw FailedPrecondition(fmt::format("serve: several processes publish their memory; give one of {}", numbers));
}

}  // namespace

ServeSource::ServeSource(const std::string& what) {
  const bool is_file = !what.empty() && (fs::exists(what) || fs::exists(what + ".partial"));
  const int number = what.empty() ? only_process() : is_file ? 0 : number_in(what);
  if (number > 0) {
    follow(number);
  } else {
    trace_ = what;
    if (trace_.extension() == ".partial") trace_.replace_extension();
    if (!is_file) throw NotFound(fmt::format("serve: there is no file \"{}\", and no process of that number", what));
    title_ = trace_.filename().string();
  }
  refresh();
}

ServeSource::~ServeSource() {
  followed_.reset();
  if (folder_.empty()) return;
  std::error_code ignored;
  for (int i = 0; i < 20 && fs::exists(trace_.string() + ".partial", ignored); ++i)  // It completes the file first.
    usleep(50'000);
  fs::remove_all(folder_, ignored);
}

void ServeSource::follow(int process) {
  process_ = process;
  const auto counters = read_live_process(process);
  if (!counters)
    throw NotFound(fmt::format(
        "serve: process {} publishes nothing; start it with PLIMSOLL_LIVE=1, or make a pl::LiveView in it", process));
  title_ = fmt::format("{} ({})", text_of(counters->name), process);
  const nlohmann::json answer = parse_json(ask_live_process(process, "flush"));
  if (const auto own = answer.find("recording"); own != answer.end() && own->is_string()) {
    trace_ = own->get<std::string>();  // It records already.
    return;
  }
  std::string made = (fs::temp_directory_path() / "plimsoll-serve-XXXXXX").string();
  if (!mkdtemp(made.data())) throw_system_error("serve", made, "make", errno);
  folder_ = made;
  trace_ = folder_ / "live.trace";
  try {
    followed_ = std::make_unique<FollowedProcess>(process, trace_.string());
  } catch (...) {
    fs::remove_all(folder_);
    throw;
  }
}

// A recorder writes what threads have collected when that pays; this requests it now.
void ServeSource::ask_for_the_rest() noexcept try {
  if (followed_ || !is_growing_ || counters_.process == 0) return;
  const int process = static_cast<int>(counters_.process);
  if (std::getenv("XDG_RUNTIME_DIR") && read_live_process(process)) ask_live_process(process, "flush", 1);
} catch (const std::exception&) {  // Then it comes later.
}

// A killed process leaves a partial file.
bool ServeSource::has_ended() const { return process_ > 0 && !read_live_process(process_); }

bool ServeSource::has_changed() {
  std::error_code error;
  const fs::path partial = trace_.string() + ".partial";
  const bool is_complete = fs::exists(trace_, error);
  file_ = is_complete ? trace_ : partial;
  const auto size = fs::file_size(file_, error);
  if (error) return false;
  const auto changed = fs::last_write_time(file_, error);
  const bool is_growing = !is_complete && !has_ended();
  if (size == size_ && changed == changed_ && is_growing_ == is_growing) return false;
  size_ = size;
  changed_ = changed;
  is_growing_ = is_growing;
  return true;
}

void ServeSource::refresh() {
  const auto begin = Clock::now();
  if (begin < next_) return;
  const std::int64_t worked_ns = thread_cpu_ns();
  ask_for_the_rest();
  if (has_changed()) read();
  // Reading a long trace takes long: it may use at most a fifth of a processor, which leaves time for other requests.
  next_ = Clock::now() + std::max({Clock::duration(std::chrono::milliseconds(500)), (Clock::now() - begin) / 2,
                                   Clock::duration(std::chrono::nanoseconds(4 * (thread_cpu_ns() - worked_ns)))});
}

void ServeSource::read() {
  TraceHistory history = read_trace_history(file_);
  const RunSummary run = summarize(history);
  counters_ = counters_at_end(history, run, title_);
  if (!is_growing_ || !history.times.empty()) {
    std::vector<Finding> findings = diagnose(history, run);
    if (is_growing_) std::erase_if(findings, [](const Finding& finding) { return finding.kind == "incomplete trace"; });
    data_ = std::make_shared<const std::string>(report_data(history, run, findings, title_));
    version_ = fmt::format("{}-{}{}", size_, changed_.time_since_epoch().count(), is_growing_ ? "" : "-end");
  }
}

std::string ServeSource::metrics() const {
  if (process_ > 0)
    if (const auto now = read_live_process(process_)) return metrics_text(*now);
  return metrics_text(counters_);
}

}  // namespace plimsoll::internal
