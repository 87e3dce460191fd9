#include "plimsoll/cli/replay_synthetic.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace plimsoll {
namespace {

// Writes the lines of a trace; blocks are named by their id.
class Writer {
 public:
  void comment(const std::string& text) { text_ += "# " + text + "\n"; }
  std::uint64_t allocate(std::size_t floats) {
    text_ += fmt::format("a,{},{}\n", ++last_id_, floats * sizeof(float));
    return last_id_;
  }
  void free(std::uint64_t id) { text_ += fmt::format("f,{}\n", id); }
  void free_all(std::vector<std::uint64_t>& ids) {
    for (const std::uint64_t id : std::exchange(ids, {})) free(id);
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
  std::uint64_t last_id_ = 0;
};

// A few random bits, the same on every machine.
class Mixer {
 public:
  explicit Mixer(std::uint64_t seed) : state_(seed) {}
  std::size_t between(std::size_t least, std::size_t most) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return least + static_cast<std::size_t>(state_ >> 33) % (most - least + 1);
  }

 private:
  std::uint64_t state_;
};

class Training {
 public:
  explicit Training(const SyntheticTraining& options) : options_(options), random_(options.seed) {}

  std::string run() && {
    writer_.comment("phase init");
    for (std::size_t layer = 0; layer < options_.layers; ++layer) kept_.push_back(writer_.allocate(parameters()));
    for (std::size_t step = 0; step < options_.steps; ++step) {
      writer_.comment(fmt::format("step {}", step));
      one_step(random_.between(options_.shortest, options_.longest), step == 0);
    }
    writer_.free_all(kept_);
    return std::move(writer_).text();
  }

 private:
  std::size_t parameters() const { return 8 * options_.hidden * options_.hidden; }
  std::size_t state() const { return options_.batch * options_.hidden; }

  // Four gates per time step are needed again by the backward pass; the rest is scratch.
  void forward(std::size_t length, std::vector<std::uint64_t>& activations) {
    for (std::size_t layer = 0; layer < options_.layers; ++layer) {
      activations.push_back(writer_.allocate(length * state()));
      for (std::size_t time = 0; time < length; ++time) {
        const std::uint64_t scratch = writer_.allocate(4 * state());
        activations.push_back(writer_.allocate(state()));
        writer_.free(scratch);
      }
    }
  }

  void backward(std::size_t length, std::vector<std::uint64_t>& activations, std::vector<std::uint64_t>& gradients) {
    for (std::size_t layer = 0; layer < options_.layers; ++layer) {
      const std::uint64_t incoming = writer_.allocate(length * state());
      gradients.push_back(writer_.allocate(parameters()));
      for (std::size_t time = 0; time <= length; ++time) {
        const std::uint64_t scratch = writer_.allocate(2 * state());
        writer_.free(activations.back());
        activations.pop_back();
        writer_.free(scratch);
      }
      writer_.free(incoming);
    }
  }

  void one_step(std::size_t length, bool first) {
    const std::uint64_t batch = writer_.allocate(length * options_.batch * 16);
    std::vector<std::uint64_t> activations, gradients;
    forward(length, activations);
    const std::uint64_t loss = writer_.allocate(options_.batch);
    backward(length, activations, gradients);
    writer_.comment("phase optimizer");
    for (std::size_t layer = 0; layer < options_.layers; ++layer) {
      if (first)
        for (int moment = 0; moment < 2; ++moment) kept_.push_back(writer_.allocate(parameters()));
      writer_.free(writer_.allocate(parameters()));
    }
    writer_.free_all(gradients);
    writer_.free(loss);
    writer_.free(batch);
  }

  const SyntheticTraining options_;
  Mixer random_;
  Writer writer_;
  std::vector<std::uint64_t> kept_;  // Parameters and optimizer state.
};

}  // namespace

std::string synthetic_training(const SyntheticTraining& options) { return Training(options).run(); }

Trace parse_trace(const std::string& name, const std::string& text) {
  TraceParser parser(name);
  parser.feed(text);
  return parser.finish();
}

}  // namespace plimsoll
