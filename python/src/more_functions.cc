// Functions of tensors, second part: reductions, movement, products, what networks are made of.
#include <fmt/format.h>

#include "common.h"

namespace binding {
namespace {

pl::Tensor in_dtype(const pl::Tensor& x, pl::DType dtype) { return x.dtype() == dtype ? x : x.cast(dtype); }
pl::Tensor floats(const pl::Tensor& x) { return pl::is_floating(x.dtype()) ? x : x.cast(kDefaultFloat); }
pl::Tensor truths(const pl::Tensor& x) { return x.dtype() == pl::boolean ? x : x != 0; }
pl::Tensor wide(const pl::Tensor& x) { return pl::is_floating(x.dtype()) ? x : in_dtype(x, kDefaultInteger); }
pl::Tensor numbers(const pl::Tensor& x) { return x.dtype() == pl::boolean ? x.cast(kDefaultInteger) : x; }

struct BoundFunction {
  pl::Tensor (*of_tensors)(const pl::Tensor&, const pl::Tensor&);
  pl::Tensor (*with_number)(const pl::Tensor&, const pl::Number&);
};
const BoundFunction kAtLeast = {&pl::maximum, &pl::maximum}, kAtMost = {&pl::minimum, &pl::minimum};

using Prepare = pl::Tensor (*)(const pl::Tensor&);
using Reduce = pl::Tensor (*)(const pl::Tensor&, const pl::Axes&, pl::ReduceOptions);
struct Reduction {
  const char* name;
  Prepare prepare;
  Reduce reduce;
};
const Reduction kReductions[] = {
    {"sum", wide, &pl::sum},
    {"prod", wide, &pl::prod},
    {"mean", floats, &pl::mean},
    {"max", [](const pl::Tensor& x) { return x; }, &pl::max},
    {"min", [](const pl::Tensor& x) { return x; }, &pl::min},
    {"any", truths, &pl::any},
    {"all", truths, &pl::all},
    {"logsumexp", floats, &pl::log_sum_exp},
};

// All axes when none is given; none at all when an empty tuple is.
pl::Tensor reduced(const Reduction& r, nb::handle object, nb::handle axis, bool keepdims, nb::handle dtype) {
  const pl::Tensor x = to_tensor(object);
  const auto wanted = optional_dtype(dtype);
  const bool nothing = !axis.is_none() && !PyIndex_Check(axis.ptr()) && nb::len(axis) == 0;
  const pl::Axes axes = nothing ? pl::Axes() : to_axes(axis);
  return computed(x, [&] {
    const pl::Tensor prepared = wanted ? in_dtype(x, *wanted) : r.prepare(x);
    const bool has_axes = x.rank() > 0 && !nothing;
    return has_axes ? r.reduce(prepared, axes, {.keep_dims = keepdims}) : prepared;
  });
}

pl::Tensor deviation_squared(nb::handle object, nb::handle axis, double correction, bool keepdims) {
  const pl::Tensor x = to_tensor(object);
  const bool nothing = !axis.is_none() && !PyIndex_Check(axis.ptr()) && nb::len(axis) == 0;
  const pl::Axes axes = nothing ? pl::Axes() : to_axes(axis);
  return computed(x, [&] {
    if (nothing) return floats(x) - floats(x);
    const pl::Tensor variance = pl::variance(floats(x), axes, {.keep_dims = keepdims});
    if (correction == 0) return variance;
    const double count = static_cast<double>(x.size()) / static_cast<double>(std::max<std::size_t>(variance.size(), 1));
    return variance * (count / std::max(count - correction, 0.0));
  });
}

void bind_reductions(Module& m) {
  for (const Reduction& r : kReductions)
    m.def(
        r.name,
        [&r](nb::handle x, nb::handle axis, bool keepdims, nb::handle dtype) {
          return wrap_tensor(reduced(r, x, axis, keepdims, dtype));
        },
        nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("keepdims") = false,
        nb::arg("dtype").none() = nb::none(),
        nb::sig((std::string("def ") + r.name +
                 "(x: TensorLike, axis: int | typing.Sequence[int] | None = None, keepdims: bool = False, dtype: "
                 "DTypeLike | None = None) -> Tensor")
                    .c_str()));
  m.def(
      "var",
      [](nb::handle x, nb::handle axis, double correction, bool keepdims) {
        return wrap_tensor(deviation_squared(x, axis, correction, keepdims));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("correction") = 0.0, nb::arg("keepdims") = false,
      nb::sig("def var(x: TensorLike, axis: int | typing.Sequence[int] | None = None, correction: float = 0.0, "
              "keepdims: bool = False) -> Tensor"));
  m.def(
      "std",
      [](nb::handle x, nb::handle axis, double correction, bool keepdims) {
        return wrap_tensor(pl::sqrt(deviation_squared(x, axis, correction, keepdims)));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("correction") = 0.0, nb::arg("keepdims") = false,
      nb::sig("def std(x: TensorLike, axis: int | typing.Sequence[int] | None = None, correction: float = 0.0, "
              "keepdims: bool = False) -> Tensor"));
  for (const bool largest : {true, false})
    m.def(
        largest ? "argmax" : "argmin",
        [largest](nb::handle object, nb::handle axis, bool keepdims) {
          const pl::Tensor x = to_tensor(object);
          const std::optional<std::int64_t> along =
              axis.is_none() ? std::nullopt : std::optional(nb::cast<std::int64_t>(axis));
          return wrap_tensor(computed(x, [&] {
            const pl::Tensor flat = along ? x : x.reshape({-1});
            const pl::Tensor place = largest ? flat.argmax(along.value_or(0)) : flat.argmin(along.value_or(0));
            if (!keepdims) return place;
            if (along) return place.expand_dims(*along < 0 ? *along + static_cast<std::int64_t>(x.rank()) : *along);
            return place.reshape(pl::Shape(std::vector<std::int64_t>(x.rank(), 1)));
          }));
        },
        nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("keepdims") = false,
        nb::sig(largest ? "def argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor"
                        : "def argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor"));
}

void bind_orders(Module& m) {
  m.def(
      "norm",
      [](nb::handle object, nb::handle order, nb::handle axis, bool keepdims) {
        const pl::Tensor x = to_tensor(object);
        const pl::Axes axes = to_axes(axis);
        return wrap_tensor(
            computed(x, [&] { return pl::norm(floats(x), nb::cast<double>(order), axes, {.keep_dims = keepdims}); }));
      },
      nb::arg("x"), nb::arg("ord") = 2.0, nb::arg("axis").none() = nb::none(), nb::arg("keepdims") = false,
      nb::sig("def norm(x: TensorLike, ord: float = 2.0, axis: int | typing.Sequence[int] | None = None, keepdims: "
              "bool = False) -> Tensor"));
  for (const bool places : {false, true})
    m.def(
        places ? "argsort" : "sort",
        [places](nb::handle object, std::int64_t axis, bool descending) {
          const pl::Tensor x = to_tensor(object);
          return wrap_tensor(computed(
              x, [&] { return places ? pl::argsort(x, axis, {descending}) : pl::sort(x, axis, {descending}); }));
        },
        nb::arg("x"), nb::arg("axis") = -1, nb::arg("descending") = false,
        nb::sig(places ? "def argsort(x: TensorLike, axis: int = -1, descending: bool = False) -> Tensor"
                       : "def sort(x: TensorLike, axis: int = -1, descending: bool = False) -> Tensor"));
  m.def(
      "top_k",
      [](nb::handle object, std::int64_t k) {
        const pl::Tensor x = to_tensor(object);
        const pl::TopK found = unlocked([&] { return pl::top_k(x, k); });
        return nb::make_tuple(wrap_tensor(found.values), wrap_tensor(found.indices));
      },
      nb::arg("x"), nb::arg("k") = 1, nb::sig("def top_k(x: TensorLike, k: int = 1) -> tuple[Tensor, Tensor]"));
  for (const bool logarithm : {false, true})
    m.def(
        logarithm ? "log_softmax" : "softmax",
        [logarithm](nb::handle object, std::int64_t axis) {
          const pl::Tensor x = to_tensor(object);
          return wrap_tensor(
              computed(x, [&] { return logarithm ? pl::log_softmax(floats(x), axis) : pl::softmax(floats(x), axis); }));
        },
        nb::arg("x"), nb::arg("axis") = -1,
        nb::sig(logarithm ? "def log_softmax(x: TensorLike, axis: int = -1) -> Tensor"
                          : "def softmax(x: TensorLike, axis: int = -1) -> Tensor"));
}

std::vector<pl::Tensor> of_one_dtype(nb::handle list) {
  std::vector<pl::Tensor> all = to_tensors(list);
  std::optional<pl::DType> dtype;
  for (const pl::Tensor& each : all) dtype = dtype ? promoted(*dtype, each.dtype()) : each.dtype();
  for (pl::Tensor& each : all) each = in_dtype(each, *dtype);
  return all;
}

void bind_joining(Module& m) {
  m.def(
      "concat",
      [](nb::handle tensors, std::optional<std::int64_t> axis) {
        std::vector<pl::Tensor> all = of_one_dtype(tensors);
        return wrap_tensor(unlocked([&] {
          if (!axis)
            for (pl::Tensor& each : all) each = each.flatten();
          return pl::concat(all, axis.value_or(0));
        }));
      },
      nb::arg("tensors"), nb::arg("axis").none() = 0,
      nb::sig("def concat(tensors: typing.Sequence[TensorLike], axis: int | None = 0) -> Tensor"));
  m.def(
      "stack",
      [](nb::handle tensors, std::int64_t axis) {
        const std::vector<pl::Tensor> all = of_one_dtype(tensors);
        return wrap_tensor(unlocked([&] { return pl::stack(all, axis); }));
      },
      nb::arg("tensors"), nb::arg("axis") = 0,
      nb::sig("def stack(tensors: typing.Sequence[TensorLike], axis: int = 0) -> Tensor"));
  m.def(
      "unstack",
      [](nb::handle object, std::int64_t axis) {
        const pl::Tensor x = to_tensor(object);
        return wrap_tensors(unlocked([&] { return pl::unstack(x, axis); }));
      },
      nb::arg("x"), nb::arg("axis") = 0, nb::sig("def unstack(x: TensorLike, axis: int = 0) -> list[Tensor]"));
  m.def(
      "split",
      [](nb::handle object, nb::handle parts, std::int64_t axis) {
        const pl::Tensor x = to_tensor(object);
        const std::vector<std::int64_t> sizes = to_integers(parts);
        const bool equal = PyIndex_Check(parts.ptr());
        return wrap_tensors(unlocked([&] { return equal ? pl::split(x, sizes[0], axis) : pl::split(x, sizes, axis); }));
      },
      nb::arg("x"), nb::arg("parts"), nb::arg("axis") = 0,
      nb::sig("def split(x: TensorLike, parts: int | typing.Sequence[int], axis: int = 0) -> list[Tensor]"));
}

void bind_movement(Module& m) {
  m.def(
      "reshape",
      [](nb::handle object, nb::handle shape, std::optional<bool> copy) {
        const pl::Tensor x = to_tensor(object);
        const pl::Shape sizes = to_shape(shape).or_scalar();
        return wrap_tensor(computed(x, [&] { return copy == true ? x.reshape(sizes).clone() : x.reshape(sizes); }));
      },
      nb::arg("x"), nb::arg("shape"), nb::arg("copy").none() = nb::none(),
      nb::sig("def reshape(x: TensorLike, shape: ShapeLike, copy: bool | None = None) -> Tensor"));
  m.def(
      "transpose",
      [](nb::handle object, nb::handle axes) {
        const pl::Tensor x = to_tensor(object);
        const std::vector<std::int64_t> permutation = axes.is_none() ? std::vector<std::int64_t>{} : to_integers(axes);
        return wrap_tensor(computed(x, [&] { return x.transpose(permutation); }));
      },
      nb::arg("x"), nb::arg("axes").none() = nb::none(),
      nb::sig("def transpose(x: TensorLike, axes: typing.Sequence[int] | None = None) -> Tensor"));
  m.def(
      "squeeze",
      [](nb::handle object, nb::handle axis) {
        const pl::Tensor x = to_tensor(object);
        const pl::Axes axes = to_axes(axis);
        return wrap_tensor(computed(x, [&] { return x.squeeze(axes); }));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(),
      nb::sig("def squeeze(x: TensorLike, axis: int | typing.Sequence[int] | None = None) -> Tensor"));
  m.def(
      "expand_dims",
      [](nb::handle object, std::int64_t axis) {
        const pl::Tensor x = to_tensor(object);
        return wrap_tensor(computed(x, [&] { return x.expand_dims(axis); }));
      },
      nb::arg("x"), nb::arg("axis") = 0, nb::sig("def expand_dims(x: TensorLike, axis: int = 0) -> Tensor"));
  m.def(
      "flip",
      [](nb::handle object, nb::handle axis) {
        const pl::Tensor x = to_tensor(object);
        const pl::Axes axes = to_axes(axis);
        return wrap_tensor(unlocked([&] { return pl::reverse(x, axes); }));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(),
      nb::sig("def flip(x: TensorLike, axis: int | typing.Sequence[int] | None = None) -> Tensor"));
  m.def(
      "roll",
      [](nb::handle object, std::int64_t shift, std::int64_t axis) {
        const pl::Tensor x = to_tensor(object);
        return wrap_tensor(unlocked([&] { return pl::roll(x, shift, axis); }));
      },
      nb::arg("x"), nb::arg("shift"), nb::arg("axis") = 0,
      nb::sig("def roll(x: TensorLike, shift: int, axis: int = 0) -> Tensor"));
}

void bind_repeating(Module& m) {
  m.def(
      "pad",
      [](nb::handle object, const std::vector<std::vector<std::int64_t>>& paddings, double value,
         const std::string& mode) {
        const pl::Tensor x = to_tensor(object);
        pl::Paddings sides;
        for (const auto& each : paddings) sides.emplace_back(each.at(0), each.at(1));
        return wrap_tensor(
            unlocked([&] { return mode == "constant" ? pl::pad(x, sides, value) : pl::mirror_pad(x, sides, mode); }));
      },
      nb::arg("x"), nb::arg("paddings"), nb::arg("value") = 0.0, nb::arg("mode") = "constant",
      nb::sig("def pad(x: TensorLike, paddings: typing.Sequence[tuple[int, int]], value: float = 0.0, mode: str = "
              "'constant') -> Tensor"));
  m.def(
      "tile",
      [](nb::handle object, nb::handle multiples) {
        const pl::Tensor x = to_tensor(object);
        std::vector<std::int64_t> counts = to_integers(multiples);
        return wrap_tensor(unlocked([&] {
          pl::Tensor y = x;
          while (y.rank() < counts.size()) y = y.expand_dims(0);
          while (counts.size() < y.rank()) counts.insert(counts.begin(), 1);
          return pl::tile(y, counts);
        }));
      },
      nb::arg("x"), nb::arg("multiples"),
      nb::sig("def tile(x: TensorLike, multiples: int | typing.Sequence[int]) -> Tensor"));
  m.def(
      "repeat",
      [](nb::handle object, std::int64_t repeats, std::optional<std::int64_t> axis) {
        const pl::Tensor x = to_tensor(object);
        return wrap_tensor(unlocked([&] { return pl::repeat(axis ? x : x.flatten(), repeats, axis.value_or(0)); }));
      },
      nb::arg("x"), nb::arg("repeats"), nb::arg("axis").none() = nb::none(),
      nb::sig("def repeat(x: TensorLike, repeats: int, axis: int | None = None) -> Tensor"));
}

void bind_choosing(Module& m) {
  for (const char* name : {"gather", "take"})
    m.def(
        name,
        [](nb::handle object, nb::handle indices, std::int64_t axis) {
          const pl::Tensor x = to_tensor(object), places = to_tensor(indices);
          const std::int64_t along = axis < 0 ? axis + static_cast<std::int64_t>(x.rank()) : axis;
          const std::int64_t size = along >= 0 && along < static_cast<std::int64_t>(x.rank())
                                        ? x.shape()[static_cast<std::size_t>(along)]
                                        : 0;
          return wrap_tensor(unlocked([&] {
            const pl::Tensor from_zero = size > 0 && !pl::is_symbolic(places)
                                             ? pl::where(wide(places) < 0, wide(places) + size, wide(places))
                                             : wide(places);
            return pl::gather(x, from_zero, axis);
          }));
        },
        nb::arg("x"), nb::arg("indices"), nb::arg("axis") = 0,
        nb::sig(
            (std::string("def ") + name + "(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor").c_str()));
  m.def(
      "take_along_axis",
      [](nb::handle object, nb::handle indices, std::int64_t axis) {
        const pl::Tensor x = to_tensor(object), places = to_tensor(indices);
        return wrap_tensor(unlocked([&] { return pl::take_along_axis(x, wide(places), axis); }));
      },
      nb::arg("x"), nb::arg("indices"), nb::arg("axis") = -1,
      nb::sig("def take_along_axis(x: TensorLike, indices: TensorLike, axis: int = -1) -> Tensor"));
  m.def(
      "boolean_mask",
      [](nb::handle object, nb::handle mask) {
        const pl::Tensor x = to_tensor(object), where = to_tensor(mask);
        return wrap_tensor(unlocked([&] { return pl::boolean_mask(x, where); }));
      },
      nb::arg("x"), nb::arg("mask"), nb::sig("def boolean_mask(x: TensorLike, mask: TensorLike) -> Tensor"));
  m.def(
      "where_true",
      [](nb::handle mask) {
        const pl::Tensor x = to_tensor(mask);
        return wrap_tensor(unlocked([&] { return pl::where_true(truths(x)); }));
      },
      nb::arg("mask"), nb::sig("def where_true(mask: TensorLike) -> Tensor"));
}

void bind_scattering(Module& m) {
  m.def(
      "one_hot",
      [](nb::handle indices, std::int64_t depth, nb::handle dtype, double on, double off) {
        const pl::Tensor x = to_tensor(indices);
        const pl::DType type = optional_dtype(dtype).value_or(kDefaultFloat);
        return wrap_tensor(unlocked([&] { return pl::one_hot(wide(x), depth, type, on, off); }));
      },
      nb::arg("indices"), nb::arg("depth"), nb::arg("dtype").none() = nb::none(), nb::arg("on") = 1.0,
      nb::arg("off") = 0.0,
      nb::sig("def one_hot(indices: TensorLike, depth: int, dtype: DTypeLike | None = None, on: float = 1.0, off: "
              "float = 0.0) -> Tensor"));
  m.def(
      "scatter",
      [](nb::handle indices, nb::handle updates, nb::handle shape) {
        const pl::Tensor places = to_tensor(indices), values = to_tensor(updates);
        const pl::Shape sizes = to_shape(shape);
        return wrap_tensor(unlocked([&] { return pl::scatter(wide(places), values, sizes); }));
      },
      nb::arg("indices"), nb::arg("updates"), nb::arg("shape"),
      nb::sig("def scatter(indices: TensorLike, updates: TensorLike, shape: ShapeLike) -> Tensor"));
  for (const bool adds : {true, false})
    m.def(
        adds ? "scatter_add" : "scatter_update",
        [adds](nb::handle object, nb::handle indices, nb::handle updates) {
          const pl::Tensor x = to_tensor(object), places = to_tensor(indices), values = to_tensor(updates, x.dtype());
          return wrap_tensor(unlocked([&] {
            return adds ? pl::scatter_add(x, wide(places), values) : pl::scatter_update(x, wide(places), values);
          }));
        },
        nb::arg("x"), nb::arg("indices"), nb::arg("updates"),
        nb::sig(adds ? "def scatter_add(x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor"
                     : "def scatter_update(x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor"));
  m.def(
      "clip",
      [](nb::handle object, nb::handle low, nb::handle high) {
        pl::Tensor x = to_tensor(object);
        const auto bound = [&](nb::handle value, const BoundFunction& f) {
          if (value.is_none()) return;
          if (auto number = to_number(value)) {
            x = computed(x, [&] { return f.with_number(!number->is_integer() ? floats(x) : x, *number); });
          } else {
            const pl::Tensor other = to_tensor(value, x.dtype());
            x = computed(x, [&] { return f.of_tensors(x, other); });
          }
        };
        bound(low, kAtLeast);
        bound(high, kAtMost);
        return wrap_tensor(x);
      },
      nb::arg("x"), nb::arg("min").none() = nb::none(), nb::arg("max").none() = nb::none(),
      nb::sig("def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor"));
}

void bind_products(Module& m) {
  m.def(
      "matmul",
      [](nb::handle left, nb::handle right, bool transpose_a, bool transpose_b) {
        const pl::Tensor a = to_tensor(left), b = to_tensor(right);
        const pl::DType dtype = *promoted(a.dtype(), b.dtype());
        return wrap_tensor(computed(a, [&] {
          return pl::matmul(in_dtype(a, dtype), in_dtype(b, dtype), {transpose_a, transpose_b});
        }));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("transpose_a") = false, nb::arg("transpose_b") = false,
      nb::sig(
          "def matmul(a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False) -> Tensor"));
  for (const bool outer : {false, true})
    m.def(
        outer ? "outer" : "dot",
        [outer](nb::handle left, nb::handle right) {
          const pl::Tensor a = to_tensor(left), b = to_tensor(right);
          const pl::DType dtype = *promoted(a.dtype(), b.dtype());
          return wrap_tensor(computed(a, [&] {
            return outer ? pl::outer(in_dtype(a, dtype), in_dtype(b, dtype))
                         : pl::dot(in_dtype(a, dtype), in_dtype(b, dtype));
          }));
        },
        nb::arg("a"), nb::arg("b"),
        nb::sig(outer ? "def outer(a: TensorLike, b: TensorLike) -> Tensor"
                      : "def dot(a: TensorLike, b: TensorLike) -> Tensor"));
  m.def(
      "einsum",
      [](const std::string& equation, const nb::args& operands) {
        const std::vector<pl::Tensor> all = of_one_dtype(
            operands.size() == 1 && !tensor_of(operands[0]) ? nb::borrow(operands[0]) : nb::borrow(operands));
        return wrap_tensor(unlocked([&] { return pl::einsum(equation, all); }));
      },
      nb::sig("def einsum(equation: str, *operands: TensorLike) -> Tensor"));
  m.def(
      "global_norm",
      [](nb::handle list) {
        const std::vector<pl::Tensor> all = to_tensors(list);
        return wrap_tensor(unlocked([&] { return pl::global_norm(all); }));
      },
      nb::arg("tensors"), nb::sig("def global_norm(tensors: typing.Sequence[TensorLike]) -> Tensor"));
  m.def(
      "clip_by_global_norm",
      [](nb::handle list, double limit) {
        const std::vector<pl::Tensor> all = to_tensors(list);
        const pl::ClippedTensors clipped = unlocked([&] { return pl::clip_by_global_norm(all, limit); });
        return nb::make_tuple(wrap_tensors(clipped.tensors), wrap_tensor(clipped.norm));
      },
      nb::arg("tensors"), nb::arg("limit"),
      nb::sig("def clip_by_global_norm(tensors: typing.Sequence[TensorLike], limit: float) -> tuple[list[Tensor], "
              "Tensor]"));
  m.def(
      "confusion_matrix",
      [](nb::handle labels, nb::handle predictions, std::int64_t num_classes) {
        const pl::Tensor a = to_tensor(labels), b = to_tensor(predictions);
        return wrap_tensor(unlocked([&] { return pl::confusion_matrix(a, b, num_classes); }));
      },
      nb::arg("labels"), nb::arg("predictions"), nb::arg("num_classes"),
      nb::sig("def confusion_matrix(labels: TensorLike, predictions: TensorLike, num_classes: int) -> Tensor"));
}

pl::SpatialSize to_spatial(nb::handle size) {
  const std::vector<std::int64_t> sizes = to_integers(size);
  return sizes.size() == 1 ? pl::SpatialSize(sizes[0]) : pl::SpatialSize{sizes.at(0), sizes.at(1)};
}

void bind_networks(Module& m) {
  m.def(
      "conv2d",
      [](nb::handle object, nb::handle kernel, nb::handle strides, const std::string& padding, nb::handle dilations,
         std::int64_t groups) {
        const pl::Tensor x = to_tensor(object), filter = to_tensor(kernel);
        const pl::ConvOptions options{
            .strides = to_spatial(strides), .padding = padding, .dilations = to_spatial(dilations), .groups = groups};
        return wrap_tensor(unlocked([&] { return pl::conv2d(x, filter, options); }));
      },
      nb::arg("x"), nb::arg("filter"), nb::arg("strides") = 1, nb::arg("padding") = "valid", nb::arg("dilations") = 1,
      nb::arg("groups") = 1,
      nb::sig("def conv2d(x: TensorLike, filter: TensorLike, strides: int | tuple[int, int] = 1, padding: str = "
              "'valid', dilations: int | tuple[int, int] = 1, groups: int = 1) -> Tensor"));
  for (const bool largest : {true, false})
    m.def(
        largest ? "max_pool2d" : "avg_pool2d",
        [largest](nb::handle object, nb::handle size, nb::handle strides, const std::string& padding) {
          const pl::Tensor x = to_tensor(object);
          const pl::PoolOptions options{.strides = to_spatial(strides), .padding = padding};
          const pl::SpatialSize window = to_spatial(size);
          return wrap_tensor(unlocked(
              [&] { return largest ? pl::max_pool2d(x, window, options) : pl::avg_pool2d(x, window, options); }));
        },
        nb::arg("x"), nb::arg("size") = 2, nb::arg("strides") = 0, nb::arg("padding") = "valid",
        nb::sig(largest ? "def max_pool2d(x: TensorLike, size: int | tuple[int, int] = 2, strides: int | tuple[int, "
                          "int] = 0, padding: str = 'valid') -> Tensor"
                        : "def avg_pool2d(x: TensorLike, size: int | tuple[int, int] = 2, strides: int | tuple[int, "
                          "int] = 0, padding: str = 'valid') -> Tensor"));
  struct CrossEntropy {
    const char* name;
    pl::Tensor (*function)(const pl::Tensor&, const pl::Tensor&);
  };
  static const CrossEntropy kEntropies[] = {
      {"softmax_cross_entropy_with_logits", &pl::softmax_cross_entropy_with_logits},
      {"sparse_softmax_cross_entropy_with_logits", &pl::sparse_softmax_cross_entropy_with_logits},
      {"sigmoid_cross_entropy_with_logits", &pl::sigmoid_cross_entropy_with_logits}};
  for (const CrossEntropy& f : kEntropies)
    m.def(
        f.name,
        [&f](nb::handle labels, nb::handle logits) {
          const pl::Tensor a = to_tensor(labels), b = to_tensor(logits);
          return wrap_tensor(unlocked([&] { return f.function(a, b); }));
        },
        nb::arg("labels"), nb::arg("logits"),
        nb::sig((std::string("def ") + f.name + "(labels: TensorLike, logits: TensorLike) -> Tensor").c_str()));
}

}  // namespace

void bind_more_functions(Module& m) {
  bind_reductions(m);
  bind_orders(m);
  bind_joining(m);
  bind_movement(m);
  bind_repeating(m);
  bind_choosing(m);
  bind_scattering(m);
  bind_products(m);
  bind_networks(m);
}

}  // namespace binding
