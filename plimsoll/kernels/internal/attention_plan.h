// AttentionPlan: sizes and addresses of one call of attention() or attention_gradient(), and its blocks of scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/attention.h"
#include "plimsoll/kernels/internal/attention_loops.h"
#include "plimsoll/kernels/internal/recurrent_loops.h"

namespace plimsoll::internal {

inline constexpr std::int64_t kAttentionBlock = 64;  // Queries, and keys, of a block of scores.
inline constexpr std::int64_t kAttentionSlots = 8;   // Blocks in progress at once, each with its scratch.

// A mask that broadcasts over the first three axes.
template <class T>
struct AttentionMask {
  const T* data = nullptr;
  std::int64_t strides[3] = {};

  static AttentionMask of(const ConstTensorView& view) noexcept {
    AttentionMask mask;
    if (!view.base()) return mask;
    mask.data = view.data<T>();
    std::int64_t stride = view.shape()[3];
    for (std::size_t axis = 3; axis-- > 0;) {
      mask.strides[axis] = view.shape()[axis] == 1 ? 0 : stride;
      stride *= view.shape()[axis];
    }
    return mask;
  }
  const T* row(std::int64_t batch, std::int64_t head, std::int64_t query) const noexcept {
    return data ? data + batch * strides[0] + head * strides[1] + query * strides[2] : nullptr;
  }
};

// The rows of a tensor [batch, heads, rows, width] or [batch, rows, heads, width]; `head` counts through all batches.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t heads, batch_stride, head_stride, stride;  // `stride`: between rows of a head.

  HeadRows(T* at, std::int64_t heads_of, std::int64_t rows, std::int64_t width, bool sequence_first) noexcept
      : data(at),
        heads(heads_of),
        batch_stride(heads_of * rows * width),
        head_stride(sequence_first ? width : rows * width),
        stride(sequence_first ? heads_of * width : width) {}
  T* at(std::int64_t head, std::int64_t row) const noexcept {
    return data + head / heads * batch_stride + head % heads * head_stride + row * stride;
  }
  void clear(std::int64_t head, std::int64_t row, std::int64_t rows, std::int64_t width) const noexcept {
    for (std::int64_t r = 0; r < rows; ++r) std::fill_n(at(head, row + r), width, T(0));
  }
};

template <class T>
struct AttentionPlan {
  std::int64_t batch, heads, queries, keys, depth, columns;
  T scale;
  bool causal, sequence_first;
  HeadRows<const T> q, k, v;
  AttentionMask<T> additive;
  AttentionMask<bool> allowed;
  const AttentionLoopsOf<T>& loops = attention_loops_of<T>();
  const RecurrentLoopsOf<T>& products = recurrent_loops_of<T>();

  AttentionPlan(const AttentionRule& options, const AttentionInputs& in) noexcept
      : batch(in.q.shape()[0]),
        heads(in.q.shape()[options.sequence_first ? 2 : 1]),
        queries(in.q.shape()[options.sequence_first ? 1 : 2]),
        keys(in.k.shape()[options.sequence_first ? 1 : 2]),
        depth(in.q.shape()[3]),
        columns(in.v.shape()[3]),
        scale(static_cast<T>(options.scale != 0 ? options.scale : 1 / std::sqrt(double(depth)))),
        causal(options.causal),
        sequence_first(options.sequence_first),
        q(in.q.data<T>(), heads, queries, depth, sequence_first),
        k(in.k.data<T>(), heads, keys, depth, sequence_first),
        v(in.v.data<T>(), heads, keys, columns, sequence_first),
        additive(AttentionMask<T>::of(in.additive)),
        allowed(AttentionMask<bool>::of(in.allowed)) {}

  // Keys from `key` that any of the queries up to `last_query` may see, at most a block.
  std::int64_t keys_of_block(std::int64_t key, std::int64_t last_query) const noexcept {
    const std::int64_t end = causal ? std::min(keys, last_query + 1) : keys;
    return std::clamp<std::int64_t>(end - key, 0, kAttentionBlock);
  }

  // scores (rows kAttentionBlock apart) = q k^T for `rows` queries and `count` keys, from the packed keys.
  void multiply_scores(const T* queries_at, std::int64_t rows, const T* key_panels, std::int64_t count,
                       T* scores) const noexcept {
    products.multiply(queries_at, q.stride, 1, rows, depth, key_panels, count, scores, kAttentionBlock, false);
  }

  // Scales and masks one row of scores, that of `query`, for keys from `key`; returns the largest.
  T finish_scores(T* row, std::int64_t head_index, std::int64_t query, std::int64_t key,
                  std::int64_t count) const noexcept {
    const T* added = additive.row(head_index / heads, head_index % heads, query);
    const bool* keep = allowed.row(head_index / heads, head_index % heads, query);
    const std::int64_t visible = causal ? std::clamp<std::int64_t>(query + 1 - key, 0, count) : count;
    std::fill(row + visible, row + count, -std::numeric_limits<T>::infinity());
    return loops.scale_and_mask(row, visible, scale, added ? added + key : nullptr, keep ? keep + key : nullptr);
  }
};

inline std::int64_t round_to_panel(std::int64_t n, std::int64_t columns) noexcept { return round_up(n, columns); }

// Elements of a packed block by `width` matrix, enough for either orientation.
template <class T>
std::int64_t panel_elements(std::int64_t width) noexcept {
  const std::int64_t columns = recurrent_loops_of<T>().columns;
  return round_to_panel(kAttentionBlock, columns) * round_to_panel(width, columns);
}

}  // namespace plimsoll::internal
