// InlineArray: a few objects on the stack, more of them on the heap. Its size is fixed when it is made.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace plimsoll {

template <class T, std::size_t Few>
class InlineArray {
 public:
  explicit InlineArray(std::size_t size) : size_(size) {
    if (size > Few) far_ = std::make_unique<T[]>(size);
  }
  T& operator[](std::size_t position) noexcept { return data()[position]; }
  std::span<T> span() noexcept { return {data(), size_}; }
  std::size_t size() const noexcept { return size_; }

 private:
  T* data() noexcept { return far_ ? far_.get() : near_; }

  std::size_t size_;
  T near_[Few];
  std::unique_ptr<T[]> far_;
};

}  // namespace plimsoll
