// Measurements of the planner, as Markdown tables. `tools/bench_plan` runs it.
//
//   plan_bench TESTDATA_PLAN_FOLDER [--long]       (--long: a minute each on the instances whose optimum is unknown)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "plimsoll/base/error.h"
#include "plimsoll/plan/lifetimes_csv.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/validate.h"

namespace plimsoll {
namespace {

constexpr std::size_t kCapacity = 1048576;  // Published with the hard instances.

// Ten births per step, sizes log-uniform from 256 B to 16 MiB, lifetimes geometric with a mean of 200 steps, seed 1.
std::vector<Buffer> random_buffers(int count) {
  std::mt19937_64 random(1);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<Buffer> buffers(count);
  for (int i = 0; i < count; ++i) {
    buffers[i].lower = i / 10;
    buffers[i].upper = buffers[i].lower + 1 + static_cast<int>(std::log1p(-unit()) / std::log1p(-1.0 / 200));
    buffers[i].size = static_cast<std::size_t>(std::exp2(8 + 16 * unit()));
  }
  return buffers;
}

Plan checked_plan(const std::vector<Buffer>& buffers, const Constraints& constraints, const Deadline& deadline) {
  const Plan result = plan(buffers, constraints, deadline);
  if (const std::string fault = validate_plan(buffers, result.offsets); !fault.empty()) {
    std::printf("INVALID PLAN: %s\n", fault.c_str());
    std::exit(1);
  }
  return result;
}

double ratio(const Plan& plan) { return static_cast<double>(plan.peak) / static_cast<double>(plan.lower_bound); }

// The run of three with the median time.
Plan median_plan(const std::vector<Buffer>& buffers, const Constraints& constraints, const Deadline& deadline) {
  std::vector<Plan> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(checked_plan(buffers, constraints, deadline));
  std::sort(runs.begin(), runs.end(), [](const Plan& a, const Plan& b) { return a.seconds < b.seconds; });
  return runs[1];
}

double hard_row(const std::string& folder, char name, std::size_t capacity) {
  const Lifetimes lifetimes = read_lifetimes(folder + name + ".1048576.csv");
  const Plan got = median_plan(lifetimes.buffers, {.capacity = capacity}, {.seconds = 60});
  std::printf("| %c | %zu | %zu | %zu | %zu | %s | %.3f | %llu | %.2f |\n", name, lifetimes.buffers.size(), capacity,
              got.peak, got.lower_bound, to_string(got.proof), got.seconds, static_cast<unsigned long long>(got.nodes),
              1e3 * got.first_plan_seconds);
  std::fflush(stdout);
  return got.seconds;
}

void hard_table(const std::string& folder) {
  if (!std::filesystem::exists(folder + "A.1048576.csv")) {
    std::printf("The public instances A-K are not here; nothing to measure.\n\n");
    return;
  }
  std::printf(
      "| instance | buffers | capacity | peak | lower bound | proof | seconds | nodes | first plan ms |\n"
      "|---|--:|--:|--:|--:|---|--:|--:|--:|\n");
  double sum = 0;
  for (char name = 'A'; name <= 'K'; ++name) sum += hard_row(folder, name, kCapacity);
  std::printf("\nA-K together: %.2f s.\n\n", sum);
  std::printf(
      "| instance | buffers | capacity | peak | lower bound | proof | seconds | nodes | first plan ms |\n"
      "|---|--:|--:|--:|--:|---|--:|--:|--:|\n");
  hard_row(folder, 'C', 1039360);
  hard_row(folder, 'D', 1043456);
  std::printf("\n");
}

void open_table(const std::string& folder) {
  std::printf("| instance | seconds | peak | lower bound | proof | gap |\n|---|--:|--:|--:|---|--:|\n");
  for (const char name : {'D', 'J'}) {
    const Lifetimes lifetimes = read_lifetimes(folder + name + ".1048576.csv");
    const Plan got = checked_plan(lifetimes.buffers, {}, {.seconds = 60});
    std::printf("| %c | %.1f | %zu | %zu | %s | %.2f %% |\n", name, got.seconds, got.peak, got.lower_bound,
                to_string(got.proof), 100 * (ratio(got) - 1));
    std::fflush(stdout);
  }
  std::printf("\n");
}

void lifetimes_table(const std::string& folder) {
  std::printf(
      "| lifetimes | buffers | peak | lower bound | proof | ms | first plan ms |\n|---|--:|--:|--:|---|--:|--:|\n");
  for (const char* name : {"bert_infer", "gpt2_decode", "lstm_train", "mlp_mnist_train", "mobilenetv2_train",
                           "resnet18_train", "unet_train"}) {
    const Lifetimes lifetimes = read_lifetimes(folder + "/" + name + ".csv");
    const Plan got = median_plan(lifetimes.buffers, {}, {.seconds = 10});
    std::printf("| %s | %zu | %zu | %zu | %s | %.2f | %.2f |\n", name, lifetimes.buffers.size(), got.peak,
                got.lower_bound, to_string(got.proof), 1e3 * got.seconds, 1e3 * got.first_plan_seconds);
  }
  std::printf("\n");
}

// With no nodes planning ends with the first plan; with time, all stages work on it.
void growth_table() {
  std::printf("| random buffers | first plan ms | above bound | after 10 s |\n|--:|--:|--:|--:|\n");
  for (const int count : {100, 1000, 5000, 10000, 100000}) {
    const std::vector<Buffer> buffers = random_buffers(count);
    const Plan quick = checked_plan(buffers, {}, {.nodes = 0, .seconds = 60});
    const Plan longer = checked_plan(buffers, {}, {.seconds = 10});
    std::printf("| %d | %.2f | %.2f %% | %.2f %% |\n", count, 1e3 * quick.first_plan_seconds, 100 * (ratio(quick) - 1),
                100 * (ratio(longer) - 1));
    std::fflush(stdout);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  using namespace plimsoll;
  if (argc < 2) {
    std::fprintf(stderr, "usage: plan_bench TESTDATA_PLAN_FOLDER [--long]\n");
    return 2;
  }
  const std::string instances = SHARED_DATA "/fetched/minimalloc/";
  try {
    hard_table(instances);
    lifetimes_table(argv[1]);
    growth_table();
    if (argc > 2 && std::strcmp(argv[2], "--long") == 0) open_table(instances);
  } catch (const Error& error) {
    std::fprintf(stderr, "plan_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
