"""Scopes, budgets, devices, and what a program asks about memory."""
import subprocess
import sys
import threading

import pytest

import plimsoll as pl


def test_tidy_disposes_of_what_is_not_kept(count):
    x = pl.ones(3)
    with pl.tidy() as scope:
        y = x + 1
        z = scope.keep(y * 2)
        lost = y * 3
    assert lost.is_disposed and y.is_disposed and z.tolist() == [4, 4, 4]
    assert pl.tidy(lambda: {"a": [x * 2, (x * 3,)]})["a"][1][0].tolist() == [3, 3, 3]
    with pl.tidy("named"):
        kept = pl.keep(x * 5)
    assert kept.tolist() == [5, 5, 5]
    pl.dispose([kept, z, {"x": x}])
    assert count() <= 4 and kept.is_disposed and x.is_disposed


def test_an_exception_ends_a_tidy_and_passes_through():
    with pytest.raises(KeyError):
        with pl.tidy():
            lost = pl.ones(2)
            raise KeyError("mine")
    assert lost.is_disposed

    @pl.tidied
    def fails():
        raise KeyError("mine")

    with pytest.raises(KeyError):
        fails()


def test_scopes_that_end_out_of_order_are_refused_and_end_later():
    def generator():
        with pl.tidy():
            yield pl.ones(2)

    with pytest.raises(pl.FailedPrecondition, match="reverse order"):
        with pl.budget("outer", "1MiB"):
            inside = generator()
            x = next(inside)
    assert not x.is_disposed
    inside.close()
    assert x.is_disposed
    big = pl.zeros(1_000_000)  # The budget has ended too.
    assert big.nbytes == 4_000_000


def test_a_scope_must_end_on_its_thread():
    tidy = pl.tidy()
    thread = threading.Thread(target=tidy.__enter__)
    thread.start()
    thread.join()
    with pytest.raises(pl.FailedPrecondition, match="thread"):
        tidy.__exit__(None, None, None)


def test_budgets_nest_refuse_and_tell():
    with pl.budget("outer", "2MiB") as outer:
        with pl.budget("inner", 1 << 20) as inner:
            x = pl.zeros(100_000)
            assert inner.used >= 400_000 and outer.used == inner.used
            with pytest.raises(MemoryError):
                pl.zeros(200_000)
            y = pl.zeros(100_000)
        assert outer.peak >= 800_000 and outer.limit == 2 << 20 and "inner" in outer.report()
    del x, y
    assert outer.used == 0 and "outer" in repr(outer)
    for wrong in ("many", -1, 0):
        with pytest.raises(ValueError):
            pl.budget("wrong", wrong)


def test_alerts_call_back_once_and_end_with_their_handle():
    told = []
    budget = pl.budget("watched", "1MiB")
    with budget, budget.on_alert(0.5, lambda alert: told.append((alert.budget, alert.bytes_in_use))):
        x = pl.zeros(100_000)
        y = pl.zeros(50_000)
        z = pl.zeros(50_000)
    assert len(told) == 1 and told[0][0] == "watched" and told[0][1] >= 1 << 19
    del x, y, z
    with budget:
        pl.zeros(200_000)
    assert len(told) == 1


def test_memory_counts_tensors_buffers_and_bytes():
    before = pl.memory()
    x = pl.zeros((10, 10))
    view = x.reshape(100)
    now = pl.memory()
    assert (now.num_tensors - before.num_tensors, now.num_data_buffers - before.num_data_buffers) == (2, 1)
    assert now.num_bytes - before.num_bytes == 400
    assert "tensors on" in pl.memory_summary() and pl.memory_allocated() <= pl.max_memory_allocated()
    assert any(t.shape == (10, 10) and t.dtype == "float32" for t in pl.live_tensors())
    del view


def test_who_holds_names_variables_and_views():
    w = pl.Variable(pl.ones(4), name="kernel")
    assert "kernel" in str(pl.who_holds(w.value()))
    x = pl.ones(4)
    view = memoryview(x)
    assert "view" in str(pl.who_holds(x)) or "pinned" in str(pl.who_holds(x))
    assert pl.who_holds(x).to_svg().startswith("<svg") or "<svg" in pl.who_holds(x)._repr_svg_()
    del view
    with pytest.raises(TypeError):
        pl.who_holds(3)


