"""Sparse and ragged tensors, arrays, trees, pools."""
import gc
import threading
import time

import pytest

import plimsoll as pl


def test_sparse_tensors_multiply_and_add():
    s = pl.SparseTensor([[2, 0], [0, 1]], [7.0, 5.0], (3, 2))
    assert (s.shape, s.ndim, s.num_entries, s.dtype, s.format) == ((3, 2), 2, 2, "float32", "coo")
    assert s.indices.tolist() == [[0, 1], [2, 0]] and s.values.tolist() == [5, 7]
    assert (s @ pl.ones((2, 1))).tolist() == [[5], [0], [7]] and (pl.ones((1, 3)) @ s).tolist() == [[7, 5]]
    assert (s.T @ s).to_dense().tolist() == [[49, 0], [0, 25]]
    assert (s + s - s * 0.5).to_dense().tolist() == [[0, 7.5], [0, 0], [10.5, 0]]
    assert (2 * s).sum().item() == 24 and (-s).values.tolist() == [-5, -7] and (s / 2).values.tolist() == [2.5, 3.5]
    assert (s * pl.asarray([[1.0, 10.0]])).values.tolist() == [50, 7] and (pl.ones((3, 2)) * s).to_dense().shape == (3, 2)
    assert s.sum(axis=1).tolist() == [5, 0, 7] and s.mean().item() == 2 and s.max(axis=0, keepdims=True).tolist() == [[7, 5]]
    assert pl.sparse_matmul(s, pl.ones((3, 1)), transpose_a=True).tolist() == [[7], [5]]
    assert pl.sparse_softmax(s).values.tolist() == [1, 1] and s.slice_rows(2).to_dense().tolist() == [[7, 0]]
    assert "SparseTensor" in repr(s) and s.with_values([1, 2]).dtype == pl.int64 and s.astype("float64").dtype == "float64"


def test_sparse_tensors_promote_mixed_dtypes_as_dense_ones_do():
    s = pl.SparseTensor([[0, 0]], [2], (1, 2))
    assert s.dtype == pl.int64 and (s * 0.5).values.tolist() == [1.0] and (s / 4).values.tolist() == [0.5]
    assert (s @ pl.ones((2, 1))).dtype == pl.float32 and (s + s.astype("float64")).dtype == pl.float64


def test_sparse_tensors_refuse_what_is_wrong():
    with pytest.raises(pl.InvalidArgument, match="duplicates"):
        pl.SparseTensor([[0, 0]], [1.0], (1, 1), duplicates="ignore")
    with pytest.raises(pl.InvalidArgument):
        pl.SparseTensor([[0, 0], [0, 0]], [1.0, 2.0], (1, 1))
    assert pl.SparseTensor([[0, 0], [0, 0]], [1.0, 2.0], (1, 1), duplicates="sum").values.tolist() == [3]
    with pytest.raises(pl.InvalidArgument):
        pl.SparseTensor([[0, 5]], [1.0], (1, 1))
    with pytest.raises(TypeError):
        pl.SparseTensor([[0, 0]], [1.0], (1, 1)) + 3
    with pytest.raises(TypeError):
        pl.sparse_matmul(pl.ones((1, 1)), pl.ones((1, 1)))


def test_gradients_go_to_the_entries_of_sparse_tensors():
    values, w = pl.asarray([1.0, 2.0]), pl.Variable([[3.0], [4.0]])
    with pl.GradientTape() as tape:
        tape.watch(values)
        y = (pl.SparseTensor([[0, 0], [1, 1]], values, (2, 2)) @ w).sum()
    dv, dw = tape.gradient(y, [values, w])
    assert dv.tolist() == [3, 4] and dw.tolist() == [[1], [2]]


