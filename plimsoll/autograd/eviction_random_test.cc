// Random eager programs under tapes in random budgets: they give the bytes that they give without one, or are refused,
// and never take more.
#include <gmock/gmock.h>

#include <random>

#include "plimsoll/autograd/eviction_testing.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kSide = 32;

// Draws the program again at each step from its seed, so that every step is the same.
class RandomProgram {
 public:
  RandomProgram(unsigned seed, const EvictionModel& model) : random_(seed), model_(model) {}

  Tensor loss() {
    pool_ = {ones({kSide, kSide}), random_normal({kSide, kSide}, {.seed = 5})};
    const int operations = 10 + pick(40);
    for (int i = 0; i < operations; ++i) step();
    Tensor sum = pool_[0];
    for (std::size_t i = 1; i < pool_.size(); ++i) sum = std::move(sum) + pool_[i];
    for (const Variable& each : model_.parameters) sum = std::move(sum) + each.value() * 0.1f;  // All have gradients.
    return square(tanh(sum * 0.1f)).mean();
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  Tensor any() { return pool_[static_cast<std::size_t>(pick(static_cast<int>(pool_.size())))]; }
  const Variable& variable() {
    return model_.parameters[static_cast<std::size_t>(pick(static_cast<int>(model_.parameters.size())))];
  }
  void keep(Tensor made) {  // Or in the place of another, which nobody holds any more but the tape.
    if (pool_.size() < 12 && pick(3) > 0)
      pool_.push_back(std::move(made));
    else
      pool_[static_cast<std::size_t>(pick(static_cast<int>(pool_.size())))] = std::move(made);
  }
  void step() {
    switch (pick(14)) {
      case 0:
        return keep(any() + any());
      case 1:
        return keep(any() * any() * 0.3f);
      case 2:
        return keep(tanh(any() + 0.5f));
      case 3:
        return keep(matmul(any(), variable()));
      case 4:
        return keep(relu(matmul(any(), any()) * 0.05f));
      case 5:
        return keep(dropout(any(), 0.2));
      case 6:
        return keep(any().transpose() - any());
      case 7:
        return keep(layer_norm(any(), {}, {}));
      case 8:
        return keep(any().mean({1}, {.keep_dims = true}) + any());
      case 9: {
        const std::vector<Tensor> halves = split(any(), 2, 0);
        return keep(concat({halves[1], halves[0] * 2.f}, 0));
      }
      case 10:
        return keep(tidy([&] {
          const Tensor a = exp(any() * -0.1f), b = a + any();
          return softmax(b * a);
        }));
      case 11:
        model_.state[0].assign_add(any() * 0.01f);
        return keep(model_.state[0].value() * 0.1f);
      case 12:
        return keep(batch_norm(any(), {}, {}, model_.state[1], model_.state[2], {.training = true}));
      default:
        if (pool_.size() > 2) pool_.erase(pool_.begin() + pick(static_cast<int>(pool_.size())));
    }
  }

  std::minstd_rand random_;
  const EvictionModel& model_;
  std::vector<Tensor> pool_;
};

std::shared_ptr<EvictionModel> random_model(unsigned seed) {
  auto model = std::make_shared<EvictionModel>();
  for (std::uint64_t i = 0; i < 4; ++i)
    model->parameters.emplace_back(random_uniform({kSide, kSide}, {.seed = i}) * 0.2f - 0.1f);
  for (const Shape& shape : {Shape({kSide, kSide}), Shape({kSide}), Shape({kSide})})
    model->state.emplace_back(ones(shape), VariableOptions{.trainable = false});
  model->loss = [seed, model = model.get()] { return RandomProgram(seed, *model).loss(); };
  return model;
}

TEST(EvictionOfRandomPrograms, GivesTheSameBytesOrRefuses) {
  std::size_t done = 0, refused = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const MakeEvictionModel make = [seed] { return random_model(seed); };
    const TrainedBytes natural = train_within(make, 1_GiB, false, 2);
    std::minstd_rand random(seed);
    for (int trial = 0; trial < 5; ++trial) {
      const double share = 0.3 + 0.7 * static_cast<double>(random() % 1000) / 1000;
      const auto limit =
          natural.held + static_cast<std::size_t>(share * static_cast<double>(natural.peak - natural.held));
      const TrainedBytes tight = train_within(make, limit, true, 2);
      ++(tight.refused ? refused : done);
      if (!tight.refused) {
        ASSERT_TRUE(same_bytes(tight, natural)) << "program " << seed << " in " << limit << " bytes";
      }
      ASSERT_EQ(memory().dropped_bytes, 0u);
    }
  }
  EXPECT_GT(done, refused) << "or hardly anything was tried";
  RecordProperty("done", static_cast<int>(done));
  RecordProperty("refused", static_cast<int>(refused));
}

}  // namespace
}  // namespace plimsoll
