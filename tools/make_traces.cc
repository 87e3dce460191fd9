// Writes traces for the tests of reports into a folder.   usage: make_traces FOLDER [EVENTS]
//   training.trace  a recurrent network trained inside a budget
//   by_hand.trace   a network trained with a tape, operation by operation
//   leak.trace      losses kept in a list, a graph that grows, sessions never closed, a persistent tape that is kept
//   million.trace   EVENTS (1,000,000) events of many steps: deep stacks of blocks of changing sizes, in one arena
// make_traces --million FILE writes only that one.
// make_traces --seeds FOLDER writes the small ones that fuzzing starts from (testdata/fuzz/trace_file_fuzz).
#include <plimsoll/memory/trace/trace_plan.h>
#include <plimsoll/plimsoll.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace pl = plimsoll;
using namespace pl::literals;

namespace {

void write_training(const std::filesystem::path& path) {
  std::vector<float> values(1200);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.1f * static_cast<float>(i));
  const pl::Dataset windows =
      pl::timeseries_windows(pl::from_vector(values, {1200, 1}), {.look_back = 32, .horizon = 1});
  const auto [train, test] = windows.split({0.8, 0.2});
  pl::Budget budget("demo", 8_MiB);
  const pl::BudgetScope inside(budget);
  const pl::TraceRecorder recorder({.path = path});
  pl::Sequential model({pl::layers::LSTM(48, {.return_sequences = true, .input_shape = {32, 1}, .seed = 1}),
                        pl::layers::LSTM(32, {.seed = 2}), pl::layers::Dense(1, {.seed = 3})});
  model.compile({.optimizer = pl::optimizers::Adam({.learning_rate = 3e-3f}), .loss = pl::losses::MeanSquaredError()});
  model.fit(train.shuffle(900, {.seed = 7}).batch(64), {.epochs = 2, .validation_data = test.batch(64), .verbose = 0});
}

// Steps in two bursts with a pause between them.
void write_bunched(const std::filesystem::path& path) {
  const pl::TraceRecorder recorder({.path = path});
  for (std::uint64_t step = 0; step < 60; ++step) {
    pl::trace_step(step);
    const pl::Tensor x = pl::ones({64, 64});
    if (step == 29) std::this_thread::sleep_for(std::chrono::milliseconds(400));
  }
}

// A model that does not fit the budget of its training.
void write_refused(const std::filesystem::path& path) {
  const pl::TraceRecorder recorder({.path = path});
  pl::Sequential model({pl::layers::Dense(64, {.activation = "relu", .input_shape = {8}}), pl::layers::Dense(1)},
                       {.name = "small"});
  model.compile({.optimizer = pl::optimizers::Adam(), .loss = pl::losses::MeanSquaredError()});
  const pl::Tensor x = pl::ones({512, 8}), y = pl::ones({512, 1});
  model.fit(x, y, {.batch_size = 32, .verbose = 0, .budget = 64_KiB});
  try {
    model.fit(x, y, {.batch_size = 512, .verbose = 0, .budget = 64_KiB});
    throw std::runtime_error("a batch of 512 was not refused");
  } catch (const pl::OutOfMemory&) {
  }
}

void write_leak(const std::filesystem::path& path) {
  const pl::TraceRecorder recorder({.path = path});
  const pl::Tensor x = pl::random_normal({256, 32}, {.seed = 1}), y = pl::random_normal({256, 1}, {.seed = 2});
  pl::Variable w(pl::zeros({32, 1}), {.name = "w"});
  std::vector<pl::Tensor> losses;
  pl::GradientTape kept({.persistent = true});
  pl::Graph graph;
  std::vector<std::unique_ptr<pl::Session>> sessions;
  for (std::uint64_t step = 0; step < 40; ++step) {
    pl::trace_step(step);
    {
      const pl::NameScope scope("train/loss");
      losses.push_back(pl::square(pl::matmul(x, w) - y));
    }
    const pl::GraphScope inside(graph);
    const pl::Tensor added = pl::constant({1.f, 2.f}) * static_cast<float>(step);
    if (step % 8 == 0) sessions.push_back(std::make_unique<pl::Session>(graph));
    sessions.back()->run(added);
  }
  for (auto& session : sessions) session.release();  // Like a program that forgets them.
}

