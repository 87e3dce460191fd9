// TensorArray: a list of tensors of one dtype, written and read one by one, in which loops collect their results.
//
//   TensorArray states(f32, {.size = 0, .dynamic_size = true});
//   for (int t = 0; t < steps; ++t) states.write(t, h = cell(h));
//   Tensor all = states.stack();                      // [steps, ...]
//   TensorArray inputs(f32, {.size = 10}); inputs.unstack(sequence); inputs.read(3);
//
// An element is written once and read once: reading removes it, so that its memory can be freed; reading it again, or
// writing there again, is FailedPrecondition. With clear_after_read off, both may happen any number of times. stack,
// concat and gather leave the elements in place. An element that was never written is zeros, when the shape of elements
// is known.
// A copy is the same array. It has its own tensors on the buffers of those written: the end of a scope and a dispose()
// of what was written do not affect them; they are freed when read, or with the last copy of the array. Gradients pass
// through. Throws InvalidArgument that names the index, dtypes and shapes, and OutOfMemory; then nothing has changed.
// Thread safety: none; one thread at a time. Cost: writing and reading copy no elements.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct TensorArrayOptions {
  std::int64_t size = 0;      // Initial number of elements; 2^24 at most, also when it grows.
  bool dynamic_size = false;  // Writing beyond the end extends it.
  bool clear_after_read = true;
  Shape element_shape = {};  // Default: see infer_shape. Sizes may be unknown (-1).
  bool infer_shape = true;   // All elements have the shape of the first one written.
};

class PLIMSOLL_API TensorArray {
 public:
  explicit TensorArray(DType dtype, const TensorArrayOptions& options = {});
  TensorArray(const TensorArray&) = default;  // Moving copies too: a handle always has its array.
  TensorArray& operator=(const TensorArray&) = default;

  TensorArray& write(std::int64_t index, const Tensor& value);
  Tensor read(std::int64_t index);

  Tensor stack() const;   // [size, ...]
  Tensor concat() const;  // Joined along their first axis; other sizes are equal.
  Tensor gather(const std::vector<std::int64_t>& indices) const;  // The elements at these indices, stacked.
  Tensor gather(const Tensor& indices) const;

  // Writes the rows of `value` to the first indices, or to those given.
  TensorArray& unstack(const Tensor& value);
  TensorArray& scatter(const std::vector<std::int64_t>& indices, const Tensor& value);
  TensorArray& scatter(const Tensor& indices, const Tensor& value);
  // Writes pieces of these lengths along the first axis, which together cover it.
  TensorArray& split(const Tensor& value, const std::vector<std::int64_t>& lengths);

  std::int64_t size() const noexcept;
  DType dtype() const noexcept;
  Shape element_shape() const;  // Unset while nothing is known.

  void dispose() const noexcept;  // Disposes of all elements; the array can no longer be read.

  // Lets tidy, dispose and others find the tensors inside.
  template <class F>
  friend void visit_tensors(const TensorArray& array, F&& f) {
    for (const Tensor& element : array.elements()) f(element);
  }

 private:
  struct State;
  std::vector<Tensor> elements() const;  // Those that are present.

  std::shared_ptr<State> state_;
};

}  // namespace plimsoll
