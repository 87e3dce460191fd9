"""The standard's functions, by those of the library."""
from collections import namedtuple as _namedtuple

import plimsoll as _pl

_asarray = _pl.asarray


def _both(function):
    def of_both(x1, x2, /):
        return function(x1, x2)

    of_both.__name__, of_both.__doc__ = function.__name__, function.__doc__
    return of_both


def _one(function):
    def of_one(x, /):
        return function(x)

    of_one.__name__, of_one.__doc__ = function.__name__, function.__doc__
    return of_one


abs = _one(_pl.abs)
acos, acosh, asin, asinh, atan, atanh = map(_one, (_pl.acos, _pl.acosh, _pl.asin, _pl.asinh, _pl.atan, _pl.atanh))
cos, cosh, sin, sinh, tan, tanh = map(_one, (_pl.cos, _pl.cosh, _pl.sin, _pl.sinh, _pl.tan, _pl.tanh))
exp, expm1, log, log1p, sqrt, square = map(_one, (_pl.exp, _pl.expm1, _pl.log, _pl.log1p, _pl.sqrt, _pl.square))
ceil, floor, round, sign = map(_one, (_pl.ceil, _pl.floor, _pl.round, _pl.sign))
logical_not = _one(_pl.logical_not)
add, subtract, multiply, divide = map(_both, (_pl.add, _pl.subtract, _pl.multiply, _pl.divide))
floor_divide, remainder, pow, atan2 = map(_both, (_pl.floor_divide, _pl.modulo, _pl.power, _pl.atan2))
maximum, minimum = _both(_pl.maximum), _both(_pl.minimum)
equal, not_equal, less, less_equal = map(_both, (_pl.equal, _pl.not_equal, _pl.less, _pl.less_equal))
greater, greater_equal = _both(_pl.greater), _both(_pl.greater_equal)
logical_and, logical_or, logical_xor = map(_both, (_pl.logical_and, _pl.logical_or, _pl.logical_xor))


def negative(x, /):
    """-x."""
    return -x


def positive(x, /):
    """+x: x itself."""
    return +x


def bitwise_and(x1, x2, /):
    """x1 & x2, bit by bit."""
    return x1 & x2


def bitwise_or(x1, x2, /):
    """x1 | x2, bit by bit."""
    return x1 | x2


def bitwise_xor(x1, x2, /):
    """x1 ^ x2, bit by bit."""
    return x1 ^ x2


def bitwise_left_shift(x1, x2, /):
    """x1 << x2."""
    return x1 << x2


def bitwise_right_shift(x1, x2, /):
    """x1 >> x2."""
    return x1 >> x2


def bitwise_invert(x, /):
    """~x, bit by bit."""
    return ~x


def reciprocal(x, /):
    """1 / x."""
    return _pl.reciprocal(x)


def log2(x, /):
    """The logarithm of base 2."""
    return _pl.log(x) * 1.4426950408889634


def log10(x, /):
    """The logarithm of base 10."""
    return _pl.log(x) * 0.4342944819032518


def logaddexp(x1, x2, /):
    """log(exp(x1) + exp(x2)), without overflow."""
    return _pl.logsumexp(_pl.stack(list(_together(x1, x2))), axis=0)


def hypot(x1, x2, /):
    """The root of the sum of both squares, without overflow."""
    a, b = _together(x1, x2)
    a, b = _pl.abs(a), _pl.abs(b)
    large, small = _pl.maximum(a, b), _pl.minimum(a, b)
    ratio = _pl.where(large == 0, _pl.zeros_like(large), small / _pl.where(large == 0, _pl.ones_like(large), large))
    finite = large * _pl.sqrt(1 + ratio * ratio)
    return _pl.where(_pl.is_inf(large), large, finite) if large.dtype.is_floating else finite


