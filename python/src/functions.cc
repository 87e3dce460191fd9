// Functions of tensors, first part: elementwise ones, and what makes tensors.
#include <fmt/format.h>

#include "common.h"
#include "plimsoll/tensor/make_tensor.h"

namespace binding {
namespace {

using Unary = pl::Tensor (*)(pl::Tensor);
struct UnaryFunction {
  const char* name;
  Unary function;
  bool of_floats;  // Integers become floats first.
};

// What each row of the library's list is called in Python.
#define PLIMSOLL_UNARY_OP(name, reads, gradient) {#name, static_cast<Unary>(&pl::name), true},
const UnaryFunction kUnary[] = {
#include "plimsoll/ops/elementwise_ops.inc"
};

constexpr std::string_view kOfNumbers[] = {"negative", "abs", "sign", "square", "relu", "relu6", "logical_not"};
constexpr std::string_view kKeepsIntegers[] = {"floor", "ceil", "round"};

using OfTensors = pl::Tensor (*)(const pl::Tensor&, const pl::Tensor&);
using WithNumber = pl::Tensor (*)(const pl::Tensor&, const pl::Number&);
using NumberWith = pl::Tensor (*)(const pl::Number&, const pl::Tensor&);
struct BinaryFunction {
  const char* name;
  OfTensors of_tensors;
  WithNumber with_number;
  NumberWith number_with;
};
#define PLIMSOLL_BINARY_OP(name, reads_a, gradient_a, reads_b, gradient_b) \
  {#name, static_cast<OfTensors>(&pl::name), static_cast<WithNumber>(&pl::name), static_cast<NumberWith>(&pl::name)},
const BinaryFunction kBinary[] = {
#include "plimsoll/ops/elementwise_ops.inc"
};

template <std::size_t N>
bool is_one_of(const std::string_view (&names)[N], std::string_view name) {
  for (const std::string_view each : names)
    if (each == name) return true;
  return false;
}

pl::Tensor in_dtype(const pl::Tensor& x, pl::DType dtype) { return x.dtype() == dtype ? x : x.cast(dtype); }

pl::Tensor apply_unary(const UnaryFunction& f, nb::handle object) {
  const pl::Tensor x = to_tensor(object);
  const bool is_float = pl::is_floating(x.dtype());
  if (!is_float && is_one_of(kKeepsIntegers, f.name)) return x;
  const bool converts = !is_float && !is_one_of(kOfNumbers, f.name);
  return computed(x, [&] { return f.function(converts ? x.cast(kDefaultFloat) : x); });
}

bool divides(std::string_view name) {
  return name == "divide" || name == "atan2" || name == "divide_no_nan" || name == "xdivy" || name == "xlogy";
}

// The dtype in which the two meet; a number takes the tensor's kind unless its own has more.
pl::DType common(const BinaryFunction& f, const pl::Tensor* a, const pl::Tensor* b, const pl::Number* number) {
  const auto kind = [](pl::DType d) { return pl::is_floating(d) ? 2 : pl::is_integer(d) ? 1 : 0; };
  pl::DType dtype = a && b ? *promoted(a->dtype(), b->dtype()) : (a ? a : b)->dtype();
  if (number) {
    const int number_kind = !number->is_integer() ? 2 : number->dtype() == pl::boolean ? 0 : 1;
    if (number_kind > kind(dtype)) dtype = number_kind == 2 ? kDefaultFloat : kDefaultInteger;
  }
  return divides(f.name) && !pl::is_floating(dtype) ? kDefaultFloat : dtype;
}

pl::Tensor apply_binary(const BinaryFunction& f, nb::handle left, nb::handle right) {
  std::optional<pl::Number> a = to_number(left), b = to_number(right);
  if (a && b) a.reset();  // Two numbers: one of them becomes a tensor.
  if (!a && !b) {
    const pl::Tensor x = to_tensor(left), y = to_tensor(right);
    const pl::DType dtype = common(f, &x, &y, nullptr);
    const bool is_large = x.shape().is_known() && y.shape().is_known() && x.size() >= y.size();
    return computed(is_large ? x : y, [&] { return f.of_tensors(in_dtype(x, dtype), in_dtype(y, dtype)); });
  }
  const pl::Tensor x = to_tensor(a ? right : left);
  const pl::Number number = a ? *a : *b;
  const pl::DType dtype = common(f, &x, nullptr, &number);
  return computed(x, [&] {
    const pl::Tensor y = in_dtype(x, dtype);
    return a ? f.number_with(number, y) : f.with_number(y, number);
  });
}

// A number of the dtype: those of NumPy are arrays without axes.
pl::Number number_of(nb::handle object) {
  if (auto number = to_number(object)) return *number;
  const pl::Tensor x = to_tensor(object);
  if (pl::is_floating(x.dtype())) return pl::Number(x.item<double>());
  return x.dtype() == pl::boolean ? pl::Number(x.item<bool>()) : pl::Number(x.item<std::int64_t>());
}

template <class F>
nb::object made(nb::handle device, F&& f) {
  std::optional<pl::DeviceScope> scope;
  if (!device.is_none()) scope.emplace(nb::cast<std::string>(nb::str(device)));
  return wrap_tensor(unlocked(std::forward<F>(f)));
}

void bind_elementwise(Module& m) {
  for (const UnaryFunction& f : kUnary)
    m.def(
        f.name, [&f](nb::handle x) { return wrap_tensor(apply_unary(f, x)); }, nb::arg("x"),
        nb::sig((std::string("def ") + f.name + "(x: TensorLike, /) -> Tensor").c_str()));
  for (const BinaryFunction& f : kBinary)
    m.def(
        f.name, [&f](nb::handle a, nb::handle b) { return wrap_tensor(apply_binary(f, a, b)); }, nb::arg("a"),
        nb::arg("b"), nb::sig((std::string("def ") + f.name + "(a: TensorLike, b: TensorLike, /) -> Tensor").c_str()));
  m.def(
      "where",
      [](nb::handle condition, nb::handle x, nb::handle y) {
        const pl::Tensor mask = to_tensor(condition);
        pl::Tensor a = to_tensor(x), b = to_tensor(y);
        pl::DType dtype = *promoted(a.dtype(), b.dtype());
        const auto weak = [](nb::handle h) { return to_number(h).has_value(); };
        const bool same_kind = pl::is_floating(a.dtype()) == pl::is_floating(b.dtype());
        if (weak(x) != weak(y) && (same_kind || pl::is_floating((weak(x) ? b : a).dtype())))
          dtype = (weak(x) ? b : a).dtype();
        return wrap_tensor(computed(
            mask, [&] { return pl::where(in_dtype(mask, pl::boolean), in_dtype(a, dtype), in_dtype(b, dtype)); }));
      },
      nb::arg("condition"), nb::arg("x"), nb::arg("y"),
      nb::sig("def where(condition: TensorLike, x: TensorLike, y: TensorLike, /) -> Tensor"));
  m.def(
      "cast",
      [](nb::handle object, nb::handle dtype) {
        const pl::DType wanted = to_dtype(dtype);
        return wrap_tensor(to_tensor(object, wanted));
      },
      nb::arg("x"), nb::arg("dtype"), nb::sig("def cast(x: TensorLike, dtype: DTypeLike) -> Tensor"));
  m.def(
      "leaky_relu",
      [](nb::handle object, double alpha) {
        const pl::Tensor x = to_tensor(object);
        return wrap_tensor(computed(x, [&] { return pl::leaky_relu(x, alpha); }));
      },
      nb::arg("x"), nb::arg("alpha") = 0.2, nb::sig("def leaky_relu(x: TensorLike, alpha: float = 0.2) -> Tensor"));
  m.def(
      "broadcast_to",
      [](nb::handle object, nb::handle shape) {
        const pl::Tensor x = to_tensor(object);
        const pl::Shape sizes = to_shape(shape);
        return wrap_tensor(unlocked([&] { return pl::broadcast_to(x, sizes.or_scalar()); }));
      },
      nb::arg("x"), nb::arg("shape"), nb::sig("def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor"));
}

void bind_fills(Module& m) {
  m.def(
      "zeros",
      [](nb::handle shape, nb::handle dtype, nb::handle device) {
        const pl::Shape sizes = to_sizes(shape, "zeros");
        const pl::DType type = optional_dtype(dtype).value_or(kDefaultFloat);
        return made(device, [&] { return pl::zeros(sizes, type); });
      },
      nb::arg("shape"), nb::arg("dtype").none() = nb::none(), nb::arg("device").none() = nb::none(),
      nb::sig("def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor"));
  m.def(
      "ones",
      [](nb::handle shape, nb::handle dtype, nb::handle device) {
        const pl::Shape sizes = to_sizes(shape, "ones");
        const pl::DType type = optional_dtype(dtype).value_or(kDefaultFloat);
        return made(device, [&] { return pl::ones(sizes, type); });
      },
      nb::arg("shape"), nb::arg("dtype").none() = nb::none(), nb::arg("device").none() = nb::none(),
      nb::sig("def ones(shape: ShapeLike, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor"));
  m.def(
      "full",
      [](nb::handle shape, nb::handle value, nb::handle dtype, nb::handle device) {
        const pl::Shape sizes = to_sizes(shape, "full");
        const pl::Number number = number_of(value);
        const pl::DType natural = !number.is_integer()            ? kDefaultFloat
                                  : number.dtype() == pl::boolean ? pl::boolean
                                                                  : kDefaultInteger;
        const pl::DType type = optional_dtype(dtype).value_or(tensor_of(value) ? tensor_of(value)->dtype() : natural);
        return made(device, [&] { return pl::full(sizes, number, type); });
      },
      nb::arg("shape"), nb::arg("fill_value"), nb::arg("dtype").none() = nb::none(),
      nb::arg("device").none() = nb::none(),
      nb::sig("def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None, device: str | None = "
              "None) -> Tensor"));
}

void bind_ranges(Module& m) {
  m.def(
      "arange",
      [](nb::handle start, nb::handle stop, nb::handle step, nb::handle dtype, nb::handle device) {
        const pl::Number first = number_of(start);
        const bool one = stop.is_none();
        const pl::Number begin = one ? pl::Number(0) : first, end = one ? first : number_of(stop), by = number_of(step);
        const bool integers = begin.is_integer() && end.is_integer() && by.is_integer();
        const pl::DType type = optional_dtype(dtype).value_or(integers ? kDefaultInteger : kDefaultFloat);
        return made(device, [&] {
          if (integers)
            return pl::arange(pl::Number(static_cast<long>(begin.as_double())),
                              pl::Number(static_cast<long>(end.as_double())),
                              pl::Number(static_cast<long>(by.as_double())))
                .cast(type);
          return pl::arange(pl::Number(begin.as_double()), pl::Number(end.as_double()), pl::Number(by.as_double()))
              .cast(type);
        });
      },
      nb::arg("start"), nb::arg("stop").none() = nb::none(), nb::arg("step") = 1, nb::arg("dtype").none() = nb::none(),
      nb::arg("device").none() = nb::none(),
      nb::sig("def arange(start: float, stop: float | None = None, step: float = 1, dtype: DTypeLike | None = None, "
              "device: str | None = None) -> Tensor"));
  m.def(
      "linspace",
      [](double start, double stop, std::int64_t num, nb::handle dtype, nb::handle device, bool endpoint) {
        const pl::DType type = optional_dtype(dtype).value_or(kDefaultFloat);
        const std::int64_t count = endpoint || num == 0 ? num : num + 1;
        return made(device, [&] {
          const pl::Tensor all = pl::linspace(start, stop, count, pl::is_floating(type) ? type : pl::f64);
          const pl::Tensor kept = endpoint || num == 0 ? all : all.slice({0}, {num});
          return kept.cast(type);
        });
      },
      nb::arg("start"), nb::arg("stop"), nb::arg("num"), nb::arg("dtype").none() = nb::none(),
      nb::arg("device").none() = nb::none(), nb::arg("endpoint") = true,
      nb::sig("def linspace(start: float, stop: float, num: int, dtype: DTypeLike | None = None, device: str | None = "
              "None, endpoint: bool = True) -> Tensor"));
  m.def(
      "eye",
      [](std::int64_t rows, std::optional<std::int64_t> columns, nb::handle dtype, nb::handle device) {
        const pl::DType type = optional_dtype(dtype).value_or(kDefaultFloat);
        return made(device, [&] { return pl::eye(rows, columns.value_or(-1), type); });
      },
      nb::arg("n_rows"), nb::arg("n_cols").none() = nb::none(), nb::arg("dtype").none() = nb::none(),
      nb::arg("device").none() = nb::none(),
      nb::sig("def eye(n_rows: int, n_cols: int | None = None, dtype: DTypeLike | None = None, device: str | None = "
              "None) -> Tensor"));
  m.def(
      "constant",
      [](nb::handle value, nb::handle dtype, nb::handle shape, const std::string& name) {
        pl::Tensor x = to_tensor(value, optional_dtype(dtype));
        if (!shape.is_none()) {
          const pl::Shape sizes = to_shape(shape);
          x = x.size() == 1 ? pl::broadcast_to(x.reshape(pl::Shape::scalar()), sizes) : x.reshape(sizes);
        }
        if (!name.empty()) pl::set_name(x, name);
        return wrap_tensor(x);
      },
      nb::arg("value"), nb::arg("dtype").none() = nb::none(), nb::arg("shape").none() = nb::none(),
      nb::arg("name") = "",
      nb::sig("def constant(value: TensorLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, name: "
              "str = '') -> Tensor"));
}

void bind_random(Module& m) {
  m.def(
      "random_uniform",
      [](nb::handle shape, nb::handle low, nb::handle high, std::optional<std::uint64_t> seed, nb::handle dtype) {
        const pl::Shape sizes = to_sizes(shape, "random_uniform");
        const pl::Number from = number_of(low), to = number_of(high);
        const pl::RandomOptions options{.seed = seed, .dtype = optional_dtype(dtype).value_or(kDefaultFloat)};
        return wrap_tensor(unlocked([&] { return pl::random_uniform(sizes, from, to, options); }));
      },
      nb::arg("shape"), nb::arg("low") = 0.0, nb::arg("high") = 1.0, nb::arg("seed").none() = nb::none(),
      nb::arg("dtype").none() = nb::none(),
      nb::sig("def random_uniform(shape: ShapeLike, low: float = 0.0, high: float = 1.0, seed: int | None = None, "
              "dtype: DTypeLike | None = None) -> Tensor"));
  m.def(
      "random_normal",
      [](nb::handle shape, double mean, double stddev, std::optional<std::uint64_t> seed, nb::handle dtype) {
        const pl::Shape sizes = to_sizes(shape, "random_normal");
        const pl::RandomOptions options{.seed = seed, .dtype = optional_dtype(dtype).value_or(kDefaultFloat)};
        return wrap_tensor(unlocked([&] { return pl::random_normal(sizes, mean, stddev, options); }));
      },
      nb::arg("shape"), nb::arg("mean") = 0.0, nb::arg("stddev") = 1.0, nb::arg("seed").none() = nb::none(),
      nb::arg("dtype").none() = nb::none(),
      nb::sig("def random_normal(shape: ShapeLike, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, "
              "dtype: DTypeLike | None = None) -> Tensor"));
  m.def(
      "truncated_normal",
      [](nb::handle shape, double mean, double stddev, std::optional<std::uint64_t> seed, nb::handle dtype) {
        const pl::Shape sizes = to_sizes(shape, "truncated_normal");
        const pl::RandomOptions options{.seed = seed, .dtype = optional_dtype(dtype).value_or(kDefaultFloat)};
        return wrap_tensor(unlocked([&] { return pl::truncated_normal(sizes, mean, stddev, options); }));
      },
      nb::arg("shape"), nb::arg("mean") = 0.0, nb::arg("stddev") = 1.0, nb::arg("seed").none() = nb::none(),
      nb::arg("dtype").none() = nb::none(),
      nb::sig("def truncated_normal(shape: ShapeLike, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, "
              "dtype: DTypeLike | None = None) -> Tensor"));
  m.def(
      "random_bernoulli",
      [](nb::handle shape, double probability, std::optional<std::uint64_t> seed, nb::handle dtype) {
        const pl::Shape sizes = to_sizes(shape, "random_bernoulli");
        const pl::RandomOptions options{.seed = seed, .dtype = optional_dtype(dtype).value_or(kDefaultFloat)};
        return wrap_tensor(unlocked([&] { return pl::random_bernoulli(sizes, probability, options); }));
      },
      nb::arg("shape"), nb::arg("probability") = 0.5, nb::arg("seed").none() = nb::none(),
      nb::arg("dtype").none() = nb::none(),
      nb::sig("def random_bernoulli(shape: ShapeLike, probability: float = 0.5, seed: int | None = None, dtype: "
              "DTypeLike | None = None) -> Tensor"));
}

}  // namespace

void bind_functions(Module& m) {
  bind_elementwise(m);
  bind_fills(m);
  bind_ranges(m);
  bind_random(m);
}

}  // namespace binding