// A network of three layers trained with a tape, operation by operation.
void write_by_hand(const std::filesystem::path& path) {
  const pl::Budget budget("training", 12_MiB);
  const pl::BudgetScope inside(budget);
  const pl::TraceRecorder recorder({.path = path});
  const pl::Tensor x = pl::random_normal({512, 64}, {.seed = 1}), y = pl::random_normal({512, 8}, {.seed = 2});
  std::vector<pl::Variable> weights;
  const std::int64_t sizes[] = {64, 256, 384, 8};
  for (std::size_t i = 0; i < 3; ++i)
    weights.emplace_back(pl::random_normal({sizes[i], sizes[i + 1]}, {.seed = 3 + i}) * 0.05f,
                         pl::VariableOptions{.name = "dense_" + std::to_string(i) + "/kernel"});
  const pl::Optimizer adam(pl::AdamOptions{.learning_rate = 0.001});
  for (std::uint64_t step = 0; step < 24; ++step)
    pl::tidy([&] {
      pl::trace_step(step);
      pl::trace_phase("forward");
      pl::GradientTape tape;
      pl::Tensor h = x;
      for (std::size_t i = 0; i < 3; ++i) {
        const pl::NameScope scope("dense_" + std::to_string(i));
        h = pl::matmul(h, weights[i]);
        if (i < 2) h = pl::tanh(h);
      }
      const pl::NameScope scope("loss");
      const pl::Tensor loss = pl::square(h - y).mean();
      pl::trace_phase("backward");
      const std::vector<pl::Tensor> gradients = tape.gradient(loss, weights);
      pl::trace_phase("update");
      adam.apply(weights, gradients);
    });
}

// A step: activations pile up layer by layer and are freed in reverse while gradients are computed, then an update.
void write_many(const std::filesystem::path& path, std::size_t events) {
  pl::HostPageSource pages;
  pl::Arena arena(pages, {.name = "CPU:0", .limit = 512_MiB, .growth = true});
  const pl::TraceRecorder recorder({.path = path, .max_bytes = 256_MiB});
  std::uint64_t state = 1;
  const auto between = [&](std::size_t least, std::size_t most) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return least + static_cast<std::size_t>(state >> 33) % (most - least + 1);
  };
  constexpr std::size_t kLayers = 12;
  static std::string scopes[kLayers], names[kLayers];
  const char* const ops[] = {"matmul", "softmax", "gelu", "layer_norm", "add", "dropout"};
  std::vector<pl::Block> fixed;
  const auto take = [&](std::size_t bytes, const char* op, const char* scope, pl::Category category,
                        std::uint32_t rows) {
    pl::BlockLabel label;
    label.op = op;
    label.scope = scope;
    label.category = category;
    label.has_shape = 1;
    label.rank = 2;
    label.dtype = static_cast<std::uint8_t>(pl::f32);
    label.sizes[0] = rows;
    label.sizes[1] = static_cast<std::uint32_t>(bytes / 4 / rows);
    return arena.allocate(bytes, 64, label);
  };
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    scopes[layer] = "encoder/layer_" + std::to_string(layer);
    names[layer] = "kernel_" + std::to_string(layer);
    for (int moment = 0; moment < 3; ++moment)
      fixed.push_back(take(1_MiB, moment == 0 ? "variable" : "adam", scopes[layer].c_str(),
                           moment == 0 ? pl::Category::kParameters : pl::Category::kOptimizer, 512));
  }
  for (std::size_t step = 0, done = 0; done < events; ++step) {
    pl::trace_step(step);
    pl::trace_phase("forward");
    const std::uint32_t rows = static_cast<std::uint32_t>(between(16, 64));
    std::vector<std::pair<pl::Block, std::size_t>> kept;
    for (std::size_t layer = 0; layer < kLayers; ++layer)
      for (const char* op : ops) {
        const pl::Block scratch =
            take(rows * 4 * between(64, 512), "scratch", scopes[layer].c_str(), pl::Category::kWorkspace, rows);
        kept.emplace_back(
            take(rows * 4 * between(256, 2048), op, scopes[layer].c_str(), pl::Category::kActivations, rows), layer);
        arena.deallocate(scratch);
        done += 3;
      }
    pl::trace_phase("backward");
    std::vector<pl::Block> gradients;
    for (; !kept.empty(); kept.pop_back()) {
      const char* scope = scopes[kept.back().second].c_str();
      const pl::Block gradient = take(kept.back().first.size(), "gradient", scope, pl::Category::kGradients, rows);
      arena.deallocate(kept.back().first);
      if (kept.size() % 6 == 1) gradients.push_back(take(1_MiB, "matmul", scope, pl::Category::kGradients, 512));
      arena.deallocate(gradient);
      done += 3;
    }
    pl::trace_phase("update");
    for (const pl::Block& gradient : gradients) arena.deallocate(gradient);
    done += 2 * gradients.size();
  }
  for (const pl::Block& block : fixed) arena.deallocate(block);
}

