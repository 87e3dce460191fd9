// Our side of tools/interop_training: training steps of the networks of step_bench, eager or planned.
//
//   interop_training THREADS       # answers lines: "NAME MODE STEPS" by nanoseconds of a step, MODE eager or planned;
//                                  # "memory NAME MODE" by the most bytes of memory of the process above what it was,
//                                  # "bytes NAME MODE" by the most bytes of tensors and scratch that a step has beside
//                                  # parameters, optimizer state and batch: eager as counted, planned as planned
#include <plimsoll/autograd/step_models_testing.h>
#include <plimsoll/base/rounding.h>
#include <plimsoll/plimsoll.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>

namespace pl = plimsoll;
namespace bench = plimsoll::step_bench;

namespace {

std::unique_ptr<bench::OurModel> make(const std::string& name) {
  if (name == "tiny_mlp") return std::make_unique<bench::OurMlp>(std::vector<std::int64_t>{10, 16, 1}, 32);
  if (name == "mlp") return std::make_unique<bench::OurMlp>(std::vector<std::int64_t>{784, 512, 512, 10}, 128);
  if (name == "lenet") return std::make_unique<bench::OurLenet>(64);
  if (name == "resnet") return std::make_unique<bench::OurResnet>(64);
  if (name == "lstm64") return std::make_unique<bench::OurLstm>(32, 64, 50, 32);
  if (name == "lstm128") return std::make_unique<bench::OurLstm>(32, 128, 50, 32);
  return std::make_unique<bench::OurTransformer>(2, 256, 4, 1024, 128, 8);
}

std::function<void()> step_of(const std::string& name, const std::string& mode) {
  const std::shared_ptr<bench::OurModel> model = make(name);
  if (mode == "eager") return [model] { model->step(); };
  const auto step = pl::function([model] { return model->traced_step(); });
  return [step] { step().item<float>(); };
}

// Kilobytes of /proc/self/status.
std::size_t status(const std::string& field) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (word == field + ":") {
      std::size_t kilobytes = 0;
      in >> kilobytes;
      return kilobytes;
    }
  return 0;
}

std::size_t memory_of(const std::string& name, const std::string& mode) {
  const std::size_t before = status("VmRSS");
  std::ofstream("/proc/self/clear_refs") << "5";  // Resets the high-water mark.
  {
    const auto step = step_of(name, mode);
    for (int i = 0; i < 5; ++i) step();
  }
  const std::size_t peak = status("VmHWM");
  return (peak - std::min(peak, before)) * 1024;
}

// A steady step's peak above what exists before it.
std::size_t counted_bytes(const std::function<void()>& step) {
  for (int i = 0; i < 3; ++i) step();
  pl::reset_memory_stats();
  const std::size_t before = pl::memory_stats().bytes_in_use;
  step();
  return pl::memory_stats().peak_bytes_in_use - before;
}

std::size_t bytes_of(const std::string& name, const std::string& mode) {
  if (mode == "eager") return counted_bytes(step_of(name, mode));
  const std::shared_ptr<bench::OurModel> model = make(name);
  const auto step = pl::function([model] { return model->traced_step(); });
  const std::size_t counted = counted_bytes([&] { step().item<float>(); });
  const std::size_t planned = step.memory_plan().peak_bytes;
  if (counted > pl::round_up(planned, 64))  // The loss has its own block.
    throw std::runtime_error(name + ": the planned step took more than its plan says");
  return planned;
}

}  // namespace

int main(int argc, char** argv) {
  pl::config::set_threads(argc > 1 ? std::stoi(argv[1]) : 1);
  std::map<std::string, std::function<void()>> ready;
  for (std::string name, mode; std::cin >> name >> mode;) {
    if (name == "memory" || name == "bytes") {
      std::string which;
      std::cin >> which;
      std::cout << (name == "memory" ? memory_of(mode, which) : bytes_of(mode, which)) << std::endl;
      continue;
    }
    int steps = 0;
    std::cin >> steps;
    auto& step = ready[name + " " + mode];
    if (!step) {
      step = step_of(name, mode);
      for (int i = 0; i < 3; ++i) step();
    }
    const pl::Stopwatch watch;
    for (int i = 0; i < steps; ++i) step();
    std::cout << static_cast<double>(watch.ns()) / steps << std::endl;
  }
}