def test_growth_names_the_line_of_python():
    growth = pl.Growth()
    held = []
    with pl.name_scope("training"):
        held.append(pl.ones(1000))
    row = growth.take()[0]
    assert (row.op, row.scope, row.bytes, row.count) == ("ones", "training", 4000, 1)
    assert "test_memory.py:" in row.site
    assert growth.take() == []


def test_leak_checks_raise_at_the_end_of_their_block():
    held = []
    with pytest.raises(pl.Leak) as leak:
        with pl.LeakCheck():
            held.append(pl.ones(3))
    assert isinstance(leak.value, AssertionError)
    with pl.LeakCheck() as check:
        pl.ones(3).sum().item()
    assert check.leaked() == 0


def test_a_recording_becomes_a_report(tmp_path):
    path = tmp_path / "run.trace"
    with pl.record(path):
        for step in range(3):
            pl.trace_step(step)
            pl.ones((100, 100)) + 1
    report = pl.Report(path)
    assert isinstance(report.findings, list)
    html = report._repr_html_()
    assert "sandbox" in html or "<pre>" in html
    pl.export_trace(path, tmp_path / "run.pickle")
    assert (tmp_path / "run.pickle").stat().st_size > 0
    with pytest.raises(FileNotFoundError):
        pl.Report(tmp_path / "none.trace").findings


DEVICES = """
import plimsoll as pl
cpu = pl.config.list_physical_devices("CPU")[0]
assert pl.config.list_physical_devices("GPU") == []
pl.config.set_memory_growth(cpu, True)
pl.config.set_logical_device_configuration(cpu, [pl.config.LogicalDeviceConfiguration(memory_limit="8MiB"),
                                                 pl.config.LogicalDeviceConfiguration(memory_limit=4 << 20)])
assert [d.name for d in pl.config.list_logical_devices("CPU")] == ["CPU:0", "CPU:1"]
with pl.device("/CPU:1"):
    x = pl.ones(1000)
    try:
        pl.ones(2 << 20)
    except MemoryError as e:
        print(e.limit)
assert x.device == "CPU:1" and x.to("CPU:0").device == "CPU:0"
try:
    pl.config.set_memory_growth(cpu, False)
except pl.FailedPrecondition as e:
    print("started")
try:
    x + x.to("CPU:0")
except pl.InvalidArgument as e:
    print("CPU:1" in str(e))
print(pl.config.get_memory_info("CPU:1")["current"] >= 4000)
"""


def test_devices_have_limits():
    done = subprocess.run([sys.executable, "-c", DEVICES], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["4194304", "started", "True", "True"], done.stderr


def test_every_error_is_one_of_ours_and_one_of_pythons():
    for ours, pythons in [(pl.InvalidArgument, ValueError), (pl.FailedPrecondition, RuntimeError), (pl.OutOfMemory, MemoryError),
                          (pl.NotFound, LookupError), (pl.NotFound, FileNotFoundError), (pl.Corruption, ValueError),
                          (pl.Unsupported, NotImplementedError), (pl.Disposed, RuntimeError), (pl.Leak, AssertionError)]:
        assert issubclass(ours, pl.Error) and issubclass(ours, pythons)
    with pytest.raises(pl.InvalidArgument, match="matmul"):
        pl.matmul(pl.ones((2, 3)), pl.ones((4, 5)))
    with pytest.raises(pl.NotFound):
        pl.load_npz("no such file.npz")
    with pytest.raises(pl.Unsupported):
        pl.einsum("ii->", pl.ones((2, 2)))


def test_corrupt_files_say_where(tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(b"\x10\0\0\0\0\0\0\0not a header at all")
    with pytest.raises(pl.Corruption, match="bad.safetensors"):
        pl.load_safetensors(path)


def test_files_keep_trees(tmp_path):
    tree = {"w": pl.ones((2, 2)), "layers": [pl.zeros(3, "int32"), pl.full(1, 7)]}
    pl.save_safetensors(tmp_path / "t.safetensors", tree)
    back = pl.load_safetensors(tmp_path / "t.safetensors")
    assert back["layers"][0].dtype == pl.int32 and back["w"].tolist() == [[1, 1], [1, 1]]
    pl.save_npz(tmp_path / "t.npz", tree)
    np = pytest.importorskip("numpy")
    assert np.load(tmp_path / "t.npz")["layers/1"].tolist() == [7]
    assert pl.load_npz(tmp_path / "t.npz")["layers"][1].tolist() == [7]
