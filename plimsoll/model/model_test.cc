#include "plimsoll/model/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/leak_check.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

Sequential make_classifier() {
  Sequential model({layers::Dense(16, {.activation = "relu", .input_shape = {10}, .seed = 3}),
                    layers::Dropout(0.2, {.seed = 4}), layers::Dense(1, {.activation = "sigmoid", .seed = 5})});
  model.compile({.optimizer = optimizers::Adam({.learning_rate = 1e-2f}),
                 .loss = losses::BinaryCrossentropy(),
                 .metrics = {"accuracy"}});
  return model;
}

struct Data {
  Tensor x = random_normal({256, 10}, {.seed = 5});
  Tensor y = (x.sum({1}, {.keep_dims = true}) > 0.f).cast(f32);
};

TEST(Model, LearnsASimpleRule) {
  const Data data;
  Sequential model = make_classifier();
  const History history =
      model.fit(Dataset::from_tensors(data.x, data.y).shuffle(256, {.seed = 1}).batch(32),
                {.epochs = 15, .validation_data = Dataset::from_tensors(data.x, data.y).batch(64), .verbose = 0});
  EXPECT_EQ(history["loss"].size(), 15u);
  EXPECT_LT(history["loss"].back(), history["loss"].front() / 2);
  EXPECT_GT(history["val_accuracy"].back(), 0.9f);
  EXPECT_GT(history.peak_bytes(), 0u);
  EXPECT_THROW(history["val_auc"], NotFound);
  EXPECT_FLOAT_EQ(model.evaluate(data.x, data.y)["accuracy"], history["val_accuracy"].back());
}

TEST(Model, TheSameSeedsGiveTheSameTraining) {
  const Data data;
  const auto train = [&] {
    Sequential model = make_classifier();
    return model.fit(Dataset::from_tensors(data.x, data.y).shuffle(256, {.seed = 1}).batch(32),
                     {.epochs = 3, .verbose = 0})["loss"];
  };
  EXPECT_EQ(train(), train());
}

TEST(Model, LeavesNothingBehindButTheOptimizersState) {
  const Data data;
  Sequential model = make_classifier();
  const Dataset train = Dataset::from_tensors(data.x, data.y).shuffle(256).batch(32).prefetch(2);
  model.fit(train, {.epochs = 1, .verbose = 0});
  const MemoryInfo before = memory();
  model.fit(train, {.epochs = 3, .verbose = 0});
  model.evaluate(train);
  { model.predict(data.x); }
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(Model, TrainsInsideOfATidy) {
  const Data data;
  Sequential model = make_classifier();
  const History history = tidy([&] { return model.fit(data.x, data.y, {.epochs = 2, .verbose = 0}); });
  EXPECT_EQ(history.num_epochs(), 2u);
  EXPECT_NO_THROW(model.predict(data.x));
}

TEST(Model, EndsWithItsLastHandle) {
  const Data data;
  LeakCheck check;
  {
    Sequential model = make_classifier();
    model.train_on_batch(data.x, data.y);
  }
  check.expect_none();
}

TEST(Model, PredictGivesATensorOfItsOwn) {
  Sequential nothing({layers::Dropout(0.5, {.input_shape = {4}})});
  const Tensor x = random_uniform({3, 4});
  const Tensor y = nothing.predict(x);
  y.dispose();
  EXPECT_FALSE(x.is_disposed());
  x.dispose();
  EXPECT_THROW(nothing.predict(x), Disposed);
}

TEST(Model, PredictsAlikeInAnyBatchSize) {
  Sequential model = make_classifier();
  const Tensor x = random_normal({70, 10}, {.seed = 8});
  const auto whole = model.predict(x, {.batch_size = 1000}).to_vector<float>();
  const auto parts = model.predict(x, {.batch_size = 16}).to_vector<float>();
  ASSERT_EQ(whole.size(), parts.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], parts[i], 1e-6);
  EXPECT_THROW(model.predict(x, {.batch_size = 0}), InvalidArgument);
}

TEST(Model, AWholeFitCanBeRefusedAndRepeated) {
  const Data data;
  Sequential model = make_classifier();
  const auto before = values_of(model);
  {
    const Budget tight("tight", 4096);
    const BudgetScope use(tight);
    EXPECT_THROW(model.fit(data.x, data.y, {.verbose = 0}), OutOfMemory);
  }
  EXPECT_EQ(values_of(model), before);
  EXPECT_NO_THROW(model.fit(data.x, data.y, {.verbose = 0}));
}

