// Training steps for tests of eviction: what they give must not depend on the budget they run in.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {

// A model and its training. Everything random in it comes from the stream of the process or from seeds.
struct EvictionModel {
  std::vector<Variable> parameters;
  std::vector<Variable> state;  // What the forward pass changes.
  std::function<Tensor()> loss;
  Optimizer optimizer{AdamOptions{.learning_rate = 0.01}};

  Tensor step() const {
    GradientTape tape;
    Tensor value = loss();
    optimizer.apply(parameters, tape.gradient(value, parameters));
    return value;
  }
};
using MakeEvictionModel = std::function<std::shared_ptr<EvictionModel>()>;

struct TrainedBytes {
  bool refused = false;
  std::size_t held = 0, peak = 0;       // After the first step, and since.
  std::vector<std::vector<float>> all;  // Losses, parameters, state, and what is drawn next.
};

// So many steps after the first within the limit.
inline TrainedBytes train_within(const MakeEvictionModel& make, std::size_t limit, bool evict, int steps) {
  TrainedBytes result;
  Budget budget("tight", limit, {.evict = evict});
  {
    const BudgetScope use(budget);
    config::set_seed(11);
    try {
      const auto model = make();
      result.all.push_back(model->step().to_vector<float>());
      result.held = budget.used();
      budget.reset_peak();
      for (int i = 0; i < steps; ++i) result.all.push_back(model->step().to_vector<float>());
      result.peak = budget.peak();
      for (const auto* list : {&model->parameters, &model->state})
        for (const Variable& variable : *list) result.all.push_back(variable.value().to_vector<float>());
      result.all.push_back(random_normal({4}).to_vector<float>());
    } catch (const OutOfMemory&) {
      result.refused = true;
    }
  }
  EXPECT_LE(budget.peak(), limit);
  EXPECT_EQ(budget.used(), 0u);
  return result;
}

// The bits as bits: NaNs would compare unequal.
inline bool same_bytes(const TrainedBytes& a, const TrainedBytes& b) {
  if (a.all.size() != b.all.size()) return false;
  for (std::size_t i = 0; i < a.all.size(); ++i)
    if (a.all[i].size() != b.all[i].size() ||
        std::memcmp(a.all[i].data(), b.all[i].data(), a.all[i].size() * sizeof(float)) != 0)
      return false;
  return true;
}

}  // namespace plimsoll
