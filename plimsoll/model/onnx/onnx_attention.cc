// Attention and what models around it use: rotations of positions, linear attention, caches of keys and values.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "plimsoll/model/onnx/onnx_convolution.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// [batch, places, heads columns] as [batch, places, heads, columns].
Tensor split_heads(const OnnxNode& node, const Tensor& x, const char* heads_name) {
  const std::int64_t heads = node.integer(heads_name, 0);
  if (x.rank() != 3 || heads < 1 || x.shape()[2] % heads != 0)
    node.invalid(fmt::format("{} = {} does not fit {}", heads_name, heads, x.shape().to_string()));
  return x.reshape({x.shape()[0], x.shape()[1], heads, x.shape()[2] / heads});
}

Tensor swapped(const Tensor& x) { return transpose(x, {0, 2, 1, 3}); }

// Numbers 0, 1, ... along one axis of four, known while the graph is built.
Tensor positions(std::int64_t count, std::size_t axis) {
  const TraceWith nobody(nullptr);
  std::vector<std::int64_t> sizes(4, 1);
  sizes[axis] = count;
  return arange(count).cast(i64).reshape(Shape(sizes));
}

// Each of the heads so often, one after the other: heads that share keys and values.
Tensor repeated(const Tensor& x, std::int64_t times) { return times == 1 ? x : repeat(x, times, 1); }

// Which keys a query sees, and what is added to its scores; empty handles when there is no such limit.
struct Masks {
  Tensor allowed, added;
  bool causal = false;  // Query i sees keys 0 ... i, and nothing else limits it.
};

void require_both(Tensor& allowed, const Tensor& more) {
  allowed = allowed.is_empty_handle() ? more : logical_and(allowed, more);
}

// The mask of operand 3 with four axes, and as many keys as there are: what it does not mention is not seen.
Tensor given_mask(const OnnxNode& node, std::int64_t keys) {
  Tensor mask = node.in(3);
  while (mask.rank() < 4) mask = mask.expand_dims(0);
  const std::int64_t missing = keys - mask.shape()[3];
  if (missing < 0) node.invalid(fmt::format("a mask {} for {} keys", mask.shape().to_string(), keys));
  if (missing == 0) return mask;
  const Paddings paddings = {{0, 0}, {0, 0}, {0, 0}, {0, missing}};
  return mask.dtype() == boolean ? pad(mask, paddings, false) : pad(mask, paddings, kNever);
}

Masks masks_of(const OnnxNode& node, std::int64_t past, std::int64_t queries, std::int64_t keys) {
  Masks masks;
  const bool causal = node.integer("is_causal", 0) != 0;
  const std::int64_t left = node.integer("left_window_size", -1), right = node.integer("right_window_size", -1);
  if (node.has(3)) {
    const Tensor mask = given_mask(node, keys);
    (mask.dtype() == boolean ? masks.allowed : masks.added) = mask;
  }
  masks.causal = causal && past == 0 && !node.has(3) && !node.has(6) && left < 0 && right < 0;
  if (masks.causal) return masks;
  // Where queries are among the keys.
  Tensor place = positions(queries, 2);
  const Tensor key = positions(keys, 3);
  if (node.has(6)) {
    const Tensor used = node.in(6).cast(i64).reshape({-1, 1, 1, 1});
    place = place + (used - queries);
    require_both(masks.allowed, key < used);
  } else {
    const TraceWith nobody(nullptr);
    place = place + past;
  }
  if (causal) require_both(masks.allowed, key <= place);
  if (left >= 0) require_both(masks.allowed, key >= place - left);
  if (right >= 0) require_both(masks.allowed, key <= place + right);
  return masks;
}

// One mask for both, of floats when there are any.
Tensor joined(const Masks& masks, DType dtype) {
  if (masks.added.is_empty_handle()) return masks.allowed;
  Tensor added = masks.added.cast(dtype);
  if (masks.allowed.is_empty_handle()) return added;
  return where(masks.allowed, added, full(Shape::scalar(), kNever, dtype));
}

struct Heads {
  Tensor q, k, v;  // [batch, heads, places, columns]
  double scale = 0;
};