TEST(Model, SaysWhatIsWrong) {
  const Data data;
  Sequential plain({layers::Dense(1, {.input_shape = {10}})});
  EXPECT_THROW(plain.fit(data.x, data.y), FailedPrecondition);
  EXPECT_THROW(plain.evaluate(data.x, data.y), FailedPrecondition);
  EXPECT_THROW(plain.train_on_batch(data.x, data.y), FailedPrecondition);
  EXPECT_THROW(plain.optimizer(), FailedPrecondition);
  EXPECT_THROW(plain.compile({.optimizer = "adam"}), InvalidArgument);
  EXPECT_THROW(plain.compile({.optimizer = "adam", .loss = "mse", .loss_weights = {1, 2}}), InvalidArgument);
  EXPECT_THROW(plain.predict(random_normal({2, 9})), InvalidArgument);
  EXPECT_THROW(plain.layer("none"), NotFound);
  Sequential model = make_classifier();
  EXPECT_THROW(model.train_on_batch(data.x, zeros({256, 2})), InvalidArgument);
  EXPECT_THROW(model.fit(data.x, data.y, {.validation_split = 1}), InvalidArgument);
  EXPECT_THROW(model.fit(data.x, data.y, {.epochs = -1}), InvalidArgument);
  EXPECT_THROW(Sequential({layers::Dense(2, {.input_shape = {3}, .name = "a"}), layers::Dense(2, {.name = "a"})}),
               InvalidArgument);
  EXPECT_THROW(layers::Dense(0), InvalidArgument);
  EXPECT_THROW(layers::Dense(3, {.activation = "relo"}), InvalidArgument);
  EXPECT_THROW(layers::Dropout(1), InvalidArgument);
  const Input a({.shape = {3}}), b({.shape = {3}});
  EXPECT_THROW(Model({a}, {layers::Add()({a, b})}), InvalidArgument);
  EXPECT_THROW(Model({a, b}, {layers::Dense(1)(a)}), InvalidArgument);  // Nothing depends on b.
  EXPECT_NO_THROW(Model({a, b}, {layers::Dense(1)(a), b}));
}

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Model, NamesTheArgumentThatIsWrong) {
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
  };
  const Data data;
  Sequential model = make_classifier();
  const Tensor gone = zeros({256, 1});
  gone.dispose();
  has(text_of([&] { model.fit(data.x, gone); }), "fit: y");
  has(text_of([&] { model.fit(gone, data.y); }), "fit: x");
  has(text_of([&] { model.evaluate(data.x, gone); }), "evaluate: y");
  has(text_of([&] { model.predict(gone); }), "predict: x");
  has(text_of([&] { model.train_on_batch(data.x, gone); }), "train_on_batch: y");
  has(text_of([&] { Dataset::from_tensors(data.x, gone); }), "from_tensors: y");
  has(text_of([&] { Dataset::from_tensors(std::vector<Tensor>{data.x, gone}); }), "from_tensors: x[1]");
  // An example where a batch is expected.
  for (const auto& text : {text_of([&] { model.fit(Dataset::from_tensors(data.x, data.y), {.verbose = 0}); }),
                           text_of([&] { model.evaluate(Dataset::from_tensors(data.x, data.y)); })})
    has(text, "was given [10]; the first axis counts examples: batch the dataset");
  const Input a({.shape = {3}, .name = "left"}), b({.shape = {4}, .name = "right"});
  Model two({a, b}, {layers::Concatenate()({a, b})});
  has(text_of([&] {
        two.predict_all({zeros({2, 3}), zeros({2, 5})});
      }),
      "takes input 1 (\"right\") of shape [?, 4], was given [2, 5]");
  has(text_of([&] { two.predict_all({zeros({2, 3})}); }), "takes 2 inputs, was given 1");
  has(text_of([&] { Model({a, b}, {layers::Dense(1)(a)}); }), "no output depends on input 1 (\"right\")");
}

