// Scopes: tensors are released when the work that made them is done.
#include <plimsoll/plimsoll.h>

#include <iostream>
#include <vector>

namespace pl = plimsoll;

static pl::Tensor normalize(const pl::Tensor& x) {
  return pl::tidy([&] { return (x - x.mean()) / pl::sqrt(pl::square(x - x.mean()).mean()); });
}

int main() {
  const pl::Tensor x = pl::arange(0.f, 8.f);
  const std::size_t start = pl::memory().num_tensors;

  // Whatever a tidy makes is released at its end, except what it returns.
  const pl::Tensor y = normalize(x);
  std::cout << "after normalize: " << pl::memory().num_tensors - start << " tensor more\n";

  // A handle that escapes refuses to be used, with an explanation.
  std::vector<pl::Tensor> escaped;
  pl::tidy([&] { escaped.push_back(x * 2.f); });
  try {
    escaped[0] + 1.f;
  } catch (const pl::Disposed& error) {
    std::cout << error.what() << "\n";
  }

  // keep() is for what must outlive every scope; dispose() releases it, for all handles.
  pl::Tensor kept;
  pl::tidy([&] { kept = pl::keep(x * 3.f); });
  const pl::Tensor copy = kept;
  kept.dispose();
  std::cout << "kept is disposed: " << std::boolalpha << copy.is_disposed() << "\n";

  // A check for tests: what was created since and is still alive.
  pl::LeakCheck check;
  std::vector<pl::Tensor> losses;
  for (int step = 0; step < 3; ++step) losses.push_back(pl::square(x).sum());
  std::cout << check.leaked() << " tensors were made and are still held\n";
  losses.clear();
  check.expect_none();
  return pl::memory().num_tensors == start + 1 ? 0 : 1;
}
