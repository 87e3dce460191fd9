#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/terminal.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/live/terminal_screen.h"
#include "plimsoll/cli/live/top_screen.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/replay/replay_report.h"
#include "plimsoll/observe/live/live_file.h"
#include "plimsoll/observe/live/live_questions.h"

namespace plimsoll::internal {
namespace {

struct TopArguments {
  std::string process;
  bool all = false, once = false, json = false;
  double interval = 0;  // 0: not given.
};

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The requested process, or all.
std::vector<LiveCounters> read(int process) {
  if (process == 0) return read_live_processes();
  const auto found = read_live_process(process);
  if (!found)
    throw NotFound(fmt::format(
        "top: process {} publishes nothing; start it with PLIMSOLL_LIVE=1, or make a pl::LiveView in it", process));
  return {*found};
}

void print_json(const std::vector<LiveCounters>& processes) {
  nlohmann::ordered_json document{{"processes", nlohmann::ordered_json::array()}};
  for (const LiveCounters& process : processes) document["processes"].push_back(parse_ordered_json(live_json(process)));
  print_document(document);
}

void print_once(int process, bool json) {
  const std::vector<LiveCounters> processes = read(process);
  if (json) return print_json(processes);
  const TopView view{.width = 200, .unicode = false, .now = unix_ns()};
  std::printf("%s", process == 0 ? top_screen(processes, view).c_str() : top_details(processes[0], view).c_str());
  std::fflush(stdout);
}

void print_often(int process, const TopArguments& arguments, double interval) {
  for (;;) {
    print_once(process, arguments.json);
    if (std::ferror(stdout) != 0) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(interval));
    if (!arguments.json) std::printf("\n");
  }
}

class Watch {
 public:
  Watch(int process, double interval) : process_(process), interval_(interval) {
    view_.color = shows_color(STDOUT_FILENO);
    view_.unicode = output_shows_unicode();
    view_.keys = true;
    if (process != 0) view_.section = TopSection::kBudgets;
  }

  void run() {
    TerminalScreen screen;
    for (;;) {
      processes_ = process_ == 0 ? read_live_processes() : read_if_alive();
      keep_choice();
      for (KeyPress key = KeyPress::kNone; key == KeyPress::kNone;) {
        view_.width = screen.width();
        view_.height = screen.height();
        view_.now = unix_ns();
        screen.show(top_screen(processes_, view_));
        key = screen.wait(interval_);
        if (key == KeyPress::kQuit) return;
        if (key == KeyPress::kNone) break;
        handle(key, screen.letter());
      }
    }
  }

 private:
  std::vector<LiveCounters> read_if_alive() {
    const auto found = read_live_process(process_);
    if (!found) view_.note = fmt::format("process {} has ended; q quits", process_);
    return found ? std::vector<LiveCounters>{*found} : std::vector<LiveCounters>{};
  }

  std::size_t place() const {
    return static_cast<std::size_t>(std::find_if(processes_.begin(), processes_.end(),
                                                 [&](const LiveCounters& one) { return one.process == view_.chosen; }) -
                                    processes_.begin());
  }
  void keep_choice() {
    if (!processes_.empty() && place() == processes_.size()) view_.chosen = processes_.front().process;
  }
  void move(std::ptrdiff_t by) {
    if (processes_.empty()) return;
    const auto last = static_cast<std::ptrdiff_t>(processes_.size()) - 1;
    view_.chosen = processes_[static_cast<std::size_t>(
                                  std::clamp(static_cast<std::ptrdiff_t>(place()) + by, std::ptrdiff_t{0}, last))]
                       .process;
  }

  void handle(KeyPress key, char letter) {
    view_.note.clear();
    if (key == KeyPress::kUp) return move(-1);
    if (key == KeyPress::kDown) return move(1);
    if (key == KeyPress::kBack) view_.section = TopSection::kProcesses;
    if (key == KeyPress::kEnter)
      view_.section = view_.section == TopSection::kProcesses ? TopSection::kBudgets : TopSection::kProcesses;
    if (key != KeyPress::kLetter) return;
    if (letter == 'b') view_.section = TopSection::kBudgets;
    if (letter == 'h') view_.section = TopSection::kHolders;
    if (letter == 'd') view_.section = TopSection::kDevices;
    if (letter == 'p') view_.section = TopSection::kProcesses;
    if (letter == 't') trim();
  }

  void trim() {
    if (processes_.empty()) return;
    try {
      const auto answer = parse_json(ask_live_process(static_cast<int>(view_.chosen), "trim", 5));
      view_.note = fmt::format("process {} gave {} back to the system", view_.chosen,
                               format_bytes(answer.value("freed_bytes", std::size_t{0})));
    } catch (const std::exception& error) {
      view_.note = error.what();
    }
  }

  const int process_;
  const double interval_;
  std::vector<LiveCounters> processes_;
  TopView view_;
};

void run(const TopArguments& arguments) {
  int process = 0;
  if (!arguments.process.empty()) {
    const std::string& text = arguments.process;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), process);
    if (error != std::errc() || end != text.data() + text.size() || process <= 0)
      refuse_usage("PID", fmt::format("\"{}\" is not the number of a process", text));
    if (arguments.all) refuse_usage("--all", "shows all processes; leave out the number");
  }
  const bool is_screen = rewrites_lines(STDOUT_FILENO) && isatty(STDIN_FILENO) == 1;
  const double interval = arguments.interval == 0 ? 1 : arguments.interval;
  if (!arguments.once && !arguments.json && is_screen) {
    static_cast<void>(read(process));  // Fails on the normal screen.
    return Watch(process, interval).run();
  }
  if (arguments.once || arguments.interval == 0) return print_once(process, arguments.json);
  print_often(process, arguments, interval);
}

}  // namespace

void add_top_command(CommandLine& line) {
  auto arguments = std::make_shared<TopArguments>();
  Command command(line, "top", "Watch the memory of running processes");
  command.option("PID", arguments->process, "One process, with its budgets, holders and devices; all by default")
      .value("");
  command.flag("--all", arguments->all, "Every process of yours that publishes its memory (the default)");
  command.flag("--once", arguments->once, "Print one table and end; the default where the output is not a terminal");
  command.flag("--json", arguments->json, "Print one JSON document instead of a table");
  command.option("--interval", arguments->interval, "Seconds between pictures (1); in a pipe, prints again each time")
      .check(positive_number())
      .value("SECONDS");
  command.notes(
      "A process publishes its memory when PLIMSOLL_LIVE=1 is set or it makes a pl::LiveView:\n"
      "  PLIMSOLL_LIVE=1 ./trainer &\n"
      "  plimsoll top\n"
      "Keys: up and down choose a process; b its budgets, h holders, d devices, p none of them; t makes it\n"
      "give free memory back to the system; q quits.\n"
      "The limit shown is the one nearest to being reached, of all devices and budgets.");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
