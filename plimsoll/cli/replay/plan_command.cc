#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/terminal.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/replay/plan_compare.h"
#include "plimsoll/cli/replay/plan_report.h"
#include "plimsoll/plan/lifetimes_csv.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/plan_svg.h"

namespace plimsoll::internal {
namespace {

struct Options {
  std::string lifetimes;
  std::string capacity;
  std::string time = "10s";
  std::string alignment = "1";
  std::uint64_t nodes = Deadline().nodes;
  int threads = 2;
  std::string out;
  std::string svg;
  std::string compare;
  bool json = false;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error("plan: cannot write \"" + path + "\"; check that the folder exists and is writable");
}

// One progress line that is overwritten; nothing without a terminal or when it is fast.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }

  void show(const PlanProgress& progress) {
    if (progress.seconds < 1 || !rewrites_lines(STDERR_FILENO)) return;
    shown_ = true;
    fmt::print(stderr, "\r\033[K{:.0f} s: peak {}, lower bound {}", progress.seconds, format_bytes(progress.peak),
               format_bytes(progress.lower_bound));
    std::fflush(stderr);
  }

 private:
  bool shown_ = false;
};

Plan plan_with_progress(const Lifetimes& lifetimes, const Constraints& constraints, const Deadline& deadline) {
  ProgressLine line;
  return plan(lifetimes.buffers, constraints, deadline, [&](const PlanProgress& progress) { line.show(progress); });
}

void write_picture(const Options& options, const Lifetimes& lifetimes, const Constraints& constraints,
                   const Plan& plan) {
  PictureOptions picture;
  if (!options.capacity.empty()) picture.capacity = constraints.capacity;
  picture.lower_bound = plan.lower_bound;
  picture.title = fmt::format("{}: {} buffers, peak {}, {}", options.lifetimes.substr(options.lifetimes.rfind('/') + 1),
                              lifetimes.buffers.size(), format_bytes(plan.peak), to_string(plan.proof));
  write_file(options.svg, plan_svg(lifetimes, picture));
}

void run(const Options& options) {
  Lifetimes lifetimes = read_lifetimes(options.lifetimes);
  const Lifetimes older = options.compare.empty() ? Lifetimes() : read_lifetimes(options.compare);
  Constraints constraints;
  if (!options.capacity.empty()) constraints.capacity = parse_bytes(options.capacity);
  constraints.alignment = parse_bytes(options.alignment);
  const Deadline deadline{options.nodes, parse_seconds(options.time), options.threads};
  const Plan result = plan_with_progress(lifetimes, constraints, deadline);
  lifetimes.offsets = result.offsets;
  if (!options.out.empty()) write_file(options.out, format_lifetimes(lifetimes));
  if (!options.svg.empty()) write_picture(options, lifetimes, constraints, result);
  nlohmann::ordered_json json = plan_json(lifetimes, constraints, result);
  std::string table = plan_table(lifetimes, constraints, result);
  if (!options.compare.empty()) {
    const PlanDifference difference = compare_plans(older, lifetimes);
    json["compare"] = difference_json(difference);
    table += difference_table(difference);
  }
  options.json ? print_document(json) : static_cast<void>(std::printf("%s", table.c_str()));
  if (result.peak > constraints.capacity) throw Exit{3};
}

}  // namespace

void add_plan_command(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  Command command(line, "plan", "Place buffers with known lifetimes in one arena, as low as possible");
  command.option("lifetimes", options->lifetimes, "CSV with the columns id,lower,upper,size").required();
  const auto not_a_time = [](const std::string& text) -> std::string {  // Reports wrong usage before anything is read.
    try {
      parse_seconds(text);
      return "";
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  };
  command.option("--capacity", options->capacity, "Size of the arena, such as 1MiB; exit 3 when it does not fit")
      .check(size_check())
      .value("SIZE");
  command.option("--time", options->time, "How long to improve the plan: 500ms, 10s, 2min")
      .check(not_a_time)
      .value("TIME")
      .show_default();
  command.option("--nodes", options->nodes, "Stop after this many placements: the same plan on any machine");
  command.option("--alignment", options->alignment, "At least this for every buffer")
      .check(size_check())
      .value("SIZE")
      .show_default();
  command.option("--threads", options->threads, "Threads to search with").check(between(1, 1024)).show_default();
  command.option("--out", options->out, "Write the plan: the CSV with an offset column").value("FILE");
  command.option("--svg", options->svg, "Draw the plan: time across, address up").value("FILE");
  command.option("--compare", options->compare, "Show what changed since an older plan, as written by --out")
      .value("FILE");
  command.flag("--json", options->json, "Print one JSON document");
  command.notes(
      "The CSV has the columns id,lower,upper,size: a buffer lives from lower up to, not including, upper. Optional\n"
      "columns: alignment, gaps (\"2-5 7-9@0:256\"), alias_set, alias_offset.\n"
      "With --capacity it stops at the first plan that fits; without it, it reduces the peak until the time is up or\n"
      "the plan is proved optimal. Exit 3: nothing within the capacity was found (proof: infeasible or unknown).\n"
      "Example: plimsoll plan lifetimes.csv --capacity 1MiB --svg plan.svg --out plan.csv");
  command.run([options] { run(*options); });
}

}  // namespace plimsoll::internal
