"""The names that programs rely on, one test each: they are there, and do what they say."""
import pytest

import plimsoll as pl


def small(**how):
    model = pl.Sequential([pl.layers.Dense(16, activation="relu", input_shape=(10,)), pl.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse", **how)
    return model


def test_budget_takes_a_name_and_a_size():
    with pl.budget("step", "64MiB") as budget:
        x = pl.ones(1000)
    assert (budget.name, budget.limit) == ("step", 64 << 20) and budget.used >= x.nbytes == 4000
    assert pl.budget("step", 1000).limit == 1000


def test_tidy_disposes():
    before = pl.memory().num_tensors
    with pl.tidy():
        x = pl.ones(3) * 2
    assert x.is_disposed and pl.memory().num_tensors == before
    assert pl.tidy(lambda: pl.ones(3).sum()).item() == 3


def test_keep_and_dispose():
    with pl.tidy():
        x = pl.keep(pl.ones(3))
    assert x.tolist() == [1, 1, 1]
    pl.dispose({"x": [x]})
    assert x.is_disposed


def test_memory_counts_tensors():
    before = pl.memory().num_tensors
    x = pl.ones(3)
    assert pl.memory().num_tensors == before + 1 and pl.memory().num_bytes >= x.nbytes


def test_memory_summary_is_a_table():
    assert "CPU:0" in pl.memory_summary() and "in use" in pl.memory_summary()


def test_who_holds_names_holders():
    x = pl.ones(3)
    view = memoryview(x)
    assert "view" in str(pl.who_holds(x)) and view.nbytes == 12


def test_asarray_zeros_ones_matmul_transpose():
    a = pl.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert pl.zeros((2, 3)).shape == (2, 3) and isinstance(a.shape, tuple) and pl.ones(2).tolist() == [1, 1]
    assert pl.matmul(a, a).tolist() == (a @ a).tolist() == [[7, 10], [15, 22]]
    assert pl.transpose(a).tolist() == a.T.tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype):
    assert getattr(pl, dtype) == dtype and pl.ones(2, dtype).dtype is getattr(pl, dtype) and pl.dtype(dtype).name == dtype


def test_operators():
    x, y = pl.asarray([6.0, -3.0]), pl.asarray([2.0, 2.0])
    n, k = pl.asarray([6, 3]), pl.asarray([2, 2])
    assert [(x + y).tolist(), (x - y).tolist(), (x * y).tolist(), (x / y).tolist()] == [[8, -1], [4, -5], [12, -6], [3, -1.5]]
    assert [(x // y).tolist(), (x % y).tolist(), (x ** 2).tolist(), (-x).tolist(), (+x).tolist(), abs(x).tolist()] == \
        [[3, -2], [0, 1], [36, 9], [-6, 3], [6, -3], [6, 3]]
    assert [(x < y).tolist(), (x <= 6).tolist(), (x > y).tolist(), (x >= 6).tolist(), (x == 6).tolist(), (x != 6).tolist()] == \
        [[False, True], [True, True], [True, False], [True, False], [True, False], [False, True]]
    assert [(n & k).tolist(), (n | k).tolist(), (n ^ k).tolist(), (n << k).tolist(), (n >> k).tolist(), (~n).tolist()] == \
        [[2, 2], [6, 3], [4, 1], [24, 12], [1, 0], [-7, -4]]
    assert [(1 + x).tolist(), (1 - x).tolist(), (2 * x).tolist(), (6 / y).tolist(), (2 ** y).tolist()] == [[7, -2], [-5, 4], [12, -6], [3, 3], [4, 4]]


def test_indexing():
    x = pl.arange(24).reshape(2, 3, 4)
    assert x[1, 2, 3].item() == 23 and x[0, 1].tolist() == [4, 5, 6, 7] and x[-1, ..., 0].tolist() == [12, 16, 20]
    assert x[:, 1:, ::2].shape == (2, 2, 2) and x[::-1][0, 0, 0].item() == 12 and x[None, :, None].shape == (1, 2, 1, 3, 4)
    assert x[x > 21].tolist() == [22, 23] and x[pl.asarray([True, False])].shape == (1, 3, 4) and x[[1, 0, 1]].shape == (3, 3, 4)


def test_gradient_tape():
    w = pl.Variable(3.0)
    with pl.GradientTape() as tape:
        y = w * w
    assert tape.gradient(y, w).item() == 6


def test_devices_are_context_managers():
    with pl.device("CPU:0"):
        assert pl.ones(3).device == "CPU:0"


def test_growth_and_leak_check():
    growth = pl.Growth()
    held = pl.ones(7)
    assert [(row.op, row.bytes) for row in growth.take()] == [("ones", held.nbytes)]
    with pytest.raises(pl.Leak), pl.LeakCheck():
        held = [pl.ones(3)]


def test_record_and_the_report_as_html(tmp_path):
    with pl.record(str(tmp_path / "run.trace")):
        pl.ones((100, 100)).sum()
    html = pl.Report(tmp_path / "run.trace")._repr_html_()
    assert html.startswith("<iframe sandbox") or html.startswith("<pre>")


def test_graph_placeholder_session_saver(tmp_path):
    with pl.Graph() as g:
        x = pl.placeholder("float32", (None, 2))
        w = pl.Variable([[1.0], [2.0]], name="w")
        y = x @ w
        saver = pl.Saver()
    with pl.Session(g) as session:
        session.run(pl.global_variables_initializer())
        assert session.run(y, {x: [[1, 1]]}).tolist() == [[3]]
        saver.restore(session, saver.save(session, str(tmp_path / "model.ckpt")))


def test_function_is_a_decorator():
    @pl.function
    def double(x):
        return x * 2

    @pl.function(budget="1MiB")
    def triple(x):
        return x * 3

    assert double(pl.ones(2)).tolist() == [2, 2] and triple(pl.ones(2)).tolist() == [3, 3] and double.trace_count == 1


def test_dense_compile_fit_history_forecast():
    model = small(metrics=["mae"])
    x, y = pl.ones((64, 10)), pl.ones((64, 1))
    smallest = model.forecast(batch_size=32).smallest_budget
    history = model.fit(x, y, batch_size=32, epochs=2, verbose=0, budget=smallest)
    assert isinstance(smallest, int) and sorted(history.history) == ["loss", "mae"] and len(history.history["loss"]) == 2
    assert len(model.evaluate(x, y)) == 2 and model.predict(x).shape == (64, 1)


def test_functional_models():
    a = pl.Input((4,))
    model = pl.Model(a, pl.layers.Dense(2)(pl.layers.Add()([a, pl.layers.Dense(4)(a)])))
    assert model.predict(pl.ones((3, 4))).shape == (3, 2)


def test_callbacks_in_python():
    seen = []

    class Tells(pl.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((epoch, sorted(logs)))

    small().fit(pl.ones((8, 10)), pl.ones((8, 1)), epochs=2, verbose=0, callbacks=[Tells()])
    assert seen == [(0, ["loss"]), (1, ["loss"])]


def test_layers_in_python():
    class Scale(pl.layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight("scale", input_shape[-1:], initializer="ones")

        def call(self, x):
            return x * self.scale

    model = pl.Sequential([pl.layers.Dense(3, input_shape=(2,)), Scale()])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(pl.ones((8, 2)), pl.zeros((8, 3)), verbose=0)
    assert model.layers[1].scale.tolist() != [1, 1, 1]


def test_datasets_from_generators_and_arrays():
    np = pytest.importorskip("numpy")
    made = pl.Dataset.from_generator(lambda: ((np.full(2, i, "float32"), np.float32(i)) for i in range(4)))
    assert [y.tolist() for x, y in made.batch(2)] == [[0, 1], [2, 3]]
    assert [x.shape for x, y in pl.Dataset.from_tensors(np.ones((5, 3), "float32"), np.ones(5, "float32")).batch(2)] == [(2, 3), (2, 3), (1, 3)]


def test_files(tmp_path):
    for save, load, name in [(pl.save_npz, pl.load_npz, "w.npz"), (pl.save_safetensors, pl.load_safetensors, "w.safetensors")]:
        save(tmp_path / name, {"w": pl.ones(2)})
        assert load(tmp_path / name)["w"].tolist() == [1, 1]
    for name in ("folder", "model.keras"):
        model = small()
        model.save(tmp_path / name)
        assert (pl.load_model(tmp_path / name).predict(pl.ones((1, 10))) == model.predict(pl.ones((1, 10)))).all().item()


def test_sizes_are_texts_or_numbers():
    assert pl.parse_bytes("64MiB") == 64 << 20 and pl.budget("b", "2 KiB").limit == 2048 and pl.budget("b", 1 << 20).limit == 1 << 20
    for wrong, error in [("much", pl.InvalidArgument), (-1, (ValueError, TypeError)), (None, TypeError)]:
        with pytest.raises(error):
            pl.budget("b", wrong)


def test_out_of_memory_is_a_memory_error_with_its_numbers():
    with pytest.raises(MemoryError) as refused, pl.budget("small", 1000):
        pl.ones(1000)
    e = refused.value
    assert isinstance(e, pl.OutOfMemory) and (e.requested, e.limit, e.in_use) == (4000, 1000, 0) and e.smallest_sufficient_limit >= 4000
    with pl.budget("small", e.smallest_sufficient_limit):
        pl.ones(1000)