// Scores are held and looked at on the way: softcap, or the fourth result.
Tensor attend_openly(OnnxNode& node, const Heads& heads, const Masks& masks) {
  const DType dtype = heads.q.dtype();
  const double root = std::sqrt(heads.scale), softcap = node.real("softcap", 0);
  const std::int64_t mode = node.integer("qk_matmul_output_mode", 0);
  Tensor scores = matmul(heads.q * root, heads.k * root, {.transpose_b = true});
  if (mode == 0) node.give(3, scores.cast(node.dtype(0)));
  if (softcap > 0) scores = tanh(scores / softcap) * softcap;
  if (mode == 1) node.give(3, scores.cast(node.dtype(0)));
  Masks both = masks;
  if (both.causal) both.allowed = positions(heads.k.shape()[2], 3) <= positions(heads.q.shape()[2], 2);
  Tensor mask = joined(both, dtype);
  if (!mask.is_empty_handle() && mask.dtype() == boolean)
    mask = where(mask, full(Shape::scalar(), 0, dtype), full(Shape::scalar(), kNever, dtype));
  Tensor weights;
  if (mask.is_empty_handle()) {
    if (mode == 2) node.give(3, scores.cast(node.dtype(0)));
    weights = softmax(scores);
  } else {
    scores = scores + mask;
    if (mode == 2) node.give(3, scores.cast(node.dtype(0)));
    const Tensor blind = equal(max(mask, {-1}, {.keep_dims = true}), full(Shape::scalar(), kNever, dtype));
    const Tensor nothing = full(Shape::scalar(), 0, dtype);
    weights = where(blind, nothing, softmax(where(blind, nothing, scores)));
  }
  if (mode == 3) node.give(3, weights.cast(node.dtype(0)));
  return matmul(weights, heads.v);
}

Tensor attend(OnnxNode& node, const Heads& heads, const Masks& masks) {
  if (node.real("softcap", 0) > 0 || node.wants(3)) return attend_openly(node, heads, masks);
  AttentionOptions options{.causal = masks.causal, .scale = heads.scale};
  if (!masks.causal) options.mask = joined(masks, heads.q.dtype());
  return scaled_dot_product_attention(heads.q, heads.k, heads.v, options);
}

void attention_of(OnnxNode& node) {
  const bool flat = node.rank(0) == 3;
  Heads heads;
  heads.q = flat ? swapped(split_heads(node, node.in(0), "q_num_heads")) : node.in(0);
  heads.k = flat ? swapped(split_heads(node, node.in(1), "kv_num_heads")) : node.in(1);
  heads.v = flat ? swapped(split_heads(node, node.in(2), "kv_num_heads")) : node.in(2);
  if (heads.q.rank() != 4 || heads.k.rank() != 4 || heads.v.rank() != 4)
    node.invalid("queries, keys and values have 3 or 4 axes");
  if (node.has(4) != node.has(5)) node.invalid("past_key and past_value come together");
  const std::int64_t past = node.has(4) ? node.shape(4)[2] : 0;
  if (node.has(4)) {
    heads.k = concat({node.in(4), heads.k}, 2);
    heads.v = concat({node.in(5), heads.v}, 2);
  }
  node.give(1, heads.k);
  node.give(2, heads.v);
  const DType given = heads.q.dtype(), dtype = is_half(given) ? f32 : given;
  const std::int64_t shared = heads.q.shape()[1] / std::max<std::int64_t>(1, heads.k.shape()[1]);
  if (heads.k.shape()[1] * shared != heads.q.shape()[1])
    node.invalid(fmt::format("{} heads of queries for {} of keys", heads.q.shape()[1], heads.k.shape()[1]));
  heads.q = heads.q.cast(dtype);
  heads.k = repeated(heads.k.cast(dtype), shared);
  heads.v = repeated(heads.v.cast(dtype), shared);
  heads.scale = node.real("scale", 1 / std::sqrt(static_cast<double>(heads.q.shape()[3])));
  const Masks masks = masks_of(node, past, heads.q.shape()[2], heads.k.shape()[2]);
  const Tensor y = attend(node, heads, masks).cast(given);
  node.give(0, flat ? swapped(y).reshape({y.shape()[0], y.shape()[2], y.shape()[1] * y.shape()[3]}) : y);
}

