// Tensor: a handle to elements of one dtype with a shape, on a device.
//
//   Tensor a = constant({{1.f, 2.f}, {3.f, 4.f}}, {.name = "matrix"});
//   Tensor b = (a + 1.f).sum({1});                         // NumPy's broadcasting
//   b.to_vector<float>();                                  // {5, 9}
//   std::cout << a;   // <Tensor: shape=(2, 2), dtype=float32, device=CPU:0, values=[[1, 2], [3, 4]]>
//
// A copied handle is the same tensor. The bytes are freed with the last handle, at the end of the tidy scope it was
// made in, or by dispose(), whichever comes first. Elements never change through a handle: operations return new
// tensors. reshape and leading slices are new tensors on the same buffer.
// Operations throw InvalidArgument for operands that do not match (naming both shapes, dtypes or devices), Disposed for
// a disposed operand and OutOfMemory when the result does not fit; then nothing has changed.
// Thread safety: handles of one tensor may be used on several threads at once; a single handle object, like any value,
// may not be written on one thread while used on another, and dispose() must not run at the same time as an operation
// on the tensor.
// Cost: copying a handle is one atomic increment.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/tensor/axes.h"
#include "plimsoll/tensor/number.h"
#include "plimsoll/tensor/tensor_record.h"

namespace plimsoll {

struct ReduceOptions {
  bool keep_dims = false;  // Reduced axes stay, of size 1.
};

template <Element T>
class TensorData;

class PLIMSOLL_API Tensor {
 public:
  Tensor() noexcept = default;  // No tensor: size() is 0, is_empty_handle() true. Operations refuse it.
  Tensor(const Tensor& other) noexcept : record_(other.record_) {
    if (record_) record_->retain();
  }
  Tensor(Tensor&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  Tensor& operator=(const Tensor& other) noexcept {
    Tensor copy(other);
    std::swap(record_, copy.record_);
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(record_, other.record_);
    Tensor old(std::move(other));
    return *this;
  }
  ~Tensor() {
    if (record_) record_->release();
  }

  // Its properties. They stay readable after dispose().
  const Shape& shape() const noexcept;
  std::size_t rank() const noexcept { return shape().rank(); }
  std::size_t size() const { return record_ ? record_->shape().size() : 0; }  // Elements. Throws if a size is unknown.
  DType dtype() const noexcept { return record_ ? record_->dtype : f32; }
  std::size_t nbytes() const { return size() * size_of(dtype()); }
  std::string name() const { return record_ && record_->name() ? record_->name() : ""; }
  std::uint64_t id() const noexcept { return record_ ? record_->id : 0; }
  std::string device() const;  // "CPU:0". Throws Disposed.
  bool is_empty_handle() const noexcept { return record_ == nullptr; }

  void dispose() const noexcept {  // Through all copies. A second time does nothing.
    if (record_) record_->dispose();
  }
  bool is_disposed() const noexcept { return record_ && record_->storage.load(std::memory_order_acquire) == nullptr; }

  // Read elements. They throw InvalidArgument when T is not the element type (except item and at, which convert between
  // numbers as cast() does), and Disposed.
  template <Element T>
  T item() const {  // Requires a tensor of one element.
    HostBytes bytes;
    return convert<T>(element_view(nullptr, 0, bytes));
  }
  template <Element T>
  T at(std::initializer_list<std::int64_t> index) const {  // Negative positions count from the end.
    HostBytes bytes;
    return convert<T>(element_view(index.begin(), index.size(), bytes));
  }
  template <Element T>
  std::vector<T> to_vector() const {
    HostBytes bytes;
    const auto elements = host_view(bytes).template span<T>();
    return {elements.begin(), elements.end()};
  }
  template <Element T>
  TensorData<T> data() const;      // The elements in place; keeps them there while it lives.
  explicit operator bool() const;  // Whether a scalar is nonzero. Throws InvalidArgument for other tensors.

  Tensor sum(const Axes& axes = {}, ReduceOptions options = {}) const;
  Tensor mean(const Axes& axes = {}, ReduceOptions options = {}) const;
  Tensor prod(const Axes& axes = {}, ReduceOptions options = {}) const;
  Tensor max(const Axes& axes = {}, ReduceOptions options = {}) const;
  Tensor min(const Axes& axes = {}, ReduceOptions options = {}) const;
  Tensor any(const Axes& axes = {}, ReduceOptions options = {}) const;  // For booleans.
  Tensor all(const Axes& axes = {}, ReduceOptions options = {}) const;
  Tensor argmax(std::int64_t axis = -1) const;  // i64: the first position of the largest element.
  Tensor argmin(std::int64_t axis = -1) const;

  Tensor reshape(const Shape& shape) const;  // One size may be -1: it is computed from the rest.
  Tensor flatten() const { return reshape({-1}); }
  Tensor squeeze(const Axes& axes = {}) const;      // Without axes of size 1: those given, or all.
  Tensor expand_dims(std::int64_t axis = 0) const;  // With an axis of size 1 at that place.
  Tensor transpose(const std::vector<std::int64_t>& permutation = {}) const;  // None: the axes in reverse.
  Tensor slice(const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& size) const;  // -1: to the end.
  Tensor cast(DType dtype) const;
  Tensor to(std::string_view device) const;  // Itself when it is there already.
  Tensor clone() const;                      // A copy with bytes of its own.

  // For the layers above. The view is valid while the tensor is neither disposed nor dropped. Throws Disposed,
  // InvalidArgument for an empty handle; allocates a lazy storage's memory and recomputes dropped bytes. The first
  // keeps a budget from dropping them from then on, the second until the lock ends.
  ConstTensorView view() const;
  ConstTensorView view(BytesLock& lock) const;
  // Where the host can read them; view() is that only on the host's devices.
  ConstTensorView host_view(HostBytes& bytes) const;
  TensorRecord* record() const noexcept { return record_; }
  static Tensor adopt(TensorRecord* record) noexcept {
    Tensor result;
    result.record_ = record;
    return result;
  }

 private:
  ConstTensorView element_view(const std::int64_t* index, std::size_t count, HostBytes& bytes) const;
  template <Element T>
  static T convert(const ConstTensorView& element) {
    return visit_dtype(element.dtype(), [&]<class S>(TypeTag<S>) {
      const S value = *element.template data<S>();
      constexpr bool kToInteger = std::integral<T> && !std::same_as<T, bool> && !std::integral<S>;
      if constexpr (kToInteger)  // The other type is for clang 14, which looks at this in any case.
        return to_integer<std::conditional_t<kToInteger, T, std::int64_t>>(
            static_cast<double>(static_cast<std::conditional_t<std::same_as<S, double>, double, float>>(value)));
      else if constexpr (std::same_as<S, float16> || std::same_as<S, bfloat16>)
        return static_cast<T>(static_cast<float>(value));
      else if constexpr (std::same_as<T, float16> || std::same_as<T, bfloat16>)
        return T(static_cast<float>(value));
      else
        return static_cast<T>(value);
    });
  }

  TensorRecord* record_ = nullptr;
};

// A tensor's elements in place, pinned: they stay valid while this lives, even when the tensor is disposed.
template <Element T>
class TensorData {
 public:
  explicit TensorData(const Tensor& tensor)
      : elements_(tensor.host_view(bytes_).template span<T>()), storage_(StorageRef::share(tensor.record()->storage)) {
    storage_->pin();
  }
  TensorData(const TensorData& other) : bytes_(other.bytes_), elements_(other.elements_), storage_(other.storage_) {
    storage_->pin();
  }
  TensorData& operator=(const TensorData&) = delete;
  ~TensorData() { storage_->unpin(); }

