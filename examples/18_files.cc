// Files: checkpoints, safetensors, NumPy archives and TensorBoard events, inside a budget.
#include <plimsoll/plimsoll.h>

#include <filesystem>
#include <iostream>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  const auto dir = std::filesystem::temp_directory_path() / "plimsoll-example-files";
  std::filesystem::remove_all(dir);

  // A checkpoint as TensorFlow writes it. Saving and loading need no second copy: 4 MiB of weights, a budget of 5.
  const pl::Budget budget("model", 5_MiB);
  {
    const pl::BudgetScope use(budget);
    const pl::Tensor weights = pl::full({1024, 1024}, 0.5f), bias = pl::ones({4});
    pl::CheckpointKeeper keeper({.max_to_keep = 2});
    for (int step = 1; step <= 3; ++step)
      keeper.save(dir / "model.ckpt", step,
                  std::vector<pl::NamedTensor>{{"dense/kernel", weights}, {"dense/bias", bias}});
  }
  const std::string latest = pl::latest_checkpoint(dir);
  std::cout << "latest: " << std::filesystem::path(latest).filename().string() << "\n";
  {
    const pl::BudgetScope use(budget);
    const pl::BundleReader reader(latest);
    for (const pl::BundleEntry& entry : reader.entries())
      std::cout << entry.key << " " << entry.dtype_name << " " << entry.shape << ", " << entry.size << " bytes\n";
    check(reader.read("dense/kernel").at<float>({1023, 1023}) == 0.5f, "loading returns what was saved");
  }
  check(budget.peak() <= 5_MiB, "within the budget");
  check(!std::filesystem::exists(dir / "model.ckpt-1.index"), "only two are kept");

  // Trees of tensors, for other programs.
  const pl::TensorTree tree = {{"x", pl::arange(0, 6).reshape({2, 3})}, {"layers", {pl::ones({2}), pl::zeros({2})}}};
  pl::save_safetensors(dir / "tree.safetensors", tree, {{"made by", "plimsoll"}});
  pl::save_npz(dir / "tree.npz", tree);
  const pl::TensorTree loaded = pl::load_safetensors(dir / "tree.safetensors");
  std::cout << loaded << "\n";
  check(loaded.same_structure(tree) && pl::load_npz(dir / "tree.npz").same_structure(tree),
        "trees are restored unchanged");
  check(loaded["layers"][0].tensor().at<float>({1}) == 1.f, "with their elements");

  // Large weights without a copy: the tensor uses the pages of the file.
  const pl::Tensor mapped = pl::SafetensorsFile(dir / "tree.safetensors").map("x");
  check(mapped.at<int>({1, 2}) == 5, "a mapped tensor is like any other");

  // For TensorBoard.
  pl::EventWriter events(dir / "logs");
  for (int step = 0; step < 3; ++step) events.add_scalar("loss", 1.f / float(step + 1), step);
  events.add_histogram("layers/0", loaded["layers"][0].tensor(), 2);
  events.close();
  pl::EventReader reader(events.path());
  int records = 0;
  while (reader.next()) ++records;
  check(records == 5, "a version, three scalars and a histogram");

  // Damage is detected and located.
  std::filesystem::resize_file(pl::bundle_data_path(latest, 0, 1), 1000);
  try {
    pl::BundleReader damaged(latest);
    check(false, "a truncated checkpoint is refused");
  } catch (const pl::Corruption& error) {
    check(std::string(error.what()).find("\"dense/kernel\"") != std::string::npos, "the message names the tensor");
  }
  std::filesystem::remove_all(dir);
  return 0;
}