def test_sparse_matrices_of_scipy_come_and_go():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    np = pytest.importorskip("numpy")
    m = scipy_sparse.random(20, 30, density=0.1, format="coo", random_state=0, dtype="float32")
    s = pl.SparseTensor.from_scipy(m)
    assert s.format == "csr" and np.array_equal(s.to_dense().numpy(), m.toarray())
    assert np.array_equal(s.to_scipy().toarray(), m.toarray())
    assert np.allclose((np.ones((1, 20), "float32") @ s).numpy(), m.toarray().sum(axis=0, keepdims=True))


def test_dense_tensors_become_sparse():
    s = pl.SparseTensor.from_dense([[0.0, 3.0], [0.0, 0.0]])
    assert s.format == "csr" and s.row_splits.tolist() == [0, 1, 1] and s.columns.tolist() == [1]
    assert pl.SparseTensor.from_csr([0, 1, 1], [1], [3.0], (2, 2)).to_coo().indices.tolist() == [[0, 1]]


def test_ragged_rows_are_padded_and_masked():
    r = pl.RaggedTensor.from_rows([[1, 2, 3], [], [4]])
    assert r.shape == (3, None) and r.dtype == pl.int64 and len(r) == 3 and r.max_length == 3
    assert r[0].tolist() == [1, 2, 3] and r[-1].tolist() == [4] and r.tolist() == [[1, 2, 3], [], [4]]
    assert [len(row) for row in r] == [3, 0, 1]
    assert r.to_padded(value=-1).tolist() == [[1, 2, 3], [-1, -1, -1], [4, -1, -1]] and r.to_padded(max_length=1).shape == (3, 1)
    assert r.mask().tolist() == [[True] * 3, [False] * 3, [True, False, False]]
    back = pl.RaggedTensor.from_padded(r.to_padded(), r.row_lengths)
    assert back.values.tolist() == [1, 2, 3, 4] and back.row_splits.tolist() == [0, 3, 3, 4]
    assert pl.RaggedTensor.from_row_lengths([1.0, 2.0], [2, 0]).with_values([5, 6])[0].tolist() == [5, 6]
    assert "row_lengths" in repr(r) and pl.RaggedTensor([1, 2], [0, 2]).nbytes == 32
    with pytest.raises(IndexError):
        r[3]
    with pytest.raises(pl.InvalidArgument):
        pl.RaggedTensor([1, 2], [0, 5])
    with pytest.raises(TypeError):
        r.to_padded(value="x")


def test_tensor_arrays_are_written_and_read_once():
    a = pl.TensorArray("float32", size=2)
    assert a.write(0, [1.0, 2.0]) is a or a.write
    a.write(1, [3, 4])
    assert a.stack().tolist() == [[1, 2], [3, 4]] and a.concat().tolist() == [1, 2, 3, 4] and a.gather([1]).tolist() == [[3, 4]]
    assert a.read(0).tolist() == [1, 2] and len(a) == a.size() == 2 and a.element_shape == (2,) and a.dtype == "float32"
    with pytest.raises(pl.FailedPrecondition):
        a.read(0)
    with pytest.raises(pl.InvalidArgument):
        a.write(7, [1, 2])
    b = pl.TensorArray("int64", size=3, clear_after_read=False).unstack([[1], [2], [3]])
    assert b.read(2).tolist() == [3] == b.read(2).tolist() and b.element_shape == (1,)
    c = pl.TensorArray("float32", dynamic_size=True, infer_shape=False).split([1.0, 2.0, 3.0], [1, 2])
    assert c.read(1).tolist() == [2, 3] and pl.TensorArray("float32").element_shape is None
    assert pl.TensorArray("float32", size=2).scatter([1, 0], [[1.0], [2.0]]).stack().tolist() == [[2], [1]]


