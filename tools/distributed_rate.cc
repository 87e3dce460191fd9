// How quickly a small ResNet trains, alone or under mpirun; tools/bench_distributed compares.
// usage: distributed_rate STEPS SLICES   (rank 0 prints "steps per second, seconds waited, bytes sent per step")
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "plimsoll/plimsoll.h"

namespace pl = plimsoll;

namespace {

pl::Model make_resnet(std::int64_t width) {
  std::uint64_t seed = 1;
  const auto convolution = [&](std::int64_t filters, const pl::LayerOutput& x, std::int64_t stride) {
    const pl::LayerOutput y = pl::layers::Conv2D(
        filters, {3, 3}, {.strides = {stride, stride}, .padding = "same", .use_bias = false, .seed = seed++})(x);
    return pl::layers::BatchNormalization()(y);
  };
  const pl::Input in({.shape = {32, 32, 3}});
  pl::LayerOutput x = pl::layers::Activation("relu")(convolution(width, in, 1));
  for (int stage = 0; stage < 3; ++stage) {
    const std::int64_t filters = width << stage, stride = stage > 0 ? 2 : 1;
    const pl::LayerOutput y = convolution(filters, pl::layers::Activation("relu")(convolution(filters, x, stride)), 1);
    const pl::LayerOutput same =
        stride == 1 ? x
                    : pl::layers::Conv2D(filters, {1, 1}, {.strides = {2, 2}, .padding = "same", .seed = seed++})(x);
    x = pl::layers::Activation("relu")(pl::layers::Add()({y, same}));
  }
  pl::Model model(
      {in}, {pl::layers::Dense(10, {.activation = "softmax", .seed = seed})(pl::layers::GlobalAveragePooling2D()(x))});
  model.compile({.optimizer = pl::optimizers::Adam(), .loss = "sparse_categorical_crossentropy"});
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 10;
  const auto slices = static_cast<std::size_t>(argc > 2 ? std::atoi(argv[2]) : 2);
  pl::distributed::Job job({.engine = std::getenv("OMPI_COMM_WORLD_SIZE") ? "mpi" : "none"});
  pl::Model model = make_resnet(16);
  constexpr std::int64_t kBatch = 32;
  const pl::Tensor x = pl::random_normal({kBatch * steps, 32, 32, 3}, {.seed = 1});
  const pl::Tensor y = pl::random_uniform({kBatch * steps}, 0, 10, {.seed = 2, .dtype = pl::i32});
  const auto fit = [&] {
    return model.fit(pl::Dataset::from_tensors(x, y).batch(kBatch),
                     {.verbose = 0, .distributed = {.job = &job, .slices = slices}});
  };
  fit();
  const pl::distributed::Traffic before = job.traffic();
  const auto begun = std::chrono::steady_clock::now();
  fit();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (job.rank() == 0)
    std::cout << steps / seconds << " " << job.traffic().waited_seconds - before.waited_seconds << " "
              << (job.traffic().sent_bytes - before.sent_bytes) / static_cast<std::uint64_t>(steps) << "\n";
  return 0;
}
