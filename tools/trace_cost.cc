// What recording a trace costs a training step: rounds with and without a recorder, one after the other in one process.
// usage: trace_cost [ROUNDS]             processor time of a step without and with (best rounds), and the median of
// ratios
//        trace_cost MODEL STEPS TRACED   runs steps of one model (0, 1, 2), with a recorder when TRACED is 1; under
//                                        valgrind --tool=callgrind two numbers of STEPS give the instructions of one
#include <plimsoll/plimsoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pl = plimsoll;

namespace {

struct Workload {
  std::string name;
  std::function<void()> step;
  int steps;  // Of a round.
};

// Of all threads: other work on the machine disturbs it less than the clock on the wall.
double processor_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

double measure(const Workload& workload) {
  const double start = processor_microseconds();
  for (int i = 0; i < workload.steps; ++i) workload.step();
  return (processor_microseconds() - start) / workload.steps;
}

Workload make(const std::string& name, pl::Model model, const pl::Tensor& x, const pl::Tensor& y, int steps) {
  model.compile({.optimizer = pl::optimizers::Adam(), .loss = pl::losses::MeanSquaredError()});
  return {name, [model, x, y]() mutable { model.train_on_batch(x, y); }, steps};
}

std::vector<Workload> workloads() {
  namespace layers = pl::layers;
  pl::Sequential small({layers::Dense(32, {.activation = "relu", .input_shape = {16}}), layers::Dense(1)});
  pl::Sequential wide({layers::Dense(256, {.activation = "relu", .input_shape = {784}}),
                       layers::Dense(256, {.activation = "relu"}), layers::Dense(10)});
  pl::Sequential tides(
      {layers::LSTM(64, {.return_sequences = true, .input_shape = {48, 1}}), layers::LSTM(32), layers::Dense(1)});
  return {make("MLP 16-32-1, batch 32", small, pl::random_normal({32, 16}), pl::random_normal({32, 1}), 200),
          make("MLP 784-256-256-10, batch 64", wide, pl::random_normal({64, 784}), pl::random_normal({64, 10}), 10),
          make("LSTM 64 + LSTM 32 (demo), batch 128", tides, pl::random_normal({128, 48, 1}),
               pl::random_normal({128, 1}), 2)};
}

void compare(const Workload& workload, int rounds, const std::string& path) {
  double without = 1e300, with = 1e300;
  std::uint64_t events = 0;
  std::vector<double> ratios;
  for (int i = 0; i < 5; ++i) workload.step();
  for (int round = 0; round < rounds; ++round) {
    const double plain = measure(workload);
    pl::TraceRecorder recorder({.path = path});
    const std::uint64_t first = recorder.counters().events;
    const double traced = measure(workload);
    events = (recorder.counters().events - first) / static_cast<std::uint64_t>(workload.steps);
    recorder.finish();
    ratios.push_back(traced / plain);
    without = std::min(without, plain);
    with = std::min(with, traced);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("%-36s %6llu %10.1f %10.1f %+7.2f %% %+7.2f %%\n", workload.name.c_str(),
              static_cast<unsigned long long>(events), without, with, 100 * (with / without - 1),
              100 * (ratios[ratios.size() / 2] - 1));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = "/tmp/trace_cost_" + std::to_string(getpid()) + ".trace";
  const std::vector<Workload> all = workloads();
  if (argc == 4) {
    std::optional<pl::TraceRecorder> recorder;
    if (std::atoi(argv[3]) == 1) recorder.emplace(pl::TraceOptions{.path = path});
    for (int i = 0; i < std::atoi(argv[2]); ++i) all.at(static_cast<std::size_t>(std::atoi(argv[1]))).step();
  } else {
    std::printf("%-36s %6s %10s %10s %9s %9s\n", "training step", "events", "us", "us traced", "best", "median");
    for (const Workload& workload : all) compare(workload, argc > 1 ? std::atoi(argv[1]) : 60, path);
  }
  std::remove(path.c_str());
  return 0;
}
