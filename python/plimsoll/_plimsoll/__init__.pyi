"""The library plimsoll, as Python's own types and functions. Made by tools/python_stubs."""

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

class DType:
    """The type of a tensor's elements; equal to its name and to NumPy's."""

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

def result_type_of(arg0: object, arg1: object, /) -> object:
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
    Elements of one dtype under a shape, on a device; they never change.

    >>> x = pl.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> (x + 1).sum(axis=1).tolist()
    [5.0, 9.0]
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
    """

def dlpack_of(x: object, max_version: object | None, device: object | None, copy: builtins.bool | None) -> object: ...

def from_bytes(data: bytes, dtype: object, shape: object) -> object:
    """
    A tensor of these bytes, element after element, as tobytes() gives them.
    """

def logical_not(x: TensorLike, /) -> Tensor:
    """Of each element."""

def is_nan(x: TensorLike, /) -> Tensor:
    """Of each element."""

def is_inf(x: TensorLike, /) -> Tensor:
    """Of each element."""

def is_finite(x: TensorLike, /) -> Tensor:
    """Of each element."""

def negative(x: TensorLike, /) -> Tensor:
    """Of each element."""

def abs(x: TensorLike, /) -> Tensor:
    """Of each element."""

def sign(x: TensorLike, /) -> Tensor:
    """Of each element."""

def floor(x: TensorLike, /) -> Tensor:
    """Of each element."""

def ceil(x: TensorLike, /) -> Tensor:
    """Of each element."""

def round(x: TensorLike, /) -> Tensor:
    """Of each element."""

def square(x: TensorLike, /) -> Tensor:
    """Of each element."""

def sqrt(x: TensorLike, /) -> Tensor:
    """Of each element."""

def rsqrt(x: TensorLike, /) -> Tensor:
    """Of each element."""

def reciprocal(x: TensorLike, /) -> Tensor:
    """Of each element."""

def exp(x: TensorLike, /) -> Tensor:
    """Of each element."""

def expm1(x: TensorLike, /) -> Tensor:
    """Of each element."""

def log(x: TensorLike, /) -> Tensor:
    """Of each element."""

def log1p(x: TensorLike, /) -> Tensor:
    """Of each element."""

def sin(x: TensorLike, /) -> Tensor:
    """Of each element."""

def cos(x: TensorLike, /) -> Tensor:
    """Of each element."""

def tan(x: TensorLike, /) -> Tensor:
    """Of each element."""

def asin(x: TensorLike, /) -> Tensor:
    """Of each element."""

def acos(x: TensorLike, /) -> Tensor:
    """Of each element."""

def atan(x: TensorLike, /) -> Tensor:
    """Of each element."""

def sinh(x: TensorLike, /) -> Tensor:
    """Of each element."""

def cosh(x: TensorLike, /) -> Tensor:
    """Of each element."""

def tanh(x: TensorLike, /) -> Tensor:
    """Of each element."""

def asinh(x: TensorLike, /) -> Tensor:
    """Of each element."""

def acosh(x: TensorLike, /) -> Tensor:
    """Of each element."""

def atanh(x: TensorLike, /) -> Tensor:
    """Of each element."""

def erf(x: TensorLike, /) -> Tensor:
    """Of each element."""

def relu(x: TensorLike, /) -> Tensor:
    """Of each element."""

def relu6(x: TensorLike, /) -> Tensor:
    """Of each element."""

def elu(x: TensorLike, /) -> Tensor:
    """Of each element."""

def selu(x: TensorLike, /) -> Tensor:
    """Of each element."""

def gelu(x: TensorLike, /) -> Tensor:
    """Of each element."""

def gelu_tanh(x: TensorLike, /) -> Tensor:
    """Of each element."""

def sigmoid(x: TensorLike, /) -> Tensor:
    """Of each element."""

def hard_sigmoid(x: TensorLike, /) -> Tensor:
    """Of each element."""

def softplus(x: TensorLike, /) -> Tensor:
    """Of each element."""

def softsign(x: TensorLike, /) -> Tensor:
    """Of each element."""

def swish(x: TensorLike, /) -> Tensor:
    """Of each element."""

def add(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def subtract(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def multiply(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def divide(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def floor_divide(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def modulo(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def power(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def maximum(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def minimum(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def squared_difference(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def divide_no_nan(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def xdivy(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def xlogy(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def atan2(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def not_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def less(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def less_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def greater(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def greater_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def logical_and(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def logical_or(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def logical_xor(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Element by element, with NumPy's broadcasting."""

