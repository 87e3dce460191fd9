// What recording a trace costs a training step: rounds with and without a recorder, one after the other in one process.
// usage: trace_cost [ROUNDS]    Prints, for each model, time and instructions of a step without and with, best rounds.
#include <linux/perf_event.h>
#include <plimsoll/plimsoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pl = plimsoll;

namespace {

// Instructions in user mode of this thread and those it started; -1 where they may not be counted.
class Instructions {
 public:
  Instructions() {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
    attributes.exclude_kernel = 1;
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  }
  ~Instructions() {
    if (file_ >= 0) close(file_);
  }
  Instructions(const Instructions&) = delete;
  Instructions& operator=(const Instructions&) = delete;
  long long now() const {
    long long count = -1;
    return file_ >= 0 && read(file_, &count, sizeof count) == sizeof count ? count : -1;
  }

 private:
  int file_ = -1;
};

struct Cost {
  double microseconds = 1e300;
  double instructions = 1e300;
};

struct Workload {
  std::string name;
  std::function<void()> step;
  int steps;  // Of a round.
};

Cost measure(const Workload& workload, const Instructions& counter) {
  const long long before = counter.now();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < workload.steps; ++i) workload.step();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  const long long counted = counter.now() - before;
  return {took.count() / workload.steps, before < 0 ? -1 : static_cast<double>(counted) / workload.steps};
}

Workload make(const std::string& name, const pl::Model& model, const pl::Tensor& x, const pl::Tensor& y, int steps) {
  model.compile({.optimizer = pl::optimizers::Adam(), .loss = pl::losses::MeanSquaredError()});
  return {name, [model, x, y] { model.train_on_batch(x, y); }, steps};
}

void compare(const Workload& workload, int rounds, const Instructions& counter) {
  const std::string path = "/tmp/trace_cost_" + std::to_string(getpid()) + ".trace";
  Cost without, with;
  std::uint64_t events = 0;
  for (int i = 0; i < 5; ++i) workload.step();
  for (int round = 0; round < rounds; ++round) {
    const Cost plain = measure(workload, counter);
    pl::TraceRecorder recorder({.path = path});
    const std::uint64_t first = recorder.counters().events;
    const Cost traced = measure(workload, counter);
    events = (recorder.counters().events - first) / static_cast<std::uint64_t>(workload.steps);
    recorder.finish();
    std::remove(path.c_str());
    without = {std::min(without.microseconds, plain.microseconds), std::min(without.instructions, plain.instructions)};
    with = {std::min(with.microseconds, traced.microseconds), std::min(with.instructions, traced.instructions)};
  }
  std::printf("%-34s %7llu %10.1f %10.1f %+7.2f %%", workload.name.c_str(), static_cast<unsigned long long>(events),
              without.microseconds, with.microseconds, 100 * (with.microseconds / without.microseconds - 1));
  if (without.instructions > 0)
    std::printf(" %12.0f %12.0f %+7.2f %%", without.instructions, with.instructions,
                100 * (with.instructions / without.instructions - 1));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const Instructions counter;
  std::printf("%-34s %7s %10s %10s %9s %12s %12s %9s\n", "training step", "events", "us", "us traced", "time", "instr.",
              "traced", "instr.");
  namespace layers = pl::layers;
  const pl::Sequential small({layers::Dense(32, {.activation = "relu", .input_shape = {16}}), layers::Dense(1)});
  compare(make("MLP 16-32-1, batch 32", small, pl::random_normal({32, 16}), pl::random_normal({32, 1}), 400), rounds,
          counter);
  const pl::Sequential wide({layers::Dense(256, {.activation = "relu", .input_shape = {784}}),
                             layers::Dense(256, {.activation = "relu"}), layers::Dense(10)});
  compare(make("MLP 784-256-256-10, batch 64", wide, pl::random_normal({64, 784}), pl::random_normal({64, 10}), 40),
          rounds, counter);
  const pl::Sequential tides(
      {layers::LSTM(64, {.return_sequences = true, .input_shape = {48, 1}}), layers::LSTM(32), layers::Dense(1)});
  compare(make("LSTM 64 + LSTM 32 (demo), batch 128", tides, pl::random_normal({128, 48, 1}),
               pl::random_normal({128, 1}), 8),
          rounds, counter);
  return 0;
}
