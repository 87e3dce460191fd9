"""The tensors that tools/interop_files.cc writes and expects: named by dtype and shape, filled with a pattern."""
import ml_dtypes
import numpy as np

KINDS = {"bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
         "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SHAPES = {"scalar": (), "0": (0,), "7": (7,), "2x3": (2, 3), "300x301": (300, 301)}
STRINGS = [b"", b"hello", b"x" * 300, b"\0\n\xc3\xa4"]


def patterned(kind, shape):
    dtype = np.dtype(KINDS[kind])
    count = int(np.prod(shape)) * dtype.itemsize
    numbers = np.arange(count)
    data = (numbers % 3 == 0) if kind == "bool" else (numbers * 37 + 11) % 256
    return np.frombuffer(data.astype(np.uint8).tobytes(), dtype).reshape(shape)


def tensors():
    """In the order in which interop_files.cc writes them."""
    return {f"{kind}_{name}": patterned(kind, shape) for kind in KINDS for name, shape in SHAPES.items()}


def same(actual, expected):
    return actual.dtype == expected.dtype and actual.shape == expected.shape and actual.tobytes() == expected.tobytes()


def check(fine, what):
    if not fine:
        raise SystemExit(f"not as expected: {what}")