// Attention whose scores and weights pass through graphs of the file.
void flex_attention(OnnxNode& node) {
  const Tensor &q = node.in(0), &k = node.in(1), &v = node.in(2);
  if (q.rank() != 4 || k.rank() != 4 || k.shape()[1] == 0 || q.shape()[1] % k.shape()[1] != 0)
    node.invalid(fmt::format("queries {} and keys {}", q.shape().to_string(), k.shape().to_string()));
  const std::optional<DType> wanted = onnx::dtype_of(static_cast<std::int32_t>(node.integer("softmax_precision", 0)));
  const DType dtype = wanted && is_floating(*wanted) ? *wanted : q.dtype() == f64 ? f64 : f32;
  const std::int64_t shared = q.shape()[1] / k.shape()[1];
  const double scale = node.real("scale", 1 / std::sqrt(static_cast<double>(q.shape()[3])));
  const auto changed = [&](const char* name, const Tensor& x) {
    if (!node.find(name)) return x;
    const std::vector<OnnxValue> results = node.run(node.graph(name), {OnnxValue(x)});
    if (results.size() != 1) node.invalid(fmt::format("{} gives {} results", name, results.size()));
    return results[0].plain();
  };
  const Tensor scores = matmul(q.cast(dtype), repeated(k.cast(dtype), shared), {.transpose_b = true}) * scale;
  const Tensor weights = changed("prob_mod", softmax(changed("score_mod", scores)));
  node.give(matmul(weights.cast(v.dtype()), repeated(v, shared)).cast(q.dtype()));
}

// Pairs of columns turned by an angle that grows with the position.
void rotary_embedding(OnnxNode& node) {
  const bool flat = node.rank(0) == 3;
  const Tensor x = flat ? split_heads(node, node.in(0), "num_heads") : swapped(node.in(0));
  const std::int64_t columns = x.shape()[3], given = node.integer("rotary_embedding_dim", 0);
  const std::int64_t turned = given == 0 ? columns : given;
  if (turned < 2 || turned > columns || turned % 2 != 0)
    node.invalid(fmt::format("rotary_embedding_dim {} of {} columns", turned, columns));
  const auto cache = [&](std::size_t input) {
    const Tensor& all = node.in(input);
    const Tensor rows = node.has(3) ? gather(all, node.in(3)) : all;
    return rows.expand_dims(2);
  };
  const Tensor cosine = cache(1), sine = cache(2);
  const bool interleaved = node.integer("interleaved", 0) != 0;
  const Tensor part = turned == columns ? x : slice(x, {0, 0, 0, 0}, {-1, -1, -1, turned});
  const Shape& s = part.shape();
  // Both of a pair beside each other, or half of the columns apart.
  const Tensor pairs =
      interleaved ? part.reshape({s[0], s[1], s[2], turned / 2, 2}) : part.reshape({s[0], s[1], s[2], 2, turned / 2});
  const std::int64_t axis = interleaved ? 4 : 3;
  const std::vector<Tensor> two = unstack(pairs, axis);
  const Tensor first = two[0] * cosine - two[1] * sine, second = two[0] * sine + two[1] * cosine;
  Tensor y = stack({first, second}, axis).reshape(s);
  if (turned < columns) y = concat({y, slice(x, {0, 0, 0, turned}, {-1, -1, -1, -1})}, 3);
  node.give(flat ? y.reshape(node.shape(0)) : swapped(y));
}

// A state of [keys, values] for each head, which each place changes and reads.
void linear_attention(OnnxNode& node) {
  const std::string rule = node.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", corrected = rule == "delta" || rule == "gated_delta";
  if (!gated && !corrected && rule != "linear") node.unsupported(fmt::format("update_rule \"{}\"", rule));
  if (gated != node.has(4) || corrected != node.has(5))
    node.invalid(fmt::format("update_rule \"{}\" with other operands than it has", rule));
  const DType given = node.dtype(0), state_type = node.has(3) ? node.dtype(3) : given;
  const auto heads_of = [&](std::size_t input, const char* name) {
    return swapped(split_heads(node, node.in(input).cast(f32), name));
  };
  const Tensor q = heads_of(0, "q_num_heads"), k = heads_of(1, "kv_num_heads"), v = heads_of(2, "kv_num_heads");
  const std::int64_t batch = q.shape()[0], places = q.shape()[2], heads = k.shape()[1];
  if (q.shape()[1] % heads != 0 || places == 0) node.invalid("heads of queries, or places, that do not fit");
  const Tensor decay = gated ? exp(heads_of(4, "kv_num_heads")) : Tensor();  // [batch, heads, places, keys or 1]
  const Tensor rate = corrected ? swapped(node.in(5).cast(f32).expand_dims(3)) : Tensor();
  const double asked = node.real("scale", 0), scale = asked != 0 ? asked : 1 / std::sqrt(double(q.shape()[3]));
  Tensor state = node.has(3) ? node.in(3).cast(f32) : zeros({batch, heads, k.shape()[3], v.shape()[3]});
  std::vector<Tensor> results;
  const auto at = [](const Tensor& x, std::int64_t place) { return slice(x, {0, 0, place, 0}, {-1, -1, 1, -1}); };
  for (std::int64_t place = 0; place < places; ++place) {
    const Tensor key = at(k, place);
    Tensor value = at(v, place);
    if (gated) state = state * transpose(at(decay, place), {0, 1, 3, 2});
    if (corrected) value = at(rate, place) * (value - matmul(key, state));
    state = state + matmul(key, value, {.transpose_a = true});
    results.push_back(matmul(at(q, place), repeated(state, q.shape()[1] / heads)) * scale);
  }
  const Tensor y = swapped(concat(results, 2));
  node.give(0, y.reshape({batch, places, y.shape()[2] * y.shape()[3]}).cast(given));
  node.give(1, state.cast(state_type));
}