def test_trees_hold_tensors_in_lists_and_dicts(tmp_path):
    tree = pl.TensorTree({"w": pl.ones((2, 2)), "layers": [pl.zeros(3), [1, 2]]})
    assert tree.is_map and tree.keys() == ["layers", "w"] and "w" in tree and len(tree) == 2 and tree["w"].shape == (2, 2)
    assert tree["layers"][0].shape == (3,) and tree["layers"].is_list and tree[-1].shape == (2, 2)
    assert [x.shape for x in tree.flatten()] == [(3,), (), (), (2, 2)] and tree.num_tensors == 4
    doubled = tree.map(lambda x: x * 2)
    assert doubled["w"].tolist() == [[2, 2], [2, 2]] and doubled.same_structure(tree) and not tree.same_structure([1])
    assert tree.with_leaves([x + 1 for x in tree.flatten()]).to_python()["layers"][0].tolist() == [1, 1, 1]
    pl.save_safetensors(tmp_path / "t.safetensors", tree)
    assert pl.load_safetensors(tmp_path / "t.safetensors")["w"].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(KeyError if issubclass(pl.NotFound, KeyError) else LookupError):
        tree["none"]
    with pytest.raises(IndexError):
        tree["layers"][5]
    with pytest.raises(ZeroDivisionError):
        tree.map(lambda x: 1 / 0)


def test_tidy_keeps_and_disposes_of_what_collections_hold(count):
    with pl.tidy() as scope:
        kept = scope.keep({"s": pl.SparseTensor.from_dense([[0.0, 1.0]]), "r": pl.RaggedTensor.from_rows([[1], [2, 3]])})
        lost = pl.SparseTensor.from_dense([[0.0, 2.0]])
    assert kept["s"].to_dense().tolist() == [[0, 1]] and kept["r"].tolist() == [[1], [2, 3]] and lost.is_disposed
    returned = pl.tidy(lambda: pl.TensorTree({"x": pl.ones(2)}))
    assert returned["x"].tolist() == [1, 1]
    pl.dispose([kept, returned])
    assert kept["s"].is_disposed and kept["r"].is_disposed
    del kept, lost, returned
    assert count() == 0


def test_pools_lend_tensors_and_take_no_more_memory():
    pool = pl.TensorPool((2, 3), "float32", capacity=2)
    before = pl.memory().num_bytes
    with pool.acquire() as lease:
        memoryview(lease)[1, 2] = 4.0
        assert lease.tensor.sum().item() >= 4 and pool.used == 1
        second = pool.try_acquire()
        assert pool.try_acquire() is None and pool.acquire(timeout=0.01) is None and second is not None
        second.release()
        inside = lease.tensor
    assert inside.is_disposed and pool.used == 0 and pool.peak == 2 and pool.capacity == 2
    with pytest.raises(pl.FailedPrecondition):
        lease.tensor
    assert pl.memory().num_bytes == before and "2" in pool.report() and "TensorPool" in repr(pool)
    with pytest.raises(pl.InvalidArgument):
        pl.TensorPool((2,), capacity=0)
    with pytest.raises(ValueError):
        pool.acquire(timeout=-1)
    with pl.budget("small", "1KiB"), pytest.raises(pl.OutOfMemory):
        pl.TensorPool((1000,), capacity=3)


def test_a_view_of_a_lease_holds_its_buffer():
    np = pytest.importorskip("numpy")
    pool = pl.TensorPool(4, capacity=1)
    lease = pool.acquire()
    array = lease.numpy()
    array[:] = [1, 2, 3, 4]
    assert (lease.tensor * 2).tolist() == [2, 4, 6, 8] and array.flags.writeable
    lease.release()
    assert pool.used == 1 and pool.try_acquire() is None and array.tolist() == [1, 2, 3, 4]
    del array
    gc.collect()
    assert pool.used == 0 and np is not None


def test_pools_are_waited_for_by_other_threads():
    pool = pl.TensorPool(1, capacity=1)
    lease = pool.acquire()
    got = []
    thread = threading.Thread(target=lambda: got.append(pool.acquire(timeout=20)))
    thread.start()
    time.sleep(0.05)
    assert not got
    lease.release()
    thread.join()
    assert len(got) == 1 and got[0] is not None
