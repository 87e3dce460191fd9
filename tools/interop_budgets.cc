// Our side of tools/interop_budgets: training steps inside budgets.
//
//   interop_budgets MODEL THREADS      # answers lines: "held" by the bytes of parameters, optimizer state and batch;
//                                      # "front" by the budgets worth choosing, as bytes above these, one line;
//                                      # "step BYTES STEPS" by the least processor time of a step in nanoseconds,
//                                      # with so many bytes above these; 0 bytes: without a budget
#include <plimsoll/model/training/budget_models_testing.h>
#include <plimsoll/plimsoll.h>
#include <time.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>

namespace pl = plimsoll;

namespace {

pl::BudgetModel model_named(const std::string& name) {
  if (name == "mlp") return pl::budget_mlp(24, 256, 1024);
  if (name == "transformer") return pl::budget_transformer(6, 256, 64, 8);
  throw std::invalid_argument("no model \"" + name + "\"; there are mlp and transformer");
}

double processor_nanoseconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

class LeastTime : public pl::CallbackBase {
 public:
  explicit LeastTime(double* least) : least_(least) {}
  void on_train_begin(pl::Model&) override { begin_ = processor_nanoseconds(); }
  void on_batch_end(pl::Model&, std::size_t batch, const pl::Logs&) override {
    const double now = processor_nanoseconds();
    if (batch > 0) *least_ = std::min(*least_, now - begin_);  // The first step plans.
    begin_ = now;
  }

 private:
  double* const least_;
  double begin_ = 0;
};

std::size_t held_bytes(const pl::MemoryForecast& forecast) {
  std::size_t held = 0;
  for (const char* category : {"inputs", "parameters", "optimizer", "other"}) held += forecast.by_category.at(category);
  return held;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::invalid_argument("usage: interop_budgets mlp|transformer THREADS");
  const pl::BudgetModel which = model_named(argv[1]);
  pl::config::set_threads(std::stoi(argv[2]));
  const pl::MemoryForecast forecast = which.make().forecast({.batch_size = which.batch});
  const std::size_t held = held_bytes(forecast);
  for (std::string word; std::cin >> word;) {
    if (word == "held") {
      std::cout << held << std::endl;
    } else if (word == "front") {
      for (const auto& point : forecast.front) std::cout << point.bytes - held << ' ';
      std::cout << std::endl;
    } else {
      std::size_t bytes = 0, steps = 0;
      std::cin >> bytes >> steps;
      double least = 1e300;
      pl::FitOptions options = {.verbose = 0, .callbacks = {pl::make_callback<LeastTime>(&least)}};
      if (bytes > 0) options.budget = held + bytes;
      pl::Model model = which.make();
      model.fit(which.batches(steps + 1), options);
      std::cout << least << std::endl;
    }
  }
} catch (const std::exception& error) {
  std::cerr << "interop_budgets: " << error.what() << "\n";
  return 1;
}