def where(condition: TensorLike, x: TensorLike, y: TensorLike, /) -> Tensor:
    """x where the condition holds, else y."""

def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """The same numbers in another dtype."""

def leaky_relu(x: TensorLike, alpha: float = 0.2) -> Tensor: ...

def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor: ...

def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """
    >>> pl.zeros((2, 3)).shape
    (2, 3)
    """

def ones(shape: ShapeLike, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """
    >>> pl.ones(2).tolist()
    [1.0, 1.0]
    """

def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor: ...

def arange(start: float, stop: float | None = None, step: float = 1, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """
    >>> pl.arange(3).tolist()
    [0, 1, 2]
    """

def linspace(start: float, stop: float, num: int, dtype: DTypeLike | None = None, device: str | None = None, endpoint: builtins.bool = True) -> Tensor: ...

def eye(n_rows: int, n_cols: int | None = None, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor: ...

def constant(value: TensorLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, name: str = '') -> Tensor: ...

def random_uniform(shape: ShapeLike, low: float = 0.0, high: float = 1.0, seed: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """[low, high); with a seed always the same numbers."""

def random_normal(shape: ShapeLike, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: DTypeLike | None = None) -> Tensor: ...

def truncated_normal(shape: ShapeLike, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: DTypeLike | None = None) -> Tensor: ...

def random_bernoulli(shape: ShapeLike, probability: float = 0.5, seed: int | None = None, dtype: DTypeLike | None = None) -> Tensor: ...

def sum(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    The sum over the axes; of all elements when none is given. Integers add up in int64.
    """

def prod(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """The product over the axes."""

def mean(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """
    The mean over the axes.

    >>> pl.mean([1, 2]).item()
    1.5
    """

def max(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """The largest element over the axes."""

def min(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """The smallest element over the axes."""

def any(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Whether one is true."""

def all(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Whether all are true."""

def logsumexp(x: TensorLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """The logarithm of the sum of exponentials, without overflow."""

def var(x: TensorLike, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The mean square of what elements differ from their mean."""

def std(x: TensorLike, axis: int | Sequence[int] | None = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """The root of var()."""

def argmax(x: TensorLike, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor: ...

def argmin(x: TensorLike, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor: ...

def norm(x: TensorLike, ord: float = 2.0, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Tensor: ...

def cumsum(x: TensorLike, axis: int | None = None, exclusive: builtins.bool = False, reverse: builtins.bool = False) -> Tensor: ...

def sort(x: TensorLike, axis: int = -1, descending: builtins.bool = False) -> Tensor: ...

def argsort(x: TensorLike, axis: int = -1, descending: builtins.bool = False) -> Tensor: ...

def top_k(x: TensorLike, k: int = 1) -> tuple[Tensor, Tensor]:
    """The k largest of each row, and where they are."""

def softmax(x: TensorLike, axis: int = -1) -> Tensor: ...

def log_softmax(x: TensorLike, axis: int = -1) -> Tensor: ...

def concat(tensors: Sequence[TensorLike], axis: int | None = 0) -> Tensor:
    """
    One after the other along an axis.

    >>> pl.concat([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """

def stack(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Side by side along a new axis."""

def unstack(x: TensorLike, axis: int = 0) -> list[Tensor]: ...

def split(x: TensorLike, parts: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Equal parts, or parts of these sizes."""

def reshape(x: TensorLike, shape: ShapeLike, copy: builtins.bool | None = None) -> Tensor: ...

def transpose(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in that order; in reverse when none is given."""

def squeeze(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor: ...

def expand_dims(x: TensorLike, axis: int = 0) -> Tensor: ...

def flip(x: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor: ...

def roll(x: TensorLike, shift: int, axis: int = 0) -> Tensor: ...

def pad(x: TensorLike, paddings: Sequence[tuple[int, int]], value: float = 0.0, mode: str = 'constant') -> Tensor: ...

def tile(x: TensorLike, multiples: int | Sequence[int]) -> Tensor: ...

def repeat(x: TensorLike, repeats: int, axis: int | None = None) -> Tensor: ...

def gather(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """Positions of one axis, chosen and repeated."""

def take(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """Positions of one axis, chosen and repeated."""

def take_along_axis(x: TensorLike, indices: TensorLike, axis: int = -1) -> Tensor: ...

def boolean_mask(x: TensorLike, mask: TensorLike) -> Tensor: ...

def where_true(mask: TensorLike) -> Tensor:
    """The positions where it is true, a row for each."""

def one_hot(indices: TensorLike, depth: int, dtype: DTypeLike | None = None, on: float = 1.0, off: float = 0.0) -> Tensor:
    """
    >>> pl.one_hot([1, 0], 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

def scatter(indices: TensorLike, updates: TensorLike, shape: ShapeLike) -> Tensor: ...

def scatter_add(x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...

def scatter_update(x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...

def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor: ...

def matmul(a: TensorLike, b: TensorLike, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False) -> Tensor:
    """
    Products of matrices, and of batches of them.

    >>> pl.matmul(pl.ones((2, 3)), pl.ones((3, 4))).shape
    (2, 4)
    """

def dot(a: TensorLike, b: TensorLike) -> Tensor: ...

def outer(a: TensorLike, b: TensorLike) -> Tensor: ...

def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """Sums of products of one or two tensors, by the letters of their axes."""

def global_norm(tensors: Sequence[TensorLike]) -> Tensor: ...

def clip_by_global_norm(tensors: Sequence[TensorLike], limit: float) -> tuple[list[Tensor], Tensor]: ...

def confusion_matrix(labels: TensorLike, predictions: TensorLike, num_classes: int) -> Tensor: ...

def conv2d(x: TensorLike, filter: TensorLike, strides: int | tuple[int, int] = 1, padding: str = 'valid', dilations: int | tuple[int, int] = 1, groups: int = 1) -> Tensor:
    """
    Images [batch, height, width, channels], filters [height, width, in, out].
    """

def max_pool2d(x: TensorLike, size: int | tuple[int, int] = 2, strides: int | tuple[int, int] = 0, padding: str = 'valid') -> Tensor: ...

def avg_pool2d(x: TensorLike, size: int | tuple[int, int] = 2, strides: int | tuple[int, int] = 0, padding: str = 'valid') -> Tensor: ...

def softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Tensor:
    """A number for each example."""

def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Tensor:
    """A number for each example."""

def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Tensor:
    """A number for each example."""

class SparseTensor:
    """
    A tensor of which only some elements are stored, the entries; all others are zero.

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
        """Of a sparse matrix of SciPy, copied."""

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
    """A product of two sparse tensors, or of a sparse and a dense one."""

def sparse_softmax(x: SparseTensor) -> SparseTensor:
    """Over the entries of each row; those that are not stored take no part."""

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
    """One tensor of a pool, until it ends; a buffer that can be written."""

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
    A scope: tensors made inside are disposed at its end, but for those that are kept.
    """

    def __enter__(self) -> Tidy: ...

    def __exit__(self, *args: object) -> None: ...

    def keep(self, value: T) -> T:
        """
        Hands the tensors inside of the value to the scope outside, and returns it.
        """

    def __call__(self, function: Callable[..., T], *args: object, **kwargs: object) -> T:
        """What the function returns is all that is left of it."""

def new_tidy(name: str = '') -> Tidy: ...

def keep(value: T) -> T:
    """
    No scope releases the tensors inside of the value from now on; dispose() does. Returns it.
    """

def dispose(value: object) -> None:
    """Disposes of every tensor inside: of a tensor, a list, a dict, ..."""

class Budget:
    """
    A limit in bytes that what is charged to it never passes; budgets form a tree.
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
    """What is made inside goes to that device."""

    def __enter__(self) -> DeviceScope: ...

    def __exit__(self, *args: object) -> None: ...

def device(name: str, soft: builtins.bool = False) -> DeviceScope:
    """
    A scope: what is made inside goes to that device. A soft one is for graphs: without such a device nodes go where they would anyway.
    """

class NameScope:
    """What is made inside carries the name in every report."""

    def __enter__(self) -> NameScope: ...

    def __exit__(self, *args: object) -> None: ...

def name_scope(name: str) -> NameScope:
    """A scope: what is made inside carries the name in every report."""

class MemoryInfo:
    """How many tensors live, on how many buffers, of how many bytes."""

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
    """What one device's memory looks like now, and at its worst."""

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

def memory_stats(device: str = '') -> MemoryStats: ...

def reset_memory_stats(device: str = '') -> None:
    """Peaks fall to what is used now."""

def trim() -> int:
    """Gives every free page back to the system; the bytes that were given."""

def collect_garbage() -> None:
    """Lets deferred releases take effect and empties caches."""

class LiveTensor:
    """A tensor that is alive, and what is known of it."""

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
    """Every tensor that is alive."""

class Holders:
    """What keeps a tensor and its bytes alive."""

    def paths(self) -> list[str]:
        """One for each holder, from the tensor outwards."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def to_svg(self) -> str: ...

    def to_dot(self) -> str: ...

    def write_svg(self, path: str | os.PathLike) -> None: ...

    def write_dot(self, path: str | os.PathLike) -> None: ...

def who_holds(x: Tensor | Variable) -> Holders: ...

class GrowthRow:
    """Tensors of one kind that there are more of."""

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
    """Calls back while it lives."""

    def close(self) -> None: ...

    def __enter__(self) -> AlertHandle: ...

    def __exit__(self, *args: object) -> None: ...

def on_memory_alert(fraction: float, callback: Callable[[MemoryAlert], object]) -> AlertHandle:
    """
    Calls back when a device's memory passes that share of its limit, while what it returns lives.
    """

class Recording:
    """
    Writes what happens in memory to a trace, between `with` and the end of its block.
    """

    def __enter__(self) -> Recording: ...

    def __exit__(self, *args: object) -> None: ...

    @property
    def path(self) -> pathlib.Path: ...

def record(path: str | os.PathLike[str], max_bytes: str | int | None = None) -> Recording:
    """
    A recording of what happens in memory, for `with`; `plimsoll report` and pl.Report show it.
    """

def trace_step(number: int) -> None:
    """A step begins, in recordings."""

def trace_phase(name: str) -> None:
    """A phase begins, in recordings."""

def write_report(trace: str | os.PathLike, html: str | os.PathLike) -> None:
    """One offline page that shows a recording."""

def has_report_page() -> builtins.bool: ...

def findings_of(trace: str | os.PathLike[str]) -> list[dict[str, object]]: ...

def export_trace(trace: str | os.PathLike, out: str | os.PathLike, format: str = 'pytorch', at: str = '', steps: str = '') -> None:
    """
    A recording as a file for other viewers: pytorch, perfetto, pprof or heaptrack.
    """

def process_memory() -> dict[str, int]:
    """What the system says that this process holds, in bytes."""

def resident_parts() -> str:
    """What the resident bytes of this process consist of."""

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
    A function with a gradient of your own: backward(gradient, *inputs) gives one for each input.
    """

def stop_gradient(x: TensorLike) -> Tensor:
    """The same value, which tapes take for a constant."""

class NoGradient:
    def __enter__(self) -> None: ...

    def __exit__(self, *args: object) -> None: ...

def no_grad() -> NoGradient:
    """A scope in which tapes see nothing."""

class FileWriter:
    """A graph and what happens in its runs, for TensorBoard."""

    def __init__(self, logdir: str, graph: object | None = None) -> None: ...

    def add_scalar(self, tag: str, value: float, step: int) -> None: ...

    def add_histogram(self, tag: str, values: object, step: int) -> None: ...

    def add_text(self, tag: str, text: str, step: int) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> object: ...

    def __exit__(self, *args) -> None: ...

class Graph:
    """Operations that are written down instead of run."""

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

def default_graph() -> Graph: ...

def reset_default_graph() -> None: ...

def placeholder(dtype: DTypeLike, shape: ShapeLike = (), name: str = 'placeholder') -> Tensor:
    """A value that each run is fed with; sizes that are None fit any."""

def group(*nodes: Tensor) -> Tensor:
    """A node that runs all of these."""

def gradients(target: Tensor, sources: object) -> object:
    """Gradients as nodes of the graph."""

class VariablesInitializer:
    pass

def global_variables_initializer() -> VariablesInitializer:
    """For session.run(): gives every variable its initial value."""

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

    def run(self, fetches: object, feed_dict: dict[Tensor, TensorLike] | None = None) -> object:
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
    """

    def __init__(self, max_to_keep: int = 5, variables: Sequence[str] = []) -> None: ...

    def save(self, session: Session, path: str, global_step: int | None = None) -> str:
        """The path it was saved under."""

    def restore(self, session: Session, path: str) -> None: ...

    def recover(self, directory: str) -> None: ...

    @property
    def checkpoints(self) -> list[str]: ...

def latest_checkpoint(directory: str) -> str | None:
    """
    The path of the newest checkpoint of a folder; None when there is none.
    """

class Function:
    """
    A function that is traced once for each kind of arguments, and then runs planned.
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
    """One of the two branches, on a value that a graph computes."""

def while_loop(cond: object, body: object, state: object) -> object:
    """A loop on values that a graph computes."""

class Pass:
    def __iter__(self) -> object: ...

    def __next__(self) -> object: ...

class Dataset:
    """Examples one after the other, as often as they are asked for."""

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

def timeseries_windows(series: TensorLike, look_back: int, horizon: int = 1, stride: int = 1) -> Dataset: ...

class LayerOutput:
    def __add__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __radd__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __sub__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __rsub__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __mul__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __rmul__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __truediv__(self, other: LayerOutput | float) -> LayerOutput: ...
    def __neg__(self) -> LayerOutput: ...
    """A place in a model that is being described: what a layer will give."""

    @property
    def shape(self) -> tuple[int | None, ...]: ...

    @property
    def dtype(self) -> object: ...

class Layer:
    def __getattr__(self, name: str) -> Any: ...
    """
    A piece of a model: weights, and a function of tensors that uses them. Derive from it to write one of your own:
    build(input_shape) makes the weights with add_weight(), call(x) uses them.
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
    """Where a described model begins; the shape is without the batch."""

def register_layer(layer_class: T) -> T:
    """
    From now on files may have layers of this class, made with what get_config() gave. Also as a decorator.
    """

class Optimizer:
    """Changes parameters in place by their gradients."""

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
    """What a model is trained to make small."""

    def __call__(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor: ...

    @property
    def name(self) -> str: ...

class Metric:
    """What is told of a model's predictions beside the loss."""

    def update_state(self, y_true: object, y_pred: object) -> None: ...

    def result(self) -> float: ...

    def reset_state(self) -> None: ...

    @property
    def name(self) -> str: ...

class NativeCallback:
    """A ready-made callback."""

class BudgetPoint:
    """
    A budget that a run fits in, and how many times as long it takes there.
    """

    @property
    def bytes(self) -> int: ...

    @property
    def slowdown(self) -> float: ...

    def __iter__(self) -> Iterator[float]: ...

    def __repr__(self) -> str: ...

class MemoryForecast:
    """What training a model takes, known before it runs, to the byte."""

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
    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, validation_split=0.0, validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, budget=None, spill=None, max_slowdown=8.0, steps_per_epoch=None) -> History: ...
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
    Layers that are trained and asked together, described by their ends.

    >>> x = pl.Input((4,))
    >>> model = pl.Model(x, pl.layers.Dense(2)(x))
    >>> model.predict(pl.ones((3, 4))).shape
    (3, 2)

    Or derive from it: layers are attributes, call(x) uses them.

    >>> class Twice(pl.Model):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.dense = pl.layers.Dense(4)
    ...     def call(self, x, training=False):
    ...         return self.dense(self.dense(x))
    >>> Twice().predict(pl.ones((3, 4))).shape
    (3, 4)
    """

    def __init__(self, inputs: object | None = None, outputs: object | None = None, name: str = '') -> None: ...

    def native_compile(self, optimizer: object, loss: object | None, metrics: object | None, loss_weights: object | None, clip_norm: float, clip_value: float, global_clip_norm: float, run_eagerly: builtins.bool) -> None: ...

    def native_fit(self, x: object, y: object | None, batch_size: int, epochs: int, verbose: int, callbacks: object | None, validation_split: float, validation_data: object | None, shuffle: builtins.bool, class_weight: object | None, sample_weight: object | None, initial_epoch: int, budget: object | None, spill: object | None, max_slowdown: float) -> dict: ...

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
    """A dict or list of tensors, nested as it may be."""

def load_safetensors(path: str | os.PathLike[str]) -> Any: ...

def save_npz(path: str | os.PathLike[str], tree: object) -> None: ...

def load_npz(path: str | os.PathLike[str]) -> Any: ...

def load_layers_model(path: str, weights: builtins.bool = True) -> Model:
    """The model of a model.json, as TensorFlow.js and save() write it."""

def save_layers_model(model: Model, directory: str, include_optimizer: builtins.bool = False) -> None:
    """
    model.json and its weights, for TensorFlow.js and for load_layers_model().
    """

def load_json_tensors(path: str) -> list[Tensor]: ...

def note_fork() -> None: ...

def time_product(arg0: Tensor, arg1: Tensor, arg2: int, /) -> float:
    """
    Nanoseconds of this thread that a product by the library alone takes, for python/benchmarks/cost.py.
    """

class Unavailable(Error, ConnectionError):
    rank: int

def load_keras(path: str | os.PathLike[str], weights: builtins.bool = True, compile: builtins.bool = True) -> Model: ...

def save_keras(model: Model, path: str | os.PathLike[str], include_optimizer: builtins.bool = True) -> None: ...

def load_onnx(path: str | os.PathLike[str], weights: builtins.bool = True) -> Model: ...

class OnnxModel:
    def __init__(self, path: str | os.PathLike[str], weights: builtins.bool = True) -> None: ...
    @property
    def inputs(self) -> list[dict[str, Any]]: ...
    @property
    def outputs(self) -> list[dict[str, Any]]: ...
    def predict(self, inputs: dict[str, TensorLike], budget: str | int | None = None) -> list[Tensor]: ...
    def forecast(self, inputs: dict[str, Any]) -> MemoryForecast: ...
    @property
    def num_parameters(self) -> int: ...
    def model(self) -> Model: ...

class LiveView:
    def __init__(self, name: str = '', every: float = 1.0) -> None: ...
    @property
    def file(self) -> pathlib.Path: ...
    def publish(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> LiveView: ...
    def __exit__(self, *args: object) -> None: ...
