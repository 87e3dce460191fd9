// Optimizer: updates parameters in place from their gradients: SGD, RMSprop, Adagrad, Adadelta, Adam, AdamW, Adamax.
//
//   Optimizer adam(AdamOptions{.learning_rate = 1e-3});
//   adam.apply({w, b}, tape.gradient(loss, {w, b}));     // One step over all parameters; its state grows as needed.
//
// The formulas are those of Keras (2.11 and later). A parameter's state (momenta, means of squares) is made at its
// first step, in the category `optimizer`, survives every tidy and ends with the last handle of the optimizer. apply()
// acquires everything that can fail before it changes the first byte: when it throws, parameters, state and step() are
// unchanged. A gradient that is an empty handle (not connected) leaves its parameter alone, which is logged once; when
// no trainable parameter has one, apply() throws FailedPrecondition.
// A parameter that is given twice is changed twice. Takes f32 and f64; others are InvalidArgument.
// Copies of the handle are the same optimizer. Thread safety: any thread; steps are ordered by a lock.
// Cost: one pass over each parameter at memory speed, no allocation after the first step.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

namespace optimizers {

// `tfjs` selects TF.js's formula where it differs from that of Keras; kernels/optimizer.h has both.
struct SGDOptions {
  double learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  bool tfjs = false;
};
struct RMSpropOptions {
  double learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;
  bool tfjs = false;
};
struct AdagradOptions {
  double learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
};
struct AdadeltaOptions {
  double learning_rate = 0.001;
  double rho = 0.95;
  double epsilon = 1e-7;
  bool tfjs = false;
};
struct AdamOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  double weight_decay = 0;  // AdamW: 0.004 in Keras.
  bool tfjs = false;
};
struct AdamaxOptions {
  double learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};
}  // namespace optimizers

// Also without the namespace, as in earlier versions.
using optimizers::AdadeltaOptions;
using optimizers::AdagradOptions;
using optimizers::AdamaxOptions;
using optimizers::AdamOptions;
using optimizers::RMSpropOptions;
using optimizers::SGDOptions;

using OptimizerOptions =
    std::variant<SGDOptions, RMSpropOptions, AdagradOptions, AdadeltaOptions, AdamOptions, AdamaxOptions>;

class PLIMSOLL_API Optimizer {
 public:
  // Throws InvalidArgument for rates and factors that are not finite or negative, and for betas, rho and momentum
  // outside [0, 1).
  explicit Optimizer(const OptimizerOptions& options);
  Optimizer(const Optimizer&) = default;  // Moving copies too: a handle always has its optimizer.
  Optimizer& operator=(const Optimizer&) = default;

  // Throws InvalidArgument when the lists differ in length, or a gradient's shape, dtype or device differs from its
  // parameter's; Disposed; OutOfMemory for state, and for a parameter whose value is held elsewhere and must be copied.
  void apply(std::span<const Variable> parameters, std::span<const Tensor> gradients) const;
  void apply(const std::vector<Variable>& parameters, const std::vector<Tensor>& gradients) const;

  const OptimizerOptions& options() const noexcept;
  std::int64_t step() const noexcept;  // Steps taken.
  double learning_rate() const noexcept;
  void set_learning_rate(double rate) const;  // From the next step on. Throws InvalidArgument as the constructor.

  std::size_t state_bytes() const;  // Memory used by the state of all parameters.
  // The state of all parameters. Steps change it under this optimizer's lock, not those of the variables: read values
  // that belong together through slots(), or between steps.
  std::vector<Variable> state_variables() const;

  // For checkpoints: the state of `parameter`, named "m", "v", "velocity" and so on; empty before its first step.
  struct Slot {
    std::string name;
    Tensor value;  // A copy.
  };
  std::vector<Slot> slots(const Variable& parameter) const;
  // Sets step() and the slots of a parameter, by name; slots not named get their initial values. Throws InvalidArgument
  // for a name, shape or dtype that does not fit; then nothing has changed.
  void restore_step(std::int64_t step) const;
  void restore(const Variable& parameter, std::span<const Slot> slots) const;

  // For training distributed over processes: elements [begin, end) of a parameter seen as one row.
  struct Stretch {
    Variable parameter;
    std::int64_t begin = 0, end = 0;
  };
  // Makes state for these stretches of the parameters from the existing state, and frees that of all their other
  // elements. Fast when it is already so. Throws OutOfMemory, and FailedPrecondition when the state was distributed
  // otherwise; then nothing has changed. apply() refuses parameters with partial state (FailedPrecondition).
  void prepare(std::span<const Variable> parameters, std::span<const Stretch> stretches) const;
  // One step over prepared stretches, with gradients of their elements. Cannot fail, provided the parameters own their
  // bytes. `elsewhere`: where the elements of each stretch are; left out: in the parameters.
  void apply_prepared(std::span<const Stretch> stretches, std::span<const ConstTensorView> gradients,
                      std::span<const TensorView> elsewhere = {}) const;
  // The part of the parameter that prepare() chose, and copies of its slots; empty otherwise.
  struct StretchSlots {
    std::int64_t begin = 0, end = 0;
    std::vector<Slot> slots;
  };
  std::optional<StretchSlots> stretch_slots(const Variable& parameter) const;
  bool is_spread() const noexcept;                            // Whether any parameter has only partial state.
  std::size_t num_slots() const noexcept;                     // Of each parameter.
  std::vector<Slot> blank_slots(const Variable& like) const;  // What restore() takes, with the initial values.

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A tidy leaves optimizers alone.
template <class F>
void visit_tensors(const Optimizer&, F&&) {}

}  // namespace plimsoll
