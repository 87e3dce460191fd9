#include "plimsoll/ops/confusion_matrix.h"

#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/labels.h"

namespace plimsoll {
namespace {

class ConfusionMatrix final : public OpOf<ConfusionMatrix> {
 public:
  explicit ConfusionMatrix(std::int64_t num_classes) noexcept : num_classes_(num_classes) {}
  const char* name() const noexcept override { return "confusion_matrix"; }
  void infer(const Specs& in, SpecList& out) const override {
    for (std::size_t i = 0; i < 2; ++i)
      if (in.dtype(i) != i32 && in.dtype(i) != i64)
        throw InvalidArgument(fmt::format("confusion_matrix: {} {} are {}; cast them to int32 or int64", input_name(i),
                                          in.shape(i).to_string(), dtype_name(in.dtype(i))));
    const Shape &labels = in.shape(0), &predictions = in.shape(1);
    if (labels.rank() != 1 || predictions.rank() != 1 ||
        (labels.is_known() && predictions.is_known() && !(labels == predictions)))
      throw InvalidArgument(fmt::format("confusion_matrix: labels are {}, predictions {}; give two vectors of one size",
                                        labels.to_string(), predictions.to_string()));
    out.add({num_classes_, num_classes_}, i32);
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].size() > 0) std::memset(run.out[0].bytes(), 0, run.out[0].nbytes());
    auto* counts = run.out[0].data<std::int32_t>();
    for (std::size_t i = 0; i < run.in[0].size(); ++i) {
      const std::int64_t row = value(run.in[0], i), column = value(run.in[1], i);
      if (row >= 0 && row < num_classes_ && column >= 0 && column < num_classes_) ++counts[row * num_classes_ + column];
    }
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "labels" : "predictions"; }
  bool operator==(const ConfusionMatrix&) const = default;

 private:
  static std::int64_t value(const ConstTensorView& view, std::size_t i) {
    return view.dtype() == i32 ? view.data<std::int32_t>()[i] : view.data<std::int64_t>()[i];
  }

  std::int64_t num_classes_;
};

}  // namespace

Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions, std::int64_t num_classes) {
  if (num_classes < 1)
    throw InvalidArgument(fmt::format("confusion_matrix: {} classes; give at least one", num_classes));
  require_labels("confusion_matrix", "label", labels, num_classes);
  require_labels("confusion_matrix", "prediction", predictions, num_classes);
  return execute(ConfusionMatrix(num_classes), labels, predictions);
}

}  // namespace plimsoll
