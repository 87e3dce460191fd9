"""The array API standard's namespace (2024.12) over Plimsoll's tensors: `xp = x.__array_namespace__()`.

Dtypes are bool, uint8, int8, int16, int32, int64, float32 and float64 (and, beyond the standard, float16 and bfloat16); the
other unsigned integers and complex numbers are not offered. Tensors do not change: there is no `x[key] = value`.
`python/array_api_failures.txt` lists what differs from the standard, with reasons.
"""
import plimsoll as _pl
from plimsoll import (  # noqa: F401
    bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, uint8,
    e, inf, nan, newaxis, pi)

from ._functions import *  # noqa: F401,F403
from ._functions import __all__ as _functions
from ._info import (  # noqa: F401
    __array_namespace_info__, broadcast_arrays, broadcast_shapes, can_cast, finfo, iinfo, isdtype, result_type)

__array_api_version__ = "2024.12"


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Numbers from start on, by steps, before stop."""
    return _pl.arange(start, stop, step, dtype, device)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """A tensor of an array, a list, a number."""
    return _pl.asarray(obj, dtype, copy=copy, device=device)


def from_dlpack(x, /, *, device=None, copy=None):
    """A tensor on the memory of another library's array."""
    return _pl.from_dlpack(x, device=device, copy=copy)


def full(shape, fill_value, *, dtype=None, device=None):
    """One value everywhere."""
    return _pl.full(shape, fill_value, dtype, device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """Numbers at equal distances."""
    return _pl.linspace(start, stop, num, dtype, device, endpoint)


def ones(shape, *, dtype=None, device=None):
    """Ones."""
    return _pl.ones(shape, dtype, device)


def zeros(shape, *, dtype=None, device=None):
    """Zeros."""
    return _pl.zeros(shape, dtype, device)


def empty(shape, *, dtype=None, device=None):
    """Zeros: memory that is not cleared is not handed out."""
    return _pl.zeros(shape, dtype, device)


def empty_like(x, /, *, dtype=None, device=None):
    """Zeros of x's shape."""
    return _pl.zeros_like(x, dtype)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on a diagonal: the main one, or the k-th above it."""
    n_cols = n_rows if n_cols is None else n_cols
    k = -n_rows if k < -n_rows else n_cols if k > n_cols else k  # Beyond there is no diagonal.
    if k == 0:
        return _pl.eye(n_rows, n_cols, dtype, device)
    place = arange(n_rows, device=device).reshape(-1, 1) + k == arange(n_cols, device=device).reshape(1, -1)
    return place.astype(dtype or float32)


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of x's shape and dtype."""
    return _pl.zeros(x.shape, dtype or x.dtype, device or x.device)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of x's shape and dtype."""
    return _pl.ones(x.shape, dtype or x.dtype, device or x.device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """A value in x's shape and dtype."""
    return _pl.full(x.shape, fill_value, dtype or x.dtype, device or x.device)


def meshgrid(*arrays, indexing="xy"):
    """Coordinates of a grid, one tensor for each axis."""
    arrays = [asarray(a) for a in arrays]
    rank = len(arrays)
    sizes = [a.size for a in arrays]
    swap = indexing == "xy" and rank > 1
    if swap:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    grids = []
    for place, a in enumerate(arrays):
        axis = 1 - place if swap and place < 2 else place
        grids.append(_pl.broadcast_to(a.reshape([-1 if i == axis else 1 for i in range(rank)]), sizes))
    return grids


def tril(x, /, *, k=0):
    """The lower triangle of each matrix."""
    return _triangle(x, lambda row, column: column <= row + k)


def triu(x, /, *, k=0):
    """The upper triangle of each matrix."""
    return _triangle(x, lambda row, column: column >= row + k)


def _triangle(x, keeps):
    rows, columns = x.shape[-2:]
    mask = keeps(arange(rows).reshape(-1, 1), arange(columns).reshape(1, -1))
    return _pl.where(mask, x, _pl.zeros((), x.dtype))


def astype(x, dtype, /, *, copy=True, device=None):
    """The same numbers in another dtype."""
    return x.astype(dtype, copy=copy)


__all__ = [*_functions, "arange", "asarray", "astype", "broadcast_arrays", "broadcast_shapes", "can_cast", "e", "empty", "empty_like", "eye", "finfo",
           "from_dlpack", "full", "full_like", "iinfo", "inf", "isdtype", "linspace", "meshgrid", "nan", "newaxis", "ones", "ones_like", "pi",
           "result_type", "tril", "triu", "zeros", "zeros_like", "bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
           "__array_namespace_info__"]