def _together(x1, x2):
    from ._info import broadcast_shapes

    if isinstance(x1, (int, float)):
        x1 = _asarray(x1, dtype=x2.dtype)
    if isinstance(x2, (int, float)):
        x2 = _asarray(x2, dtype=x1.dtype)
    dtype = _pl._plimsoll.result_type_of(x1.dtype, x2.dtype)
    shape = broadcast_shapes(x1.shape, x2.shape)
    return _pl.broadcast_to(x1.astype(dtype, copy=False), shape), _pl.broadcast_to(x2.astype(dtype, copy=False), shape)


def _tested(x, function, otherwise):
    return function(x) if x.dtype.is_floating else _pl.full(x.shape, otherwise)


def isnan(x, /):
    """Which elements are no numbers."""
    return _tested(x, _pl.is_nan, False)


def isinf(x, /):
    """Which elements are infinite."""
    return _tested(x, _pl.is_inf, False)


def isfinite(x, /):
    """Which elements are numbers that are not infinite."""
    return _tested(x, _pl.is_finite, True)


signbit = _one(_pl.signbit)
copysign, nextafter = _both(_pl.copysign), _both(_pl.nextafter)


def trunc(x, /):
    """The nearest whole number towards zero."""
    return _pl.where(x < 0, _pl.ceil(x), _pl.floor(x)) if x.dtype.is_floating else x


def clip(x, /, min=None, max=None):
    """Not below min, not above max."""
    return _pl.clip(x, min, max)


def real(x, /):
    """x itself: all numbers here are real."""
    return x


def imag(x, /):
    """Zeros: all numbers here are real."""
    return _pl.zeros_like(x)


def conj(x, /):
    """x itself: all numbers here are real."""
    return x


# Reductions.
def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum over the axes."""
    return _pl.sum(x, axis, keepdims, dtype)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product over the axes."""
    return _pl.prod(x, axis, keepdims, dtype)


