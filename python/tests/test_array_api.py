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
