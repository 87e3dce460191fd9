// RaggedTensor: rows of different lengths, one after the other: a batch of sequences without padding.
//
//   RaggedTensor r = RaggedTensor::from_rows({x, y, z});          // x [3, 8], y [0, 8], z [5, 8]
//   Tensor padded = r.to_padded();                                // [3, 5, 8], zeros after the ends
//   Tensor loss = (errors(padded) * r.mask().cast(f32)).sum();    // mask [3, 5]
//   RaggedTensor back = RaggedTensor::from_padded(padded, r.row_lengths());
//
// It consists of two tensors: values [total, ...] and i64 row splits [rows + 1]; row r is values[splits[r] ... splits[r
// + 1] - 1]. They are ordinary tensors, counted, tidied and disposed of as such; a copy is the same ragged tensor.
// Gradients flow to values() and through the conversions. Throws InvalidArgument that names the entry and its numbers,
// Disposed, OutOfMemory; then nothing has changed. Thread safety: as for tensors. Cost: rows are views; the conversions
// copy once.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct PaddedOptions {
  Number value = 0;              // The padding.
  std::int64_t max_length = -1;  // Longer rows are truncated; -1: the length of the longest row.
};

class PLIMSOLL_API RaggedTensor {
 public:
  // Splits (lengths) are i32 or i64. The parts share the buffers of the arguments.
  RaggedTensor(const Tensor& values, const Tensor& row_splits);
  static RaggedTensor from_row_lengths(const Tensor& values, const Tensor& lengths);
  // Tensors [length, ...] that differ only in the length. At least one.
  static RaggedTensor from_rows(const std::vector<Tensor>& rows);
  // The first lengths[r] of each row of padded [rows, width, ...].
  static RaggedTensor from_padded(const Tensor& padded, const Tensor& lengths);

  const Tensor& values() const noexcept { return values_; }
  const Tensor& row_splits() const noexcept { return splits_; }
  std::int64_t num_rows() const noexcept { return splits_.shape()[0] - 1; }
  DType dtype() const noexcept { return values_.dtype(); }
  std::size_t nbytes() const noexcept { return values_.nbytes() + splits_.nbytes(); }
  Shape shape() const;  // [rows, -1, ...]

  Tensor row(std::int64_t index) const;  // [length, ...], on the same buffer. Negative indices count from the end.
  Tensor row_lengths() const;            // i64 [rows]
  std::int64_t max_length() const;       // Of the longest row; 0 without rows.

  // The same rows with other values: as many, of any dtype and with any further axes.
  RaggedTensor with_values(const Tensor& values) const;
  Tensor to_padded(const PaddedOptions& options = {}) const;  // [rows, width, ...]
  Tensor mask(std::int64_t max_length = -1) const;            // boolean [rows, width]: true before the ends.

  void dispose() const noexcept;
  bool is_disposed() const noexcept { return values_.is_disposed(); }

  // Lets tidy, dispose and others find the tensors inside.
  template <class F>
  friend void visit_tensors(const RaggedTensor& ragged, F&& f) {
    f(ragged.values_);
    f(ragged.splits_);
  }

 private:
  RaggedTensor() = default;

  Tensor values_, splits_;
};

// <RaggedTensor: shape=(3, None, 8), dtype=float32, device=CPU:0, row_lengths=[3, 0, 5]>; some lengths of many.
PLIMSOLL_API std::string to_string(const RaggedTensor& ragged);
PLIMSOLL_API std::ostream& operator<<(std::ostream& out, const RaggedTensor& ragged);

}  // namespace plimsoll
