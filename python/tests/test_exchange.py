"""NumPy, DLPack and buffers both ways: what is shared, what is copied, what is refused."""
import gc
import subprocess
import sys
import threading

import pytest

import plimsoll as pl

np = pytest.importorskip("numpy")


def address(a):
    return a.__array_interface__["data"][0]


def test_numpy_sees_the_same_bytes_and_cannot_write_them():
    x = pl.asarray([1.0, 2.0])
    a, b = x.numpy(), np.from_dlpack(x)
    assert address(a) == address(b) == address(np.asarray(x))
    for view in (a, b):
        with pytest.raises(ValueError):
            view[0] = 5


def test_a_consumer_that_could_write_is_refused():
    x = pl.ones(3)
    with pytest.raises(BufferError):
        x.__dlpack__()
    with pytest.raises(BufferError):
        x.__dlpack__(max_version=(0, 8))
    with pytest.raises(BufferError):
        x.__dlpack__(max_version=(1, 0), dl_device=(2, 0))
    assert x.__dlpack_device__() == (1, 0)
    writable = np.from_dlpack(x, copy=True)
    writable[0] = 7
    assert x.tolist() == [1, 1, 1]
    with pytest.raises((BufferError, TypeError)):
        import array

        array.array("f", [0, 0, 0])
        memoryview(x)[0] = 1.0


def test_views_hold_the_bytes_and_not_the_tensor(count):
    before = pl.memory().num_bytes
    x = pl.zeros(1_000_000)
    a = np.from_dlpack(x)
    x.dispose()
    assert a.sum() == 0 and pl.memory().num_bytes - before == 4_000_000
    del a, x
    gc.collect()
    assert pl.memory().num_bytes == before and count() == 0


def test_arrays_are_copied_unless_they_cannot_change():
    a = np.ones(4, "float32")
    x = pl.asarray(a)
    a[0] = 5
    assert x.tolist() == [1, 1, 1, 1]
    a.flags.writeable = False
    assert address(pl.asarray(a).numpy()) == address(a)
    assert address(pl.asarray(a, copy=True).numpy()) != address(a)
    b = np.ones(4, "float32")
    assert address(pl.asarray(b, copy=False).numpy()) == address(b)
    with pytest.raises(ValueError):
        pl.asarray(b[::2], copy=False)
    with pytest.raises(ValueError):
        pl.asarray(b, dtype="float64", copy=False)


def test_shared_memory_is_the_owners_and_is_given_back():
    before = pl.memory().num_bytes
    a = np.ones(1000)
    references = sys.getrefcount(a)
    x = pl.from_dlpack(a)
    assert pl.memory().num_bytes == before
    assert sys.getrefcount(a) > references
    del x
    gc.collect()
    assert sys.getrefcount(a) == references


def test_copies_are_charged_to_the_budget_and_can_be_refused():
    a = np.ones((1000, 1000), "float32")
    with pl.budget("small", "1MiB"):
        with pytest.raises(pl.OutOfMemory) as refusal:
            pl.asarray(a)
        assert pl.from_dlpack(a).shape == (1000, 1000)  # Shared: nothing is charged.
        with pytest.raises(MemoryError):
            pl.asarray(a.T)
    e = refusal.value
    assert e.requested == 4_000_000 and e.limit == 1 << 20 and e.in_use < e.limit
    assert e.smallest_sufficient_limit >= e.requested
    assert isinstance(e.holders, list) and isinstance(e.tried, list)


def test_array_api_strict_exchanges_tensors_both_ways():
    strict = pytest.importorskip("array_api_strict")
    for dtype in ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]:
        a = strict.asarray([[0, 1], [1, 1]], dtype=getattr(strict, dtype))
        x = pl.from_dlpack(a)
        assert x.dtype == dtype
        back = strict.from_dlpack(x)
        assert strict.all(back == a)


def test_a_hundred_thousand_round_trips_leave_memory_level():
    a = np.ones((8, 8), "float32")
    for _ in range(2000):
        np.from_dlpack(pl.asarray(a))
    gc.collect()
    tensors, resident = pl.memory().num_tensors, pl.process_memory()["resident"]
    for _ in range(50_000):
        np.from_dlpack(pl.asarray(a))
        pl.from_dlpack(a).numpy()
    gc.collect()
    assert pl.memory().num_tensors == tensors
    assert pl.process_memory()["resident"] - resident < 4 << 20


