// Layer: a piece of a model: weights, and a function of tensors that uses them. And how to write one.
//
//   Layer dense = layers::Dense(8, {.activation = "relu"});
//   Tensor y = dense(x);                                  // Now; its weights are made for x's shape at the first call.
//   LayerOutput h = dense(Input({.shape = {10}}));        // Later: a place in a model that is being described.
//
//   class Scale : public LayerBase {                      // One of your own.
//     const char* class_name() const override { return "Scale"; }
//     void build(const Shapes& in) override { scale_ = add_weight("scale", {in[0].back()}, {.initializer = "ones"}); }
//     Tensor call(const Tensor& x, CallContext&) override { return x * *scale_; }
//     std::optional<Variable> scale_;
//   };
//   Layer mine = make_layer<Scale>();
//
// Copies of a handle are the same layer, with the same weights. Shapes here have the batch in front, unknown sizes -1.
// A layer runs where its weights are: on the device of the DeviceScope it was made in. What it is given is moved there.
// Weights are called "<layer>/<weight>", as in Keras; a layer that was given no name gets one from its model.
// Thread safety: describing and training a layer, one thread at a time; calls that do not train, from any thread once
// it is built.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/initializer.h"
#include "plimsoll/model/layers/regularizer.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

using Shapes = std::vector<Shape>;
class ConfigWriter;
class LayerBase;

// What a call is part of: whether it trains, the masks of its inputs, and what is to happen when the step succeeds.
class PLIMSOLL_API CallContext {
 public:
  explicit CallContext(bool training = false) noexcept : training_(training) {}

  bool training() const noexcept { return training_; }
  // Of an input: bool [batch, time], false where it is to be left out. An empty handle: none.
  Tensor mask(std::size_t input = 0) const { return input < masks_.size() ? masks_[input] : Tensor(); }
  // Replaces the variable's value when the whole step has succeeded: statistics, states. Throws InvalidArgument for
  // another shape or dtype now, since nothing may fail then.
  void assign_later(const Variable& variable, const Tensor& value);
  void add_loss(const Tensor& scalar) { losses_.push_back(scalar); }  // To the step's loss.

  // For those who call layers.
  void set_masks(std::vector<Tensor> masks) { masks_ = std::move(masks); }
  const std::vector<Tensor>& masks() const noexcept { return masks_; }
  const std::vector<Tensor>& losses() const noexcept { return losses_; }
  void commit();  // Does what assign_later() was told.
  const std::vector<std::pair<Variable, Tensor>>& later() const noexcept { return later_; }

 private:
  bool training_;
  std::vector<Tensor> masks_;
  std::vector<Tensor> losses_;
  std::vector<std::pair<Variable, Tensor>> later_;
};

struct WeightOptions {
  Initializer initializer = "glorot_uniform";
  bool trainable = true;
  Regularizer regularizer = {};
  Constraint constraint = {};
  std::optional<std::uint64_t> seed = {};
};

class PLIMSOLL_API LayerBase {
 public:
  LayerBase();
  LayerBase(const LayerBase&) = delete;
  LayerBase& operator=(const LayerBase&) = delete;
  virtual ~LayerBase();

  struct Weight {
    Variable variable;
    bool trainable = true;
    Regularizer regularizer;
    Constraint constraint;
  };

  virtual const char* class_name() const = 0;  // As Keras writes it: "Dense".
  // Of what the layer gives; the shape of its input unless overridden. Throws InvalidArgument for inputs it cannot
  // take.
  virtual Shapes output_shapes(const Shapes& inputs) const;
  // Makes the weights; called once, before the first call.
  virtual void build(const Shapes& inputs);
  // One of the two: of one tensor, or of all inputs.
  virtual Tensor call(const Tensor& x, CallContext& context);
  virtual std::vector<Tensor> call_all(const std::vector<Tensor>& inputs, CallContext& context);
  // call_all() where the layer is: inputs and masks are moved there, and `inputs` are what was moved.
  std::vector<Tensor> call_placed(std::vector<Tensor>& inputs, CallContext& context);
  virtual bool supports_masking() const { return false; }  // Whether a mask of its input is one of its output too.
  // The mask of the first output: the first input's or, unless masking is supported, none.
  virtual Tensor output_mask(const std::vector<Tensor>& inputs, const CallContext& context) const;
  // What a file says of it, but name and trainable. Throws Unsupported unless overridden.
  virtual void config(ConfigWriter& out) const;
  virtual std::vector<LayerBase*> inner_layers() const { return {}; }  // Of wrappers and models.
  virtual void set_name(std::string name);                             // Before it is built.

