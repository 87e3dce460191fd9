// A layer, a loss and a callback of your own, in a few lines each; checkpoints, weights loaded back, and the whole
// model.
#include <plimsoll/plimsoll.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "check.h"

namespace pl = plimsoll;

// A learned polynomial of each feature: a + b x + c x^2.
class Quadratic : public pl::LayerBase {
 public:
  const char* class_name() const override { return "Quadratic"; }
  void build(const pl::Shapes& inputs) override {
    const pl::Shape shape = {3, inputs[0].back()};
    coefficients_ = add_weight("coefficients", shape, {.initializer = "random_normal", .seed = 1});
  }
  pl::Tensor call(const pl::Tensor& x, pl::CallContext&) override {
    const std::vector<pl::Tensor> rows = pl::split(pl::Tensor(*coefficients_), 3, 0);
    return rows[0] + rows[1] * x + rows[2] * pl::square(x);
  }
  void config(pl::ConfigWriter&) const override {}  // No settings: its name and weights are saved anyway.

 private:
  std::optional<pl::Variable> coefficients_;
};

// Says when it has learned enough.
class StopAt : public pl::CallbackBase {
 public:
  explicit StopAt(float loss) : loss_(loss) {}
  void on_epoch_end(pl::Model& model, int epoch, const pl::Logs& logs) override {
    if (logs["loss"] > loss_) return;
    std::cout << "good enough after epoch " << epoch + 1 << "\n";
    model.stop_training();
  }

 private:
  const float loss_;
};

pl::Sequential make_model() {
  pl::Sequential model({pl::make_layer<Quadratic>(), pl::layers::Dense(1, {.seed = 2})});
  const pl::Loss distance("distance", [](const pl::Tensor& targets, const pl::Tensor& predictions) {
    return pl::square(targets - predictions).mean({1});
  });
  model.compile({.optimizer = pl::optimizers::Adam({.learning_rate = 2e-2f}), .loss = distance, .metrics = {"mae"}});
  return model;
}

int main() {
  const pl::Tensor x = pl::random_uniform({512, 2}, -1, 1, {.seed = 3});
  const pl::Tensor y = (pl::square(x) * 2.f - x).sum({1}, {.keep_dims = true});
  const auto folder = std::filesystem::temp_directory_path() / "plimsoll-example-custom-layer";

  pl::Sequential model = make_model();
  const pl::History history = model.fit(
      x, y,
      {.epochs = 200,
       .verbose = 0,
       .callbacks = {
           pl::make_callback<StopAt>(1e-4f),
           pl::callbacks::ModelCheckpoint((folder / "cp-{epoch:04d}-{loss:.5f}.ckpt").string(),
                                          {.monitor = "loss", .save_best_only = true, .save_weights_only = true})}});
  std::cout << "loss " << history["loss"].front() << " -> " << history["loss"].back() << "\n";
  check(history["loss"].back() < 1e-3f, "it has learned the polynomial");
  check(history.growth().empty(), "memory did not grow");

  pl::Sequential again = make_model();
  again.predict(x);  // Makes the weights: no input shape was given.
  again.load_weights(pl::latest_checkpoint(folder.string()));
  std::cout << "loaded " << pl::latest_checkpoint(folder.string()) << "\n";
  check(again.optimizer().step() > 0, "the optimizer goes on where it stood");

  // The whole model, for programs that know the layer's class.
  pl::layers::register_layer("Quadratic", [](const pl::ConfigReader&) { return pl::make_layer<Quadratic>(); });
  pl::save_layers_model(again, (folder / "model").string());
  pl::Model loaded = pl::load_layers_model((folder / "model" / "model.json").string());
  check(loaded.predict(x).to_vector<float>() == again.predict(x).to_vector<float>(), "it answers as before");
  std::filesystem::remove_all(folder);
}
