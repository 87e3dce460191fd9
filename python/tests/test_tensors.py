"""Tensors: values, dtypes, operators, indexing, functions."""
import math
import pickle
import random

import pytest

import plimsoll as pl

np = pytest.importorskip("numpy")

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def array(dtype, shape=(2, 3, 4), seed=0):
    if dtype == "bfloat16":
        return array("float32", shape, seed).astype(pytest.importorskip("ml_dtypes").bfloat16)
    drawn = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 100, shape)
    return drawn.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trips_keep_every_element(dtype):
    a = array(dtype)
    x = pl.asarray(a)
    assert x.dtype == dtype and x.shape == a.shape and x.nbytes == a.nbytes
    back = x.numpy()
    assert back.dtype == a.dtype and (back == a).all()
    assert not back.flags.writeable
    assert (np.asarray(x) == a).all() and np.asarray(x).dtype == a.dtype
    assert (pl.asarray(back).numpy() == a).all()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bfloat16"])
def test_arrays_that_are_not_contiguous_are_copied_as_they_read(dtype):
    a = array(dtype, (4, 6))
    for view in (a.T, a[::2, ::-1], a[1:, 2:5], np.asfortranarray(a)):
        assert (pl.asarray(view).numpy() == view).all()


def test_lists_numbers_and_arrays_in_lists_become_tensors():
    assert pl.asarray([[1, 2], [3, 4]]).dtype == pl.int64
    assert pl.asarray([1, 2.5]).dtype == pl.float32
    assert pl.asarray([True, False]).dtype == pl.bool
    assert pl.asarray(2).shape == ()
    assert pl.asarray([]).shape == (0,)
    assert pl.asarray([np.ones(2), pl.zeros(2, "float64")]).dtype == pl.float64
    assert pl.asarray(range(3)).tolist() == [0, 1, 2]
    assert pl.asarray([1, 2], dtype="float64").dtype == np.float64


@pytest.mark.parametrize("wrong", ["text", {"a": 1}, None, object()])
def test_what_is_no_array_is_refused(wrong):
    with pytest.raises(TypeError):
        pl.asarray(wrong)


def test_ragged_lists_and_unknown_dtypes_are_refused_with_advice():
    with pytest.raises(pl.InvalidArgument, match="different lengths"):
        pl.asarray([[1, 2], [3]])
    with pytest.raises(TypeError, match="astype"):
        pl.asarray(np.ones(2, "uint32"))
    with pytest.raises(TypeError, match="astype"):
        pl.asarray(np.array(["a", "b"]))
    with pytest.raises(ValueError):
        pl.zeros(2, dtype="float99")


def test_operators_are_those_of_numpy():
    a, b = array("float32", (3, 4), 1) + 1, array("float32", (4,), 2) + 1
    x, y = pl.asarray(a), pl.asarray(b)
    for ours, theirs in [(x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x // y, a // b), (x % y, a % b),
                         (x ** 2, a ** 2), (2 - x, 2 - a), (2 / x, 2 / a), (-x, -a), (abs(-x), a), (x @ y, a @ b),
                         (x == y, a == b), (x < y, a < b), (x >= 3, a >= 3), (x + b, a + b), (b + x, b + a)]:
        assert isinstance(ours, pl.Tensor)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)


@pytest.mark.parametrize("a,b,result", [("uint8", "int8", "int16"), ("int32", "int64", "int64"), ("float16", "bfloat16", "float32"),
                                        ("int64", "float32", "float32"), ("bool", "int8", "int8"), ("float32", "float64", "float64")])
def test_mixed_dtypes_are_promoted(a, b, result):
    x, y = pl.ones(2, a), pl.ones(2, b)
    assert (x + y).dtype == result and (y * x).dtype == result
    assert pl.maximum(x, y).dtype == result
    assert (x == y).tolist() == [True, True]


def test_numbers_take_the_dtype_of_the_tensor_unless_their_kind_has_more():
    assert (pl.ones(2, "int8") + 1).dtype == pl.int8
    assert (pl.ones(2, "int8") + 1.5).tolist() == [2.5, 2.5]
    assert (pl.ones(2, "float64") * 2).dtype == pl.float64
    assert (pl.asarray([True]) + 1).dtype == pl.int64
    assert (pl.asarray([1, 3]) / 2).tolist() == [0.5, 1.5]
    with pytest.raises(pl.InvalidArgument):
        pl.ones(2, "int8") + 1000