  const T* data() const noexcept { return elements_.data(); }
  std::size_t size() const noexcept { return elements_.size(); }
  const T& operator[](std::size_t position) const noexcept { return elements_[position]; }
  auto begin() const noexcept { return elements_.begin(); }
  auto end() const noexcept { return elements_.end(); }
  std::span<const T> span() const noexcept { return elements_; }
  operator std::span<const T>() const noexcept { return elements_; }

 private:
  HostBytes bytes_;
  std::span<const T> elements_;
  StorageRef storage_;
};

template <Element T>
TensorData<T> Tensor::data() const {
  return TensorData<T>(*this);
}

// As in the example; tensors with many elements are summarised, as NumPy does.
PLIMSOLL_API std::string to_string(const Tensor& tensor);
PLIMSOLL_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// Elementwise, with broadcasting. On integers / floors and % takes the divisor's sign; dividing by zero gives 0.
#define PLIMSOLL_TENSOR_OPERATOR(symbol)                                 \
  PLIMSOLL_API Tensor operator symbol(const Tensor& a, const Tensor& b); \
  PLIMSOLL_API Tensor operator symbol(const Tensor& a, const Number& b); \
  PLIMSOLL_API Tensor operator symbol(const Number& a, const Tensor& b);
PLIMSOLL_TENSOR_OPERATOR(+)
PLIMSOLL_TENSOR_OPERATOR(-)
PLIMSOLL_TENSOR_OPERATOR(*)
PLIMSOLL_TENSOR_OPERATOR(/)
PLIMSOLL_TENSOR_OPERATOR(%)
PLIMSOLL_TENSOR_OPERATOR(==)
PLIMSOLL_TENSOR_OPERATOR(!=)
PLIMSOLL_TENSOR_OPERATOR(<)
PLIMSOLL_TENSOR_OPERATOR(<=)
PLIMSOLL_TENSOR_OPERATOR(>)
PLIMSOLL_TENSOR_OPERATOR(>=)
PLIMSOLL_TENSOR_OPERATOR(&&)
PLIMSOLL_TENSOR_OPERATOR(||)
#undef PLIMSOLL_TENSOR_OPERATOR
// Operands that nobody else holds, such as intermediate results of an expression, lend their memory to the result.
#define PLIMSOLL_TENSOR_OPERATOR(symbol)                            \
  PLIMSOLL_API Tensor operator symbol(Tensor&& a, const Tensor& b); \
  PLIMSOLL_API Tensor operator symbol(const Tensor& a, Tensor&& b); \
  PLIMSOLL_API Tensor operator symbol(Tensor&& a, Tensor&& b);      \
  PLIMSOLL_API Tensor operator symbol(Tensor&& a, const Number& b); \
  PLIMSOLL_API Tensor operator symbol(const Number& a, Tensor&& b);
PLIMSOLL_TENSOR_OPERATOR(+)
PLIMSOLL_TENSOR_OPERATOR(-)
PLIMSOLL_TENSOR_OPERATOR(*)
PLIMSOLL_TENSOR_OPERATOR(/)
#undef PLIMSOLL_TENSOR_OPERATOR
inline Tensor operator&&(const Tensor& a, bool b) { return a && Number(b); }
inline Tensor operator&&(bool a, const Tensor& b) { return Number(a) && b; }
inline Tensor operator||(const Tensor& a, bool b) { return a || Number(b); }
inline Tensor operator||(bool a, const Tensor& b) { return Number(a) || b; }
PLIMSOLL_API Tensor operator-(const Tensor& x);
PLIMSOLL_API Tensor operator!(const Tensor& x);

}  // namespace plimsoll
