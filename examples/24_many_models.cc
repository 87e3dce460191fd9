// Several models in one process, each with a budget: one that needs too much is refused, and the others are not
// affected.
#include <plimsoll/plimsoll.h>

#include <iostream>
#include <vector>

#include "check.h"

namespace pl = plimsoll;
using namespace plimsoll::literals;

struct Tenant {
  Tenant(const char* name, std::size_t limit, const pl::Budget& process, int units) : budget(name, limit, process) {
    const pl::BudgetScope use(budget);  // Its weights and its optimizer's state are charged to it.
    model.add(pl::layers::Dense(units, {.activation = "relu", .input_shape = {16}, .seed = 1}));
    model.add(pl::layers::Dense(1, {.seed = 2}));
    model.compile({.optimizer = "adam", .loss = "mse"});
  }
  float train(const pl::Tensor& x, const pl::Tensor& y) {
    const pl::BudgetScope use(budget);
    return model.train_on_batch(x, y)["loss"];
  }

  pl::Budget budget;
  pl::Sequential model;
};

int main() {
  const pl::Budget process("process", 8_MiB);
  std::vector<Tenant> tenants;
  tenants.reserve(3);
  tenants.emplace_back("ranker", 1_MiB, process, 64);
  tenants.emplace_back("pricer", 1_MiB, process, 32);
  tenants.emplace_back("greedy", 256_KiB, process, 512);

  const pl::Tensor x = pl::random_normal({64, 16}, {.seed = 1});
  const pl::Tensor y = x.mean({1}, {.keep_dims = true});
  const auto weights_before = tenants[2].model.weights()[0].value().to_vector<float>();
  int refused = 0;
  for (int step = 0; step < 50; ++step) {
    for (Tenant& tenant : tenants) {
      try {
        tenant.train(x, y);
      } catch (const pl::OutOfMemory& error) {
        if (refused++ == 0) std::cout << error.what() << "\n";
      }
    }
  }
  std::cout << process.report();
  check(refused == 50, "the greedy one never fits");
  check(tenants[2].model.weights()[0].value().to_vector<float>() == weights_before, "and its weights are unchanged");
  check(tenants[0].model.optimizer().step() == 50, "the others have trained");
  check(tenants[0].train(x, y) < 0.1f, "and learned");
  check(process.peak() <= 8_MiB, "all of it within the process's budget");
}