  const std::string& name() const noexcept { return name_; }  // "" until it has one.
  bool has_given_name() const noexcept { return has_given_name_; }
  void give_name(std::string name);
  bool is_built() const noexcept { return built_; }
  void ensure_built(const Shapes& inputs);  // Builds when it is not. If that throws, it has no weights.
  const Shape& batch_shape() const noexcept { return batch_shape_; }  // Of the input, when it was told; else unset.
  void set_batch_shape(const Shape& shape) { batch_shape_ = shape; }
  // Where its weights are made and it runs: the device of the DeviceScope it was made in, else that of its weights. "":
  // it runs where its first input is.
  const std::string& device() const noexcept { return device_; }
  DType input_dtype() const noexcept { return input_dtype_; }
  void set_input_dtype(DType dtype) noexcept { input_dtype_ = dtype; }
  bool trainable() const noexcept { return trainable_; }
  virtual void set_trainable(bool trainable);

  const std::vector<Weight>& own_weights() const noexcept { return weights_; }
  std::vector<Weight> weights() const;  // With those of inner layers; not trainable where a layer is not.

  // What a layer draws is a function of its seed and of how often it has drawn; a step that fails puts this back.
  std::uint64_t draws() const noexcept { return seeds_->taken; }
  void set_draws(std::uint64_t draws) noexcept { seeds_->taken = draws; }
  // What it draws from when it was given no seed; drawn when there is none yet. Another one is a change.
  std::uint64_t own_seed();
  void set_own_seed(std::uint64_t seed);
  // Moves whenever calls may do something else than before: trainable or not, new weights, new states.
  std::uint64_t changes() const noexcept { return changes_; }

 protected:
  // Throws InvalidArgument for a name the layer has already.
  Variable add_weight(std::string_view name, const Shape& shape, const WeightOptions& options = {});
  // A variable that was made elsewhere, as a weight under its own name; any dtype.
  void adopt_weight(const Variable& variable, bool trainable) { weights_.push_back({variable, trainable, {}, {}}); }
  std::uint64_t next_seed(const std::optional<std::uint64_t>& seed);  // For one random operation.
  void set_input_shape(const Shape& without_batch);                   // An unset one is ignored.
  Tensor activity_loss(const Regularizer& regularizer, const Tensor& output) const;
  void note_change() noexcept { ++changes_; }

 private:
  std::string name_;
  bool has_given_name_ = false;
  bool built_ = false;
  bool trainable_ = true;
  std::string device_;
  Shape batch_shape_;
  DType input_dtype_ = f32;
  std::vector<Weight> weights_;
  std::optional<std::uint64_t> own_seed_;
  std::shared_ptr<SeedStream> seeds_ = std::make_shared<SeedStream>();
  std::uint64_t changes_ = 0;
};

// A place in a model that is being described: what a layer will give.
class PLIMSOLL_API LayerOutput {
 public:
  struct Node;  // A call of a layer.

  LayerOutput(std::shared_ptr<const Node> node, std::size_t index) : node_(std::move(node)), index_(index) {}
  const Shape& shape() const;
  DType dtype() const;  // Of an input as it was told; else f32.
  const std::shared_ptr<const Node>& node() const noexcept { return node_; }
  std::size_t index() const noexcept { return index_; }

 private:
  std::shared_ptr<const Node> node_;
  std::size_t index_ = 0;
};

struct LayerOutput::Node {
  std::shared_ptr<LayerBase> layer;
  std::vector<LayerOutput> inputs;
  Shapes shapes;  // Of its outputs.
};

class PLIMSOLL_API Layer {
 public:
  explicit Layer(std::shared_ptr<LayerBase> base) : base_(std::move(base)) {}

  // In a model that is described. Throw InvalidArgument for shapes the layer cannot take.
  LayerOutput operator()(const LayerOutput& x) const;
  LayerOutput operator()(const std::vector<LayerOutput>& inputs) const;
  std::vector<LayerOutput> outputs(const std::vector<LayerOutput>& inputs) const;  // All, of one that has several.
  // Now. In training, statistics and states move when the call has succeeded.
  Tensor operator()(const Tensor& x, bool training = false) const;
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, bool training = false) const;

  const std::string& name() const noexcept { return base_->name(); }
  std::vector<Variable> weights() const;            // Trainable ones first, as in Keras.
  std::vector<Variable> trainable_weights() const;  // None when the layer is not trainable.
  void set_trainable(bool trainable) { base_->set_trainable(trainable); }
  bool trainable() const noexcept { return base_->trainable(); }
  std::size_t num_parameters() const;

  LayerBase& base() const noexcept { return *base_; }
  const std::shared_ptr<LayerBase>& shared_base() const noexcept { return base_; }

 private:
  std::shared_ptr<LayerBase> base_;
};

// A tidy leaves layers alone.
template <class F>
void visit_tensors(const Layer&, F&&) {}

template <class L, class... Arguments>
Layer make_layer(Arguments&&... arguments) {
  return Layer(std::make_shared<L>(std::forward<Arguments>(arguments)...));
}

struct InputOptions {
  Shape shape = {};  // Without the batch.
  DType dtype = f32;
  std::string name = {};
};

// Where a described model begins.
class PLIMSOLL_API Input : public LayerOutput {
 public:
  explicit Input(const InputOptions& options);
};

}  // namespace plimsoll