def test_operators_leave_what_they_do_not_know_to_others():
    assert (pl.ones(2) == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        pl.ones(2) + "text"
    with pytest.raises(TypeError):
        pl.ones(2) @ 3


def test_logic_on_booleans():
    x, y = pl.asarray([True, True, False]), pl.asarray([True, False, False])
    assert (x & y).tolist() == [True, False, False]
    assert (x | y).tolist() == [True, True, False]
    assert (x ^ y).tolist() == [False, True, False]
    assert (~x).tolist() == [False, False, True]
    assert (~pl.asarray([0, 5])).tolist() == [-1, -6]


KEYS = [0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(5, 1, -2), slice(-3, -1), Ellipsis, None,
        (0, 1), (slice(None), 1), (Ellipsis, 0), (None, 0, Ellipsis, None), (slice(None), None, 2), (0, Ellipsis, slice(None, None, -1)),
        (slice(1, 3), slice(None, None, 2), -1), (), (-1, -1, -1)]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_that_of_numpy(key):
    a = array("int32", (4, 3, 5))
    ours, theirs = pl.asarray(a)[key], a[key]
    assert ours.shape == theirs.shape and (ours.numpy() == theirs).all()


def test_masks_and_positions_choose_elements():
    a = array("int32", (4, 3, 5))
    x = pl.asarray(a)
    mask = a[:, 0, 0] > 30
    assert (x[mask].numpy() == a[mask]).all()
    assert (x[pl.asarray(a) > 50].numpy() == a[a > 50]).all()
    assert (x[:, pl.asarray([True, False, True])].numpy() == a[:, [True, False, True]]).all()
    assert (x[[2, 0, -1]].numpy() == a[[2, 0, -1]]).all()
    assert (x[:, [[0, 2], [1, 1]]].numpy() == a[:, [[0, 2], [1, 1]]]).all()
    assert (x[[0, 1], [2, 2]].numpy() == a[[0, 1], [2, 2]]).all()
    assert (x[pl.asarray(2)].numpy() == a[2]).all()
    assert (x[..., np.array([0, 3])].numpy() == a[..., [0, 3]]).all()


@pytest.mark.parametrize("key", [4, -5, (0, 0, 0, 0), (Ellipsis, Ellipsis), 1.5], ids=str)
def test_wrong_indices_are_index_errors(key):
    with pytest.raises((IndexError, TypeError)):
        pl.zeros((4, 3, 5))[key]


def test_elements_cannot_be_assigned():
    x = pl.zeros(3)
    with pytest.raises(TypeError, match="do not change"):
        x[0] = 1
    y = x
    y += 1
    assert x.tolist() == [0, 0, 0] and y.tolist() == [1, 1, 1]


def test_tensors_are_numbers_sequences_and_texts():
    x = pl.asarray([[1.5, 2.0]])
    assert float(x[0, 0]) == 1.5 and int(x[0, 1]) == 2 and bool(x[0, 0])
    assert len(x) == 1 and [row.tolist() for row in x] == [[1.5, 2.0]]
    assert range(5)[pl.asarray(3)] == 3
    assert "float32" in repr(x) and f"{x[0, 0]:.2f}" == "1.50"
    with pytest.raises(pl.InvalidArgument):
        bool(pl.ones(2))
    with pytest.raises(TypeError):
        len(pl.asarray(1))
    assert complex(x[0, 0]) == 1.5


def test_tensors_can_be_pickled_and_are_keys():
    x = pl.asarray(array("bfloat16", (2, 3)))
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == pl.bfloat16 and (y == x).numpy().all()
    assert pickle.loads(pickle.dumps(pl.float16)) is pl.float16
    assert {x: 1}[x] == 1


def test_dtypes_are_equal_to_their_names_and_to_numpys():
    assert pl.float32 == "float32" == pl.dtype(np.float32).name
    assert pl.float32 == np.dtype("float32") and pl.int64 == np.int64
    assert pl.float32 != pl.float64 and pl.float32 != None  # noqa: E711
    assert pl.dtype(float) is pl.float64 and pl.dtype(bool) is pl.bool and len({pl.int8, pl.dtype("i8")}) == 1


def test_bits_of_integers_are_numpys():
    for dtype in ["uint8", "int8", "int16", "int32", "int64"]:
        a, b = array(dtype, (3, 4)), array(dtype, (4,), seed=1) % 7
        x, y = pl.asarray(a), pl.asarray(b)
        for ours, theirs in [(x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (x << y, a << b), (x >> y, a >> b), (~x, ~a), (x & 3, a & 3),
                             (3 | x, 3 | a), (x << 1, a << 1), (1 << y, np.asarray(1, dtype) << b), (y >> 9, b * 0)]:
            assert ours.dtype == dtype and (ours.numpy() == theirs).all()
    assert (pl.asarray([True]) & pl.asarray([6])).tolist() == [0] and (pl.asarray([5], dtype="int8") | pl.asarray([256])).dtype == pl.int64
    with pytest.raises(pl.InvalidArgument, match="float32"):
        pl.ones(2) & pl.ones(2)
    with pytest.raises(TypeError):
        pl.asarray([1]) & 1.5
    with pytest.raises(pl.InvalidArgument):
        pl.asarray([1, 2]) | pl.asarray([1, 2, 3])
    with pl.budget("small", "1KiB"), pytest.raises(pl.OutOfMemory):
        pl.zeros((), "int32") | pl.broadcast_to(pl.ones((), "int32"), (1000,))
    with pytest.raises(pl.Unsupported):
        pl.function(lambda v: v << 1)(pl.asarray([1]))


def drawn_key(draw, shape):
    """A key of integers, slices, None, Ellipsis, positions and masks, as NumPy takes them (or refuses)."""
    index_shape = draw.choice([(), (2,), (1,), (3, 2), (1, 2)])
    key, axis = [], 0
    while axis < len(shape):
        kind = draw.choice(["integer", "slice", "slice", "none", "positions", "mask", "rest", "stop"])
        size = shape[axis]
        if kind == "integer":
            key.append(draw.randint(-size, size - 1))
        elif kind == "slice":
            key.append(slice(draw.choice([None, -2, 0, 1, 9]), draw.choice([None, -1, 2, 5]), draw.choice([None, 1, 2, -1])))
        elif kind == "positions":
            key.append(np.array([draw.randint(-size, size - 1) for _ in range(int(np.prod(index_shape)))], "int64").reshape(index_shape))
        elif kind == "mask" and index_shape in ((), (1,)):
            key.append(np.arange(size) == draw.randrange(size))
        elif kind == "none":
            key.append(None)
            continue
        elif kind == "rest" and Ellipsis not in [type(k) if isinstance(k, np.ndarray) else k for k in key]:
            key.append(Ellipsis)
            axis += draw.randint(0, len(shape) - axis)
            continue
        else:
            break
        axis += 1
    return tuple(key)


def test_any_key_gives_what_it_gives_in_numpy():
    draw = random.Random(7)
    for _ in range(600):
        shape = tuple(draw.randint(1, 4) for _ in range(draw.randint(1, 4)))
        a = np.arange(np.prod(shape)).reshape(shape)
        key = drawn_key(draw, shape)
        try:
            expected = a[key]
        except IndexError:
            with pytest.raises(IndexError):
                pl.asarray(a)[key]
            continue
        found = pl.asarray(a)[tuple(pl.asarray(k) if isinstance(k, np.ndarray) and draw.random() < 0.5 else k for k in key)]
        assert found.shape == expected.shape and found.tolist() == expected.tolist(), (shape, key)


def test_positions_outside_are_index_errors():
    x = pl.ones((3, 2))
    for key in [3, (0, 5), [0, 7], ([0, 1], [0, 2]), (slice(None), [2]), np.ones(4, bool), (0, 0, 0)]:
        with pytest.raises(IndexError):
            x[key]
    assert x[np.zeros(0, bool)].shape == (0, 2)


REDUCTIONS = ["sum", "mean", "prod", "max", "min", "var", "std", "argmax", "argmin"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_reductions_are_those_of_numpy(name, axis):
    if name.startswith("arg") and isinstance(axis, tuple):
        return
    a = array("float64", (2, 3, 4)) / 50
    ours = getattr(pl, name)(a, axis=axis)
    np.testing.assert_allclose(ours.numpy(), getattr(np, name)(a, axis=axis), rtol=1e-12)
    method = getattr(pl.asarray(a), name)(axis=axis)
    assert (method.numpy() == ours.numpy()).all()
    if not name.startswith("arg"):
        assert getattr(pl, name)(a, axis=axis, keepdims=True).shape == getattr(np, name)(a, axis=axis, keepdims=True).shape


def test_integers_add_up_without_overflow_and_have_means():
    x = pl.full(1000, 100, "uint8")
    assert x.sum().item() == 100000 and x.mean().item() == 100.0
    assert pl.any([0, 1]).item() is True and pl.all([0, 1]).item() is False
    assert pl.sum([True, True]).item() == 2


def test_functions_of_floats_take_integers():
    assert math.isclose(pl.exp(1).item(), math.e, rel_tol=1e-6)
    assert pl.sqrt([4, 9]).tolist() == [2, 3]
    assert pl.floor([4, 9]).dtype == pl.int64 and pl.relu([-1, 2]).tolist() == [0, 2]
    assert pl.sigmoid(pl.zeros(1)).item() == 0.5


def test_movement_is_that_of_numpy():
    a = array("int32", (2, 3))
    x = pl.asarray(a)
    for ours, theirs in [(pl.concat([x, x], axis=1), np.concatenate([a, a], axis=1)), (pl.stack([x, x]), np.stack([a, a])),
                         (x.reshape(3, 2), a.reshape(3, 2)), (x.T, a.T), (pl.transpose(x, (1, 0)), a.T), (pl.flip(x, 1), np.flip(a, 1)),
                         (pl.roll(x, 1, 1), np.roll(a, 1, 1)), (pl.pad(x, [(1, 0), (0, 2)]), np.pad(a, [(1, 0), (0, 2)])),
                         (pl.tile(x, (2, 1)), np.tile(a, (2, 1))), (pl.repeat(x, 2, 0), np.repeat(a, 2, 0)),
                         (pl.gather(x, [-1, 0], axis=1), a[:, [-1, 0]]), (pl.where(x > 50, x, 0), np.where(a > 50, a, 0)),
                         (pl.sort(x), np.sort(a)), (pl.cumsum(x, 1), np.cumsum(a, 1)), (pl.clip(x, 10, 60), np.clip(a, 10, 60)),
                         (pl.expand_dims(x, 1), a[:, None]), (pl.squeeze(x[None]), a), (pl.broadcast_to(x[0], (2, 3)), np.broadcast_to(a[0], (2, 3)))]:
        assert ours.shape == theirs.shape and (ours.numpy() == theirs).all()
    first, second = pl.split(x, [1, 2], axis=1)
    assert first.shape == (2, 1) and second.shape == (2, 2)
    values, places = pl.top_k(x, 2)
    assert (values.numpy() == np.sort(a)[:, ::-1][:, :2]).all() and places.dtype == pl.int64


def test_products_are_those_of_numpy():
    a, b = array("float32", (2, 3)), array("float32", (3, 4))
    np.testing.assert_allclose(pl.matmul(a, b).numpy(), a @ b)
    np.testing.assert_allclose(pl.matmul(a, b.T, transpose_b=True).numpy(), a @ b)
    np.testing.assert_allclose(pl.einsum("ij,jk->ik", a, b).numpy(), a @ b)
    assert pl.dot([1, 2], [3, 4]).item() == 11 and pl.outer([1, 2], [3]).tolist() == [[3], [6]]


def test_random_numbers_repeat_with_a_seed():
    assert (pl.random_normal((3, 2), seed=7).numpy() == pl.random_normal((3, 2), seed=7).numpy()).all()
    x = pl.random_uniform(1000, 2, 5, dtype="int32", seed=1)
    assert x.dtype == pl.int32 and 2 <= x.min().item() and x.max().item() < 5
    pl.config.set_seed(3)
    first = pl.random_normal(4).tolist()
    pl.config.set_seed(3)
    assert pl.random_normal(4).tolist() == first


def test_disposed_tensors_say_so():
    x = pl.ones(3)
    x.dispose()
    x.dispose()
    assert x.is_disposed and x.shape == (3,)
    with pytest.raises(pl.Disposed):
        x + 1
    with pytest.raises(RuntimeError):
        x.numpy()
