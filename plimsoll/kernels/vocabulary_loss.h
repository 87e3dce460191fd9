// The cross entropy of labels with logits = x w + bias, and its gradients, without ever holding all logits: the loss
// computes some rows of them at a time, the gradient some columns.
//
//   const VocabularySizes sizes = {.rows = 1024, .inner = 256, .classes = 50'000};
//   if (is_sliceable(sizes, f32)) {
//     vocabulary_loss({x, w, &bias, labels}, {losses, statistics}, scratch);       // vocabulary_loss_scratch_bytes()
//     vocabulary_loss_gradient({x, w, &bias, labels}, statistics, upstream, {dx, dw, db}, scratch);
//   }
//
// The same bits as matmul(), the sum with the bias, sparse_softmax_cross_entropy() and argmax(), then its gradient,
// matmul() and reduce(): every sum is split where those split it. f32 and f64. Thread safety: any thread, with its own
// scratch. Never throws; parallel as those are.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct VocabularySizes {
  std::int64_t rows, inner, classes;
};

// Whether slices give the same bits, and are smaller than the whole: large products of f32 or f64 only.
PLIMSOLL_API bool is_sliceable(const VocabularySizes& sizes, DType dtype) noexcept;

struct VocabularyOperands {
  ConstTensorView x, w;                   // [rows, inner], [inner, classes]
  const ConstTensorView* bias = nullptr;  // [classes]
  ConstTensorView labels;                 // [rows] of i32 or i64; one outside of the classes makes its row NaN.
};

struct VocabularyResults {
  TensorView losses;      // [rows]
  TensorView statistics;  // [rows, 2] of f64, for the gradient.
  TensorView best;        // [rows] of i64: the first largest logit. Left out without an address.
};

PLIMSOLL_API std::size_t vocabulary_loss_scratch_bytes(const VocabularySizes& sizes, DType dtype) noexcept;
PLIMSOLL_API void vocabulary_loss(const VocabularyOperands& in, const VocabularyResults& out,
                                  std::span<std::byte> scratch) noexcept;

struct VocabularyGradients {
  TensorView dw;  // [inner, classes]
  TensorView dx;  // [rows, inner]; this and db are left out without an address.
  TensorView db;  // [classes]
};

PLIMSOLL_API std::size_t vocabulary_gradient_scratch_bytes(const VocabularySizes& sizes, DType dtype) noexcept;
PLIMSOLL_API void vocabulary_loss_gradient(const VocabularyOperands& in, const ConstTensorView& statistics,
                                           const ConstTensorView& upstream, const VocabularyGradients& out,
                                           std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