TEST(Model, BuildsAtItsFirstInputWhenNoShapeIsGiven) {
  Sequential model({layers::Dense(4), layers::Dense(2)});
  EXPECT_FALSE(model.is_built());
  std::ostringstream out;
  EXPECT_THROW(model.summary(out), FailedPrecondition);
  EXPECT_EQ(model.predict(ones({3, 7})).shape(), (Shape{3, 2}));
  EXPECT_EQ(model.weights()[0].name(), "dense/kernel");
  EXPECT_EQ(model.weights()[2].name(), "dense_1/kernel");
  EXPECT_EQ(model.num_parameters(), 7u * 4 + 4 + 4 * 2 + 2);
  model.summary(out);
  EXPECT_NE(out.str().find("dense_1 (Dense)"), std::string::npos);
  EXPECT_NE(out.str().find("(None, 2)"), std::string::npos);
}

TEST(Model, SharesLayersAndNestsModels) {
  const layers::Dense shared(3, {.activation = "tanh", .seed = 1});
  const Input a({.shape = {4}}), b({.shape = {4}});
  Model both({a, b}, {layers::Concatenate()({shared(a), shared(b)}), layers::Add()({shared(a), shared(b)})});
  EXPECT_EQ(both.num_parameters(), 15u);
  const Tensor x = random_normal({2, 4}, {.seed = 1}), z = random_normal({2, 4}, {.seed = 2});
  const auto outputs = both.predict_all({x, z});
  EXPECT_EQ(outputs[0].shape(), (Shape{2, 6}));
  const Tensor sum = shared(x) + shared(z);
  EXPECT_EQ(outputs[1].to_vector<float>(), sum.to_vector<float>());

  const Input outer({.shape = {4}});
  Model nested({outer}, {layers::Dense(1, {.seed = 2})(both({outer, outer}))});
  EXPECT_EQ(nested.predict(x).shape(), (Shape{2, 1}));
  nested.compile({.optimizer = "sgd", .loss = "mse"});
  const auto before = shared.weights()[0].value().to_vector<float>();
  nested.train_on_batch(x, ones({2, 1}));
  EXPECT_NE(shared.weights()[0].value().to_vector<float>(), before);
  both.set_trainable(false);
  EXPECT_EQ(nested.trainable_weights().size(), 2u);
}

TEST(Model, TrainsSeveralOutputs) {
  const Input in({.shape = {4}});
  const LayerOutput h = layers::Dense(8, {.activation = "tanh", .seed = 1})(in);
  Model model({in}, {layers::Dense(3, {.activation = "softmax", .name = "kind", .seed = 2})(h),
                     layers::Dense(1, {.name = "size", .seed = 3})(h)});
  model.compile({.optimizer = "adam",
                 .loss = {losses::SparseCategoricalCrossentropy(), losses::MeanSquaredError()},
                 .metrics = {"mae"},
                 .loss_weights = {1, 0.5}});
  const Tensor x = random_normal({32, 4}, {.seed = 1});
  const Example batch{.inputs = {x}, .targets = {x.argmax(-1) % 3, x.sum({1}, {.keep_dims = true})}};
  EXPECT_THROW(model.train_on_batch(batch), InvalidArgument);  // mae of labels beside three columns.
  model.compile({.optimizer = "adam",
                 .loss = {losses::SparseCategoricalCrossentropy(), losses::MeanSquaredError()},
                 .loss_weights = {1, 0.5}});
  const Logs first = model.train_on_batch(batch);
  EXPECT_NEAR(first["loss"], first["kind_loss"] + 0.5 * first["size_loss"], 1e-5);
  Logs last = first;
  for (int i = 0; i < 200; ++i) last = model.train_on_batch(batch);
  EXPECT_LT(last["loss"], first["loss"] / 2);
  EXPECT_THROW(model.predict(x), InvalidArgument);
}

class Scale final : public LayerBase {
 public:
  const char* class_name() const override { return "Scale"; }
  void build(const Shapes& in) override { scale_ = add_weight("scale", {in[0].back()}, {.initializer = "ones"}); }
  Tensor call(const Tensor& x, CallContext&) override { return x * *scale_; }
  std::optional<Variable> scale_;
};

TEST(Model, TakesLayersOfYourOwn) {
  Sequential model({make_layer<Scale>(), layers::Dense(1, {.seed = 1})});
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.1}), .loss = "mse"});
  const Tensor x = random_normal({16, 3}, {.seed = 1}), y = x.sum({1}, {.keep_dims = true}) * 2;
  const float first = model.train_on_batch(x, y)["loss"];
  for (int i = 0; i < 50; ++i) model.train_on_batch(x, y);
  EXPECT_LT(model.test_on_batch(x, y)["loss"], first / 10);
  EXPECT_EQ(model.weights()[0].name(), "scale/scale");
}

