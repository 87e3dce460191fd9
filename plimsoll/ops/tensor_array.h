// TensorArray: a list of tensors of one dtype, written and read one by one: what loops collect their results in.
//
//   TensorArray states(f32, {.size = 0, .dynamic_size = true});
//   for (int t = 0; t < steps; ++t) states.write(t, h = cell(h));
//   Tensor all = states.stack();                      // [steps, ...]
//   TensorArray inputs(f32, {.size = 10}); inputs.unstack(sequence); inputs.read(3);
//
// An element is written once and read once: reading takes it out, so that its memory can go; reading it again, or
// writing there again, is FailedPrecondition. With clear_after_read off both may happen as often as you like. stack,
// concat and gather leave the elements where they are. An element that was never written is zeros, when the shape of
// elements is known.
// A copy is the same array. It has tensors of its own on the buffers of those written: a scope that ends and a
// dispose() of what was written leave them alone; they go when read, or with the last copy of the array. Gradients pass
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
  std::int64_t size = 0;      // Elements to begin with; 2^24 at most, also when it grows.
  bool dynamic_size = false;  // Writing beyond the end makes it longer.
  bool clear_after_read = true;
  Shape element_shape = {};  // Left out: see infer_shape. Sizes may be unknown (-1).
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
  Tensor concat() const;  // One after the other along their first axis; other sizes are equal.
  Tensor gather(const std::vector<std::int64_t>& indices) const;  // Those, stacked.
  Tensor gather(const Tensor& indices) const;

  // Writes the rows of `value`: to the first indices, or to those given.
  TensorArray& unstack(const Tensor& value);
  TensorArray& scatter(const std::vector<std::int64_t>& indices, const Tensor& value);
  TensorArray& scatter(const Tensor& indices, const Tensor& value);
  // Writes pieces of these lengths along the first axis, which together are all of it.
  TensorArray& split(const Tensor& value, const std::vector<std::int64_t>& lengths);

  std::int64_t size() const noexcept;
  DType dtype() const noexcept;
  Shape element_shape() const;  // Unset while nothing is known.

  void dispose() const noexcept;  // Of all elements; the array can no longer be read.

  // What tidy, dispose and others find in it.
  template <class F>
  friend void visit_tensors(const TensorArray& array, F&& f) {
    for (const Tensor& element : array.elements()) f(element);
  }

 private:
  struct State;
  std::vector<Tensor> elements() const;  // Those that are there.

  std::shared_ptr<State> state_;
};

}  // namespace plimsoll
