// A session that saves itself, continues after a restart, and appears in TensorBoard.
#include <plimsoll/plimsoll.h>

#include <filesystem>
#include <iostream>

#include "check.h"

namespace pl = plimsoll;

int main() {
  const auto dir = std::filesystem::temp_directory_path() / "plimsoll-example-saver";
  std::filesystem::remove_all(dir);

  pl::Graph graph;
  pl::Tensor x, y, loss, train, w;
  {
    pl::GraphScope building(graph);
    {
      pl::NameScope input("Input");
      x = pl::placeholder(pl::f32, {-1, 4}, "x");
      y = pl::placeholder(pl::f32, {-1, 1}, "y");
    }
    pl::NameScope layer("dense");
    pl::Variable kernel(pl::random_normal({4, 1}, {.seed = 3}), {.name = "kernel"});
    pl::Variable bias(pl::zeros({1}), {.name = "bias"});
    w = kernel.value();
    loss = pl::square(pl::matmul(x, kernel) + bias - y).mean();
    train = pl::train::AdamOptimizer(0.05f).minimize(loss);
  }
  const pl::Tensor xs = pl::random_normal({64, 4}, {.seed = 1}), ys = xs.sum({1}, {.keep_dims = true});
  const pl::Feeds feeds{{x, xs}, {y, ys}};
  const std::string prefix = (dir / "run" / "model.ckpt").string();

  // Train, and save now and then: the newest two are kept. tensorboard --logdir .../logs shows graph and curves.
  float at_50 = 0;
  {
    pl::Session session(graph);
    session.initialize_variables();
    pl::Saver saver({.max_to_keep = 2});
    pl::summary::FileWriter events(dir / "logs", graph);
    for (int step = 1; step <= 50; ++step) {
      session.run({train}, feeds);
      if (step % 10 != 0) continue;
      at_50 = session.run(loss, feeds).item<float>();
      events.add_scalar("loss", at_50, step);
      events.add_histogram("dense/kernel", session.run(w), step);
      saver.save(session, prefix, step);
    }
    events.add_run_metadata("step 50", pl::summary::run_metadata({train}, feeds), 50);  // memory of every node
    for (const std::string& path : saver.checkpoints())
      std::cout << "kept " << std::filesystem::path(path).filename().string() << "\n";
  }

  // Another session, as after a restart: Adam's state is restored, too.
  {
    const std::string latest = pl::latest_checkpoint(dir / "run");
    pl::Session session(graph);
    pl::Saver saver;
    saver.restore(session, latest);
    const float restored = session.run(loss, feeds).item<float>();
    check(restored == at_50, "it continues where it was");
    for (int step = 0; step < 100; ++step) session.run({train}, feeds);
    const float last = session.run(loss, feeds).item<float>();
    std::cout << "loss " << restored << " after the restart, " << last << " after 100 more steps\n";
    check(last < restored, "and keeps learning");

    // A checkpoint that does not fit is refused as a whole, with all differences in one message.
    pl::Graph larger;
    {
      pl::GraphScope building(larger);
      pl::Variable kernel(pl::zeros({5, 1}), {.name = "dense/kernel"});
      pl::Variable extra(pl::zeros({1}), {.name = "dense/gamma"});
    }
    pl::Session other(larger);
    try {
      saver.restore(other, latest);
      check(false, "it is refused");
    } catch (const pl::NotFound& error) {
      std::cout << error.what() << "\n";
    }
    check(other.uninitialized_variables().size() == 2, "nothing was restored");
  }
  std::filesystem::remove_all(dir);
  return 0;
}