def mean(x, /, *, axis=None, keepdims=False):
    """The mean over the axes."""
    return _pl.mean(x, axis, keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """The largest element over the axes."""
    return _pl.max(x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The smallest element over the axes."""
    return _pl.min(x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether one is true."""
    return _pl.any(x, axis, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Whether all are true."""
    return _pl.all(x, axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The mean square of what elements differ from their mean."""
    return _pl.var(x, axis, correction, keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The root of var()."""
    return _pl.std(x, axis, correction, keepdims)


def argmax(x, /, *, axis=None, keepdims=False):
    """Where the largest element is."""
    return _pl.argmax(x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Where the smallest element is."""
    return _pl.argmin(x, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero."""
    return _pl.sum(x != 0, axis, keepdims)


def _running(name, function, initial, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: an axis is needed for more than one")
        axis = 0
    if dtype is not None:
        x = x.astype(dtype, copy=False)
    results = function(x, axis)
    if dtype is not None:
        results = results.astype(dtype, copy=False)
    if not include_initial:
        return results
    shape = list(results.shape)
    shape[axis] = 1
    return _pl.concat([_pl.full(shape, initial, results.dtype), results], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sums along an axis."""
    return _running("cumulative_sum", _pl.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running products along an axis."""
    return _running("cumulative_prod", _pl.cumprod, 1, x, axis, dtype, include_initial)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """What each element differs from the one before it."""
    parts = [part for part in (prepend, x, append) if part is not None]
    x = _pl.concat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        later = [slice(None)] * x.ndim
        earlier = list(later)
        later[axis], earlier[axis] = slice(1, None), slice(None, -1)
        x = x[tuple(later)] ^ x[tuple(earlier)] if x.dtype == _pl.bool else x[tuple(later)] - x[tuple(earlier)]
    return x


# Moving elements.
def concat(arrays, /, *, axis=0):
    """One after the other along an axis; flattened when it is None."""
    return _pl.concat(list(arrays), axis)


def stack(arrays, /, *, axis=0):
    """Side by side along a new axis."""
    return _pl.stack(list(arrays), axis)


def unstack(x, /, *, axis=0):
    """The parts along an axis, which is gone."""
    return tuple(_pl.unstack(x, axis))


def reshape(x, /, shape, *, copy=None):
    """The same elements in another shape."""
    return _pl.reshape(x, shape, copy)


def permute_dims(x, /, axes):
    """The axes in that order."""
    return _pl.transpose(x, tuple(axes))


def matrix_transpose(x, /):
    """The last two axes exchanged."""
    return x.mT


def moveaxis(x, source, destination, /):
    """Axes moved to other places."""
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    source, destination = [s % x.ndim for s in source], [d % x.ndim for d in destination]
    order = [axis for axis in range(x.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return _pl.transpose(x, order)


def expand_dims(x, /, axis):
    """With a new axis of size 1."""
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"expand_dims: axis {axis} is outside of {x.ndim + 1} axes")
    return _pl.expand_dims(x, axis)


def squeeze(x, /, axis):
    """Without these axes, whose size is 1."""
    return _pl.squeeze(x, axis) if axis != () else x


def flip(x, /, *, axis=None):
    """Backwards along the axes."""
    return _pl.flip(x, axis) if x.ndim else x


def roll(x, /, shift, *, axis=None):
    """Along axes by so many places."""
    if axis is None:
        return _pl.roll(x.reshape(-1), shift, 0).reshape(x.shape)
    shifts, axes = ((shift,), (axis,)) if isinstance(axis, int) else (shift, axis)
    shifts = (shifts,) * len(axes) if isinstance(shifts, int) else shifts
    for by, along in zip(shifts, axes):
        x = _pl.roll(x, by, along)
    return x


def repeat(x, repeats, /, *, axis=None):
    """Each element, or each part of an axis, repeated."""
    if isinstance(repeats, int):
        return _pl.repeat(x, repeats, axis)
    x = x.reshape(-1) if axis is None else x
    axis = 0 if axis is None else axis
    counts = repeats.reshape(-1).tolist()
    if len(counts) == 1:
        return _pl.repeat(x, int(counts[0]), axis)
    return _pl.gather(x, _asarray([place for place, count in enumerate(counts) for _ in range(count)], dtype="int64"), axis)


def tile(x, repetitions, /):
    """The whole repeated along each axis."""
    return _pl.tile(x, tuple(repetitions)) if len(repetitions) or x.ndim else x


def broadcast_to(x, /, shape):
    """Repeated to a shape, as operators do."""
    return _pl.broadcast_to(x, shape)


# Choosing and ordering.
def take(x, indices, /, *, axis=None):
    """Positions of one axis, chosen and repeated."""
    return _pl.take(x, indices, 0 if axis is None else axis)


def take_along_axis(x, indices, /, *, axis=-1):
    """For each place along an axis the element that an index names."""
    size = x.shape[axis]
    return _pl.take_along_axis(x, _pl.where(indices < 0, indices + size, indices), axis)


def where(condition, x1, x2, /):
    """x1 where the condition holds, else x2."""
    return _pl.where(condition, x1, x2)


def nonzero(x, /):
    """Where elements are not zero: a tensor of positions for each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero: of at least one axis")
    places = _pl.where_true(x)
    return tuple(places[:, axis] for axis in range(x.ndim))


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The positions of elements in order."""
    return _pl.argsort(x, axis, descending)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """Elements in order along an axis."""
    return _pl.sort(x, axis, descending)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where elements of x2 would be put into x1, which is in order."""
    if sorter is not None:
        x1 = _pl.take(x1, sorter)
    wanted = x2.reshape(-1, 1)
    before = x1.reshape(1, -1) < wanted if side == "left" else x1.reshape(1, -1) <= wanted
    return _pl.sum(before, -1).reshape(x2.shape)


_All = _namedtuple("_All", ["values", "indices", "inverse_indices", "counts"])
_Counts = _namedtuple("_Counts", ["values", "counts"])
_Inverse = _namedtuple("_Inverse", ["values", "inverse_indices"])


def unique_all(x, /):
    """Each value once, in order; NaNs are each their own."""
    flat = x.reshape(-1)
    order = _pl.argsort(flat)
    ordered = _pl.take(flat, order)
    if flat.size == 0:
        empty = _pl.zeros(0, "int64")
        return _All(flat, empty, empty.reshape(x.shape), empty)
    first = _pl.concat([_asarray([True]), ordered[1:] != ordered[:-1]])
    starts = _pl.where_true(first).reshape(-1)
    group = _pl.cumsum(first.astype("int64"), 0) - 1
    inverse = _pl.take(group, _pl.argsort(order))
    ends = _pl.concat([starts[1:], _asarray([flat.size])])
    return _All(_pl.take(ordered, starts), _pl.take(order, starts), inverse.reshape(x.shape), ends - starts)


def unique_counts(x, /):
    """Each value once, in order, and how often it is there."""
    found = unique_all(x)
    return _Counts(found.values, found.counts)


def unique_inverse(x, /):
    """Each value once, in order, and which of them each element is."""
    found = unique_all(x)
    return _Inverse(found.values, found.inverse_indices)


def unique_values(x, /):
    """Each value once, in order."""
    return unique_all(x).values


# Products.
def matmul(x1, x2, /):
    """Products of matrices, and of batches of them."""
    return _pl.matmul(x1, x2)


def vecdot(x1, x2, /, *, axis=-1):
    """Sums of products along an axis."""
    if not -_min_of(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"vecdot: the axis {axis} is counted from the end of both")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: sizes {x1.shape[axis]} and {x2.shape[axis]} along axis {axis} differ")
    return _pl.sum(x1 * x2, axis, dtype=_pl._plimsoll.result_type_of(x1.dtype, x2.dtype))


def _min_of(a, b):
    return a if a < b else b


def tensordot(x1, x2, /, *, axes=2):
    """Sums of products over several axes."""
    if isinstance(axes, int):
        first, second = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        first, second = [a % x1.ndim for a in axes[0]], [a % x2.ndim for a in axes[1]]
    rest1 = [a for a in range(x1.ndim) if a not in first]
    rest2 = [a for a in range(x2.ndim) if a not in second]
    size = 1
    for a in first:
        size *= x1.shape[a]
    left = _pl.transpose(x1, rest1 + first) if x1.ndim else x1
    right = _pl.transpose(x2, second + rest2) if x2.ndim else x2
    shape = [x1.shape[a] for a in rest1] + [x2.shape[a] for a in rest2]
    rows = 1
    for a in rest1:
        rows *= x1.shape[a]
    columns = 1
    for a in rest2:
        columns *= x2.shape[a]
    dtype = _pl._plimsoll.result_type_of(x1.dtype, x2.dtype)
    wide = dtype if dtype.name in ("int32", "int64") or dtype.is_floating else _pl.int64
    product = _pl.matmul(left.reshape(rows, size).astype(wide, copy=False), right.reshape(size, columns).astype(wide, copy=False))
    return product.reshape(shape).astype(dtype, copy=False)


__all__ = ["abs", "acos", "acosh", "add", "all", "any", "argmax", "argmin", "argsort", "asin", "asinh", "atan", "atan2", "atanh",
           "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "bitwise_or", "bitwise_xor", "broadcast_to", "ceil", "clip", "concat", "conj",
           "copysign", "cos", "cosh", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "divide", "equal", "exp", "expand_dims",
           "expm1", "flip", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan",
           "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or",
           "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean", "min", "minimum", "moveaxis", "multiply",
           "negative", "nextafter", "nonzero", "not_equal", "permute_dims", "positive", "pow", "prod", "real", "reciprocal", "remainder",
           "repeat", "reshape", "roll", "round", "searchsorted", "sign", "signbit", "sin", "sinh", "sort", "sqrt", "square",
           "squeeze", "stack", "std", "subtract", "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile",
           "trunc", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var", "vecdot", "where"]
