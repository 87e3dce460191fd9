// Pools: tensors allocated once and lent out, so that steady work allocates nothing.
#include <plimsoll/plimsoll.h>

#include <iostream>
#include <thread>
#include <vector>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  const pl::Budget budget("frames", 1_MiB);
  const auto make_pool = [&] {
    const pl::BudgetScope use(budget);  // Charged once, here.
    return pl::TensorPool({.shape = {1, 64, 64, 3}, .dtype = pl::f32, .capacity = 2});
  };
  pl::TensorPool pool = make_pool();
  const auto in_use = pl::memory_stats("CPU:0").bytes_in_use;

  std::vector<std::thread> cameras;
  for (int camera = 0; camera < 4; ++camera)
    cameras.emplace_back([&pool, camera] {
      for (int frame = 0; frame < 10; ++frame) {
        const auto lease = pool.acquire();  // First come, first served.
        for (float& pixel : lease.data<float>()) pixel = float(camera);
        check(lease.tensor().at<float>({0, 63, 63, 2}) == float(camera), "nobody else writes to a lease");
      }
    });
  for (std::thread& camera : cameras) camera.join();
  std::cout << pool.report() << "\n";
  check(pool.peak() <= 2 && pool.used() == 0, "never more than the capacity");
  check(pl::memory_stats("CPU:0").bytes_in_use == in_use, "forty frames took no memory");

  pl::Tensor left_over = pool.acquire().tensor();
  check(left_over.is_disposed(), "what outlives its lease cannot be read by mistake");
  return 0;
}
