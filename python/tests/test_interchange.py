"""Files of Keras and ONNX, live views, jobs, other devices: what a build has of them."""
import os
import subprocess
import sys

import pytest

import plimsoll as pl

np = pytest.importorskip("numpy")


def small():
    model = pl.Sequential([pl.layers.Dense(8, activation="relu", input_shape=(4,), seed=1), pl.layers.Dense(1, seed=2)])
    model.compile(optimizer="adam", loss="mse")
    return model


X = np.random.default_rng(0).random((32, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


@pytest.mark.skipif(not hasattr(pl, "save_keras"), reason="this build reads no files of Keras")
def test_models_are_saved_for_keras_and_train_on(tmp_path):
    model = small()
    model.fit(X, Y, verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    loaded = pl.load_model(tmp_path / "model.keras")
    assert (loaded.predict(X).numpy() == model.predict(X).numpy()).all() and loaded.is_compiled
    assert loaded.fit(X, Y, verbose=0, shuffle=False)["loss"] == model.fit(X, Y, verbose=0, shuffle=False)["loss"]
    pl.save_keras(model, tmp_path / "other.keras", include_optimizer=False)
    assert pl.load_keras(tmp_path / "other.keras", compile=False).count_params() == model.count_params()
    (tmp_path / "bad.keras").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(pl.Corruption):
        pl.load_keras(tmp_path / "bad.keras")
    with pytest.raises(FileNotFoundError):
        pl.load_model(tmp_path / "none.keras")


@pytest.mark.skipif(not hasattr(pl, "OnnxModel"), reason="this build reads no ONNX files")
def test_onnx_files_are_read_or_refused(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07\x12\xff\xff\xff")
    with pytest.raises(pl.Corruption):
        pl.OnnxModel(tmp_path / "bad.onnx")
    with pytest.raises(FileNotFoundError):
        pl.load_model(tmp_path / "none.onnx")


# y = x + b, of float [2]: a file as small as one can be.
def onnx_file():
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    def text(number, value):
        return field(number, value.encode())

    def end(name):
        shape = field(2, field(1, b"\x08\x02"))
        return text(1, name) + field(2, field(1, b"\x08\x01" + shape))

    node = text(1, "x") + text(1, "b") + text(2, "y") + text(4, "Add")
    bias = b"\x08\x02" + b"\x10\x01" + text(8, "b") + field(9, np.array([10, 20], "float32").tobytes())
    graph = field(1, node) + text(2, "g") + field(5, bias) + field(11, end("x")) + field(12, end("y"))
    return b"\x08\x08" + field(7, graph) + field(8, b"\x10\x0d")


@pytest.mark.skipif(not hasattr(pl, "OnnxModel"), reason="this build reads no ONNX files")
def test_an_onnx_file_predicts_by_name(tmp_path):
    (tmp_path / "add.onnx").write_bytes(onnx_file())
    model = pl.OnnxModel(tmp_path / "add.onnx")
    assert [e["name"] for e in model.inputs] == ["x"] and model.outputs[0]["name"] == "y" and model.inputs[0]["dtype"] == "float32"
    assert model.predict({"x": [1.0, 2.0]})[0].tolist() == [11, 22] and model.predict({"x": np.ones(2)}, budget="1MiB")[0].tolist() == [11, 21]
    need = model.forecast({"x": (2,)}).smallest_budget
    assert model.forecast({"x": np.ones(2)}).smallest_budget == need and model.num_parameters == 2
    with pytest.raises(pl.OutOfMemory):
        model.predict({"x": [1.0, 2.0]}, budget=need - 1)
    with pytest.raises(pl.NotFound):
        model.predict({})


LIVE = """
import os, plimsoll as pl
with pl.LiveView("mine", every=0.05) as live:
    live.publish()
    print(os.path.exists(live.file))
try:
    live.publish()
except pl.FailedPrecondition:
    print("closed")
"""


@pytest.mark.skipif(not hasattr(pl, "LiveView"), reason="this build has no live views")
def test_a_live_view_publishes_while_it_lives(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIVE], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    assert done.stdout.split() == ["True", "closed"], done.stderr
    with pytest.raises(ValueError):
        pl.LiveView(every=-1)


@pytest.mark.skipif(not hasattr(pl, "distributed"), reason="this build has no jobs")
def test_a_job_of_one_process_trains_as_without():
    with pl.distributed.Job(engine="none") as job:
        assert (job.rank, job.size, job.is_open) == (0, 1, True) and job.engine and job.host(0)
        job.barrier()
        alone = small().fit(X, Y, verbose=0, shuffle=False)["loss"]
        assert small().fit(X, Y, verbose=0, shuffle=False, distributed=job)["loss"] == alone
        sliced = small().fit(X, Y, verbose=0, shuffle=False, distributed=pl.distributed.Training(job, slices=4))["loss"]
        assert sliced == pytest.approx(alone, rel=1e-4) and job.traffic["sent_bytes"] == 0
        with pytest.raises(TypeError):
            small().fit(X, Y, distributed=3)
    assert not job.is_open and issubclass(pl.Unavailable, ConnectionError)
    with pytest.raises(pl.FailedPrecondition):
        job.rank
    with pytest.raises((pl.InvalidArgument, pl.NotFound)):
        pl.distributed.Job(engine="pigeons")


FAR = """
import plimsoll as pl, numpy as np
devices = pl.config.list_physical_devices("OPENCL")
if not devices:
    print("none")
else:
    with pl.device("OPENCL:0"):
        x = pl.asarray(np.arange(6.0, dtype="float32").reshape(2, 3))
        y = pl.asarray([[1.0, 2.0, 3.0]])
        z = x * 2 + y
    print(x.device, z.device, z.tolist(), z.numpy().sum(), np.from_dlpack(z)[1, 2], (z.to("CPU:0") @ pl.ones((3, 1))).tolist())
"""


def test_tensors_of_a_device_that_the_host_cannot_reach_are_read_by_copies():
    done = subprocess.run([sys.executable, "-c", FAR], capture_output=True, text=True, timeout=120)
    if done.stdout.strip() == "none":
        pytest.skip("there is no OpenCL device")
    assert done.stdout.split("\n")[0] == "OPENCL:0 OPENCL:0 [[1.0, 4.0, 7.0], [7.0, 10.0, 13.0]] 42.0 13.0 [[12.0], [30.0]]", done.stdout + done.stderr
