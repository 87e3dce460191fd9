// Training by several processes: `mpirun --bind-to none -n 4 build/examples/31_distributed`. Run without mpirun it
// trains alone, with the same code, and then shows with threads as processes that their number does not change a bit.
#include <cstdlib>
#include <iostream>
#include <thread>

#include "plimsoll/plimsoll.h"

namespace pl = plimsoll;

namespace {

pl::Sequential make_model() {
  pl::Sequential model({pl::layers::Dense(16, {.activation = "relu", .input_shape = {4}, .seed = 1}),
                        pl::layers::Dropout(0.1, {.seed = 2}), pl::layers::Dense(1, {.seed = 3})});
  model.compile({.optimizer = pl::optimizers::Adam({.learning_rate = 1e-2f}), .loss = "mse"});
  return model;
}

// The weights after training; the same in every process.
std::vector<float> train(pl::distributed::Job& job, bool shard_optimizer) {
  pl::Sequential model = make_model();
  const pl::Tensor x = pl::random_normal({240, 4}, {.seed = 4});
  const pl::Tensor y = x.sum({1}, {.keep_dims = true});
  const pl::History history =
      model.fit(x, y,
                {.epochs = 8,
                 .batch_size = 30,
                 .verbose = 0,
                 .shuffle = false,
                 .distributed = {.job = &job, .slices = 8, .shard_optimizer = shard_optimizer}});
  if (job.rank() == 0)
    std::cout << job.size() << " x " << job.engine() << ": loss " << history["loss"].front() << " -> "
              << history["loss"].back() << ", peak " << history.peak_bytes() << " bytes, sent "
              << job.traffic().sent_bytes << " bytes\n";
  if (!(history["loss"].back() < history["loss"].front())) std::exit(1);
  std::vector<float> weights;
  for (const pl::Variable& variable : model.weights())
    for (const float value : variable.value().to_vector<float>()) weights.push_back(value);
  return weights;
}

}  // namespace

int main() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMI_SIZE")) {  // mpirun, or mpiexec of MPICH.
    pl::distributed::Job job({.engine = "mpi", .timeout = std::chrono::seconds(30)});
    train(job, true);
    return 0;
  }
  pl::distributed::Job alone({.engine = "none"});
  const std::vector<float> expected = train(alone, false);

  const auto ranks = pl::distributed::make_local_communicators(3);
  std::vector<std::vector<float>> found(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      pl::distributed::Job job(ranks[i]);
      found[i] = train(job, true);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& weights : found)
    if (weights != expected) return 1;
  std::cout << "the same bits for 1 and 3\n";
  return 0;
}
