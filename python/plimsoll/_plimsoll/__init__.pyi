"""The library plimsoll, as Python's own types and functions. Made by tools/python_stubs with nanobind 3.1.0."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
import os
import pathlib
import typing
from typing import Any, TypeAlias, TypeVar, overload

import numpy

from plimsoll._plimsoll import (
    config as config,
    distributed as distributed,
    losses as losses,
    metrics as metrics,
    native_callbacks as native_callbacks,
    optimizers as optimizers,
    train as train
)
from plimsoll.models import History

T = TypeVar("T")
TensorLike: TypeAlias = Any
DTypeLike: TypeAlias = DType | str | type | numpy.dtype[Any]
ShapeLike: TypeAlias = int | Sequence[int | None]

class Error(Exception):
    ...

class InvalidArgument(Error, ValueError):
    ...

class FailedPrecondition(Error, RuntimeError):
    ...

class OutOfMemory(Error, MemoryError):
    requested: int
    limit: int
    in_use: int
    smallest_sufficient_limit: int
    holders: list[dict[str, Any]]
    tried: list[tuple[str, int]]

class NotFound(Error, LookupError, FileNotFoundError):
    ...

class Corruption(Error, ValueError):
    ...

class Unsupported(Error, NotImplementedError):
    ...

class Disposed(Error, RuntimeError):
    ...

class Leak(Error, AssertionError):
    ...

class Unavailable(Error, ConnectionError):
    ...

class DType:
    """
    The type of a tensor's elements; equal to its name and to NumPy's.

    >>> pl.float32 == "float32", pl.float32.itemsize, pl.int8.is_floating
    (True, 4, False)
    """

    @property
    def name(self) -> str: ...

    @property
    def itemsize(self) -> int: ...

    @property
    def is_floating(self) -> builtins.bool: ...

    @property
    def is_integer(self) -> builtins.bool: ...

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple: ...

    def __eq__(self, other: object | None) -> builtins.bool: ...

bool: DType = ...

uint8: DType = ...

int8: DType = ...

int16: DType = ...

int32: DType = ...

int64: DType = ...

float16: DType = ...

bfloat16: DType = ...

float32: DType = ...

float64: DType = ...

def dtype(dtype: object) -> object:
    """
    The dtype of that name, or NumPy's.

    >>> pl.dtype("f32")
    plimsoll.float32
    """

def result_type_of(a: DTypeLike, b: DTypeLike, /) -> DType:
    """The dtype of an operation on these two."""

def parse_bytes(size: object) -> int:
    """
    Bytes of a size such as "64MiB".

    >>> pl.parse_bytes("1.5 KiB")
    1536
    """

def format_bytes(bytes: object) -> str:
    """
    Text for a number of bytes.

    >>> pl.format_bytes(24 << 20)
    '24.0 MiB'
    """

class HalfBits:
    """The bits of a bfloat16 tensor, as a buffer."""

class Tensor:
    def __array_namespace__(self, api_version: str | None = None) -> Any: ...
    def to_device(self, device: str, /, *, stream: object = None) -> Tensor: ...
    def ravel(self) -> Tensor: ...
    def dot(self, other: TensorLike, /) -> Tensor: ...
    def swapaxes(self, axis1: int, axis2: int, /) -> Tensor: ...
    """
    An array that does not change. pl.asarray() and the like make them; operators, indexing and methods are NumPy's.

    >>> x = pl.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, (x + 1)[0].tolist(), (x @ x.T).sum().item()
    ((2, 2), [2.0, 3.0], 52.0)
    """

    def __hash__(self, /):
        """Return hash(self)."""

    def __lt__(self, value, /):
        """Return self<value."""

    def __le__(self, value, /):
        """Return self<=value."""

    def __eq__(self, value, /):
        """Return self==value."""

    def __ne__(self, value, /):
        """Return self!=value."""

    def __gt__(self, value, /):
        """Return self>value."""

    def __ge__(self, value, /):
        """Return self>=value."""

    def __init__(self, obj: TensorLike, dtype: DTypeLike | None = None) -> None:
        """As asarray()."""

    def __add__(self, value, /):
        """Return self+value."""

    def __radd__(self, value, /):
        """Return value+self."""

    def __sub__(self, value, /):
        """Return self-value."""

    def __rsub__(self, value, /):
        """Return value-self."""

    def __mul__(self, value, /):
        """Return self*value."""

    def __rmul__(self, value, /):
        """Return value*self."""

    def __mod__(self, value, /):
        """Return self%value."""

    def __rmod__(self, value, /):
        """Return value%self."""

    def __divmod__(self, value, /):
        """Return divmod(self, value)."""

    def __rdivmod__(self, value, /):
        """Return divmod(value, self)."""

    def __pow__(self, value, mod=None, /):
        """Return pow(self, value, mod)."""

    def __rpow__(self, value, mod=None, /):
        """Return pow(value, self, mod)."""

    def __neg__(self, /):
        """-self"""

    def __pos__(self, /):
        """+self"""

    def __abs__(self, /):
        """abs(self)"""

    def __bool__(self, /):
        """True if self else False"""

    def __invert__(self, /):
        """~self"""

    def __lshift__(self, value, /):
        """Return self<<value."""

    def __rlshift__(self, value, /):
        """Return value<<self."""

    def __rshift__(self, value, /):
        """Return self>>value."""

    def __rrshift__(self, value, /):
        """Return value>>self."""

    def __and__(self, value, /):
        """Return self&value."""

    def __rand__(self, value, /):
        """Return value&self."""

    def __xor__(self, value, /):
        """Return self^value."""

    def __rxor__(self, value, /):
        """Return value^self."""

    def __or__(self, value, /):
        """Return self|value."""

    def __ror__(self, value, /):
        """Return value|self."""

    def __int__(self, /):
        """int(self)"""

    def __float__(self, /):
        """float(self)"""

    def __floordiv__(self, value, /):
        """Return self//value."""

    def __rfloordiv__(self, value, /):
        """Return value//self."""

    def __truediv__(self, value, /):
        """Return self/value."""

    def __rtruediv__(self, value, /):
        """Return value/self."""

    def __index__(self, /):
        """
        Return self converted to an integer, if self is suitable for use as an index into a list.
        """

    def __matmul__(self, value, /):
        """Return self@value."""

    def __rmatmul__(self, value, /):
        """Return value@self."""

    def __len__(self, /):
        """Return len(self)."""

    def __getitem__(self, key, /):
        """Return self[key]."""

    def __setitem__(self, key, value, /):
        """Set self[key] to value."""

    def __delitem__(self, key, /):
        """Delete self[key]."""

    def __contains__(self, key, /):
        """Return key in self."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes; None for one that a graph does not know yet."""

    @property
    def dtype(self) -> DType: ...

    @property
    def ndim(self) -> int: ...

    @property
    def size(self) -> int:
        """Elements."""

    @property
    def nbytes(self) -> int: ...

    @property
    def itemsize(self) -> int: ...

    @property
    def device(self) -> str: ...

    @property
    def T(self) -> Tensor:
        """The axes in reverse."""

    def item(self) -> builtins.bool | int | float:
        """The one element as a number of Python."""

    def tolist(self) -> object:
        """Nested lists of numbers."""

    def numpy(self) -> numpy.ndarray:
        """
        The elements as a read-only array of NumPy, on the same memory. While it lives they stay charged.
        """

    def tobytes(self) -> bytes: ...

    def __array__(self, dtype: object | None = None, copy: builtins.bool | None = None) -> object: ...

    def sum(self, *args: object, **kwargs: object) -> Tensor: ...

    def mean(self, *args: object, **kwargs: object) -> Tensor: ...

    def prod(self, *args: object, **kwargs: object) -> Tensor: ...

    def max(self, *args: object, **kwargs: object) -> Tensor: ...

    def min(self, *args: object, **kwargs: object) -> Tensor: ...

    def any(self, *args: object, **kwargs: object) -> Tensor: ...

    def all(self, *args: object, **kwargs: object) -> Tensor: ...

    def var(self, *args: object, **kwargs: object) -> Tensor: ...

    def std(self, *args: object, **kwargs: object) -> Tensor: ...

    def argmax(self, *args: object, **kwargs: object) -> Tensor: ...

    def argmin(self, *args: object, **kwargs: object) -> Tensor: ...

    def cumsum(self, *args: object, **kwargs: object) -> Tensor: ...

    def sort(self, *args: object, **kwargs: object) -> Tensor: ...

    def argsort(self, *args: object, **kwargs: object) -> Tensor: ...

    def squeeze(self, *args: object, **kwargs: object) -> Tensor: ...

    def clip(self, *args: object, **kwargs: object) -> Tensor: ...

    def round(self, *args: object, **kwargs: object) -> Tensor: ...

    def repeat(self, *args: object, **kwargs: object) -> Tensor: ...

    def take(self, *args: object, **kwargs: object) -> Tensor: ...

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """
        The same elements under another shape; one size may be -1.

        >>> pl.arange(6).reshape(2, -1).shape
        (2, 3)
        """

    def transpose(self, *axes: int | Sequence[int]) -> Tensor: ...

    def flatten(self) -> Tensor: ...

    def astype(self, dtype: DTypeLike, copy: builtins.bool = True) -> Tensor: ...

    def cast(self, dtype: DTypeLike) -> Tensor: ...

    def to(self, device: str) -> Tensor:
        """On that device: itself when it is there already."""

    def copy(self) -> Tensor: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, arg: object, /) -> object: ...

    @property
    def mT(self) -> Tensor:
        """Each matrix transposed."""

    __array_priority__: float = 100.0

    def __repr__(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def id(self) -> int: ...

    @property
    def is_disposed(self) -> builtins.bool: ...

    @property
    def is_symbolic(self) -> builtins.bool:
        """Whether a graph will give it."""

    def dispose(self) -> None:
        """Gives its bytes back now; a second time does nothing."""

    def __iter__(self) -> Iterator[Tensor]: ...

    def __reversed__(self) -> Iterator[Tensor]: ...

    def __round__(self, digits: int | None = None) -> Tensor: ...

    def __complex__(self) -> object: ...

    def __dlpack__(self, *, stream: object | None = None, max_version: object | None = None, dl_device: object | None = None, copy: builtins.bool | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple: ...

    def __reduce__(self) -> tuple: ...

def asarray(obj: TensorLike, dtype: DTypeLike | None = None, *, copy: builtins.bool | None = None, device: str | None = None) -> Tensor:
    """
    A tensor of an array, a list, a number.

    The elements are copied, into the budget that is open, unless the memory cannot change (a read-only
    array); copy=True always copies, copy=False never: then the memory must not change while the tensor
    lives.

    >>> pl.asarray([[1, 2], [3, 4]]).dtype
    plimsoll.int64
    >>> pl.asarray([0.5, 1]).dtype
    plimsoll.float32
    """

def from_dlpack(x: object, /, *, device: object | None = None, copy: builtins.bool | None = None) -> Tensor:
    """
    A tensor on the memory of another library's array, which must not change while the tensor lives.

    >>> pl.from_dlpack(pl.ones(2)).tolist()
    [1.0, 1.0]
    """

def dlpack_of(x: object, max_version: object | None, device: object | None, copy: builtins.bool | None) -> object: ...

def from_bytes(data: bytes, dtype: object, shape: object) -> object:
    """
    A tensor of these bytes, element after element, as tobytes() gives them.
    """

def logical_not(x: TensorLike, /) -> Tensor:
    """
    The opposite of each truth.

    >>> pl.logical_not([True, False]).tolist()
    [False, True]
    """

def is_nan(x: TensorLike, /) -> Tensor:
    """
    Which elements are no numbers.

    >>> pl.is_nan([1.0, float("nan")]).tolist()
    [False, True]
    """

def is_inf(x: TensorLike, /) -> Tensor:
    """
    Which elements are infinite.

    >>> pl.is_inf([1.0, float("-inf")]).tolist()
    [False, True]
    """

def is_finite(x: TensorLike, /) -> Tensor:
    """
    Which elements are numbers that are not infinite.

    >>> pl.is_finite([1.0, float("inf"), float("nan")]).tolist()
    [True, False, False]
    """

def negative(x: TensorLike, /) -> Tensor:
    """
    -x.

    >>> pl.negative([1, -2]).tolist()
    [-1, 2]
    """

def abs(x: TensorLike, /) -> Tensor:
    """
    Each element without its sign.

    >>> pl.abs([-1, 2]).tolist()
    [1, 2]
    """

def sign(x: TensorLike, /) -> Tensor:
    """
    -1, 0 or 1.

    >>> pl.sign([-3.0, 0.0, 2.0]).tolist()
    [-1.0, 0.0, 1.0]
    """

def floor(x: TensorLike, /) -> Tensor:
    """
    The largest whole number that is not above.

    >>> pl.floor([1.5, -1.5]).tolist()
    [1.0, -2.0]
    """

def ceil(x: TensorLike, /) -> Tensor:
    """
    The smallest whole number that is not below.

    >>> pl.ceil([1.5, -1.5]).tolist()
    [2.0, -1.0]
    """

def round(x: TensorLike, /) -> Tensor:
    """
    The nearest whole number; of two, the even one.

    >>> pl.round([0.5, 1.5, 2.4]).tolist()
    [0.0, 2.0, 2.0]
    """

def square(x: TensorLike, /) -> Tensor:
    """
    x times x.

    >>> pl.square([3, -2]).tolist()
    [9, 4]
    """

def sqrt(x: TensorLike, /) -> Tensor:
    """
    The square root; NaN below 0.

    >>> pl.sqrt([4.0, 9.0]).tolist()
    [2.0, 3.0]
    """

def rsqrt(x: TensorLike, /) -> Tensor:
    """
    1 / sqrt(x).

    >>> pl.rsqrt([4.0, 0.25]).tolist()
    [0.5, 2.0]
    """

def reciprocal(x: TensorLike, /) -> Tensor:
    """
    1 / x.

    >>> pl.reciprocal([2.0, -4.0]).tolist()
    [0.5, -0.25]
    """

def exp(x: TensorLike, /) -> Tensor:
    """
    e to the x.

    >>> pl.exp([0.0]).tolist()
    [1.0]
    """

def expm1(x: TensorLike, /) -> Tensor:
    """
    exp(x) - 1, exact near 0.

    >>> pl.expm1([0.0]).tolist()
    [0.0]
    """

def log(x: TensorLike, /) -> Tensor:
    """
    The natural logarithm.

    >>> pl.log([1.0, 0.0]).tolist()
    [0.0, -inf]
    """

def log1p(x: TensorLike, /) -> Tensor:
    """
    log(1 + x), exact near 0.

    >>> pl.log1p([0.0]).tolist()
    [0.0]
    """

def sin(x: TensorLike, /) -> Tensor:
    """
    The sine of angles in radians.

    >>> pl.sin([0.0]).tolist()
    [0.0]
    """

def cos(x: TensorLike, /) -> Tensor:
    """
    The cosine of angles in radians.

    >>> pl.cos([0.0]).tolist()
    [1.0]
    """

def tan(x: TensorLike, /) -> Tensor:
    """
    The tangent of angles in radians.

    >>> pl.tan([0.0]).tolist()
    [0.0]
    """

def asin(x: TensorLike, /) -> Tensor:
    """
    The angle of a sine.

    >>> pl.asin([0.0]).tolist()
    [0.0]
    """

def acos(x: TensorLike, /) -> Tensor:
    """
    The angle of a cosine.

    >>> pl.acos([1.0]).tolist()
    [0.0]
    """

def atan(x: TensorLike, /) -> Tensor:
    """
    The angle of a tangent.

    >>> pl.atan([0.0]).tolist()
    [0.0]
    """

def sinh(x: TensorLike, /) -> Tensor:
    """
    The hyperbolic sine.

    >>> pl.sinh([0.0]).tolist()
    [0.0]
    """

def cosh(x: TensorLike, /) -> Tensor:
    """
    The hyperbolic cosine.

    >>> pl.cosh([0.0]).tolist()
    [1.0]
    """

def tanh(x: TensorLike, /) -> Tensor:
    """
    The hyperbolic tangent: between -1 and 1.

    >>> pl.tanh([0.0, 100.0]).tolist()
    [0.0, 1.0]
    """

def asinh(x: TensorLike, /) -> Tensor:
    """
    The inverse of sinh.

    >>> pl.asinh([0.0]).tolist()
    [0.0]
    """

def acosh(x: TensorLike, /) -> Tensor:
    """
    The inverse of cosh.

    >>> pl.acosh([1.0]).tolist()
    [0.0]
    """

def atanh(x: TensorLike, /) -> Tensor:
    """
    The inverse of tanh.

    >>> pl.atanh([0.0]).tolist()
    [0.0]
    """

def erf(x: TensorLike, /) -> Tensor:
    """
    The error function of the normal distribution.

    >>> pl.erf([0.0, 10.0]).tolist()
    [0.0, 1.0]
    """

def relu(x: TensorLike, /) -> Tensor:
    """
    max(x, 0).

    >>> pl.relu([-1.0, 2.0]).tolist()
    [0.0, 2.0]
    """

def relu6(x: TensorLike, /) -> Tensor:
    """
    Between 0 and 6.

    >>> pl.relu6([-1.0, 2.0, 8.0]).tolist()
    [0.0, 2.0, 6.0]
    """

def elu(x: TensorLike, /) -> Tensor:
    """
    x above 0, exp(x) - 1 below.

    >>> pl.elu([0.0, 2.0]).tolist()
    [0.0, 2.0]
    """

def selu(x: TensorLike, /) -> Tensor:
    """
    elu() scaled so that means and variances stay through layers.

    >>> pl.selu([0.0]).tolist()
    [0.0]
    """

def gelu(x: TensorLike, /) -> Tensor:
    """
    x times the share of the normal distribution below x.

    >>> pl.gelu([0.0]).tolist()
    [0.0]
    """

def gelu_tanh(x: TensorLike, /) -> Tensor:
    """
    gelu() by a formula with tanh, as older models have it.

    >>> pl.gelu_tanh([0.0]).tolist()
    [0.0]
    """

def sigmoid(x: TensorLike, /) -> Tensor:
    """
    1 / (1 + exp(-x)): between 0 and 1.

    >>> pl.sigmoid([0.0, 100.0]).tolist()
    [0.5, 1.0]
    """

def hard_sigmoid(x: TensorLike, /) -> Tensor:
    """
    sigmoid() in three straight pieces.

    >>> pl.hard_sigmoid([-9.0, 0.0, 9.0]).tolist()
    [0.0, 0.5, 1.0]
    """

def softplus(x: TensorLike, /) -> Tensor:
    """
    log(1 + exp(x)), without overflow.

    >>> pl.softplus([1000.0]).tolist()
    [1000.0]
    """

def softsign(x: TensorLike, /) -> Tensor:
    """
    x / (1 + abs(x)).

    >>> pl.softsign([1.0, -3.0]).tolist()
    [0.5, -0.75]
    """

def swish(x: TensorLike, /) -> Tensor:
    """
    x times sigmoid(x).

    >>> pl.swish([0.0]).tolist()
    [0.0]
    """

def add(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a + b, with NumPy's broadcasting.

    >>> pl.add([1, 2], 10).tolist()
    [11, 12]
    """

def subtract(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a - b, with NumPy's broadcasting.

    >>> pl.subtract([[1], [2]], [1, 2]).tolist()
    [[0, -1], [1, 0]]
    """

def multiply(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a * b, with NumPy's broadcasting.

    >>> pl.multiply([1, 2], 3).tolist()
    [3, 6]
    """

def divide(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a / b, with NumPy's broadcasting; integers give floats, as in Python.

    >>> pl.divide([1, 3], 2).tolist()
    [0.5, 1.5]
    """

def floor_divide(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a // b: the quotient rounded down.

    >>> pl.floor_divide([7, -7], 2).tolist()
    [3, -4]
    """

def modulo(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a % b: what floor_divide() leaves, with the sign of b.

    >>> pl.modulo([7, -7], 3).tolist()
    [1, 2]
    """

def power(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a ** b.

    >>> pl.power([2.0, 3.0], 2).tolist()
    [4.0, 9.0]
    """

def maximum(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    The larger of two, element by element.

    >>> pl.maximum([1, 5], 3).tolist()
    [3, 5]
    """

def minimum(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    The smaller of two, element by element.

    >>> pl.minimum([1, 5], 3).tolist()
    [1, 3]
    """

def squared_difference(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    (a - b) squared.

    >>> pl.squared_difference([1.0, 5.0], 3).tolist()
    [4.0, 4.0]
    """

def divide_no_nan(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a / b, and 0 where b is 0.

    >>> pl.divide_no_nan([1.0, 2.0], [0.0, 4.0]).tolist()
    [0.0, 0.5]
    """

def xdivy(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a / b, and 0 where a is 0.

    >>> pl.xdivy([0.0, 2.0], [0.0, 4.0]).tolist()
    [0.0, 0.5]
    """

def xlogy(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a log(b), and 0 where a is 0.

    >>> pl.xlogy([0.0, 2.0], [0.0, 1.0]).tolist()
    [0.0, 0.0]
    """

def atan2(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    The angle of the point (b, a).

    >>> pl.atan2([0.0], [1.0]).tolist()
    [0.0]
    """

def equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a == b, element by element.

    >>> pl.equal([1, 2], [1, 3]).tolist()
    [True, False]
    """

def not_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a != b, element by element.

    >>> pl.not_equal([1, 2], [1, 3]).tolist()
    [False, True]
    """

def less(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a < b, element by element.

    >>> pl.less([1, 2], 2).tolist()
    [True, False]
    """

def less_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a <= b, element by element.

    >>> pl.less_equal([1, 2], 1).tolist()
    [True, False]
    """

def greater(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a > b, element by element.

    >>> pl.greater([1, 2], 1).tolist()
    [False, True]
    """

def greater_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a >= b, element by element.

    >>> pl.greater_equal([1, 2], 2).tolist()
    [False, True]
    """

def logical_and(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    Whether both are true.

    >>> pl.logical_and([True, True], [True, False]).tolist()
    [True, False]
    """

def logical_or(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    Whether one of the two is true.

    >>> pl.logical_or([True, False], False).tolist()
    [True, False]
    """

def logical_xor(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    Whether one of the two is true, and the other is not.

    >>> pl.logical_xor([True, True], [True, False]).tolist()
    [False, True]
    """

def where(condition: TensorLike, x: TensorLike, y: TensorLike, /) -> Tensor:
    """
    x where the condition holds, else y.

    >>> pl.where([True, False], [1, 2], 0).tolist()
    [1, 0]
    """

def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """
    The same numbers in another dtype.

    >>> pl.cast([1.7, -1.7], "int32").tolist()
    [1, -1]
    """

def leaky_relu(x: TensorLike, alpha: float = 0.2) -> Tensor:
    """
    x above 0, alpha times x below.

    >>> pl.leaky_relu([-2.0, 2.0], alpha=0.5).tolist()
    [-1.0, 2.0]
    """

def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor:
    """
    Repeated to a shape, as operators do.

    >>> pl.broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """

def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """
    Zeros of a shape.

    >>> pl.zeros((2, 3)).shape
    (2, 3)
    """

def ones(shape: ShapeLike, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """
    Ones of a shape.

    >>> pl.ones(2).tolist()
    [1.0, 1.0]
    """

def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """
    One value everywhere.

    >>> pl.full((2,), 7).tolist()
    [7, 7]
    """

def arange(start: float, stop: float | None = None, step: float = 1, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """
    Numbers from start on, by steps, before stop; from 0 on when only one is given.

    >>> pl.arange(3).tolist(), pl.arange(1, 10, 4).tolist()
    ([0, 1, 2], [1, 5, 9])
    """

def linspace(start: float, stop: float, num: int, dtype: DTypeLike | None = None, device: str | None = None, endpoint: builtins.bool = True) -> Tensor:
    """
    num numbers at equal distances from start to stop, with both; without stop when endpoint is False.

    >>> pl.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """

def eye(n_rows: int, n_cols: int | None = None, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """
    Ones on the diagonal of a matrix of zeros.

    >>> pl.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

def constant(value: TensorLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, name: str = '') -> Tensor:
    """
    A tensor of a value, in a shape if one is given.

    >>> pl.constant(3.0, shape=(2,)).tolist()
    [3.0, 3.0]
    """

def random_uniform(shape: ShapeLike, low: float = 0.0, high: float = 1.0, seed: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """
    Numbers of [low, high), all as likely; with a seed always the same ones.

    >>> pl.random_uniform((3,), 0, 10, seed=1).shape
    (3,)
    """

def random_normal(shape: ShapeLike, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """
    Normal numbers; with a seed always the same ones.

    >>> (pl.random_normal((3,), seed=1) == pl.random_normal((3,), seed=1)).tolist()
    [True, True, True]
    """

def truncated_normal(shape: ShapeLike, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """
    Normal numbers, drawn again while they are more than two deviations away.

    >>> pl.abs(pl.truncated_normal((100,), seed=1)).max().item() <= 2
    True
    """

def random_bernoulli(shape: ShapeLike, probability: float = 0.5, seed: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """
    Ones with the probability given, else zeros.

    >>> pl.random_bernoulli((4,), 1.0).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

def sum(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    The sum over the axes; of all elements when none is given. Integers add up in int64.

    >>> pl.sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]
    """

def prod(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    The product over the axes; of all elements when none is given.

    >>> pl.prod([2, 3, 4]).item()
    24
    """

def mean(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    The mean over the axes.

    >>> pl.mean([1, 2]).item()
    1.5
    """

def max(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    The largest element over the axes.

    >>> pl.max([[1, 5], [3, 2]], axis=1).tolist()
    [5, 3]
    """

def min(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    The smallest element over the axes.

    >>> pl.min([[1, 5], [3, 2]], axis=1).tolist()
    [1, 2]
    """

def any(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    Whether one is true.

    >>> pl.any([False, True]).item()
    True
    """

def all(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    Whether all are true.

    >>> pl.all([[False, True], [True, True]], axis=1).tolist()
    [False, True]
    """

def logsumexp(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    The logarithm of the sum of exponentials, without overflow.

    >>> pl.logsumexp([1000.0]).item()
    1000.0
    """

def var(x: TensorLike, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """
    The mean square of what elements differ from their mean; divided by correction fewer.

    >>> pl.var([1.0, 3.0]).item()
    1.0
    """

def std(x: TensorLike, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """
    The root of var().

    >>> pl.std([1.0, 3.0]).item()
    1.0
    """

def argmax(x: TensorLike, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """
    The position of the largest element, the first of equal ones. Without an axis, in the flattened tensor.

    >>> pl.argmax([[1, 5], [3, 2]], axis=1).tolist()
    [1, 0]
    """

def argmin(x: TensorLike, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """
    The position of the smallest element, the first of equal ones. Without an axis, in the flattened tensor.

    >>> pl.argmin([4, 2, 3]).item()
    1
    """

def norm(x: TensorLike, ord: float = 2.0, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Tensor:
    """
    The norm over the axes: of order 2 the root of the sum of squares, of order 1 the sum without signs.

    >>> pl.norm([3.0, 4.0]).item(), pl.norm([3.0, -4.0], ord=1).item()
    (5.0, 7.0)
    """

def sort(x: TensorLike, axis: int = -1, descending: builtins.bool = False) -> Tensor:
    """
    Elements in order along an axis; NaN last.

    >>> pl.sort([3, 1, 2]).tolist(), pl.sort([3, 1, 2], descending=True).tolist()
    ([1, 2, 3], [3, 2, 1])
    """

def argsort(x: TensorLike, axis: int = -1, descending: builtins.bool = False) -> Tensor:
    """
    The positions of elements in order; equal ones keep theirs.

    >>> pl.argsort([3, 1, 2]).tolist()
    [1, 2, 0]
    """

def top_k(x: TensorLike, k: int = 1) -> tuple[Tensor, Tensor]:
    """
    The k largest of each row, and where they are.

    >>> values, indices = pl.top_k([1, 5, 3], k=2)
    >>> values.tolist(), indices.tolist()
    ([5, 3], [1, 2])
    """

def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """
    Shares of 1 along an axis: exp(x) divided by its sum.

    >>> pl.softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """

def log_softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """
    The logarithm of softmax(), without overflow.

    >>> pl.log_softmax([1000.0]).tolist()
    [0.0]
    """

def concat(tensors: Sequence[TensorLike], axis: int | None = 0) -> Tensor:
    """
    One after the other along an axis.

    >>> pl.concat([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """

def stack(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """
    Side by side along a new axis.

    >>> pl.stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]
    """

def unstack(x: TensorLike, axis: int = 0) -> list[Tensor]:
    """
    The parts along an axis, which is gone.

    >>> [t.tolist() for t in pl.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """

def split(x: TensorLike, parts: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """
    Equal parts, or parts of these sizes.

    >>> [t.tolist() for t in pl.split([1, 2, 3], [1, 2])]
    [[1], [2, 3]]
    """

def reshape(x: TensorLike, shape: ShapeLike, copy: builtins.bool | None = None) -> Tensor:
    """
    The same elements in another shape; one size may be -1.

    >>> pl.reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """

def transpose(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """
    The axes in that order; in reverse when none is given.

    >>> pl.transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """

def squeeze(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """
    Without axes of size 1: all, or those given.

    >>> pl.squeeze([[1, 2]]).shape
    (2,)
    """

def expand_dims(x: TensorLike, axis: int = 0) -> Tensor:
    """
    With a new axis of size 1.

    >>> pl.expand_dims([1, 2], axis=1).shape
    (2, 1)
    """

def flip(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """
    Backwards along the axes; along all when none is given.

    >>> pl.flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """

def roll(x: TensorLike, shift: int, axis: int = 0) -> Tensor:
    """
    Along an axis by so many places; what leaves comes in on the other side.

    >>> pl.roll([1, 2, 3], 1).tolist()
    [3, 1, 2]
    """

def pad(x: TensorLike, paddings: Sequence[tuple[int, int]], value: float = 0.0, mode: str = 'constant') -> Tensor:
    """
    With so many elements before and after each axis: a value, or mirrored (mode "reflect", "symmetric").

    >>> pl.pad([1, 2], [(1, 2)]).tolist()
    [0, 1, 2, 0, 0]
    """

def tile(x: TensorLike, multiples: int | Sequence[int]) -> Tensor:
    """
    The whole repeated along each axis.

    >>> pl.tile([1, 2], 2).tolist()
    [1, 2, 1, 2]
    """

def repeat(x: TensorLike, repeats: int, axis: int | None = None) -> Tensor:
    """
    Each element, or each part of an axis, repeated.

    >>> pl.repeat([1, 2], 2).tolist()
    [1, 1, 2, 2]
    """

def gather(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """
    Positions of one axis, chosen and repeated.

    >>> pl.gather([10, 20, 30], [2, 0, 2]).tolist()
    [30, 10, 30]
    """

def take(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """
    Positions of one axis, chosen and repeated.

    >>> pl.take([[1, 2], [3, 4]], [1], axis=1).tolist()
    [[2], [4]]
    """

def take_along_axis(x: TensorLike, indices: TensorLike, axis: int = -1) -> Tensor:
    """
    The element at each index along an axis; with the result of argsort() it sorts.

    >>> pl.take_along_axis([[3, 1]], pl.argsort([[3, 1]])).tolist()
    [[1, 3]]
    """

def boolean_mask(x: TensorLike, mask: TensorLike) -> Tensor:
    """
    The elements, or parts of the first axes, where the mask is true.

    >>> pl.boolean_mask([1, 2, 3], [True, False, True]).tolist()
    [1, 3]
    """

def where_true(mask: TensorLike) -> Tensor:
    """
    The positions where it is true, a row for each.

    >>> pl.where_true([[True, False], [False, True]]).tolist()
    [[0, 0], [1, 1]]
    """

def one_hot(indices: TensorLike, depth: int, dtype: DTypeLike | None = None, on: float = 1.0, off: float = 0.0) -> Tensor:
    """
    A one at the position of each index, zeros elsewhere.

    >>> pl.one_hot([1, 0], 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

def scatter(indices: TensorLike, updates: TensorLike, shape: ShapeLike) -> Tensor:
    """
    Zeros of a shape with the updates added at these positions.

    >>> pl.scatter([1, 3], [5, 7], (4,)).tolist()
    [0, 5, 0, 7]
    """

def scatter_add(x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """
    x with the updates added at these positions.

    >>> pl.scatter_add([1, 1, 1], [0, 0], [5, 7]).tolist()
    [13, 1, 1]
    """

def scatter_update(x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """
    x with the updates put at these positions.

    >>> pl.scatter_update([1, 1, 1], [2], [9]).tolist()
    [1, 1, 9]
    """

def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """
    Elements below min become min, those above max become max.

    >>> pl.clip([-1, 2, 9], 0, 5).tolist()
    [0, 2, 5]
    """

def matmul(a: TensorLike, b: TensorLike, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False) -> Tensor:
    """
    Products of matrices, and of batches of them.

    >>> pl.matmul(pl.ones((2, 3)), pl.ones((3, 4))).shape
    (2, 4)
    """

def dot(a: TensorLike, b: TensorLike) -> Tensor:
    """
    The sum of products of two vectors.

    >>> pl.dot([1.0, 2.0], [3.0, 4.0]).item()
    11.0
    """

def outer(a: TensorLike, b: TensorLike) -> Tensor:
    """
    All products of two vectors, as a matrix.

    >>> pl.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """

def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """
    Sums of products of one or two tensors, by the letters of their axes.

    >>> pl.einsum("ij,jk->ik", pl.ones((2, 3)), pl.ones((3, 4))).shape
    (2, 4)
    """

def global_norm(tensors: Sequence[TensorLike]) -> Tensor:
    """
    The norm of several tensors together.

    >>> pl.global_norm([[3.0], [4.0]]).item()
    5.0
    """

def clip_by_global_norm(tensors: Sequence[TensorLike], limit: float) -> tuple[list[Tensor], Tensor]:
    """
    The tensors scaled so that their norm together is not above the limit.

    >>> tensors, norm = pl.clip_by_global_norm([[3.0], [4.0]], 1.0)
    >>> norm.item()
    5.0
    """

def confusion_matrix(labels: TensorLike, predictions: TensorLike, num_classes: int) -> Tensor:
    """
    How often each class (column) was predicted for each label (row).

    >>> pl.confusion_matrix([0, 1, 1], [0, 1, 0], num_classes=2).tolist()
    [[1, 0], [1, 1]]
    """

def conv2d(x: TensorLike, filter: TensorLike, strides: int | tuple[int, int] = 1, padding: str = 'valid', dilations: int | tuple[int, int] = 1, groups: int = 1) -> Tensor:
    """
    A convolution of images [batch, height, width, channels] with filters [height, width, in, out].

    >>> pl.conv2d(pl.ones((1, 5, 5, 2)), pl.ones((3, 3, 2, 4))).shape
    (1, 3, 3, 4)
    """

def max_pool2d(x: TensorLike, size: int | tuple[int, int] = 2, strides: int | tuple[int, int] = 0, padding: str = 'valid') -> Tensor:
    """
    The largest of each window of images [batch, height, width, channels].

    >>> pl.max_pool2d(pl.ones((1, 4, 4, 2)), size=2).shape
    (1, 2, 2, 2)
    """

def avg_pool2d(x: TensorLike, size: int | tuple[int, int] = 2, strides: int | tuple[int, int] = 0, padding: str = 'valid') -> Tensor:
    """
    The mean of each window of images [batch, height, width, channels].

    >>> pl.avg_pool2d(pl.ones((1, 4, 4, 2)), size=2).shape
    (1, 2, 2, 2)
    """

def softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Tensor:
    """
    A loss for each example: labels are shares of classes, logits what softmax() would get.

    >>> pl.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[100.0, 0.0]]).tolist()
    [0.0]
    """

def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Tensor:
    """
    A loss for each example: labels are numbers of classes.

    >>> pl.sparse_softmax_cross_entropy_with_logits([0], [[100.0, 0.0]]).tolist()
    [0.0]
    """

def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Tensor:
    """
    A loss for each element: labels are 0 or 1, logits what sigmoid() would get.

    >>> pl.sigmoid_cross_entropy_with_logits([1.0], [1000.0]).tolist()
    [0.0]
    """

def cumsum(x: TensorLike, axis: int | None = None, exclusive: builtins.bool = False, reverse: builtins.bool = False) -> Tensor:
    """
    Running sums along an axis; of all elements in a row when none is given. Integers add up in int64.

    >>> pl.cumsum([1, 2, 3]).tolist(), pl.cumsum([1, 2, 3], exclusive=True).tolist()
    ([1, 3, 6], [0, 1, 3])
    """

def cumprod(x: TensorLike, axis: int | None = None, exclusive: builtins.bool = False, reverse: builtins.bool = False) -> Tensor:
    """
    Running products along an axis; of all elements in a row when none is given. They double up: a product of n takes log2(n) passes.

    >>> pl.cumprod([1, 2, 3, 4]).tolist(), pl.cumprod([1, 2, 3], reverse=True).tolist()
    ([1, 2, 6, 24], [6, 6, 3])
    """

def nextafter(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    The number next to each of a, on the way to b.

    >>> pl.nextafter(1.0, 2.0).item() - 1 == 2.0 ** -23
    True
    """

def copysign(a: TensorLike, b: TensorLike, /) -> Tensor:
    """
    a with the signs of b.

    >>> pl.copysign([1.0, -2.0], -0.0).tolist()
    [-1.0, -2.0]
    """

def signbit(x: TensorLike, /) -> Tensor:
    """
    Whether the sign bit is set, for zeros and NaNs too.

    >>> pl.signbit([1.0, -0.0]).tolist()
    [False, True]
    """

class SparseTensor:
    """
    A tensor that stores only some of its elements, the entries; all others are zero.

    >>> s = pl.SparseTensor([[0, 1], [2, 0]], [5.0, 7.0], (3, 2))
    >>> (s @ pl.asarray([[1.0], [2.0]])).tolist()
    [[10.0], [0.0], [7.0]]
    >>> (s * 2).to_dense().tolist()
    [[0.0, 10.0], [0.0, 0.0], [14.0, 0.0]]
    """

    def __init__(self, indices: TensorLike, values: TensorLike, shape: ShapeLike, duplicates: str = 'refuse') -> None: ...

    @staticmethod
    def from_csr(row_splits: TensorLike, columns: TensorLike, values: TensorLike, shape: ShapeLike, duplicates: str = 'refuse') -> SparseTensor: ...

    @staticmethod
    def from_dense(x: TensorLike) -> SparseTensor:
        """The elements that are not zero."""

    @staticmethod
    def from_scipy(matrix: object) -> SparseTensor:
        """Copies a sparse matrix of SciPy."""

    def to_scipy(self) -> Any:
        """A csr_matrix of SciPy, copied."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def num_entries(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def device(self) -> str: ...

    @property
    def format(self) -> str: ...

    @property
    def values(self) -> Tensor: ...

    @property
    def indices(self) -> Tensor: ...

    @property
    def row_splits(self) -> Tensor: ...

    @property
    def columns(self) -> Tensor: ...

    def dispose(self) -> None: ...

    @property
    def is_disposed(self) -> builtins.bool: ...

    def __repr__(self) -> str: ...

    def to_coo(self) -> SparseTensor: ...

    def to_csr(self) -> SparseTensor:
        """Once before many products."""

    def to_dense(self) -> Tensor: ...

    def with_values(self, values: TensorLike) -> SparseTensor:
        """The same places with other values."""

    def astype(self, dtype: DTypeLike) -> SparseTensor: ...

    def slice_rows(self, begin: int, count: int = -1) -> SparseTensor: ...

    def transpose(self, axes: Sequence[int] | None = None) -> SparseTensor: ...

    @property
    def T(self) -> SparseTensor: ...

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Tensor:
        """Dense: the zeros that are not stored count."""

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Tensor:
        """Dense: the zeros that are not stored count."""

    def max(self, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Tensor:
        """Dense: the zeros that are not stored count."""

    __array_ufunc__: None = None

    def __add__(self, other: object, /) -> SparseTensor: ...

    def __sub__(self, other: object, /) -> SparseTensor: ...

    def __neg__(self) -> SparseTensor: ...

    def __mul__(self, other: object, /) -> SparseTensor: ...

    def __rmul__(self, other: object, /) -> SparseTensor: ...

    def __truediv__(self, other: object, /) -> SparseTensor: ...

    def __matmul__(self, other: object, /) -> Any: ...

    def __rmatmul__(self, other: object, /) -> Any: ...

def sparse_matmul(a: object, b: object, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False) -> Any:
    """
    A product of two sparse tensors, or of a sparse and a dense one.

    >>> s = pl.SparseTensor([[0, 1]], [2.0], (2, 2))
    >>> pl.sparse_matmul(s, pl.ones((2, 1))).tolist()
    [[2.0], [0.0]]
    """

def sparse_softmax(x: SparseTensor) -> SparseTensor:
    """
    Softmax over the stored entries of each row.

    >>> s = pl.SparseTensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
    >>> pl.sparse_softmax(s).to_dense().tolist()
    [[0.5, 0.0, 0.5]]
    """

class RaggedTensor:
    """
    Rows of different lengths, one after the other: a batch of sequences without padding.

    >>> r = pl.RaggedTensor.from_rows([[1, 2, 3], [], [4]])
    >>> r.to_padded().tolist(), r.row_lengths.tolist()
    ([[1, 2, 3], [0, 0, 0], [4, 0, 0]], [3, 0, 1])
    """

    def __init__(self, values: TensorLike, row_splits: TensorLike) -> None: ...

    @staticmethod
    def from_row_lengths(values: TensorLike, lengths: TensorLike) -> RaggedTensor: ...

    @staticmethod
    def from_rows(rows: Iterable[TensorLike]) -> RaggedTensor: ...

    @staticmethod
    def from_padded(padded: TensorLike, lengths: TensorLike) -> RaggedTensor: ...

    @property
    def values(self) -> Tensor: ...

    @property
    def row_splits(self) -> Tensor: ...

    @property
    def row_lengths(self) -> Tensor: ...

    @property
    def shape(self) -> tuple[int | None, ...]: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def num_rows(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def max_length(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Tensor: ...

    def with_values(self, values: TensorLike) -> RaggedTensor:
        """The same rows with other values."""

    def to_padded(self, value: float = 0, max_length: int = -1) -> Tensor:
        """
        [rows, width, ...], with the value after the ends; longer rows are cut.
        """

    def mask(self, max_length: int = -1) -> Tensor:
        """bool [rows, width]: true before the ends."""

    def tolist(self) -> list[list[object]]: ...

    def dispose(self) -> None: ...

    @property
    def is_disposed(self) -> builtins.bool: ...

    def __repr__(self) -> str: ...

class TensorArray:
    """
    A list of tensors of one dtype, written and read one by one: what loops collect their results in.

    >>> states = pl.TensorArray("float32", dynamic_size=True)
    >>> for t in range(3):
    ...     states = states.write(t, pl.full(2, t))
    >>> states.stack().tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    """

    def __init__(self, dtype: DTypeLike, size: int = 0, dynamic_size: builtins.bool = False, clear_after_read: builtins.bool = True, element_shape: ShapeLike | None = None, infer_shape: builtins.bool = True) -> None: ...

    def write(self, index: int, value: TensorLike) -> TensorArray:
        """Writes an element, once."""

    def read(self, index: int) -> Tensor:
        """Takes an element out, unless clear_after_read is off."""

    def stack(self) -> Tensor: ...

    def concat(self) -> Tensor: ...

    def gather(self, indices: Sequence[int]) -> Tensor: ...

    def unstack(self, value: TensorLike) -> TensorArray: ...

    def scatter(self, indices: Sequence[int], value: TensorLike) -> TensorArray: ...

    def split(self, value: TensorLike, lengths: Sequence[int]) -> TensorArray: ...

    def size(self) -> int: ...

    def __len__(self) -> int: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def element_shape(self) -> tuple[int | None, ...] | None: ...

    def dispose(self) -> None: ...

    def close(self) -> None: ...

    def __repr__(self) -> str: ...

class TensorTree:
    """
    Tensors in nested lists and dicts: the parameters of a model, the state of a loop, what is in a file.

    >>> tree = pl.TensorTree({"w": [1.0, 2.0], "layers": [pl.zeros(3), pl.ones(3)]})
    >>> tree.num_tensors, tree.nbytes
    (4, 32)
    >>> tree.map(lambda x: x + 1)["layers"][1].tolist()
    [2.0, 2.0, 2.0]
    """

    def __init__(self, value: object) -> None: ...

    @property
    def is_list(self) -> builtins.bool: ...

    @property
    def is_map(self) -> builtins.bool: ...

    @property
    def is_tensor(self) -> builtins.bool: ...

    def keys(self) -> list[str]: ...

    def __len__(self) -> int: ...

    def __contains__(self, arg: str, /) -> builtins.bool: ...

    @overload
    def __getitem__(self, arg: str, /) -> object: ...

    @overload
    def __getitem__(self, arg: int, /) -> object: ...

    def flatten(self) -> list[Tensor]:
        """All tensors, depth first, dicts in the order of their keys."""

    def with_leaves(self, leaves: Sequence[TensorLike]) -> TensorTree:
        """The same structure with these in the places of its tensors."""

    def map(self, f: Callable[[Tensor], TensorLike]) -> TensorTree:
        """The same structure, with what the function gives for each tensor."""

    def same_structure(self, other: object) -> builtins.bool: ...

    def to_python(self) -> Any:
        """Python's own lists and dicts."""

    @property
    def num_tensors(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def __repr__(self) -> str: ...

class Lease:
    """
    One tensor of a pool, until it ends; a buffer that can be written.

    >>> pool = pl.TensorPool((1,), capacity=1)
    >>> with pool.acquire() as lease:
    ...     memoryview(lease)[0] = 5.0
    ...     print(lease.tensor.tolist())
    [5.0]
    """

    @property
    def tensor(self) -> Tensor:
        """What is there; disposed when the lease ends."""

    def numpy(self) -> numpy.ndarray:
        """An array of NumPy to write to, on the same memory."""

    def release(self) -> None:
        """Ends it now."""

    def __enter__(self) -> Lease: ...

    def __exit__(self, *args: object) -> None: ...

class TensorPool:
    """
    Tensors of one shape that are taken once and lent out, so that steady work allocates nothing.

    >>> pool = pl.TensorPool((2, 3), capacity=2)
    >>> with pool.acquire() as lease:
    ...     memoryview(lease)[0, 0] = 5.0
    ...     (lease.tensor * 2)[0, 0].item()
    10.0
    >>> pool.used, pool.peak
    (0, 1)
    """

    def __init__(self, shape: ShapeLike, dtype: DTypeLike | None = None, capacity: int = 1, device: str | None = None) -> None: ...

    def acquire(self, timeout: float | None = None) -> Lease:
        """
        Waits until one is free; None when none became free within that many seconds.
        """

    def try_acquire(self) -> Lease | None:
        """None when none is free."""

    @property
    def capacity(self) -> int: ...

    @property
    def used(self) -> int:
        """How many are lent, or held by views."""

    @property
    def peak(self) -> int: ...

    def report(self) -> str: ...

    def __repr__(self) -> str: ...

class Tidy:
    """
    A scope: tensors made inside are disposed at its end, except those that are kept. Returned by pl.tidy().

    >>> with pl.tidy() as scope:
    ...     y = scope.keep(pl.ones(3) * 2)
    >>> y.tolist()
    [2.0, 2.0, 2.0]
    """

    def __enter__(self) -> Tidy: ...

    def __exit__(self, *args: object) -> None: ...

    def keep(self, value: T) -> T:
        """
        Passes the tensors inside the value to the enclosing scope, and returns it.
        """

    def __call__(self, function: Callable[..., T], *args: object, **kwargs: object) -> T:
        """What the function returns is all that is left of it."""

def new_tidy(name: str = '') -> Tidy: ...

def keep(value: T) -> T:
    """
    No scope releases the tensors inside the value from now on; dispose() does. Returns it.

    >>> with pl.tidy():
    ...     x = pl.keep(pl.ones(3))
    >>> x.sum().item()
    3.0
    """

def dispose(value: object) -> None:
    """
    Gives back the memory of every tensor inside: of a tensor, a list, a dict, ...

    >>> x = pl.ones(3)
    >>> pl.dispose([x])
    >>> x.is_disposed
    True
    """

class Budget:
    """
    A limit in bytes that its charges never pass; budgets form a tree. Returned by pl.budget().

    >>> with pl.budget("step", "1MiB") as budget:
    ...     x = pl.ones(1000)
    >>> budget.name, budget.limit, budget.used >= 4000
    ('step', 1048576, True)
    """

    def __enter__(self) -> Budget: ...

    def __exit__(self, *args: object) -> None: ...

    @property
    def name(self) -> str: ...

    @property
    def limit(self) -> int: ...

    @property
    def used(self) -> int: ...

    @property
    def peak(self) -> int: ...

    def reset_peak(self) -> None:
        """To what is used now."""

    def report(self) -> str:
        """A table of this budget and those below it."""

    def on_alert(self, fraction: float, callback: object) -> object:
        """
        Calls back when that share of the limit is passed, while what it returns lives.
        """

    def __repr__(self) -> str: ...

def budget(name: str, size: str | int, parent: Budget | None = None, evict: builtins.bool = False, spill: str | os.PathLike[str] | None = None) -> Budget:
    """
    A budget, for `with`: what is made inside is charged to it and to those it is part of.

    A request beyond it raises OutOfMemory, a MemoryError, having changed nothing. With evict=True results
    of operations are dropped first and computed again when they are read, to the same bits (spill, a
    directory to keep them in instead, is Unsupported for budgets of single operations).

    >>> with pl.budget("step", "1MiB") as b:
    ...     x = pl.zeros(1000)
    >>> b.used >= 4000
    True
    >>> with pl.budget("tight", "12KiB", evict=True) as b:
    ...     x = pl.ones(1000)
    ...     several = [x * i for i in range(8)]      # 4000 bytes each
    ...     [each[0].item() for each in several]
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    >>> b.peak <= 12 << 10
    True
    """

class DeviceScope:
    """
    Tensors made inside are on that device. Returned by pl.device().

    >>> with pl.device("CPU:0"):
    ...     x = pl.ones(3)
    """

    def __enter__(self) -> DeviceScope: ...

    def __exit__(self, *args: object) -> None: ...

def device(name: str, soft: builtins.bool = False) -> DeviceScope:
    """
    A scope: tensors made inside are on that device. A soft one is for graphs: without such a device nodes are placed elsewhere.

    >>> with pl.device("CPU:0"):
    ...     x = pl.ones(3)
    >>> x.device
    'CPU:0'
    """

class NameScope:
    """
    Everything made inside carries the name in every report. Returned by pl.name_scope().

    >>> with pl.name_scope("encoder"):
    ...     x = pl.ones(3)
    """

    def __enter__(self) -> NameScope: ...

    def __exit__(self, *args: object) -> None: ...

def name_scope(name: str) -> NameScope:
    """
    A scope: everything made inside carries the name in every report.

    >>> with pl.name_scope("encoder"):
    ...     x = pl.keep(pl.ones(3))
    >>> [t.scope for t in pl.live_tensors() if t.id == x.id]
    ['encoder']
    """

class MemoryInfo:
    """
    The number of live tensors, of their buffers, and of bytes in those. Returned by pl.memory().

    >>> info = pl.memory()
    >>> info.num_tensors >= info.num_data_buffers
    True
    """

    @property
    def num_tensors(self) -> int: ...

    @property
    def num_data_buffers(self) -> int: ...

    @property
    def num_bytes(self) -> int: ...

    def __repr__(self) -> str: ...

def memory() -> MemoryInfo:
    """
    >>> before = pl.memory().num_tensors
    >>> x = pl.ones(3)
    >>> pl.memory().num_tensors - before
    1
    """

class MemoryStats:
    """
    The state of one device's memory now, and its peaks. Returned by pl.memory_stats().

    >>> stats = pl.memory_stats()
    >>> stats.bytes_in_use <= stats.peak_bytes_in_use <= stats.bytes_limit
    True
    """

    @property
    def bytes_in_use(self) -> int: ...

    @property
    def peak_bytes_in_use(self) -> int: ...

    @property
    def bytes_reserved(self) -> int: ...

    @property
    def peak_bytes_reserved(self) -> int: ...

    @property
    def bytes_limit(self) -> int: ...

    @property
    def largest_alloc_bytes(self) -> int: ...

    @property
    def largest_free_block_bytes(self) -> int: ...

    @property
    def num_allocs(self) -> int: ...

    @property
    def num_ooms(self) -> int: ...

    @property
    def fragmentation(self) -> float: ...

def memory_stats(device: str = '') -> MemoryStats:
    """
    The state of a device's memory now, and its peaks.

    >>> x = pl.ones(1000)
    >>> pl.memory_stats().bytes_in_use >= 4000
    True
    """

def reset_memory_stats(device: str = '') -> None:
    """
    Resets peaks to what is used now.

    >>> pl.reset_memory_stats()
    >>> stats = pl.memory_stats()
    >>> stats.peak_bytes_in_use == stats.bytes_in_use
    True
    """

def trim() -> int:
    """
    Gives every free page back to the system; the bytes that were given.

    >>> pl.trim() >= 0
    True
    """

def collect_garbage() -> None:
    """
    Lets deferred releases take effect and empties caches.

    >>> pl.collect_garbage()
    """

class LiveTensor:
    """
    A live tensor, and what is known about it. Listed by pl.live_tensors().

    >>> x = pl.ones(3)
    >>> [(t.shape, t.dtype) for t in pl.live_tensors() if t.id == x.id]
    [((3,), plimsoll.float32)]
    """

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def op(self) -> str: ...

    @property
    def scope(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def category(self) -> str: ...

    @property
    def step(self) -> int: ...

    @property
    def site(self) -> str: ...

    @property
    def shape(self) -> tuple: ...

    @property
    def dtype(self) -> object: ...

    def __repr__(self) -> str: ...

def live_tensors() -> list[LiveTensor]:
    """
    Every tensor that is alive.

    >>> x = pl.ones(3)
    >>> any(t.id == x.id for t in pl.live_tensors())
    True
    """

class Holders:
    """
    What keeps a tensor and its bytes alive. Returned by pl.who_holds(); a picture in a notebook.

    >>> x = pl.ones(3)
    >>> print(str(pl.who_holds(x)).splitlines()[0])
    tensor (3,): float32, made by ones; buffer of 12 B on CPU:0
    """

    def paths(self) -> list[str]:
        """One for each holder, from the tensor outwards."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def to_svg(self) -> str: ...

    def to_dot(self) -> str: ...

    def write_svg(self, path: str | os.PathLike) -> None: ...

    def write_dot(self, path: str | os.PathLike) -> None: ...

def who_holds(x: Tensor | Variable) -> Holders:
    """
    What keeps a tensor and its bytes alive: handles, views, tapes, scopes.

    >>> x = pl.ones(3)
    >>> view = memoryview(x)
    >>> "1 data view" in str(pl.who_holds(x))
    True
    """

class GrowthRow:
    """
    Tensors of one kind that there are more of: where they were made, how many, how many bytes.

    >>> growth = pl.Growth()
    >>> x = pl.ones(3)
    >>> [(row.count, row.bytes) for row in growth.take()]
    [(1, 12)]
    """

    @property
    def op(self) -> str: ...

    @property
    def scope(self) -> str: ...

    @property
    def site(self) -> str: ...

    @property
    def count(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    def __repr__(self) -> str: ...

class Growth:
    """
    What there is more of than at the last look: how a leak is found in a running loop.

    >>> growth = pl.Growth()
    >>> held = [pl.ones(256)]
    >>> [(row.op, row.bytes) for row in growth.take()]
    [('ones', 1024)]
    """

    def __init__(self) -> None: ...

    def take(self) -> list[GrowthRow]:
        """Looks; most bytes first."""

    def show(self) -> list[GrowthRow]:
        """The same, and prints it."""

class LeakCheck:
    """
    Finds tensors that were made since and should be gone; as a context manager it raises Leak.

    >>> with pl.LeakCheck():
    ...     y = pl.ones(3).sum().item()
    """

    def __init__(self) -> None: ...

    def leaked(self) -> int: ...

    def expect_none(self) -> None:
        """Raises Leak, which lists them, when there are some."""

    def __enter__(self) -> LeakCheck: ...

    def __exit__(self, type: object | None, value: object | None, traceback: object | None) -> None: ...

class MemoryAlert:
    """
    The argument of a callback of pl.on_memory_alert(): the device, its use and its limit.

    >>> def tell(alert: pl.MemoryAlert):
    ...     print(alert)
    >>> handle = pl.on_memory_alert(0.9, tell)
    """

    @property
    def device(self) -> str: ...

    @property
    def budget(self) -> str: ...

    @property
    def bytes_in_use(self) -> int: ...

    @property
    def bytes_limit(self) -> int: ...

    @property
    def fraction(self) -> float: ...

class AlertHandle:
    """
    Calls back while it lives. Returned by pl.on_memory_alert().

    >>> handle = pl.on_memory_alert(0.9, print)
    >>> del handle
    """

    def close(self) -> None: ...

    def __enter__(self) -> AlertHandle: ...

    def __exit__(self, *args: object) -> None: ...

def on_memory_alert(fraction: float, callback: Callable[[MemoryAlert], object]) -> AlertHandle:
    """
    Calls back when a device's memory passes that share of its limit, while what it returns lives.

    >>> handle = pl.on_memory_alert(0.9, lambda alert: print(alert))
    >>> del handle
    """

class Recording:
    """
    Writes what happens in memory to a trace, between `with` and the end of its block. Returned by pl.record().

    >>> with pl.record("run.trace") as recording:
    ...     x = pl.ones(1000) * 2
    """

    def __enter__(self) -> Recording: ...

    def __exit__(self, *args: object) -> None: ...

    @property
    def path(self) -> pathlib.Path: ...

def record(path: str | os.PathLike[str], max_bytes: str | int | None = None) -> Recording:
    """
    A recording of what happens in memory, for `with`; `plimsoll report` and pl.Report show it.

    >>> with pl.record("run.trace"):
    ...     x = pl.ones(1000) * 2
    >>> pl.Report("run.trace").findings[0]["level"]
    'note'
    """

def trace_step(number: int) -> None:
    """
    A step begins, in recordings.

    >>> pl.trace_step(1)
    """

def trace_phase(name: str) -> None:
    """
    A phase begins, in recordings.

    >>> pl.trace_phase("forward")
    """

def write_report(trace: str | os.PathLike, html: str | os.PathLike) -> None:
    """One offline page that shows a recording."""

def has_report_page() -> builtins.bool: ...

def findings_of(trace: str | os.PathLike[str]) -> list[dict[str, object]]: ...

def export_trace(trace: str | os.PathLike, out: str | os.PathLike, format: str = 'pytorch', at: str = '', steps: str = '') -> None:
    """
    A recording as a file for other viewers: pytorch, perfetto, pprof or heaptrack.

    >>> with pl.record("run.trace"):
    ...     x = pl.ones(1000) * 2
    >>> pl.export_trace("run.trace", "run.json", format="perfetto")
    """

def process_memory() -> dict[str, int]:
    """
    The memory of this process as the system counts it, in bytes.

    >>> pl.process_memory()["resident"] > 0
    True
    """

def resident_parts() -> str:
    """
    What the resident bytes of this process consist of, as a table.

    >>> pl.resident_parts().startswith("resident")
    True
    """

class Variable:
    """
    A tensor's value that can be changed; a model's parameter.

    >>> w = pl.Variable([1.0, 2.0])
    >>> w.assign_add([1.0, 1.0]).tolist()
    [2.0, 3.0]
    """

    def __hash__(self, /):
        """Return hash(self)."""

    def __lt__(self, value, /):
        """Return self<value."""

    def __le__(self, value, /):
        """Return self<=value."""

    def __eq__(self, value, /):
        """Return self==value."""

    def __ne__(self, value, /):
        """Return self!=value."""

    def __gt__(self, value, /):
        """Return self>value."""

    def __ge__(self, value, /):
        """Return self>=value."""

    def __init__(self, initial_value: TensorLike, dtype: DTypeLike | None = None, name: str = '', trainable: builtins.bool = True) -> None: ...

    def __add__(self, value, /):
        """Return self+value."""

    def __radd__(self, value, /):
        """Return value+self."""

    def __sub__(self, value, /):
        """Return self-value."""

    def __rsub__(self, value, /):
        """Return value-self."""

    def __mul__(self, value, /):
        """Return self*value."""

    def __rmul__(self, value, /):
        """Return value*self."""

    def __mod__(self, value, /):
        """Return self%value."""

    def __rmod__(self, value, /):
        """Return value%self."""

    def __divmod__(self, value, /):
        """Return divmod(self, value)."""

    def __rdivmod__(self, value, /):
        """Return divmod(value, self)."""

    def __pow__(self, value, mod=None, /):
        """Return pow(self, value, mod)."""

    def __rpow__(self, value, mod=None, /):
        """Return pow(value, self, mod)."""

    def __neg__(self, /):
        """-self"""

    def __pos__(self, /):
        """+self"""

    def __abs__(self, /):
        """abs(self)"""

    def __bool__(self, /):
        """True if self else False"""

    def __invert__(self, /):
        """~self"""

    def __lshift__(self, value, /):
        """Return self<<value."""

    def __rlshift__(self, value, /):
        """Return value<<self."""

    def __rshift__(self, value, /):
        """Return self>>value."""

    def __rrshift__(self, value, /):
        """Return value>>self."""

    def __and__(self, value, /):
        """Return self&value."""

    def __rand__(self, value, /):
        """Return value&self."""

    def __xor__(self, value, /):
        """Return self^value."""

    def __rxor__(self, value, /):
        """Return value^self."""

    def __or__(self, value, /):
        """Return self|value."""

    def __ror__(self, value, /):
        """Return value|self."""

    def __int__(self, /):
        """int(self)"""

    def __float__(self, /):
        """float(self)"""

    def __floordiv__(self, value, /):
        """Return self//value."""

    def __rfloordiv__(self, value, /):
        """Return value//self."""

    def __truediv__(self, value, /):
        """Return self/value."""

    def __rtruediv__(self, value, /):
        """Return value/self."""

    def __index__(self, /):
        """
        Return self converted to an integer, if self is suitable for use as an index into a list.
        """

    def __matmul__(self, value, /):
        """Return self@value."""

    def __rmatmul__(self, value, /):
        """Return value@self."""

    def __len__(self, /):
        """Return len(self)."""

    def __getitem__(self, key, /):
        """Return self[key]."""

    def __setitem__(self, key, value, /):
        """Set self[key] to value."""

    def __delitem__(self, key, /):
        """Delete self[key]."""

    def __contains__(self, key, /):
        """Return key in self."""

    __array_priority__: float = 100.0

    def value(self) -> Tensor:
        """A snapshot: later changes do not reach it."""

    def assign(self, value: TensorLike) -> Variable: ...

    def assign_add(self, value: TensorLike) -> Variable: ...

    def assign_sub(self, value: TensorLike) -> Variable: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def ndim(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def trainable(self) -> builtins.bool: ...

    @property
    def device(self) -> str: ...

    @property
    def is_disposed(self) -> builtins.bool: ...

    def dispose(self) -> None: ...

    def __repr__(self) -> str: ...

    def __reduce__(self) -> tuple: ...

    def __iter__(self) -> Iterator[Tensor]: ...

    def item(self, *args, **kwargs) -> object: ...

    def tolist(self, *args, **kwargs) -> object: ...

    def numpy(self, *args, **kwargs) -> object: ...

    def tobytes(self, *args, **kwargs) -> object: ...

    def sum(self, *args, **kwargs) -> object: ...

    def mean(self, *args, **kwargs) -> object: ...

    def max(self, *args, **kwargs) -> object: ...

    def min(self, *args, **kwargs) -> object: ...

    def reshape(self, *args, **kwargs) -> object: ...

    def transpose(self, *args, **kwargs) -> object: ...

    def astype(self, *args, **kwargs) -> object: ...

    def flatten(self, *args, **kwargs) -> object: ...

    @property
    def T(self) -> object: ...

class GradientTape:
    """
    Watches operations as they run, and gives the gradients of what they computed.

    >>> x = pl.asarray(3.0)
    >>> with pl.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).item()
    6.0
    """

    def __init__(self, persistent: builtins.bool = False) -> None: ...

    def __enter__(self) -> GradientTape: ...

    def __exit__(self, *args: object) -> None: ...

    def watch(self, tensor: object) -> None:
        """Trainable variables are watched by themselves."""

    def gradient(self, target: Tensor, sources: object) -> object:
        """
        d target / d source for one source, or for a list or dict of them; None for what it does not depend on.
        """

    def reset(self) -> None: ...

def custom_gradient(inputs: Sequence[TensorLike], forward: Callable[..., Tensor], backward: Callable[..., object]) -> Tensor:
    """
    A function with your own gradient: backward(gradient, *inputs) returns one for each input.

    >>> x = pl.Variable(2.0)
    >>> with pl.GradientTape() as tape:
    ...     y = pl.custom_gradient([x], lambda v: v * v, lambda g, v: [g * 10])
    >>> tape.gradient(y, x).item()
    10.0
    """

def stop_gradient(x: TensorLike) -> Tensor:
    """
    The same value, which tapes take for a constant.

    >>> x = pl.Variable(2.0)
    >>> with pl.GradientTape() as tape:
    ...     y = x * pl.stop_gradient(x)
    >>> tape.gradient(y, x).item()
    2.0
    """

class NoGradient:
    """
    A scope in which tapes see nothing. Returned by pl.no_grad().

    >>> with pl.no_grad():
    ...     x = pl.ones(3) * 2
    """

    def __enter__(self) -> None: ...

    def __exit__(self, *args: object) -> None: ...

def no_grad() -> NoGradient:
    """
    A scope in which tapes see nothing.

    >>> x = pl.Variable(2.0)
    >>> with pl.GradientTape() as tape:
    ...     with pl.no_grad():
    ...         y = x * x
    >>> tape.gradient(y, x) is None
    True
    """

class FileWriter:
    """
    A graph and what happens in its runs, for TensorBoard.

    >>> with pl.FileWriter("logs") as writer:
    ...     writer.add_scalar("loss", 0.5, step=1)
    """

    def __init__(self, logdir: str, graph: object | None = None) -> None: ...

    def add_scalar(self, tag: str, value: float, step: int) -> None: ...

    def add_histogram(self, tag: str, values: object, step: int) -> None: ...

    def add_text(self, tag: str, text: str, step: int) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> object: ...

    def __exit__(self, *args) -> None: ...

class Graph:
    """
    Operations that are written down instead of run.

    >>> with pl.Graph() as g:
    ...     x = pl.placeholder("float32", (2,))
    ...     y = x * 2
    >>> with pl.Session(g) as session:
    ...     print(session.run(y, {x: [1, 2]}).tolist())
    [2.0, 4.0]
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> Graph: ...

    def __exit__(self, *args: object) -> None: ...

    def as_default(self) -> Graph:
        """For `with`: operations inside become nodes of the graph."""

    def __len__(self) -> int: ...

    @property
    def size(self) -> int:
        """Nodes."""

    def finalize(self) -> None:
        """No node is added from now on."""

    def to_dot(self) -> str: ...

    def placement(self) -> str:
        """A line for each node: its name, operation and device."""

    def __eq__(self, arg: object, /) -> builtins.bool: ...

    def __hash__(self) -> int: ...

def default_graph() -> Graph:
    """
    The graph that is open: of the innermost `with pl.Graph():`, or the one of the thread.

    >>> with pl.Graph():
    ...     x = pl.placeholder("float32")
    ...     graph = pl.default_graph()
    >>> with pl.Session(graph) as session:
    ...     print(session.run(x, {x: 3.0}).item())
    3.0
    """

def reset_default_graph() -> None:
    """
    An empty default graph from now on.

    >>> pl.reset_default_graph()
    """

def placeholder(dtype: DTypeLike, shape: ShapeLike = (), name: str = 'placeholder') -> Tensor:
    """
    A value that each run of a graph is fed with; sizes that are None fit any.

    >>> with pl.Graph() as g:
    ...     x = pl.placeholder("float32", (None, 2))
    ...     y = x.sum(axis=1)
    >>> with pl.Session(g) as session:
    ...     print(session.run(y, {x: [[1, 2], [3, 4]]}).tolist())
    [3.0, 7.0]
    """

def group(*nodes: Tensor) -> Tensor:
    """
    A node that runs all of these.

    >>> with pl.Graph() as g:
    ...     both = pl.group(pl.constant(1.0), pl.constant(2.0))
    """

def gradients(target: Tensor, sources: object) -> object:
    """
    Gradients as nodes of the graph.

    >>> with pl.Graph() as g:
    ...     x = pl.placeholder("float32")
    ...     slope = pl.gradients(x * x, [x])[0]
    >>> with pl.Session(g) as session:
    ...     print(session.run(slope, {x: 3.0}).item())
    6.0
    """

class VariablesInitializer:
    """
    What pl.global_variables_initializer() gives: session.run() of it gives every variable its initial value.

    >>> with pl.Graph() as g:
    ...     w = pl.Variable(3.0)
    >>> with pl.Session(g) as session:
    ...     session.run(pl.global_variables_initializer())
    """

def global_variables_initializer() -> VariablesInitializer:
    """
    For session.run(): gives every variable its initial value.

    >>> with pl.Graph() as g:
    ...     w = pl.Variable(3.0)
    ...     start = pl.global_variables_initializer()
    >>> with pl.Session(g) as session:
    ...     session.run(start)
    ...     print(session.run(w).item())
    3.0
    """

class Session:
    """
    Runs a graph: values for its placeholders in, values of its nodes out.

    >>> with pl.Graph() as g:
    ...     x = pl.placeholder(pl.float32, (None,))
    ...     y = x * 2
    >>> with pl.Session(g) as session:
    ...     session.run(y, {x: [1, 2]}).tolist()
    [2.0, 4.0]
    """

    def __init__(self, graph: Graph | None = None, budget: str | int | None = None, spill: str | os.PathLike[str] | None = None) -> None: ...

    def run(self, fetches: object, feed_dict: dict[Tensor, TensorLike] | None = None) -> Any:
        """
        Values of the fetches, in the same structure; None for what has none, such as a training step.
        """

    def initialize_variables(self) -> None: ...

    def variables(self) -> dict[str, Variable]:
        """The graph's variables by name, as far as they have values."""

    def uninitialized_variables(self) -> list[str]: ...

    def memory_plan(self, fetches: object, feed_dict: dict[Tensor, TensorLike] | None = None) -> dict[str, object]:
        """What a run would take, without running."""

    def memory_report(self) -> str: ...

    def close(self) -> None: ...

    @property
    def is_closed(self) -> builtins.bool: ...

    def __enter__(self) -> Session: ...

    def __exit__(self, *args: object) -> None: ...

class Saver:
    """
    The variables of a session, in checkpoints that TensorFlow reads and writes.

    >>> with pl.Graph() as g:
    ...     w = pl.Variable(3.0, name="w")
    ...     saver = pl.Saver()
    >>> with pl.Session(g) as session:
    ...     session.run(pl.global_variables_initializer())
    ...     path = saver.save(session, "model.ckpt")
    ...     saver.restore(session, path)
    """

    def __init__(self, max_to_keep: int = 5, variables: Sequence[str] = []) -> None: ...

    def save(self, session: Session, path: str, global_step: int | None = None) -> str:
        """The path it was saved under."""

    def restore(self, session: Session, path: str | os.PathLike[str] | None) -> None: ...

    def recover(self, directory: str) -> None: ...

    @property
    def checkpoints(self) -> list[str]: ...

def latest_checkpoint(directory: str) -> str | None:
    """
    The path of the newest checkpoint in a folder; None without one.

    >>> pl.latest_checkpoint(".") is None
    True
    """

class Function:
    """
    A function that is traced once for each kind of arguments, and then runs planned. Returned by pl.function().

    >>> f = pl.function(lambda x: pl.relu(x) * 2)
    >>> f(pl.asarray([-1.0, 3.0])).tolist(), f.trace_count
    ([0.0, 6.0], 1)
    """

    def __call__(self, *args, **kwargs) -> object: ...

    def memory_plan(self, *args, **kwargs) -> dict:
        """What a call with these takes, without running it."""

    @property
    def trace_count(self) -> int: ...

    @property
    def python_function(self) -> object: ...

def new_function(function: object, budget: object | None = None, name: str = '', spill: object | None = None) -> Function: ...

def cond(pred: object, true_fn: object, false_fn: object) -> object:
    """
    One of the two branches, on a value that a graph computes.

    >>> f = pl.function(lambda x: pl.cond(x.sum() > 0, lambda: x * 2, lambda: -x))
    >>> f(pl.asarray([1.0])).tolist(), f(pl.asarray([-1.0])).tolist()
    ([2.0], [1.0])
    """

def while_loop(cond: object, body: object, state: object) -> object:
    """
    A loop on values that a graph computes: body(state) as long as cond(state) holds.

    >>> f = pl.function(lambda x: pl.while_loop(lambda v: v < 100, lambda v: v * 2, x))
    >>> f(pl.asarray(3.0)).item()
    192.0
    """

class Pass:
    """
    One pass over a Dataset, as returned by iter(dataset).

    >>> x, y = next(iter(pl.Dataset.from_tensors([[1.0]], [2.0])))
    >>> x.tolist(), y.item()
    ([1.0], 2.0)
    """

    def __iter__(self) -> object: ...

    def __next__(self) -> object: ...

class Dataset:
    """
    A sequence of examples that can be iterated any number of times; with TensorFlow's methods.

    >>> data = pl.Dataset.from_tensors(pl.arange(5), pl.arange(5) * 10).batch(2)
    >>> [y.tolist() for x, y in data]
    [[0, 10], [20, 30], [40]]
    """

    @staticmethod
    def from_tensor_slices(x: object, y: object = None, weights: TensorLike | None = None) -> Dataset:
        """
        Rows of arrays: x, or x and y, or (x, y).

        >>> data = pl.Dataset.from_tensor_slices([[1.0], [2.0], [3.0]], [0, 1, 0]).batch(2)
        >>> [x.shape for x, y in data]
        [(2, 1), (1, 1)]
        """

    @staticmethod
    def from_tensors(x: object, y: object | None = None, weights: object | None = None) -> Dataset: ...

    @staticmethod
    def from_generator(make: Callable[[], Iterable[object]]) -> Dataset:
        """Examples that a function of Python gives, called again for each pass."""

    @staticmethod
    def from_csv(path: str, targets: Sequence[str] = [], features: Sequence[str] = [], categorical: Sequence[str] = [], stream: builtins.bool = False, missing: str = 'error') -> Dataset: ...

    @staticmethod
    def from_npz(path: str, x: str = '', y: str = '') -> Dataset: ...

    @staticmethod
    def from_idx(x: str, y: str = '') -> Dataset: ...

    def shuffle(self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: builtins.bool = True) -> Dataset: ...

    def batch(self, batch_size: int, drop_remainder: builtins.bool = False) -> Dataset: ...

    def repeat(self, count: int = -1) -> Dataset: ...

    def take(self, count: int) -> Dataset: ...

    def skip(self, count: int) -> Dataset: ...

    def prefetch(self, count: int, max_bytes: object | None = None) -> Dataset: ...

    def window(self, size: int, shift: int = 1, drop_remainder: builtins.bool = True) -> Dataset: ...

    def map(self, function: Callable[..., object]) -> Dataset: ...

    def filter(self, function: Callable[..., object]) -> Dataset: ...

    def split(self, fractions: Sequence[float]) -> list[Dataset]: ...

    def __iter__(self) -> Iterator[object]: ...

    def __len__(self) -> int: ...

    @property
    def size(self) -> int | None:
        """Examples of a pass; None when that is not known."""

def timeseries_windows(series: TensorLike, look_back: int, horizon: int = 1, stride: int = 1) -> Dataset:
    """
    Windows of a series and what comes after each: a Dataset of look_back steps and the horizon's.

    >>> windows = pl.timeseries_windows([1.0, 2.0, 3.0, 4.0], look_back=2)
    >>> x, y = next(iter(windows))
    >>> x.tolist(), y.tolist()
    ([[1.0], [2.0]], [3.0])
    """

class LayerOutput:
    def __add__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __radd__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __sub__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __rsub__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __mul__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __rmul__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __truediv__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __neg__(self) -> LayerOutput: ...
    """
    A place in a model that is described, what layers give when they are called with another: no elements, but operators.

    >>> x = pl.Input((4,))
    >>> y = pl.layers.Dense(4)(x) + x
    >>> pl.Model(x, y).output_shape
    (None, 4)
    """

    @property
    def shape(self) -> tuple[int | None, ...]: ...

    @property
    def dtype(self) -> object: ...

class Layer:
    def __getattr__(self, name: str) -> Any: ...
    """
    A part of a model. Derive from it: build() makes weights, call() uses them.

    >>> class Scale(pl.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.scale = self.add_weight("scale", input_shape[-1:], initializer="ones")
    ...     def call(self, x):
    ...         return x * self.scale
    >>> Scale()(pl.ones((1, 2))).tolist()
    [[1.0, 1.0]]
    """

    def __init__(self, name: str = '', *, class_name: str = '', config: str = '', input_shape: ShapeLike | None = None) -> None: ...

    def build(self, input_shape: object) -> None:
        """Makes the weights; called once, before the first call."""

    def call(self, x: object) -> object:
        """What the layer gives for x."""

    def compute_output_shape(self, input_shape: object) -> object: ...

    def get_config(self) -> dict[str, object]: ...

    def __call__(self, inputs: object, training: builtins.bool | None = None) -> Any: ...

    def add_weight(self, name: str, shape: ShapeLike, initializer: str | None = None, trainable: builtins.bool = True, regularizer: str | None = None, constraint: str | None = None, seed: int | None = None) -> Variable: ...

    def add_loss(self, loss: object) -> None:
        """Adds a scalar to the step's loss; in call()."""

    supports_masking: builtins.bool = False

    @property
    def name(self) -> str: ...

    @property
    def weights(self) -> list[Variable]: ...

    @property
    def trainable_weights(self) -> list[Variable]: ...

    @property
    def trainable_variables(self) -> list[Variable]: ...

    @property
    def trainable(self) -> builtins.bool: ...

    @trainable.setter
    def trainable(self, arg: builtins.bool, /) -> None: ...

    def count_params(self) -> int: ...

    @property
    def built(self) -> builtins.bool: ...

    def get_weights(self) -> list[Tensor]: ...

    def set_weights(self, values: Sequence[TensorLike]) -> None: ...

    def __repr__(self) -> str: ...

def Input(shape: ShapeLike, dtype: DTypeLike | None = None, name: str = '') -> LayerOutput:
    """
    The input of a model under construction; the shape excludes the batch.

    >>> x = pl.Input((4,))
    >>> model = pl.Model(x, pl.layers.Dense(2)(x))
    >>> model.output_shape
    (None, 2)
    """

def register_layer(layer_class: T) -> T:
    """
    From now on files may have layers of this class, made with what get_config() gave. Also as a decorator.

    >>> @pl.register_layer
    ... class Half(pl.layers.Layer):
    ...     def call(self, x):
    ...         return x * 0.5
    """

class Optimizer:
    """
    Changes parameters in place by their gradients. Those of pl.optimizers are.

    >>> w = pl.Variable([1.0])
    >>> pl.optimizers.SGD(0.5).apply([pl.asarray([1.0])], [w])
    >>> w.tolist()
    [0.5]
    """

    def apply(self, gradients: object, variables: object) -> None: ...

    def apply_gradients(self, grads_and_vars: object) -> None:
        """Pairs of a gradient and its variable."""

    @property
    def learning_rate(self) -> float: ...

    @learning_rate.setter
    def learning_rate(self, arg: float, /) -> None: ...

    @property
    def iterations(self) -> int: ...

    @property
    def state_bytes(self) -> int: ...

class Loss:
    """
    The value that training minimizes; pl.losses has the ready-made ones.

    >>> pl.losses.MeanSquaredError()([[1.0]], [[3.0]]).item()
    4.0
    """

    def __call__(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor: ...

    @property
    def name(self) -> str: ...

class Metric:
    """
    A figure about a model's predictions reported with the loss; pl.metrics has the ready-made ones.

    >>> m = pl.metrics.MeanAbsoluteError()
    >>> m.update_state([[1.0]], [[3.0]])
    >>> m.result()
    2.0
    """

    def update_state(self, y_true: object, y_pred: object) -> None: ...

    def result(self) -> float: ...

    def reset_state(self) -> None: ...

    @property
    def name(self) -> str: ...

class NativeCallback:
    """
    A ready-made callback; pl.callbacks has functions that make them.

    >>> isinstance(pl.callbacks.CSVLogger("log.csv"), pl.NativeCallback)
    True
    """

class BudgetPoint:
    """
    A budget that a run fits in, and how many times as long it takes there. What a forecast's front lists.

    >>> model = pl.Sequential([pl.layers.Dense(4, input_shape=(8,))])
    >>> model.compile(optimizer="sgd", loss="mse")
    >>> model.forecast(batch_size=16).front[0].slowdown
    1.0
    """

    @property
    def bytes(self) -> int: ...

    @property
    def slowdown(self) -> float: ...

    def __iter__(self) -> Iterator[float]: ...

    def __repr__(self) -> str: ...

class MemoryForecast:
    """
    The memory that training a model takes, known before it runs, to the byte. Returned by model.forecast().

    >>> model = pl.Sequential([pl.layers.Dense(4, input_shape=(8,))])
    >>> model.compile(optimizer="sgd", loss="mse")
    >>> forecast = model.forecast(batch_size=16)
    >>> forecast.smallest_budget <= forecast.peak_bytes, forecast.fits("1MiB")
    (True, True)
    """

    @property
    def peak_bytes(self) -> int: ...

    @property
    def smallest_budget(self) -> int:
        """The gate of fit(budget=): at it training runs, below it is refused."""

    @property
    def lower_bound_bytes(self) -> int: ...

    @property
    def by_category(self) -> dict[str, int]: ...

    @property
    def largest_op(self) -> str: ...

    @property
    def largest_op_bytes(self) -> int: ...

    @property
    def floor_bytes(self) -> int:
        """No recomputing of the step, in its order, needs less."""

    @property
    def floor_step(self) -> str:
        """The operation that makes it so."""

    @property
    def front(self) -> list[BudgetPoint]:
        """
        Budgets worth choosing, from the peak to the smallest, each leaner and slower: (bytes, slowdown).
        """

    def predicted_slowdown(self, size: str | int) -> float:
        """
        How many times as long a step takes within so many bytes; infinity below smallest_budget.
        """

    def fits(self, size: str | int) -> builtins.bool: ...

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class Model(Layer):
    def compile(self, optimizer='rmsprop', loss=None, metrics=None, *, loss_weights=None, clipnorm=0.0, clipvalue=0.0, global_clipnorm=0.0, run_eagerly=False) -> None: ...
    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, validation_split=0.0, validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, budget=None, spill=None, max_slowdown=8.0, steps_per_epoch=None, distributed=None) -> History: ...
    def evaluate(self, x, y=None, batch_size=32, verbose=0, sample_weight=None, return_dict=False, budget=None, spill=None) -> Any: ...
    def predict(self, x, batch_size=32, verbose=0, budget=None, spill=None) -> Any: ...
    def build(self, input_shape) -> Any: ...
    def train_on_batch(self, x, y, sample_weight=None) -> Any: ...
    def test_on_batch(self, x, y, sample_weight=None) -> Any: ...
    def forecast(self, data=None, batch_size=32, spill=None) -> MemoryForecast: ...
    def summary(self, print_fn=None) -> None: ...
    def save(self, directory, include_optimizer=True) -> None: ...
    stop_training: builtins.bool
    history: History
    """
    Layers that are trained and used together: described by its inputs and outputs, or your own class with a call().

    >>> x = pl.Input((4,))
    >>> model = pl.Model(x, pl.layers.Dense(2)(x))
    >>> model.compile(optimizer="adam", loss="mse")
    >>> model.fit(pl.ones((8, 4)), pl.ones((8, 2)), verbose=0)
    <History of 1 epochs: loss>
    """

    def __init__(self, inputs: object | None = None, outputs: object | None = None, name: str = '') -> None: ...

    def native_compile(self, optimizer: object, loss: object | None, metrics: object | None, loss_weights: object | None, clip_norm: float, clip_value: float, global_clip_norm: float, run_eagerly: builtins.bool) -> None: ...

    def native_fit(self, x: object, y: object | None, batch_size: int, epochs: int, verbose: int, callbacks: object | None, validation_split: float, validation_data: object | None, shuffle: builtins.bool, class_weight: object | None, sample_weight: object | None, initial_epoch: int, budget: object | None, spill: object | None, max_slowdown: float, distributed: object | None = None) -> dict: ...

    def native_evaluate(self, x: object, y: object | None, batch_size: int, weights: object | None, budget: object | None, spill: object | None) -> dict: ...

    def native_predict(self, x: object, batch_size: int, budget: object | None, spill: object | None) -> object: ...

    def native_train_on_batch(self, x: object, y: object, weights: object | None) -> dict: ...

    def native_test_on_batch(self, x: object, y: object, weights: object | None) -> dict: ...

    def native_forecast(self, data: object | None, batch_size: int, spill: object | None) -> MemoryForecast: ...

    def max_batch_size(self, size: str | int, max_slowdown: float = 8.0, spill: str | os.PathLike[str] | None = None) -> int:
        """
        The largest batch whose training fits, at most so many times slower; 0 when none does. With 1: without recomputing.
        """

    def summary_text(self) -> str:
        """Layers, shapes, parameters and the bytes they take."""

    def save_weights(self, path: str) -> None:
        """A checkpoint in Keras' form."""

    def load_weights(self, path: str) -> None: ...

    @property
    def layers(self) -> list[Layer]: ...

    def get_layer(self, name: str) -> Layer: ...

    @property
    def optimizer(self) -> Optimizer: ...

    @property
    def is_compiled(self) -> builtins.bool: ...

    @property
    def is_built(self) -> builtins.bool: ...

    @property
    def input_shape(self) -> tuple[int | None, ...]: ...

    @property
    def output_shape(self) -> tuple[int | None, ...]: ...

    @property
    def input_names(self) -> list[str]: ...

    @property
    def output_names(self) -> list[str]: ...

    def reset_states(self) -> None: ...

    def native_stop_training(self) -> None: ...


class Sequential(Model):
    """
    Layers one after the other.

    >>> model = pl.Sequential([pl.layers.Dense(2, input_shape=(3,))])
    >>> model.predict(pl.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(self, layers: object | None = None, name: str = '') -> None: ...

    def add(self, layer: Layer | LayerOutput) -> None: ...

def save_safetensors(path: str | os.PathLike[str], tree: object, metadata: dict[str, str] = {}) -> None:
    """
    A dict or list of tensors, nested as it may be, in a .safetensors file.

    >>> pl.save_safetensors("w.safetensors", {"w": pl.ones(2)})
    """

def load_safetensors(path: str | os.PathLike[str]) -> Any:
    """
    The tensors of a .safetensors file, by name.

    >>> pl.save_safetensors("w.safetensors", {"w": pl.ones(2)})
    >>> pl.load_safetensors("w.safetensors")["w"].tolist()
    [1.0, 1.0]
    """

def save_npz(path: str | os.PathLike[str], tree: object) -> None:
    """
    A dict or list of tensors in an .npz file of NumPy.

    >>> pl.save_npz("w.npz", {"w": pl.ones(2)})
    """

def load_npz(path: str | os.PathLike[str]) -> Any:
    """
    The arrays of an .npz file of NumPy, by name.

    >>> pl.save_npz("w.npz", {"w": pl.ones(2)})
    >>> pl.load_npz("w.npz")["w"].tolist()
    [1.0, 1.0]
    """

def load_layers_model(path: str, weights: builtins.bool = True) -> Model:
    """
    The model of a model.json, as TensorFlow.js and save() write it.

    >>> pl.Sequential([pl.layers.Dense(2, input_shape=(3,))]).save("model")
    >>> pl.load_layers_model("model/model.json").output_shape
    (None, 2)
    """

def save_layers_model(model: Model, directory: str, include_optimizer: builtins.bool = False) -> None:
    """
    model.json and its weights, for TensorFlow.js and for load_layers_model().

    >>> model = pl.Sequential([pl.layers.Dense(2, input_shape=(3,))])
    >>> pl.save_layers_model(model, "model")
    """

def load_json_tensors(path: str) -> list[Tensor]:
    """
    The tensors of a JSON file: numbers and nested lists of them, by name.

    >>> import json
    >>> with open("w.json", "w") as file:
    ...     json.dump([{"shape": [2], "data": [1, 2]}], file)
    >>> [t.tolist() for t in pl.load_json_tensors("w.json")]
    [[1.0, 2.0]]
    """

def load_keras(path: str | os.PathLike[str], weights: builtins.bool = True, compile: builtins.bool = True) -> Model:
    """
    The model of a .keras or .h5 file, compiled and trained as far as it was there.

    >>> pl.Sequential([pl.layers.Dense(2, input_shape=(3,))]).save("m.keras")
    >>> pl.load_keras("m.keras").output_shape
    (None, 2)
    """

def save_keras(model: Model, path: str | os.PathLike[str], include_optimizer: builtins.bool = True) -> None:
    """
    A .keras file, which Keras 3 reads.

    >>> model = pl.Sequential([pl.layers.Dense(2, input_shape=(3,))])
    >>> pl.save_keras(model, "m.keras")
    """

def load_onnx(path: str | os.PathLike[str], weights: builtins.bool = True) -> Model:
    """
    An ONNX file as a model that predicts, trains and forecasts as any other.

    >>> try:
    ...     pl.load_onnx("missing.onnx")
    ... except FileNotFoundError:
    ...     print("no such file")
    no such file
    """

class OnnxModel:
    """
    An ONNX file as it is: by the names of its ends, whole inputs at once.

    >>> try:
    ...     pl.OnnxModel("missing.onnx")
    ... except FileNotFoundError:
    ...     print("no such file")
    no such file
    """

    def __init__(self, path: str | os.PathLike[str], weights: builtins.bool = True) -> None: ...

    @property
    def inputs(self) -> list[dict[str, Any]]: ...

    @property
    def outputs(self) -> list[dict[str, Any]]: ...

    def predict(self, inputs: dict[str, TensorLike], budget: str | int | None = None) -> list[Tensor]:
        """Outputs in the order of the file's."""

    def forecast(self, inputs: dict[str, Any]) -> MemoryForecast:
        """What a prediction takes: of shapes by name, or of inputs."""

    @property
    def num_parameters(self) -> int: ...

    def model(self) -> Model:
        """The same weights as a model."""

class LiveView:
    """
    While it lives, `plimsoll top` and `plimsoll serve` of the same user show this process's memory.

    >>> def watched(train):
    ...     with pl.LiveView("trainer"):
    ...         return train()
    """

    def __init__(self, name: str = '', every: float = 1.0) -> None: ...

    @property
    def file(self) -> pathlib.Path: ...

    def publish(self) -> None:
        """Now, too; for programs that end soon."""

    def close(self) -> None: ...

    def __enter__(self) -> LiveView: ...

    def __exit__(self, *args: object) -> None: ...

def note_fork() -> None: ...

def time_product(arg0: Tensor, arg1: Tensor, arg2: int, /) -> float:
    """
    Nanoseconds of this thread that a product by the library alone takes, for python/benchmarks/cost.py.
    """
