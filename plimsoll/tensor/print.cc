#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <iterator>
#include <ostream>
#include <string>

#include "plimsoll/device/device.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

constexpr std::size_t kThreshold = 1000;  // Tensors with more elements are summarised.
constexpr std::int64_t kEdge = 3;         // Items shown at each end of a summarised axis.

template <class T>
void append_element(std::string& out, T value) {
  auto end = std::back_inserter(out);
  if constexpr (!std::integral<T>) {
    using Wide = std::conditional_t<std::same_as<T, double>, double, float>;
    if (std::isnan(static_cast<Wide>(value))) {  // Whatever its sign.
      out += "nan";
      return;
    }
  }
  if constexpr (std::same_as<T, float16>)
    fmt::format_to(end, "{:.4g}", static_cast<float>(value));
  else if constexpr (std::same_as<T, bfloat16>)
    fmt::format_to(end, "{:.3g}", static_cast<float>(value));
  else if constexpr (sizeof(T) == 1 && !std::same_as<T, bool>)
    fmt::format_to(end, "{}", static_cast<int>(value));
  else
    fmt::format_to(end, "{}", value);
}

template <class T>
class Values {
 public:
  Values(const Shape& shape, const T* elements)
      : shape_(shape), strides_(row_major_strides(shape)), elements_(elements), whole_(shape.size() <= kThreshold) {}

  std::string text() {
    append_axis(0, 0);
    return std::move(out_);
  }

 private:
  void append_axis(std::size_t axis, std::int64_t first) {
    if (axis == shape_.rank()) {
      append_element<T>(out_, elements_[first]);
      ++shown_;
      return;
    }
    out_ += '[';
    const std::int64_t size = shape_[axis];
    for (std::int64_t i = 0; i < size; ++i) {
      if (i > 0) out_ += ", ";
      // A tensor with many short axes has many corners; those are cut off too.
      if (shown_ >= kThreshold) {
        out_ += "...";
        break;
      }
      if (!whole_ && i == kEdge && size > 2 * kEdge) {
        out_ += "..., ";
        i = size - kEdge;
      }
      append_axis(axis + 1, first + i * strides_[axis]);
    }
    out_ += ']';
  }

  const Shape& shape_;
  const Strides strides_;
  const T* const elements_;
  const bool whole_;
  std::size_t shown_ = 0;
  std::string out_;
};

std::string values_of(const ConstTensorView& view) {
  if (view.size() == 0) return "[]";
  return visit_dtype(view.dtype(), [&]<class T>(TypeTag<T>) { return Values<T>(view.shape(), view.data<T>()).text(); });
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (tensor.is_empty_handle()) return "<Tensor: none>";
  HostBytes bytes;
  std::string out =
      fmt::format("<Tensor: shape={}, dtype={}, ", tensor.shape().to_tuple_string(), dtype_name(tensor.dtype()));
  if (tensor.is_disposed())
    out += "disposed";
  else if (is_symbolic(tensor))
    out += fmt::format("device={}, symbolic, name=\"{}\"", device_of(tensor).name(), tensor.name());
  else
    out += fmt::format("device={}, values={}", device_of(tensor).name(), values_of(tensor.host_view(bytes)));
  return out + '>';
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace plimsoll
