#include <fmt/core.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/plan_report.h"
#include "plimsoll/plan/lifetimes_csv.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll {
namespace {

struct Options {
  std::string lifetimes;
  std::string capacity;
  std::string time = "10s";
  std::string alignment = "1";
  std::uint64_t nodes = Deadline().nodes;
  int threads = 2;
  std::string out;
  bool json = false;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error("plan: cannot write \"" + path + "\"; is the folder there and writable?");
}

void run(const Options& options) {
  Lifetimes lifetimes = read_lifetimes(options.lifetimes);
  Constraints constraints;
  if (!options.capacity.empty()) constraints.capacity = parse_bytes(options.capacity);
  constraints.alignment = parse_bytes(options.alignment);
  const Deadline deadline{options.nodes, parse_seconds(options.time), options.threads};
  const Plan result = plan(lifetimes.buffers, constraints, deadline);
  lifetimes.offsets = result.offsets;
  if (!options.out.empty()) write_file(options.out, format_lifetimes(lifetimes));
  fmt::print("{}", options.json ? plan_json(lifetimes, constraints, result).dump(2) + "\n"
                                : plan_table(lifetimes, constraints, result));
  if (result.peak > constraints.capacity) throw Exit{3};
}

}  // namespace

void add_plan_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plan", "Place buffers with known lifetimes in one arena, as low as possible");
  command->add_option("lifetimes", options->lifetimes, "CSV with the columns id,lower,upper,size")->required();
  command->add_option("--capacity", options->capacity, "Size of the arena, such as 1MiB; exit 3 when it does not fit");
  command->add_option("--time", options->time, "How long to improve the plan: 500ms, 10s, 2min")->capture_default_str();
  command->add_option("--nodes", options->nodes, "Stop after this many placements: the same plan on any machine");
  command->add_option("--alignment", options->alignment, "At least this for every buffer")->capture_default_str();
  command->add_option("--threads", options->threads, "Threads to search with")->capture_default_str();
  command->add_option("--out", options->out, "Write the plan: the CSV with an offset column");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options] { run(*options); });
}

}  // namespace plimsoll
