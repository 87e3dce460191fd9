// A model saved by TensorFlow.js, served from C++: several threads, all answers within one budget, nothing left over.
#include <plimsoll/plimsoll.h>

#include <filesystem>
#include <iostream>
#include <thread>

#include "check.h"

namespace pl = plimsoll;
namespace fs = std::filesystem;
using namespace plimsoll::literals;

// The folder of the model: as given, or that of the project this program was built from.
fs::path folder_of(int argc, char** argv) {
  if (argc > 1) return argv[1];
  const char* const name = "testdata/tfjs/iris-dense";
  for (fs::path at = fs::current_path(); at != at.root_path(); at = at.parent_path())
    if (fs::exists(at / name)) return at / name;
  std::cerr << "usage: 23_serve_tfjs FOLDER   (one with model.json)\n";
  std::exit(2);
}

int main(int argc, char** argv) {
  const fs::path folder = folder_of(argc, argv);
  const pl::Model model = pl::load_layers_model((folder / "model.json").string());
  model.summary();
  const pl::Tensor x = pl::load_json_tensors((folder / "inputs.json").string()).at(0);
  const pl::Tensor expected = pl::load_json_tensors((folder / "outputs.json").string()).at(0);

  const pl::Tensor y = model.predict(x);
  const float difference = pl::abs(y - expected).max().item<float>();
  std::cout << "largest difference from TensorFlow.js: " << difference << "\n";
  check(difference < 1e-5f, "the same numbers");

  const pl::Budget budget("answers", 1_MiB);
  const std::size_t before = pl::memory().num_tensors;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const pl::BudgetScope use(budget);
      for (int question = 0; question < 250; ++question) {
        const pl::Tensor answer = model.predict(x);
        check(answer.at<float>({0, 0}) == y.at<float>({0, 0}), "every thread gets the same answer");
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::cout << "1000 answers; the budget's peak " << budget.peak() << " bytes, now " << budget.used() << "\n";
  check(pl::memory().num_tensors == before, "nothing is left over");

  const fs::path saved = fs::temp_directory_path() / "plimsoll-example-serve-tfjs";
  pl::save_layers_model(model, saved.string());  // TensorFlow.js loads this again.
  check(fs::exists(saved / "model.json"), "it is saved");
  fs::remove_all(saved);
}
