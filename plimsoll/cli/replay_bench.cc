// Every trace over every allocator, in turns, in one run: time per operation and bytes, as Markdown, and the targets.
//
//   replay_bench [--milliseconds N] [--rounds N] TRACE.csv.gz...
//
// Times are CPU time of the thread, best and mean. Peers are Debian's tcmalloc, mimalloc and jemalloc, and glibc.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "plimsoll/cli/replay.h"
#include "plimsoll/cli/replay_bench_process.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/memory/bench_testing.h"

namespace plimsoll {
namespace {

struct Lane {  // One column of the tables.
  std::string title, worker, mode;
};

const std::vector<Lane> kLanes = {
    {"tcmalloc", "tcmalloc", "plain"},
    {"mimalloc", "mimalloc", "plain"},
    {"jemalloc", "jemalloc", "plain"},
    {"glibc", "glibc", "plain"},
    {"bfc", "bfc", "plain"},
    {"tcmalloc touched", "tcmalloc", "touch"},
    {"mimalloc touched", "mimalloc", "touch"},
    {"jemalloc touched", "jemalloc", "touch"},
    {"glibc touched", "glibc", "touch"},
};

struct Settings {
  double milliseconds = 60;  // Per trace, lane and round.
  int rounds = 4;
  std::vector<std::string> paths;
};

using Row = std::map<std::string, WorkerResult>;  // By lane title.

class Comparison {
 public:
  explicit Comparison(const Settings& settings) : settings_(settings) {
    start("malloc", "");
    start("malloc", "libtcmalloc_minimal.so.4");
    start("malloc", "libmimalloc.so.2");
    start("malloc", "libjemalloc.so.2");
    start("bfc", "");
  }

  void measure() {
    for (std::size_t trace = 0; trace < settings_.paths.size(); ++trace) {
      traces_.push_back(read_trace(settings_.paths[trace]));
      rows_.push_back(measure_trace(trace));
      for (auto& [name, worker] : workers_) worker->drop();
      std::fprintf(stderr, "replay_bench: %s\n", traces_.back().name.c_str());
    }
  }

  const std::vector<Trace>& traces() const { return traces_; }
  const std::vector<Row>& rows() const { return rows_; }
  bool has(const std::string& title) const { return !rows_.empty() && rows_[0].count(title) > 0; }

  // The geometric mean over the traces of best (or mean) times.
  double geometric(const std::string& title, bool best = true) const {
    std::vector<double> values;
    for (const Row& row : rows_) values.push_back(best ? row.at(title).best : row.at(title).mean);
    return geometric_mean(values);
  }

 private:
  void start(const std::string& allocator, const std::string& preload) {
    auto worker = std::make_unique<WorkerProcess>(allocator, preload, settings_.paths);
    const std::string name = worker->name();
    if (!preload.empty() && name == "glibc")
      std::fprintf(stderr, "replay_bench: %s is not installed; left out\n", preload.c_str());
    else
      workers_[name] = std::move(worker);
  }

  Row measure_trace(std::size_t trace) {
    Row row;
    std::map<std::string, int> passes;
    for (const Lane& lane : kLanes) {  // A pass to warm up, from which the number of timed ones follows.
      if (workers_.count(lane.worker) == 0) continue;
      const WorkerResult first = workers_[lane.worker]->run(trace, lane.mode, 1);
      const double pass_ms = first.best * static_cast<double>(traces_[trace].operations.size()) / 1e6;
      passes[lane.title] = static_cast<int>(std::clamp(settings_.milliseconds / std::max(pass_ms, 1e-3), 1.0, 30.0));
      row[lane.title] = {.best = 1e300, .reserved = first.reserved, .refusals = first.refusals};
    }
    for (int round = 0; round < settings_.rounds; ++round) {
      for (const Lane& lane : kLanes) {
        if (workers_.count(lane.worker) == 0) continue;
        const WorkerResult result = workers_[lane.worker]->run(trace, lane.mode, passes[lane.title]);
        WorkerResult& total = row[lane.title];
        total.best = std::min(total.best, result.best);
        total.mean += result.mean / settings_.rounds;
        total.reserved = std::max(total.reserved, result.reserved);
        total.refusals += result.refusals;
      }
    }
    return row;
  }

  const Settings settings_;
  std::map<std::string, std::unique_ptr<WorkerProcess>> workers_;
  std::vector<Trace> traces_;
  std::vector<Row> rows_;
};

std::string short_name(const Trace& trace) { return trace.name.substr(0, trace.name.find('.')); }

std::string time_text(double best, double mean) {
  return best < 1000 ? fmt::format("{:.1f} ({:.1f})", best, mean) : fmt::format("{:.0f} ({:.0f})", best, mean);
}

void print_times(const Comparison& comparison, const char* title, std::vector<std::string> lanes) {
  std::erase_if(lanes, [&](const std::string& lane) { return !comparison.has(lane); });
  std::vector<std::string> header = {"ns per operation, best (mean)"};
  header.insert(header.end(), lanes.begin(), lanes.end());
  Table table(header);
  for (std::size_t i = 0; i < comparison.rows().size(); ++i) {
    std::vector<std::string> cells = {short_name(comparison.traces()[i])};
    for (const std::string& lane : lanes)
      cells.push_back(time_text(comparison.rows()[i].at(lane).best, comparison.rows()[i].at(lane).mean));
    table.add(cells);
  }
  std::vector<std::string> cells = {"geometric mean"}, ratios = {"x tcmalloc"};
  const std::string tcmalloc = lanes[0].find("touched") == std::string::npos ? "tcmalloc" : "tcmalloc touched";
  for (const std::string& lane : lanes) {
    const double best = comparison.geometric(lane), mean = comparison.geometric(lane, false);
    cells.push_back(time_text(best, mean));
    if (comparison.has(tcmalloc))
      ratios.push_back(fmt::format("{:.2f} ({:.2f})", best / comparison.geometric(tcmalloc),
                                   mean / comparison.geometric(tcmalloc, false)));
  }
  table.add(cells);
  table.add(ratios);
  std::printf("\n%s\n\n%s", title, table.markdown().c_str());
}

int run(int count, char** words) {
  Settings settings;
  std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.size() >= 2 && arguments[0] == "--worker")
    return ReplayWorker(arguments[1], {arguments.begin() + 2, arguments.end()}).serve();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--milliseconds" && i + 1 < arguments.size()) {
      settings.milliseconds = std::stod(arguments[++i]);
    } else if (arguments[i] == "--rounds" && i + 1 < arguments.size()) {
      settings.rounds = std::stoi(arguments[++i]);
    } else {
      settings.paths.push_back(arguments[i]);
    }
  }
  if (settings.paths.empty()) {
    std::fprintf(stderr, "usage: replay_bench [--milliseconds N] [--rounds N] TRACE.csv.gz...\n");
    return 2;
  }
  Comparison comparison(settings);
  comparison.measure();
  print_times(comparison, "Pages not touched", {"tcmalloc", "mimalloc", "jemalloc", "glibc", "bfc"});
  print_times(comparison, "One byte per page written",
              {"tcmalloc touched", "mimalloc touched", "jemalloc touched", "glibc touched"});
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int count, char** words) { return plimsoll::run(count, words); }
