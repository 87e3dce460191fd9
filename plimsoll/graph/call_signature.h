// CallSignature: what distinguishes calls of a function: the shapes, dtypes and devices of its tensors, their
// structure, and plain values; and the tensors themselves, in order.
// Values are of the kinds that tidy accepts (visit_tensors.h). Cost: no allocation for up to 16 tensors and 96 words.
// Values are those that tidy knows (visit_tensors.h). Cost: no allocation for up to 16 tensors and 96 words.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/tensor.h"
#include "plimsoll/tensor/tensor_tree.h"
#include "plimsoll/tensor/visit_tensors.h"

namespace plimsoll {

// A list that starts on the stack.
template <class T, std::size_t N>
class ShortList {
 public:
  void push_back(T value) {
    if (size_ < N) {
      near_[size_] = value;
    } else {
      if (size_ == N) far_.assign(near_.begin(), near_.end());
      far_.push_back(value);
    }
    ++size_;
  }
  std::size_t size() const noexcept { return size_; }
  std::span<const T> span() const noexcept { return {size_ <= N ? near_.data() : far_.data(), size_}; }

 private:
  std::array<T, N> near_;
  std::vector<T> far_;
  std::size_t size_ = 0;
};

class PLIMSOLL_API CallSignature {
 public:
  template <class T>
  void add(const T& value);

  std::span<const std::uint64_t> words() const noexcept { return words_.span(); }
  std::span<const Tensor* const> tensors() const noexcept { return tensors_.span(); }
  bool has_symbolic() const noexcept { return has_symbolic_; }

 private:
  void add_tensor(const Tensor& tensor);  // Throws Disposed, InvalidArgument.
  void add_tree(const TensorTree& tree);
  void add_text(std::string_view text);
  template <class T>
  void add_bytes(const T& value) {
    std::uint64_t words[(sizeof(T) + 7) / 8] = {};
    std::memcpy(words, &value, sizeof(T));
    for (const std::uint64_t word : words) words_.push_back(word);
  }

  ShortList<std::uint64_t, 96> words_;
  ShortList<const Tensor*, 16> tensors_;
  bool has_symbolic_ = false;
};

template <class T>
void CallSignature::add(const T& value) {
  namespace v = visit_detail;
  if constexpr (std::same_as<T, Tensor>) {
    add_tensor(value);
  } else if constexpr (std::same_as<T, Variable>) {
    words_.push_back(value.id());
  } else if constexpr (std::same_as<T, TensorTree>) {
    add_tree(value);
  } else if constexpr (v::Customised<T>) {
    visit_tensors(value, [this](const Tensor& tensor) { add_tensor(tensor); });
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    add_text(value);
  } else if constexpr (std::same_as<T, Shape>) {
    words_.push_back(value.is_set() ? value.rank() : UINT64_MAX);
    for (const std::int64_t size : value) words_.push_back(static_cast<std::uint64_t>(size));
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    add_bytes(value);
  } else if constexpr (std::same_as<T, Number>) {
    words_.push_back(static_cast<std::uint64_t>(value.dtype()));
    words_.push_back(value.to(value.dtype()));
  } else if constexpr (v::kIsVariant<T>) {
    words_.push_back(value.index());
    std::visit([this](const auto& held) { add(held); }, value);
  } else if constexpr (v::kIsOptional<T>) {
    words_.push_back(value.has_value());
    if (value) add(*value);
  } else if constexpr (v::Range<T>) {
    std::uint64_t count = 0;
    for (auto it = value.begin(); it != value.end(); ++it, ++count) {
      const auto& element = *it;
      add(element);
    }
    words_.push_back(count);
  } else if constexpr (v::TupleLike<T>) {
    std::apply([this](const auto&... parts) { (add(parts), ...); }, value);
  } else if constexpr (v::OwningPointer<T>) {
    words_.push_back(value != nullptr);
    if (value) add(*value);
  } else if constexpr (std::is_aggregate_v<T> && !std::is_empty_v<T>) {
    v::for_each_member(value, [this](const auto& member) { add(member); });
  } else {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "function: an argument of this type cannot be told from another; pass tensors, trees, containers, "
                  "numbers or text, or write visit_tensors(const T&, f) for it");
    if constexpr (!std::is_empty_v<T>) add_bytes(value);
  }
}

}  // namespace plimsoll