TEST(Model, WeighsExamplesAndClasses) {
  Sequential model({layers::Dense(1, {.input_shape = {1}, .kernel_initializer = "ones"})});
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mse", .metrics = {"mae"}});
  const Tensor x = constant({{1.f}, {2.f}}), y = constant({{0.f}, {1.f}});
  EXPECT_FLOAT_EQ(model.test_on_batch(x, y)["loss"], 1.f);
  const Logs logs = model.test_on_batch(x, constant({{0.f}, {0.f}}), constant({1.f, 0.5f}));
  EXPECT_FLOAT_EQ(logs["loss"], (1.f + 0.5f * 4) / 2);
  EXPECT_FLOAT_EQ(logs["mae"], (1.f + 0.5f * 2) / 1.5f);
  const History history = model.fit(x, y, {.verbose = 0, .class_weights = {{0, 3.0}, {1, 5.0}}});
  EXPECT_FLOAT_EQ(history["loss"][0], 4.f);
}

TEST(Model, ValidatesOnTheLastPart) {
  const Data data;
  Sequential model = make_classifier();
  const History history = model.fit(data.x, data.y, {.epochs = 2, .validation_split = 0.25, .verbose = 0});
  const float last = model.evaluate(data.x.slice({192, 0}, {64, 10}), data.y.slice({192, 0}, {64, 1}))["loss"];
  EXPECT_NEAR(history["val_loss"].back(), last, 1e-5);
}

// As in Keras: what a model is given becomes what it takes.
TEST(Model, CastsInputs) {
  for (const bool told : {true, false}) {
    Sequential model({layers::Dense(2, {.input_shape = told ? Shape{3} : Shape(), .seed = 1})});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mse"});
    const Tensor x = constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}), y = zeros({2, 2});
    const Tensor doubles = x.cast(f64), integers = x.cast(i32), small = x.cast(u8);
    const float loss = model.train_on_batch(told ? x : doubles, y)["loss"];
    const auto expected = model.predict(x).to_vector<float>();
    for (const Tensor& other : {doubles, integers, small, x.cast(f16)}) {
      EXPECT_EQ(model.predict(other).to_vector<float>(), expected);
      EXPECT_EQ(model.train_on_batch(other, y)["loss"], loss);
      EXPECT_EQ(model.test_on_batch(other, y)["loss"], loss);
      EXPECT_EQ(model.evaluate(other, y)["loss"], loss);
      EXPECT_EQ(model.fit(other, y, {.verbose = 0})["loss"][0], loss);
    }
  }
}

TEST(Model, LeavesIntegersOfAnEmbeddingAsTheyAre) {
  Sequential model({layers::Embedding(20'000'000, 1, {.input_length = 1}), layers::Flatten()});
  const Tensor table = model.weights()[0].value();
  const std::int64_t far = 16'777'217;  // A float would make it another one.
  EXPECT_EQ(model.predict(from_vector(std::vector<std::int64_t>{far}, {1, 1})).item<float>(),
            table.slice({far}, {1}).item<float>());
}

TEST(Model, ForecastsWhatCastInputsTake) {
  const auto make = [] {
    Sequential model({layers::Dense(4, {.input_shape = {16}, .seed = 1}), layers::Dense(1, {.seed = 2})});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    return model;
  };
  const Dataset batches = Dataset::from_tensor_slices(zeros({64, 16}, f64), zeros({64, 1})).batch(32);
  const std::size_t needed = make().forecast(batches).smallest_budget;
  EXPECT_EQ(make().forecast(Example{.inputs = {zeros({32, 16}, f64)}, .targets = {zeros({32, 1})}}).peak_bytes,
            make().forecast({.batch_size = 32}).peak_bytes);
  const History history = make().fit(batches, {.verbose = 0, .budget = needed});
  EXPECT_LE(history.peak_bytes(), needed);
  EXPECT_THROW(make().fit(batches, {.verbose = 0, .budget = needed - 1}), OutOfMemory);
}

}  // namespace
}  // namespace plimsoll
