// A graph, built once, and a session that trains it: every step runs inside one planned block.
#include <plimsoll/plimsoll.h>

#include <iostream>

#include "check.h"

namespace pl = plimsoll;

int main() {
  pl::Graph graph;
  pl::Tensor x, y, loss, train;
  {
    pl::GraphScope building(graph);  // operations become nodes
    {
      pl::NameScope input("Input");
      x = pl::placeholder(pl::f32, {-1, 4}, "x");  // the first size may differ between runs
      y = pl::placeholder(pl::f32, {-1, 1}, "y");
    }
    pl::Variable w(pl::random_normal({4, 1}, {.seed = 3}), {.name = "w"});
    pl::Variable b(pl::zeros({1}), {.name = "b"});
    loss = pl::square(pl::matmul(x, w) + b - y).mean();
    train = pl::train::AdamOptimizer(0.05f).minimize(loss);
  }
  graph.finalize();  // from here on nothing can be added by mistake
  std::cout << x.name() << " is " << x.shape() << ", the graph has " << graph.size() << " nodes\n";

  const pl::Tensor xs = pl::random_normal({64, 4}, {.seed = 1}), ys = xs.sum({1}, {.keep_dims = true});
  const std::size_t before = pl::memory().num_bytes;
  {
    pl::Session session(graph);
    session.initialize_variables();
    const float first = session.run(loss, {{x, xs}, {y, ys}}).item<float>();
    for (int step = 0; step < 200; ++step) session.run({train}, {{x, xs}, {y, ys}});
    const float last = session.run(loss, {{x, xs}, {y, ys}}).item<float>();
    std::cout << "loss " << first << " -> " << last << "\n" << session.memory_report();
    check(last < first / 10, "it learns");

    try {
      session.run(loss, {{x, xs}});
    } catch (const pl::InvalidArgument& error) {
      std::cout << error.what() << "\n";  // names Input/y
    }
  }
  check(pl::memory().num_bytes == before, "the session's variables were released with it");
  return 0;
}