// A convolution of each channel with what came before it, which the next call is given.
void causal_convolution(OnnxNode& node) {
  const Tensor &x = node.in(0), &filter = node.in(1);
  const std::string activation = node.text("activation", "none");
  if (x.rank() != 3 || filter.rank() != 3 || filter.shape()[1] != 1 || filter.shape()[2] < 1)
    node.invalid(fmt::format("x {} and a filter {}", x.shape().to_string(), filter.shape().to_string()));
  if (activation != "none" && activation != "silu" && activation != "swish")
    node.unsupported(fmt::format("the activation \"{}\"", activation));
  const std::int64_t before = filter.shape()[2] - 1;
  const Tensor all = node.has(3) ? concat({node.in(3), x}, 2) : pad(x, {{0, 0}, {0, 0}, {before, 0}});
  const OnnxConvolution options{{1}, {1}, x.shape()[1]};
  const DType dtype = is_half(x.dtype()) ? f32 : x.dtype();
  Tensor y = convolve_places(transpose(all, {0, 2, 1}).cast(dtype), transpose(filter, {2, 1, 0}).cast(dtype), options);
  if (node.has(2)) y = y + node.in(2).cast(dtype);
  if (activation != "none") y = swish(y);
  node.give(0, OnnxValue(y.cast(x.dtype()), channels_last(3)));
  node.give(1, slice(all, {0, 0, all.shape()[2] - before}, {-1, -1, before}));
}

// Rows written into a cache, from a place of each example on.
void tensor_scatter(OnnxNode& node) {
  const Tensor &cache = node.in(0), &update = node.in(1);
  const std::size_t rank = cache.rank(), axis = node.axis("axis", -2, rank);
  const std::string mode = node.text("mode", "linear");
  if (axis == 0 || update.rank() != rank) node.invalid("the axis, or the shape of the update, does not fit");
  if (mode != "linear" && mode != "circular") node.unsupported(fmt::format("the mode \"{}\"", mode));
  const std::int64_t size = cache.shape()[axis], steps = update.shape()[axis];
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= cache.shape()[i];
  for (std::size_t i = axis + 1; i < rank; ++i) inner *= cache.shape()[i];
  const std::int64_t batch = cache.shape()[0], each = batch == 0 ? 0 : outer / batch;
  Tensor begin = node.has(2) ? node.in(2).cast(i64).reshape({batch, 1, 1}) : zeros({batch, 1, 1}, i64);
  Tensor place = begin + arange(steps).cast(i64).reshape({1, 1, steps});
  if (mode == "circular") place = place % size;
  const Tensor row = arange(batch * each).cast(i64).reshape({batch, each, 1}) * size + place;
  const Tensor rows =
      scatter_update(cache.reshape({outer * size, inner}), row.flatten(), update.reshape({outer * steps, inner}));
  node.give(rows.reshape(cache.shape()));
}

constexpr OnnxOperator kAttentionRows[] = {
    {"Attention", 23, kNewest, attention_of},
    {"CausalConvWithState", 27, kNewest, causal_convolution},
    {"FlexAttention", 1, kNewest, flex_attention, 0, 0, "ai.onnx.preview"},
    {"LinearAttention", 27, kNewest, linear_attention},
    {"RotaryEmbedding", 23, kNewest, rotary_embedding},
    {"TensorScatter", 24, kNewest, tensor_scatter},
};

}  // namespace

OnnxOperators onnx_attention_operators() { return kAttentionRows; }

}  // namespace plimsoll::internal
