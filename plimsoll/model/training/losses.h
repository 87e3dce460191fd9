// Loss: the value that training minimizes. Keras' losses, by class or by name, or your own function.
//
//   model.compile({.optimizer = "adam", .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
//   Loss mine("distance", [](const Tensor& targets, const Tensor& predictions) { return ...; });   // [batch, ..]
//
// A loss returns a number for each example (and step of a sequence); their mean is minimized. Targets are cast to the
// predictions' dtype; a vector of them stands for a column; labels of the sparse loss may have any numeric type. Throws
// InvalidArgument, with both shapes, for targets that do not match the predictions.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

class PLIMSOLL_API Loss {
 public:
  using Function = std::function<Tensor(const Tensor& targets, const Tensor& predictions)>;
  using Standard = Tensor (*)(const Tensor&, const Tensor&, const LossOptions&);

  // Keras' snake_case names, and "mse" and "mae". Throws InvalidArgument for others.
  Loss(std::string_view name);
  Loss(const char* name) : Loss(std::string_view(name)) {}
  Loss(const std::string& name) : Loss(std::string_view(name)) {}
  Loss(std::string name, Function per_example);
  Loss(const char* name, Standard function, const LossOptions& options, bool takes_labels = false);

  const std::string& name() const noexcept { return name_; }
  bool is_standard() const noexcept { return standard_ != nullptr; }  // Not your own.
  const LossOptions& options() const noexcept { return options_; }
  Loss with(const LossOptions& options) const;                  // The same loss with other options.
  bool takes_labels() const noexcept { return takes_labels_; }  // Class numbers instead of a row for each example.
  // The mean; with weights (of the examples' leading shape) the mean of the weighted losses.
  Tensor operator()(const Tensor& targets, const Tensor& predictions, const Tensor& weights = {}) const;
  Tensor per_example(const Tensor& targets, const Tensor& predictions) const;

 private:
  Tensor fitted(const Tensor& targets, const Tensor& predictions) const;

  std::string name_;
  Standard standard_ = nullptr;
  LossOptions options_ = {};
  Function function_ = {};
  bool takes_labels_ = false;
};

// One loss, or one for each output of a model.
class PLIMSOLL_API LossList {
 public:
  LossList() = default;
  template <class T>
  requires(std::convertible_to<const T&, Loss>) LossList(const T& loss) : losses_{Loss(loss)} {}
  LossList(std::initializer_list<Loss> losses) : losses_(losses) {}
  LossList(std::vector<Loss> losses) : losses_(std::move(losses)) {}
  const std::vector<Loss>& list() const noexcept { return losses_; }

 private:
  std::vector<Loss> losses_;
};

namespace losses {
struct CrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;
};
PLIMSOLL_API Loss BinaryCrossentropy(const CrossentropyOptions& options = {});
PLIMSOLL_API Loss CategoricalCrossentropy(const CrossentropyOptions& options = {});
PLIMSOLL_API Loss SparseCategoricalCrossentropy(const CrossentropyOptions& options = {});
PLIMSOLL_API Loss MeanSquaredError();
PLIMSOLL_API Loss MeanAbsoluteError();
PLIMSOLL_API Loss MeanAbsolutePercentageError();
PLIMSOLL_API Loss MeanSquaredLogarithmicError();
PLIMSOLL_API Loss Huber(double delta = 1);
PLIMSOLL_API Loss LogCosh();
PLIMSOLL_API Loss Poisson();
PLIMSOLL_API Loss KLDivergence();
PLIMSOLL_API Loss Hinge();
PLIMSOLL_API Loss SquaredHinge();
PLIMSOLL_API Loss CategoricalHinge();
PLIMSOLL_API Loss CosineSimilarity();
}  // namespace losses

}  // namespace plimsoll
