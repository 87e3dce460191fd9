"""The array API standard's namespace; its own tests run from outside (tools/array_api)."""
import pytest

import plimsoll as pl
from plimsoll import array_api as xp


def test_the_namespace_is_that_of_its_tensors():
    assert pl.ones(2).__array_namespace__() is xp and pl.array_api is xp and xp.__array_api_version__ == "2024.12"
    assert all(hasattr(xp, name) for name in xp.__all__)


def test_dtypes_are_described_and_promoted():
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == xp.float32 and set(info.dtypes(kind="unsigned integer")) == {"uint8"}
    assert xp.result_type(xp.int8, xp.uint8) == xp.int16 and xp.result_type(pl.ones(1, "int32"), 1.5) == xp.float32
    assert xp.can_cast(xp.int8, xp.int64) and not xp.can_cast(xp.int64, xp.int8)
    assert xp.iinfo(xp.int8).min == -128 and xp.finfo(xp.float32).eps == 2.0 ** -23 and xp.isdtype(xp.uint8, ("bool", "integral"))
    with pytest.raises(ValueError):
        xp.isdtype(xp.uint8, "nothing")


def test_functions_of_the_standard():
    x = xp.asarray([[3, 1], [1, 2]])
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]] and xp.triu(x).tolist() == [[3, 1], [0, 2]]
    assert xp.unique_all(x).counts.tolist() == [2, 1, 1] and xp.unique_all(x).inverse_indices.tolist() == [[2, 0], [0, 1]]
    assert xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4])).tolist() == [1, 2]
    assert xp.cumulative_sum(x, axis=1, include_initial=True).tolist() == [[0, 3, 4], [0, 1, 3]]
    assert xp.tensordot(x, x, axes=1).tolist() == (x @ x).tolist() and xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape == (3, 4, 2)
    assert [g.shape for g in xp.meshgrid(xp.ones(2), xp.ones(3))] == [(3, 2), (3, 2)]
    assert xp.nonzero(x == 1)[0].tolist() == [0, 1] and xp.diff(xp.asarray([1, 4, 9])).tolist() == [3, 5]
    assert xp.hypot(xp.asarray([3.0]), xp.asarray([4.0])).item() == 5.0 and xp.var(x, axis=()).tolist() == [[0, 0], [0, 0]]


def test_running_products_and_the_bits_of_floats():
    x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    assert xp.cumulative_prod(x, axis=1).tolist() == [[1, 2, 6], [4, 20, 120]]
    assert xp.cumulative_prod(x, axis=0, include_initial=True).tolist() == [[1, 1, 1], [1, 2, 3], [4, 10, 18]]
    assert xp.cumulative_prod(xp.asarray([2.0, 0.5, 4.0]), dtype=xp.float64).dtype == xp.float64
    assert pl.cumprod([2, 3, 4], exclusive=True).tolist() == [1, 2, 6] and pl.cumprod(pl.zeros((0, 2)), axis=0).shape == (0, 2)
    w = pl.Variable([2.0, 3.0, 4.0])
    with pl.GradientTape() as tape:
        last = pl.cumprod(w)[-1]
    assert tape.gradient(last, w).tolist() == [12, 8, 6]
    with pytest.raises(ValueError):
        xp.cumulative_prod(x)
    with pytest.raises(pl.InvalidArgument, match="axis 3"):
        pl.cumprod(x, axis=3)
    for dtype, step in [("float16", 2.0 ** -10), ("bfloat16", 2.0 ** -7), ("float32", 2.0 ** -23), ("float64", 2.0 ** -52)]:
        one = pl.ones((), dtype)
        assert xp.nextafter(one, 2 * one).item() == 1 + step and xp.nextafter(-one, -2 * one).item() == -1 - step
        assert xp.nextafter(one, 0.0).item() == 1 - step / 2 and xp.nextafter(0 * one, one).item() > 0
        assert xp.signbit(pl.asarray([-0.0, 0.0, float("nan")], dtype)).tolist() == [True, False, False]
        assert xp.copysign(pl.asarray([1.0, -2.0], dtype), -one).tolist() == [-1, -2]
    assert xp.isnan(xp.nextafter(xp.asarray([float("nan"), 1.0]), xp.asarray([1.0, float("nan")]))).tolist() == [True, True]
    with pl.Graph():
        symbolic = pl.placeholder("float32", (2,))
        with pytest.raises(pl.Unsupported):
            pl.nextafter(symbolic, 1.0)
        with pytest.raises(pl.Unsupported):
            pl.signbit(symbolic)
    assert xp.linspace(-1e16, 0.1, 3, dtype=xp.float64)[-1].item() == 0.1
