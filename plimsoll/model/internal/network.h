// Network: the layers of a model and their connections; a layer itself, so that models can be parts of models.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plimsoll/model/layers/layer.h"
#include "plimsoll/model/training/training.h"

namespace plimsoll::internal {

class Network final : public LayerBase {
 public:
  // Described by its inputs and outputs. Names unnamed layers, makes the weights. Throws InvalidArgument for an output
  // that does not depend on the inputs, for an input that no output needs, and for two layers of one name.
  Network(const std::vector<LayerOutput>& inputs, const std::vector<LayerOutput>& outputs, const std::string& name);
  // A chain, layer by layer; connected as soon as the input's shape is known.
  explicit Network(const std::string& name);
  void add(const std::shared_ptr<LayerBase>& layer);

  const char* class_name() const override { return sequential_ ? "Sequential" : "Functional"; }
  Shapes output_shapes(const Shapes& inputs) const override;
  void build(const Shapes& inputs) override;
  std::vector<Tensor> call_all(const std::vector<Tensor>& inputs, CallContext& context) override;
  Tensor output_mask(const std::vector<Tensor>&, const CallContext& context) const override { return context.mask(0); }
  void config(ConfigWriter& out) const override;
  std::vector<LayerBase*> inner_layers() const override;

  // A call of a layer, in an order in which they can run. Slots number the values passed between them.
  struct Call {
    std::shared_ptr<LayerBase> layer;
    std::vector<std::size_t> inputs;  // Slots.
    std::size_t first_output = 0;     // Slot of its first output.
    Shapes shapes;                    // Of its outputs.
    std::vector<std::size_t> ended;   // Slots nobody reads after it.
  };

  bool is_sequential() const noexcept { return sequential_; }
  // Whether sizes besides the batch size were given; otherwise the first input determined those of the weights.
  bool has_input_shape() const noexcept { return has_input_shape_; }
  bool is_connected() const noexcept { return !output_slots_.empty(); }
  const std::vector<std::shared_ptr<LayerBase>>& layers() const noexcept { return layers_; }
  const std::vector<Call>& calls() const noexcept { return calls_; }
  const std::vector<std::size_t>& input_slots() const noexcept { return input_slots_; }
  const std::vector<std::size_t>& output_slots() const noexcept { return output_slots_; }
  std::size_t num_inputs() const noexcept { return sequential_ ? 1 : input_slots_.size(); }
  std::vector<std::string> output_names() const;  // Of the output layers.
  const Call& call_of(std::size_t slot) const;
  // Connects a chain for this input, if it is not connected.
  void connect(const Shape& input, DType dtype);
  // The size of everything passed between its layers for inputs of these shapes, at most SIZE_MAX. Requires known
  // sizes.
  std::size_t bytes_between_layers(const Shapes& inputs) const;
  std::vector<Weight> unique_weights() const;  // A shared layer's weights occur once.
  std::size_t parameter_bytes() const;         // Of all weights, in blocks of a budget.
  void visit_layers(const std::function<void(LayerBase&)>& f);

  Training training{*this};

 private:
  std::vector<Shape> slot_shapes(const Shapes& inputs) const;
  void add_call(const std::shared_ptr<const LayerOutput::Node>& node);
  void refuse_unused_inputs() const;
  void add_layer(const std::shared_ptr<LayerBase>& layer);
  void name_layers(std::span<const std::shared_ptr<LayerBase>> layers);
  void find_ends();
  void append(const std::shared_ptr<LayerBase>& layer);
  void remove_last(const std::shared_ptr<LayerBase>& layer);

  const bool sequential_;
  std::vector<std::shared_ptr<LayerBase>> layers_;
  std::vector<Call> calls_;
  std::vector<std::size_t> input_slots_, output_slots_;
  std::unordered_map<const LayerOutput::Node*, std::size_t> first_slots_;  // While it is made.
  std::vector<std::shared_ptr<const LayerOutput::Node>> nodes_;
  std::unordered_set<const LayerBase*> known_;
  // Names of its layers: all, including nested ones; its own; and the next number to try for each kind.
  struct Names {
    std::unordered_set<std::string> all, own;
    std::unordered_map<std::string, int> next;
  } names_;
  std::size_t num_slots_ = 0;
  bool has_input_shape_ = true;
};

}  // namespace plimsoll::internal
