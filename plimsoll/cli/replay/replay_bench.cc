// Every trace over every allocator, alternating, in one run: time per operation and bytes, as Markdown, and the
// targets.
//
//   replay_bench [--milliseconds N] [--rounds N] TRACE.csv.gz...
//
// Times are CPU time of the thread, best and mean. Peers are Debian's tcmalloc, mimalloc and jemalloc, and glibc.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>

#include "plimsoll/cli/replay/replay.h"
#include "plimsoll/cli/replay/replay_bench_process.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/memory/bench_testing.h"

namespace plimsoll {
namespace {

struct Lane {  // One column of the tables.
  std::string title, worker, mode;
};

const std::vector<Lane> kLanes = {
    {"arena", "arena", "plain"},
    {"arena growth", "arena", "growth"},
    {"tcmalloc", "tcmalloc", "plain"},
    {"mimalloc", "mimalloc", "plain"},
    {"jemalloc", "jemalloc", "plain"},
    {"glibc", "glibc", "plain"},
    {"bfc", "bfc", "plain"},
    {"arena touched", "arena", "touch"},
    {"arena tight", "arena", "tight"},
    {"tcmalloc touched", "tcmalloc", "touch"},
    {"mimalloc touched", "mimalloc", "touch"},
    {"jemalloc touched", "jemalloc", "touch"},
    {"glibc touched", "glibc", "touch"},
};

struct Settings {
  double milliseconds = 40;  // Per trace, lane and round.
  int rounds = 5;
  std::vector<std::string> paths;
};

using Row = std::map<std::string, WorkerResult>;  // By lane title.

class Comparison {
 public:
  explicit Comparison(const Settings& settings) : settings_(settings) {
    start("arena", "");
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

  // A pass to warm up, then rounds in which every lane has its turn of about the same time, one pass at least.
  // A lane whose pass takes over half a second is slow for other reasons than a cold start: that pass is its
  // measurement.
  Row measure_trace(std::size_t trace) {
    constexpr double kVerySlowMs = 1500, kSlowMs = 500;
    Row row;
    std::map<std::string, double> pass_ms;
    const double operations = static_cast<double>(traces_[trace].operations.size());
    for (const Lane& lane : kLanes) {
      if (workers_.count(lane.worker) == 0) continue;
      row[lane.title] = workers_[lane.worker]->run(trace, lane.mode, 1);
      pass_ms[lane.title] = row[lane.title].best * operations / 1e6;
    }
    std::map<std::string, int> count;
    for (int round = 0; round < settings_.rounds; ++round) {
      for (const Lane& lane : kLanes) {
        if (workers_.count(lane.worker) == 0 || pass_ms[lane.title] > (round == 0 ? kVerySlowMs : kSlowMs)) continue;
        const int passes = static_cast<int>(std::clamp(settings_.milliseconds / pass_ms[lane.title], 1.0, 30.0));
        const WorkerResult result = workers_[lane.worker]->run(trace, lane.mode, passes);
        pass_ms[lane.title] = std::max(result.mean * operations / 1e6, 1e-3);
        add(row[lane.title], count[lane.title], result, passes);
      }
    }
    return row;
  }

  // Takes `passes` more into a total of `count`; the pass to warm up leaves only its bytes.
  static void add(WorkerResult& total, int& count, const WorkerResult& more, int passes) {
    total.best = count == 0 ? more.best : std::min(total.best, more.best);
    total.mean = (total.mean * count + more.mean * passes) / (count + passes);
    total.reserved = std::max(total.reserved, more.reserved);
    total.refusals += more.refusals;
    count += passes;
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

double ratio(std::size_t bytes, std::size_t of) { return static_cast<double>(bytes) / static_cast<double>(of); }

void print_bytes(const Comparison& comparison) {
  Table table({"bytes / peak live", "peak live MiB", "arena growth", "bfc growth", "arena tight limit",
               "refusals in it", "bfc needs"});
  std::vector<double> grown, bfc, needs;
  for (std::size_t i = 0; i < comparison.rows().size(); ++i) {
    const Trace& trace = comparison.traces()[i];
    const Row& row = comparison.rows()[i];
    grown.push_back(ratio(row.at("arena growth").reserved, trace.peak_live));
    bfc.push_back(ratio(row.at("bfc").reserved, trace.peak_live));
    needs.push_back(ratio(smallest_bfc_pool(trace), trace.peak_live));
    table.add({short_name(trace), fmt::format("{:.1f}", static_cast<double>(trace.peak_live) / 1048576),
               fmt::format("{:.3f}", grown.back()), fmt::format("{:.3f}", bfc.back()),
               fmt::format("{:.3f}", ratio(tight_limit(trace), trace.peak_live)),
               fmt::format("{}", row.at("arena tight").refusals), fmt::format("{:.3f}", needs.back())});
  }
  table.add({"geometric mean", "", fmt::format("{:.3f}", geometric_mean(grown)),
             fmt::format("{:.3f}", geometric_mean(bfc)), "", "", fmt::format("{:.3f}", geometric_mean(needs))});
  std::printf("\nBytes\n\n%s", table.markdown().c_str());
}

void report_bytes(const Comparison& comparison) {
  std::size_t refusals = 0, grown_too_far = 0;
  for (std::size_t i = 0; i < comparison.rows().size(); ++i) {
    const std::size_t live = comparison.traces()[i].peak_live;
    refusals += comparison.rows()[i].at("arena tight").refusals;
    if (static_cast<double>(comparison.rows()[i].at("arena growth").reserved) >
        1.05 * static_cast<double>(live) + 2_MiB)
      ++grown_too_far;
  }
  report_target(refusals == 0, fmt::format("every trace runs in 1.02 x peak live + 256 KiB: {} refusals", refusals));
  report_target(grown_too_far == 0,
                fmt::format("growth reserves at most 1.05 x peak live + 2 MiB: {} of {} traces pass it", grown_too_far,
                            comparison.rows().size()));
}

void report_times(const Comparison& comparison) {
  const auto against_tcmalloc = [&](const char* lane, double target) {
    const double best = comparison.geometric(lane) / comparison.geometric("tcmalloc");
    const double mean = comparison.geometric(lane, false) / comparison.geometric("tcmalloc", false);
    report_target(best <= target,
                  fmt::format("{}, time per operation: {:.2f} x tcmalloc by best, {:.2f} by mean (target {:.1f})", lane,
                              best, mean, target));
  };
  against_tcmalloc("arena", 0.9);
  against_tcmalloc("arena growth", 1.0);
}

void report_tight(const Comparison& comparison) {
  const double all = comparison.geometric("arena tight") / comparison.geometric("arena touched");
  report_target(all <= 1.5, fmt::format("tight limit, touched: {:.2f} x the unlimited time (target 1.5)", all));
  std::string above;
  for (std::size_t i = 0; i < comparison.rows().size(); ++i) {
    const Trace& trace = comparison.traces()[i];
    const double one = comparison.rows()[i].at("arena tight").best / comparison.rows()[i].at("arena touched").best;
    if (one > 2 && trace.peak_live >= 16_MiB && trace.name.find("tree") == std::string::npos)
      above += fmt::format(" {} {:.2f}", short_name(trace), one);
  }
  report_target(above.empty(),
                fmt::format("tight limit, touched: no trace above 2 x but trees and those under 16 MiB:{}",
                            above.empty() ? " none" : above));
}

void report_touched(const Comparison& comparison) {
  std::string best_peer;
  for (const char* lane : {"tcmalloc touched", "mimalloc touched", "jemalloc touched", "glibc touched"})
    if (comparison.has(lane) && (best_peer.empty() || comparison.geometric(lane) < comparison.geometric(best_peer)))
      best_peer = lane;
  const double all = comparison.geometric("arena touched") / comparison.geometric(best_peer);
  report_target(all <= 1.0, fmt::format("touched, no limit: {:.2f} x {} (target 1.0)", all, best_peer));
  std::string above;
  for (std::size_t i = 0; i < comparison.rows().size(); ++i) {
    const Row& row = comparison.rows()[i];
    double peer = row.at(best_peer).best;
    for (const char* lane : {"mimalloc touched", "jemalloc touched", "glibc touched"})
      if (comparison.has(lane)) peer = std::min(peer, row.at(lane).best);
    const double one = row.at("arena touched").best / peer;
    if (one > 1.3) above += fmt::format(" {} {:.2f}", short_name(comparison.traces()[i]), one);
  }
  report_target(above.empty(), fmt::format("touched, no limit: no trace above 1.3 x its best peer:{}",
                                           above.empty() ? " none" : above));
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
    std::printf(
        "replay_bench: run by tools/bench_memory; alone: replay_bench [--milliseconds N] [--rounds N] "
        "TRACE.csv.gz...\n");
    return 0;
  }
  Comparison comparison(settings);
  comparison.measure();
  print_times(comparison, "Pages not touched",
              {"arena", "arena growth", "tcmalloc", "mimalloc", "jemalloc", "glibc", "bfc"});
  print_times(
      comparison, "One byte written per page",
      {"arena touched", "arena tight", "tcmalloc touched", "mimalloc touched", "jemalloc touched", "glibc touched"});
  print_bytes(comparison);
  std::printf("\n");
  report_bytes(comparison);
  if (comparison.has("tcmalloc")) report_times(comparison);
  report_tight(comparison);
  report_touched(comparison);
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int count, char** words) { return plimsoll::run(count, words); }
