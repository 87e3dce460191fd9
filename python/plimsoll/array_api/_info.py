"""What the namespace says of itself: dtypes, limits, promotion."""
import plimsoll as _pl

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8",),
    "integral": ("int8", "int16", "int32", "int64", "uint8"),
    "real floating": ("float32", "float64"),
    "complex floating": (),
    "numeric": ("int8", "int16", "int32", "int64", "uint8", "float32", "float64"),
}
_HALVES = ("float16", "bfloat16")


class _Limits:
    def __init__(self, **values):
        self.__dict__.update(values)

    def __repr__(self):
        return f"limits({', '.join(f'{key}={value}' for key, value in self.__dict__.items())})"


def _dtype_of(x):
    return x.dtype if isinstance(x, (_pl.Tensor, _pl.Variable)) else _pl.dtype(x)


def finfo(type, /):
    """Limits of a dtype of floats."""
    dtype = _dtype_of(type)
    rows = {"float16": (16, 2 ** -10, 65504.0, 2.0 ** -14), "bfloat16": (16, 2 ** -7, 3.3895313892515355e38, 2.0 ** -126),
            "float32": (32, 2 ** -23, 3.4028234663852886e38, 2.0 ** -126), "float64": (64, 2 ** -52, 1.7976931348623157e308, 2.0 ** -1022)}
    if dtype.name not in rows:
        raise ValueError(f"finfo: {dtype.name} is not a dtype of floats")
    bits, eps, largest, smallest = rows[dtype.name]
    return _Limits(bits=bits, eps=float(eps), max=largest, min=-largest, smallest_normal=smallest, dtype=dtype)


def iinfo(type, /):
    """Limits of a dtype of integers."""
    dtype = _dtype_of(type)
    if not dtype.is_integer:
        raise ValueError(f"iinfo: {dtype.name} is not a dtype of integers")
    bits = 8 * dtype.itemsize
    signed = dtype.name != "uint8"
    return _Limits(bits=bits, max=2 ** (bits - signed) - 1, min=-(2 ** (bits - 1)) if signed else 0, dtype=dtype)


def isdtype(dtype, kind):
    """Whether a dtype is that one, or of that kind."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: {kind!r} is not a kind of dtypes; there are {', '.join(_KINDS)}")
        return dtype.name in _KINDS[kind] or (kind in ("real floating", "numeric") and dtype.name in _HALVES)
    return dtype == kind


def result_type(*arrays_and_dtypes):
    """The dtype that these have together; numbers of Python take that of the others."""
    strong = [_dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, (int, float, complex))]
    if not strong:
        raise ValueError("result_type: at least one array or dtype is needed")
    result = strong[0]
    for each in strong[1:]:
        result = _pl._plimsoll.result_type_of(result, each)
    for number in arrays_and_dtypes:
        if isinstance(number, float) and not result.is_floating:
            result = _pl.float32
        elif isinstance(number, int) and not isinstance(number, bool) and result == _pl.bool:
            result = _pl.int64
    return result


def can_cast(from_, to, /):
    """Whether promotion leads from one to the other."""
    source, target = _dtype_of(from_), _dtype_of(to)
    kinds = [k for k in ("bool", "integral", "real floating") if isdtype(source, k)]
    return any(isdtype(target, k) for k in kinds) and _pl._plimsoll.result_type_of(source, target) == target


def broadcast_shapes(*shapes):
    """The shape that these have together."""
    result = []
    rank = max((len(s) for s in shapes), default=0)
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if len(sizes) > 1:
            raise ValueError(f"broadcast_shapes: sizes {sorted(sizes)} do not match")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def broadcast_arrays(*arrays):
    """The arrays in the shape that they have together."""
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return [_pl.broadcast_to(a, shape) for a in arrays]


class __array_namespace_info__:
    """What the namespace offers."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self):
        return "CPU:0"

    def devices(self):
        return [device.name for device in _pl.config.list_logical_devices()]

    def default_dtypes(self, *, device=None):
        return {"real floating": _pl.float32, "complex floating": None, "integral": _pl.int64, "indexing": _pl.int64}

    def dtypes(self, *, device=None, kind=None):
        if kind is None:
            names = ("bool", *_KINDS["numeric"])
        elif isinstance(kind, tuple):
            names = tuple(name for each in kind for name in _KINDS[each])
        else:
            names = _KINDS[kind]
        return {name: _pl.dtype(name) for name in names}