def test_array_takes_dtype_and_copy():
    x = pl.asarray([1.5, 2.5])
    assert np.asarray(x, dtype="int32").tolist() == [1, 2]
    assert np.array(x).flags.writeable
    assert x.__array__(copy=True).flags.writeable
    with pytest.raises(ValueError):
        x.__array__(dtype="int32", copy=False)


def test_symbolic_tensors_have_no_elements():
    with pl.Graph():
        x = pl.placeholder("float32", (2,))
    with pytest.raises(pl.Error):
        x.numpy()
    with pytest.raises((pl.Error, ValueError, TypeError)):
        np.asarray(x)


def test_threads_compute_while_others_make_views():
    x = pl.random_normal((256, 256), seed=1)
    expected = (x @ x).numpy().copy()
    wrong = []

    def work():
        for _ in range(20):
            if not (np.asarray(x @ x) == expected).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_of_python_run_during_a_product():
    ticks, ended = [], threading.Event()

    def tick():
        while not ended.is_set():
            ticks.append(1)

    x = pl.ones((1500, 1500))
    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    (x @ x).sum().item()
    during = len(ticks) - before
    ended.set()
    thread.join()
    assert during > 0


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


def test_the_interpreter_ends_with_live_tensors():
    done = run("import plimsoll as pl, numpy as np\nx = pl.ones((100, 100)); y = pl.from_dlpack(np.ones(4)); v = np.asarray(x)\n"
               "w = pl.Variable(x); m = pl.Sequential([pl.layers.Dense(2, input_shape=(3,))])\n"
               "h = pl.on_memory_alert(0.9, lambda a: None)\nprint('ended')")
    assert done.returncode == 0 and done.stdout == "ended\n" and done.stderr == ""


def test_a_forked_child_is_told_to_use_spawn():
    done = run("import os, plimsoll as pl\nx = pl.ones(3)\npid = os.fork()\n"
               "if pid == 0:\n  try:\n    x + 1\n  except pl.FailedPrecondition as e:\n    print('spawn' in str(e), flush=True)\n  os._exit(0)\n"
               "os.waitpid(pid, 0)\nprint((x + 1).tolist())")
    assert done.returncode == 0 and done.stdout.splitlines() == ["True", "[2.0, 2.0, 2.0]"], done.stderr


def test_numpy_is_not_needed():
    done = run("import sys\nsys.modules['numpy'] = None\nimport plimsoll as pl\nx = pl.asarray([1, 2]) * 2\n"
               "m = memoryview(x)\nprint(x.tolist(), m.format, m.shape, m.readonly)")
    assert done.stdout == "[2, 4] q (2,) True\n", done.stderr


def test_arrays_of_fit_evaluate_and_predict_are_used_where_they_lie_or_charged_outside():
    import tracemalloc

    model = pl.Sequential([pl.layers.Dense(2, input_shape=(64,)), pl.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    x, y = np.ones((4096, 64), "float32"), np.ones((4096, 1), "float32")
    wide = x.astype("float64")
    model.fit(x[:64], y[:64], verbose=0)
    tight = model.forecast(batch_size=32).smallest_budget
    calls = {"fit": lambda a: model.fit(a, y, verbose=0, shuffle=False, budget=tight), "evaluate": lambda a: model.evaluate(a, y, budget=tight),
             "predict": lambda a: model.predict(a, budget="64KiB")}
    for name, call in calls.items():
        for array, converted in [(x, 0), (wide, x.nbytes), (x[:, ::-1], x.nbytes)]:
            with pl.budget("around", "64MiB") as around:
                tracemalloc.start()
                call(array)
                elsewhere = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert converted <= around.peak < converted + x.nbytes / 2, (name, converted, around.peak)
            assert elsewhere < x.nbytes / 2, (name, elsewhere)  # NumPy's memory is traced: no copy is made there.
        with pl.budget("around", "512KiB"), pytest.raises(pl.OutOfMemory):
            call(wide)


def test_functions_of_python_are_called_from_threads_of_the_library():
    threads, seen = set(), []

    def doubled(a, b):
        threads.add(threading.get_ident())
        return a * 2, b

    data = pl.Dataset.from_tensors(pl.ones((64, 3)), pl.ones(64)).map(doubled).batch(8).prefetch(2)
    assert sum(x.sum().item() for x, _ in data) == 64 * 6 and threads and threading.get_ident() not in threads
    with pl.budget("alerted", "1MiB") as budget:
        handle = budget.on_alert(0.5, lambda alert: seen.append(threading.get_ident())) if hasattr(budget, "on_alert") else None
        x = pl.ones(200_000)
    assert handle is None or seen, x
