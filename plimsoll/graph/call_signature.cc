#include "plimsoll/graph/call_signature.h"

#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {

void CallSignature::add_tensor(const Tensor& tensor) {
  const TensorRecord* const record = tensor.record();
  Storage* const storage = record ? record->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(tensor, "function", "an argument");
  has_symbolic_ |= storage->is_symbolic();
  tensors_.push_back(&tensor);
  words_.push_back(reinterpret_cast<std::uintptr_t>(&storage->device()) << 8 |
                   static_cast<std::uint64_t>(record->dtype));
  words_.push_back(record->shape().rank());
  for (const std::int64_t size : record->shape()) words_.push_back(static_cast<std::uint64_t>(size));
}

void CallSignature::add_tree(const TensorTree& tree) {
  if (tree.is_tensor()) return add_tensor(tree.tensor());
  words_.push_back(tree.size() << 1 | (tree.is_map() ? 1 : 0));
  for (const std::string& key : tree.keys()) add_text(key);
  for (std::size_t i = 0; i < tree.size(); ++i) add_tree(tree[i]);
}

void CallSignature::add_text(std::string_view text) {
  words_.push_back(text.size());
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min<std::size_t>(8, text.size() - i));
    words_.push_back(word);
  }
}

}  // namespace plimsoll
