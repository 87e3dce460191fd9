// Layer: a part of a model: weights, and a function of tensors that uses them. Also shows how to write one.
//
//   Layer dense = layers::Dense(8, {.activation = "relu"});
//   Tensor y = dense(x);                                  // Runs now; makes its weights at the first call.
//   LayerOutput h = dense(Input({.shape = {10}}));        // Later: a place in a model under construction.
//
//   class Scale : public LayerBase {                      // Your own layer.
//     const char* class_name() const override { return "Scale"; }
//     void build(const Shapes& in) override { scale_ = add_weight("scale", {in[0].back()}, {.initializer = "ones"}); }
//     Tensor call(const Tensor& x, CallContext&) override { return x * *scale_; }
//     std::optional<Variable> scale_;
//   };
//   Layer mine = make_layer<Scale>();
//
// Copies of a handle are the same layer, with the same weights. Shapes here include the batch, unknown sizes are -1. A
// layer runs where its weights are: on the device of the DeviceScope it was made in; inputs are moved there. Weights
// are called "<layer>/<weight>", as in Keras; an unnamed layer gets a name from its model.
// Thread safety: describing and training a layer, one thread at a time; calls without training from any thread once it
// is built.
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

// The context of a call: whether it trains, the masks of its inputs, and what to do when the step succeeds.
class PLIMSOLL_API CallContext {
 public:
  explicit CallContext(bool training = false) noexcept : training_(training) {}

  bool training() const noexcept { return training_; }
  // The mask of an input: bool [batch, time], false for steps to skip. An empty handle: none.
  Tensor mask(std::size_t input = 0) const { return input < masks_.size() ? masks_[input] : Tensor(); }
  // Sets the variable when the whole step has succeeded: for statistics, states. Throws InvalidArgument for another
  // shape or dtype now, because nothing may fail then.
  void assign_later(const Variable& variable, const Tensor& value);
  void add_loss(const Tensor& scalar) { losses_.push_back(scalar); }  // Adds to the step's loss.

  // For code that calls layers.
  void set_masks(std::vector<Tensor> masks) { masks_ = std::move(masks); }
  const std::vector<Tensor>& masks() const noexcept { return masks_; }
  const std::vector<Tensor>& losses() const noexcept { return losses_; }
  void commit();  // Performs the assignments of assign_later().
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
  // The shapes of its outputs; the shape of its input unless overridden. Throws InvalidArgument for inputs it cannot
  // take.
  virtual Shapes output_shapes(const Shapes& inputs) const;
  // Makes the weights; called once, before the first call.
  virtual void build(const Shapes& inputs);
  // Override one of the two: for one tensor, or for all inputs.
  virtual Tensor call(const Tensor& x, CallContext& context);
  virtual std::vector<Tensor> call_all(const std::vector<Tensor>& inputs, CallContext& context);
  // call_all() on the layer's device: inputs and masks are moved there, and `inputs` become the moved ones.
  std::vector<Tensor> call_placed(std::vector<Tensor>& inputs, CallContext& context);
  virtual bool supports_masking() const { return false; }  // Whether its input's mask is also its output's.
  // The mask of the first output: the first input's, or none unless masking is supported.
  virtual Tensor output_mask(const std::vector<Tensor>& inputs, const CallContext& context) const;
  // Its settings in a file, without name and trainable. Throws Unsupported unless overridden.
  virtual void config(ConfigWriter& out) const;
  virtual std::vector<LayerBase*> inner_layers() const { return {}; }  // Of wrappers and models.
  virtual void set_name(std::string name);                             // Before it is built.

  const std::string& name() const noexcept { return name_; }  // "" until it has one.
  bool has_given_name() const noexcept { return has_given_name_; }
  void give_name(std::string name);
  bool is_built() const noexcept { return built_; }
  void ensure_built(const Shapes& inputs);  // Builds it if necessary. If that throws, it has no weights.
  const Shape& batch_shape() const noexcept { return batch_shape_; }  // Of the input, if given; else unset.
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

  // A layer's random draws are a function of its seed and of how often it has drawn; a failed step restores this count.
  std::uint64_t draws() const noexcept { return seeds_->taken; }
  void set_draws(std::uint64_t draws) noexcept { seeds_->taken = draws; }
  // The seed it draws from when it was given none; drawn if there is none yet. Setting another one is a change.
  std::uint64_t own_seed();
  void set_own_seed(std::uint64_t seed);
  // Increases whenever calls may behave differently: trainable or not, new weights, new states.
  std::uint64_t changes() const noexcept { return changes_; }

 protected:
  // Throws InvalidArgument for a name that the layer already has.
  Variable add_weight(std::string_view name, const Shape& shape, const WeightOptions& options = {});
  // Adds an existing variable as a weight under its own name; any dtype.
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

// A place in a model under construction: a layer's future output.
class PLIMSOLL_API LayerOutput {
 public:
  struct Node;  // A call of a layer.

  LayerOutput(std::shared_ptr<const Node> node, std::size_t index) : node_(std::move(node)), index_(index) {}
  const Shape& shape() const;
  DType dtype() const;  // Of an input as given; else f32.
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

  // In a model under construction. Throw InvalidArgument for shapes the layer cannot take.
  LayerOutput operator()(const LayerOutput& x) const;
  LayerOutput operator()(const std::vector<LayerOutput>& inputs) const;
  std::vector<LayerOutput> outputs(const std::vector<LayerOutput>& inputs) const;  // All of them.
  // Runs now. In training, statistics and states change when the call has succeeded.
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

// The start of a model under construction.
class PLIMSOLL_API Input : public LayerOutput {
 public:
  explicit Input(const InputOptions& options);
};

}  // namespace plimsoll