// Runs of two plans, one with phases and long steps, one on two devices, between blocks, markers, records and a
// refusal.
void write_seed(const pl::TraceOptions& options) {
  pl::HostPageSource pages;
  pl::Arena first(pages, {.name = "CPU:0", .limit = 1_MiB}), second(pages, {.name = "CPU:1", .limit = 1_MiB});
  const pl::Budget budget("fit", 64_KiB);
  const pl::BudgetScope inside(budget);
  const pl::TraceRecorder recorder(options);
  const auto value = [](const char* op, std::uint32_t extent, std::uint64_t offset, std::uint32_t from,
                        std::uint32_t end) {
    pl::PlacedValue made{.extent = extent, .offset = offset, .bytes = 100, .first = from, .end = end};
    made.label.op = op;
    made.label.scope = "layer";
    made.label.has_shape = made.label.rank = 1;
    made.label.sizes[0] = 25;
    return made;
  };
  const pl::PlacedValues training{
      .steps = 4,
      .values = {value("matmul", 0, 0, 0, 2), value("tanh", 0, 128, 1, 4), value("gradient", 0, 0, 2, 4)},
      .phases = {{0, "forward"}, {2, "backward"}, {3, "update"}}};
  const pl::PlacedValues spread{.steps = 2, .values = {value("add", 0, 0, 0, 1), value("copy", 1, 64, 1, 2)}};
  pl::KnownPlan known_training, known_spread;
  const auto run = [](pl::KnownPlan& known, const pl::PlacedValues& plan, std::vector<std::uint64_t> blocks,
                      std::uint32_t steps) {
    pl::TracePlanRun run(known, plan, blocks);
    for (std::uint32_t i = 0; i < steps && run.times_steps(); ++i) run.step_done();
    if (steps == plan.steps) run.finish();
  };
  const auto id_of = [](pl::Arena& arena, const pl::Block& block) {
    std::uint64_t id = 0;
    arena.for_each_live([&](const pl::Chunk& chunk) {
      if (arena.address(&chunk) == block.data()) id = chunk.label.id;
    });
    return id;
  };
  for (std::uint64_t step = 0; step < 3; ++step) {
    pl::trace_step(step);
    const pl::Block extent = first.allocate(256), one = first.allocate(128), other = second.allocate(256);
    run(known_training, training, {id_of(first, extent)}, step == 2 ? 3 : 4);
    run(known_spread, spread, {id_of(first, one), id_of(second, other)}, 2);
    pl::trace_phase("data");
    for (const pl::Block& block : {extent, one}) first.deallocate(block);
    second.deallocate(other);
  }
  pl::trace_text("done");
  try {
    first.allocate(128_KiB);
  } catch (const pl::OutOfMemory&) {
  }
}

void write_seeds(const std::filesystem::path& folder) {
  write_seed({.path = folder / "plans"});
  write_seed({.path = folder / "plans_ring", .mode = pl::TraceMode::kRing});
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 3 && std::string(argv[1]) == "--million") {
    write_many(argv[2], 1'000'000);
    return 0;
  }
  const bool seeds = argc == 3 && std::string(argv[1]) == "--seeds";
  if (argc < 2 || (std::string(argv[1]).starts_with("-") && !seeds)) {
    std::cerr << "usage: make_traces FOLDER [EVENTS] | --million FILE | --seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[seeds ? 2 : 1];
  std::filesystem::create_directories(folder);
  if (seeds) {
    write_seeds(folder);
    return 0;
  }
  write_many(folder / "million.trace", argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1'000'000);
  write_training(folder / "training.trace");
  write_leak(folder / "leak.trace");
  write_bunched(folder / "bunched.trace");
  write_refused(folder / "refused.trace");
  write_by_hand(folder / "by_hand.trace");
  return 0;
} catch (const std::exception& error) {
  std::cerr << "make_traces: " << error.what() << "\n";
  return 1;
}
