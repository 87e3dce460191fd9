// Long runs leave nothing behind. Short here; PLIMSOLL_SOAK_STEPS=100000 and PLIMSOLL_SOAK_MODELS=1000 make them long.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

std::size_t resident_bytes() {
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

Sequential soak_model(std::int64_t units) {
  Sequential model({layers::Dense(units, {.activation = "relu", .input_shape = {8}, .seed = 1}),
                    layers::Dropout(0.1, {.seed = 2}), layers::Dense(1, {.seed = 3})});
  model.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  return model;
}

constexpr std::size_t kSlack = 2 << 20;  // Of the resident set: stacks and the heap's own habits.

TEST(Soak, TrainingStepsLeaveNothingBehind) {
  const int steps = number_from("PLIMSOLL_SOAK_STEPS", 2000);
  const Tensor x = random_normal({16, 8}, {.seed = 1}), y = random_normal({16, 1}, {.seed = 2});
  Sequential model = soak_model(16);
  for (int i = 0; i < 100; ++i) model.train_on_batch(x, y);
  const MemoryInfo before = memory();
  const std::size_t resident = resident_bytes(), files = open_files(), in_use = memory_stats().bytes_in_use;
  for (int i = 0; i < steps; ++i) {
    model.train_on_batch(x, y);
    if (i % 1000 == 0) {
      ASSERT_EQ(memory().num_bytes, before.num_bytes) << "step " << i;
    }
  }
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory_stats().bytes_in_use, in_use);
  EXPECT_EQ(open_files(), files);
  if (!kSanitized) {
    EXPECT_LE(resident_bytes(), resident + kSlack);
  }
  std::cout << steps << " steps: resident " << resident / 1024 << " KiB before, " << resident_bytes() / 1024
            << " KiB after\n";
}

TEST(Soak, ModelsComeAndGo) {
  const int models = number_from("PLIMSOLL_SOAK_MODELS", 60);
  const Tensor x = random_normal({16, 8}, {.seed = 1}), y = random_normal({16, 1}, {.seed = 2});
  const auto once = [&] { soak_model(256).train_on_batch(x, y); };
  for (int i = 0; i < 10; ++i) once();
  trim();
  const MemoryInfo before = memory();
  const std::size_t resident = resident_bytes();
  for (int i = 0; i < models; ++i) once();
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  trim();
  if (!kSanitized) {
    EXPECT_LE(resident_bytes(), resident + kSlack);
  }
  std::cout << models << " models: resident " << resident / 1024 << " KiB before, " << resident_bytes() / 1024
            << " KiB after\n";
}

}  // namespace
}  // namespace plimsoll
