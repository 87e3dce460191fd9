// InlineArray: a list whose final size is known when it is made: a few objects on the stack, more on the heap.
//
//   InlineArray<ConstTensorView, 4> views(inputs.size());
//   for (...) views.add(base, offset, dtype, shape);
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace plimsoll::internal {

template <class T, std::size_t Few>
class InlineArray {
 public:
  explicit InlineArray(std::size_t capacity) {
    if (capacity > Few) {
      far_ = std::make_unique<std::byte[]>(capacity * sizeof(T));
      data_ = reinterpret_cast<T*>(far_.get());
    }
  }
  ~InlineArray() { std::destroy_n(data_, size_); }
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;

  // Requires fewer than the capacity.
  template <class... Arguments>
  void add(Arguments&&... arguments) {
    ::new (static_cast<void*>(data_ + size_)) T(std::forward<Arguments>(arguments)...);
    ++size_;
  }
  T& operator[](std::size_t position) noexcept { return data_[position]; }
  std::span<T> span() noexcept { return {data_, size_}; }
  std::size_t size() const noexcept { return size_; }

 private:
  static_assert(alignof(T) <= alignof(std::max_align_t));
  T* data_ = reinterpret_cast<T*>(near_);
  std::size_t size_ = 0;
  alignas(T) std::byte near_[Few * sizeof(T)];
  std::unique_ptr<std::byte[]> far_;
};

}  // namespace plimsoll::internal
