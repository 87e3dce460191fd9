// Steady steps of training take their memory from the thread's cache, whatever models ran before in the process.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "plimsoll/autograd/step_models_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

using step_bench::OurModel;

struct Steady {
  double share_of_heap;  // Of the allocations.
  std::size_t grown;     // Bytes newly reserved.
};

Steady steady(const OurModel& model) {
  constexpr std::size_t kSettled = 2000;
  for (const std::size_t start = memory_stats().num_allocs; memory_stats().num_allocs < start + kSettled;) model.step();
  const Arena& arena = current_device().arena();
  const MemoryStats before = memory_stats();
  const HeapCounters asked_before = arena.move_counters();
  for (int i = 0; i < 5; ++i) model.step();
  const MemoryStats after = memory_stats();
  const HeapCounters asked = arena.move_counters();
  const auto blocks = static_cast<double>(asked.takes + asked.gives - asked_before.takes - asked_before.gives);
  return {blocks / static_cast<double>(after.num_allocs - before.num_allocs),
          after.bytes_reserved - before.bytes_reserved};
}

TEST(SteadyStep, TakesItsMemoryFromTheCacheWhateverRanBefore) {
  using Sizes = std::vector<std::int64_t>;
  using Make = std::function<std::unique_ptr<OurModel>()>;
  const std::pair<const char*, Make> models[] = {
      {"MLP",
       [] {
         return std::make_unique<step_bench::OurMlp>(Sizes{784, 512, 256, 10}, 16);
       }},
      {"LeNet", [] { return std::make_unique<step_bench::OurLenet>(16); }},
      {"ResNet", [] { return std::make_unique<step_bench::OurResnet>(4); }},
      {"LSTM", [] { return std::make_unique<step_bench::OurLstm>(32, 64, 50, 8); }},
      {"layer norm", [] { return std::make_unique<step_bench::OurLayerNorm>(512); }},
      {"transformer", [] { return std::make_unique<step_bench::OurTransformer>(2, 128, 4, 512, 64, 4); }},
      {"ResNet again", [] { return std::make_unique<step_bench::OurResnet>(5); }},
  };
  for (const auto& [name, make] : models) {
    SCOPED_TRACE(name);
    const Steady result = steady(*make());
    EXPECT_LT(result.share_of_heap, 0.05);
    EXPECT_EQ(result.grown, 0u);
  }
}

}  // namespace
}  // namespace plimsoll
