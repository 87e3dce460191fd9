// Coroutines: tidy scopes follow a task through its suspensions; tasks that take turns keep their tensors apart.
#include <plimsoll/plimsoll.h>

#include <iostream>
#include <vector>

#include "check.h"

namespace pl = plimsoll;

// A request that arrives in pieces: between them, others are served.
static pl::Task<pl::Tensor> serve(pl::Tensor x, int pieces) {
  pl::TidyScope scope;
  pl::Tensor sum = x;
  for (int i = 0; i < pieces; ++i) {
    sum = sum + x * 2.f;   // x * 2 and the old sum are released with the scope,
    co_await pl::yield();  // which occupies no thread while it waits
  }
  co_return scope.keep(sum);  // to the scope that awaits
}

static pl::Task<pl::Tensor> serve_all(pl::Tensor x) {
  pl::TidyScope scope;
  const auto [quick, slow] = co_await pl::when_all(serve(x, 1), serve(x, 5));
  co_return scope.keep(quick + slow);
}

int main() {
  const pl::Tensor x = pl::ones({2});
  const auto before = pl::memory().num_tensors;
  const pl::Tensor y = pl::run(serve_all(x));
  std::cout << y << "\n";
  check(y.at<float>({0}) == 3.f + 11.f, "both requests were served");
  check(pl::memory().num_tensors == before + 1, "only the result is left");

  {
    pl::TaskRun<pl::Tensor> work(serve(x, 100));  // With your own loop ...
    for (int i = 0; i < 10; ++i) work.step();
    check(pl::memory().num_tensors > before + 1, "a request is in progress");
  }  // ... a request can be abandoned: what it created is released.
  check(pl::memory().num_tensors == before + 1, "an abandoned request leaves nothing behind");
  return 0;
}
