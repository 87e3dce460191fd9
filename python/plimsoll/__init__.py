"""Plimsoll: tensors and models that train and run inside a memory budget you set.

>>> import plimsoll as pl
>>> model = pl.Sequential([pl.layers.Dense(16, activation="relu", input_shape=(10,)), pl.layers.Dense(1)])
>>> model.compile(optimizer="adam", loss="mse")
>>> model.forecast(batch_size=64).fits("1MiB")
True

A thin package over the C++ library: nothing is computed in Python. Tensors do not change; they are NumPy's arrays
without a copy, read-only (`numpy.asarray(x)`), and arrays are tensors (`pl.asarray(a)`).
"""
import functools as _functools
import os as _os
import types as _types

from . import _documentation, _support

_support.refuse_other_interpreters()

from . import _plimsoll
from ._plimsoll import *  # noqa: F401,F403

# What the extension has for this package, and not for its users.
for _name in ("HalfBits", "dlpack_of", "findings_of", "from_bytes", "has_report_page", "native_callbacks", "new_function", "new_tidy", "note_fork",
              "result_type_of", "time_product", "write_report",
              "config", "distributed", "losses", "metrics", "optimizers", "train"):  # The last have modules of their own.
    globals().pop(_name, None)

from ._plimsoll import Budget, DType, Tensor, Tidy, Variable, bool
from . import callbacks, config, distributed, layers, losses, metrics, optimizers, summary, train  # type: ignore[no-redef]
from .models import History, Model, Sequential, load_model
from .report import Report, max_memory_allocated, memory_allocated, memory_summary

__version__ = "0.1.0"

_documentation.document_classes(_plimsoll)
newaxis = None
e, inf, nan, pi = 2.718281828459045, float("inf"), float("nan"), 3.141592653589793

# What NumPy, the array API standard and TensorFlow call them.
array = tensor = convert_to_tensor = asarray
permute_dims = transpose
concatenate = concat
pow = power
remainder = modulo
mod = modulo
isnan, isinf, isfinite = is_nan, is_inf, is_finite
reduce_sum, reduce_mean, reduce_max, reduce_min = sum, mean, max, min
square_difference = squared_difference

# After a fork the child has neither the threads nor the pages of the library.
_os.register_at_fork(after_in_child=_plimsoll.note_fork)


def tidy(function=None, *args, **kwargs):
    """A scope whose tensors are disposed at its end, but for those that are returned or kept.

    As a context manager, with a name if you like, around a function's call, or as a decorator:

    >>> x = pl.asarray([1.0, 2.0, 3.0])
    >>> with pl.tidy() as scope:
    ...     y = scope.keep((x - x.mean()) / x.std())
    >>> z = pl.tidy(lambda: (x * 2).sum())
    >>> z.item()
    12.0
    """
    if function is None or isinstance(function, str):
        return _plimsoll.new_tidy(function or "")
    return _plimsoll.new_tidy()(function, *args, **kwargs)


def tidied(function):
    """A decorator: calls of the function leave behind what they return, and nothing else.

    >>> @pl.tidied
    ... def standardized(x):
    ...     return (x - x.mean()) / x.std()
    >>> standardized(pl.asarray([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """

    @_functools.wraps(function)
    def tidy_function(*args, **kwargs):
        return _plimsoll.new_tidy()(function, *args, **kwargs)

    return tidy_function


def function(python_function=None, *, budget=None, name="", spill=None):
    """A decorator: the function is traced once for each kind of arguments, and from then on runs planned.

    Calls that do not fit a budget compute values again, to the same bits; spill is a directory to keep them in besides.

    >>> @pl.function
    ... def step(x):
    ...     return pl.relu(x) * 2
    >>> step(pl.asarray([-1.0, 3.0])).tolist()
    [0.0, 6.0]
    >>> step.trace_count
    1
    """
    if python_function is None:
        return lambda f: function(f, budget=budget, name=name, spill=spill)
    made = _plimsoll.new_function(python_function, budget, name or getattr(python_function, "__name__", ""), spill)
    return _functools.update_wrapper(made, python_function, updated=())


def grad(f):
    """The derivative of a function of one tensor, as a function.

    >>> pl.grad(lambda x: x * x)(3.0).item()
    6.0
    """

    def derivative(x):
        x = asarray(x)
        with GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return derivative


def value_and_gradients(f, sources):
    """f(*sources) and its gradient for each of them.

    >>> value, (slope,) = pl.value_and_gradients(lambda x: x * x, [3.0])
    >>> value.item(), slope.item()
    (9.0, 6.0)
    """
    sources = [x if isinstance(x, (Tensor, Variable)) else asarray(x) for x in sources]
    with GradientTape() as tape:
        tape.watch([x for x in sources if isinstance(x, Tensor)])
        value = f(*sources)
    return value, tape.gradient(value, sources)


def zeros_like(x, dtype=None):
    """Zeros of x's shape and dtype.

    >>> pl.zeros_like([1, 2]).tolist()
    [0, 0]
    """
    x = asarray(x)
    return zeros(x.shape, dtype or x.dtype, x.device)


def ones_like(x, dtype=None):
    """Ones of x's shape and dtype.

    >>> pl.ones_like([5, 2]).tolist()
    [1, 1]
    """
    x = asarray(x)
    return ones(x.shape, dtype or x.dtype, x.device)


def full_like(x, fill_value, dtype=None):
    """A value in x's shape and dtype.

    >>> pl.full_like([1, 2], 7).tolist()
    [7, 7]
    """
    x = asarray(x)
    return full(x.shape, fill_value, dtype or x.dtype, x.device)


def to_numpy(x):
    """A read-only array of NumPy on the memory of x.

    >>> pl.to_numpy(pl.ones(2)).flags.writeable
    False
    """
    return x.numpy()


def __getattr__(name):
    # Imported when it is asked for, since it is large (array_api) or needs another package (sklearn).
    if name in ("array_api", "sklearn"):
        import importlib

        return importlib.import_module(f"plimsoll.{name}")
    hint = f"; what is there is in plimsoll itself ({_ELSEWHERE[name]})" if name in _ELSEWHERE else ""
    raise AttributeError(f"module 'plimsoll' has no attribute {name!r}{hint}")


# Where others keep names that are here without a module of their own.
_ELSEWHERE = {"nn": "pl.relu, pl.softmax, pl.layers.Dense", "keras": "pl.Sequential, pl.layers, pl.callbacks", "math": "pl.log, pl.exp",
              "random": "pl.random_normal, pl.random_uniform", "data": "pl.Dataset",
              "optim": "pl.optimizers", "sparse": "pl.SparseTensor", "ragged": "pl.RaggedTensor", "compat": "pl.placeholder, pl.Session"}


def _array_namespace(self, api_version=None):
    from . import array_api

    return array_api


def _to_device(self, device, /, *, stream=None):
    if stream is not None:
        raise ValueError("to_device: the processors have no streams")
    return self.to(device)


def _swapaxes(self, axis1, axis2, /):
    order = list(range(self.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return self.transpose(order)


# @pl.function on a method of a class.
setattr(_plimsoll.Function, "__get__", lambda self, instance, owner=None: self if instance is None else _types.MethodType(self, instance))

# Methods that arrays of NumPy have.
setattr(Tensor, "ravel", lambda self: self.reshape(-1))
setattr(Tensor, "dot", lambda self, other: matmul(self, other))
setattr(Tensor, "swapaxes", _swapaxes)
setattr(Tensor, "__array_namespace__", _array_namespace)
setattr(Tensor, "to_device", _to_device)
