"""Variables, gradients, graphs, functions, models, data."""
import gc
import os
import signal
import threading
import weakref

import pytest

import plimsoll as pl

np = pytest.importorskip("numpy")


def xor_like(rows=64, seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, 4)).astype("float32")
    return x, (x.sum(axis=1, keepdims=True) > 0).astype("float32")


def small_model(**how):
    model = pl.Sequential([pl.layers.Dense(8, activation="relu", input_shape=(4,), seed=1), pl.layers.Dense(1, activation="sigmoid", seed=2)])
    model.compile(**{"optimizer": "adam", "loss": "binary_crossentropy", **how})
    return model


def test_variables_change_and_their_snapshots_do_not():
    w = pl.Variable([1.0, 2.0], name="w")
    before = w.value()
    w.assign_add([1, 1])
    w.assign_sub(np.array([0.5, 0.5]))
    assert w.tolist() == [1.5, 2.5] and before.tolist() == [1, 2]
    assert (w * 2).tolist() == [3, 5] and (2 - w).tolist() == [0.5, -0.5] and (w @ w).item() == 8.5
    assert w[0].item() == 1.5 and float(w.sum()) == 4 and np.asarray(w).tolist() == [1.5, 2.5]
    with pytest.raises(pl.InvalidArgument):
        w.assign([1, 2, 3])


def test_tapes_give_gradients_of_tensors_and_variables():
    w, x = pl.Variable([[2.0], [3.0]]), pl.asarray([[1.0, 2.0]])
    with pl.GradientTape() as tape:
        tape.watch(x)
        y = (x @ w).sum()
    by_name = tape.gradient(y, {"x": x, "w": w})
    assert by_name["x"].tolist() == [[2, 3]] and by_name["w"].tolist() == [[1], [2]]
    with pytest.raises(pl.FailedPrecondition):
        tape.gradient(y, x)


def test_tapes_nest_and_what_is_not_connected_has_none():
    x = pl.asarray(3.0)
    with pl.GradientTape() as outer:
        outer.watch(x)
        with pl.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = x * x * x
        slope = inner.gradient(y, x)
    assert slope.item() == 27 and outer.gradient(slope, x).item() == 18
    assert inner.gradient(y, pl.ones(1)) is None
    with pytest.raises(pl.FailedPrecondition, match="with"):
        pl.GradientTape().gradient(y, x)
    value, (dx,) = pl.value_and_gradients(lambda a: a * a, [x])
    assert value.item() == 9 and dx.item() == 6


def test_no_grad_hides_operations():
    w = pl.Variable(2.0)
    with pl.GradientTape() as tape:
        with pl.no_grad():
            hidden = w * w
        y = hidden * w
    assert tape.gradient(y, w).item() == 4


def test_a_gradient_of_ones_own():
    x = pl.asarray([0.5, 2.0])
    with pl.GradientTape() as tape:
        tape.watch(x)
        y = pl.custom_gradient([x], lambda a: pl.clip(a, 0, 1), lambda g, a: g * 10)
    assert y.tolist() == [0.5, 1] and tape.gradient(y, x).tolist() == [10, 10]
    with pl.GradientTape() as tape:
        tape.watch(x)
        y = pl.custom_gradient([x], lambda a: a * 1, lambda g, a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tape.gradient(y, x)


def test_an_optimizer_takes_steps_by_hand():
    w = pl.Variable([5.0])
    optimizer = pl.optimizers.SGD(learning_rate=0.1)
    for _ in range(100):
        with pl.GradientTape() as tape:
            loss = pl.square(w - 2).sum()
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
    assert abs(w.item() - 2) < 1e-4 and optimizer.iterations == 100


def test_functions_are_traced_once_for_each_kind_of_arguments():
    calls = []

    @pl.function
    def f(x, scale=1.0, *, flip=False):
        """Doc."""
        calls.append(x.shape)
        y = pl.relu(x) * scale
        return {"y": -y if flip else y, "both": [x, y], "plain": "text"}

    x = pl.asarray([-1.0, 2.0])
    for _ in range(3):
        result = f(x, 2.0)
    assert result["y"].tolist() == [0, 4] and result["both"][0].tolist() == [-1, 2] and result["plain"] == "text"
    assert len(calls) == 1 and f.trace_count == 1 and f.__doc__ == "Doc." and f.__name__ == "f"
    assert f(x, 2.0, flip=True)["y"].tolist() == [-0.0, -4] and f(np.ones((3, 2), "float32"))["y"].shape == (3, 2)
    assert f.trace_count == 3 and f.memory_plan(x)["peak_bytes"] > 0

    @pl.function(budget="4KiB")
    def large(x):
        return (x + 1) * (x + 2)

    with pytest.raises(pl.OutOfMemory):
        large(pl.ones(100_000))

    @pl.function
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        fails(x)


def test_functions_read_variables_and_branch_by_cond():
    w = pl.Variable(1.0)

    @pl.function
    def f(x):
        w.assign_add(1.0)
        return pl.cond(x.sum() > 0, lambda: x * w, lambda: -x)

    assert f(pl.asarray([1.0])).item() == 2 and f(pl.asarray([1.0])).item() == 3 and f(pl.asarray([-1.0])).item() == 1

    @pl.function
    def doubled(x):
        return pl.while_loop(lambda s: s < 100.0, lambda s: [s * 2], [x])[0]

    assert doubled(pl.asarray(3.0)).item() == 192 and pl.while_loop(lambda s: s < 5, lambda s: [s + 2], [pl.asarray(0)])[0].item() == 6
    with pytest.raises(pl.FailedPrecondition, match="cond"):
        pl.function(lambda x: x if x.sum() > 0 else -x)(pl.ones(2))


def test_sessions_run_graphs_and_savers_keep_them(tmp_path):
    graph = pl.Graph()
    with graph.as_default():
        x = pl.placeholder(pl.float32, (None, 2), name="x")
        y = pl.placeholder(pl.float32, (None, 1), name="y")
        w = pl.Variable(pl.zeros((2, 1)), name="w")
        loss = pl.reduce_mean(pl.square(pl.matmul(x, w) - y))
        step = pl.train.AdamOptimizer(0.1).minimize(loss)
    assert x.shape == (None, 2) and x.is_symbolic and x.name == "x"
    a = np.random.default_rng(0).normal(size=(32, 2))
    b = a @ [[1.0], [-2.0]]
    saver = pl.Saver(max_to_keep=2)
    with pl.Session(graph, budget="1MiB") as session:
        session.run(pl.global_variables_initializer())
        for _ in range(200):
            none, last = session.run([step, loss], {x: a, y: b})
        assert none is None and last.item() < 1e-3
        path = saver.save(session, str(tmp_path / "model.ckpt"), global_step=7)
        trained = session.run({"w": w})["w"].tolist()
        assert "w" in session.variables() and session.memory_plan(loss, {x: a, y: b})["peak_bytes"] > 0
    with pytest.raises(pl.FailedPrecondition):
        session.run(loss, {x: a, y: b})
    with pl.Session(graph) as other:
        with pytest.raises(pl.FailedPrecondition, match="w"):
            other.run(loss, {x: a, y: b})
        assert path == pl.latest_checkpoint(str(tmp_path))
        saver.restore(other, path)
        assert other.run(w).tolist() == trained
        with pytest.raises(pl.InvalidArgument, match="y"):
            other.run(loss, {x: a})
    assert pl.latest_checkpoint(str(tmp_path / "nothing")) is None


def test_fit_trains_and_tells_its_history():
    x, y = xor_like()
    model = small_model(metrics=["accuracy"])
    history = model.fit(x, y, epochs=5, batch_size=16, verbose=0, validation_split=0.25)
    assert sorted(history.history) == ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert len(history.history["loss"]) == 5 and history["loss"][-1] < history["loss"][0]
    assert history.peak_bytes > 0 and history.epoch == [0, 1, 2, 3, 4] and model.history is history
    loss, accuracy = model.evaluate(x, y)
    assert model.evaluate(x, y, return_dict=True) == {"loss": loss, "accuracy": accuracy}
    assert model.predict(x).shape == (64, 1) and set(model.train_on_batch(x, y)) == {"loss", "accuracy"}
    with pytest.raises(pl.NotFound):
        history["nothing"]


def test_fit_stays_inside_of_its_budget_or_refuses_before_the_first_step():
    x, y = xor_like(256)
    model = small_model()
    forecast = model.forecast(batch_size=64)
    assert forecast.fits(forecast.smallest_budget) and not forecast.fits(forecast.smallest_budget - 1)
    assert forecast.peak_bytes == sum(forecast.by_category.values()) and "parameters" in str(forecast)
    weights = [w.tolist() for w in model.get_weights()]
    with pytest.raises(pl.OutOfMemory):
        model.fit(x, y, batch_size=64, verbose=0, budget=forecast.smallest_budget - 1)
    assert [w.tolist() for w in model.get_weights()] == weights
    history = model.fit(x, y, batch_size=64, verbose=0, budget=forecast.smallest_budget)
    assert history.peak_bytes <= forecast.smallest_budget
    assert model.max_batch_size("1MiB") >= 64
    # The arrays are the caller's: also those that have to be converted count outside of the budget.
    model.fit(x.astype("float64"), y.astype("int64"), batch_size=64, verbose=0, budget=forecast.smallest_budget)
    labels = pl.Sequential([pl.layers.Dense(3, activation="softmax", input_shape=(4,))])
    labels.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
    labels.fit(x, np.arange(256) % 3, verbose=0, budget=labels.forecast(batch_size=32).smallest_budget)


def test_arrays_that_fit_converts_are_charged_to_the_budget_outside():
    x, y = xor_like(4096)
    model = small_model()
    with pl.budget("outside", "32KiB"):
        with pytest.raises(pl.OutOfMemory):
            model.fit(x.astype("float64"), y, verbose=0)
        before = pl.memory().num_bytes
        assert pl.asarray(x, copy=False).shape == x.shape and pl.memory().num_bytes == before


def test_models_are_described_by_their_ends_too():
    a, b = pl.Input((4,), name="a"), pl.Input((6,), name="b")
    h = pl.layers.Concatenate()([pl.layers.Dense(3)(a), pl.layers.Dense(3)(b)])
    assert a.shape == (None, 4) and h.shape == (None, 6)
    model = pl.Model([a, b], [pl.layers.Dense(1, name="out")(h)])
    model.compile(optimizer=pl.optimizers.SGD(0.1), loss=pl.losses.MeanSquaredError())
    xa, xb, y = np.ones((8, 4)), np.ones((8, 6)), np.ones((8, 1))
    assert len(model.fit([xa, xb], y, epochs=2, verbose=0).history["loss"]) == 2
    assert model.predict([xa, xb]).shape == (8, 1) and model.input_names == ["a", "b"]
    two = pl.Model(a, [pl.layers.Dense(1)(a), pl.layers.Dense(2)(a)])
    assert [p.shape for p in two.predict(xa)] == [(8, 1), (8, 2)]


def test_weights_are_saved_loaded_and_set(tmp_path):
    x, y = xor_like()
    model = small_model()
    model.fit(x, y, verbose=0)
    model.save_weights(str(tmp_path / "w.ckpt"))
    other = small_model()
    other.load_weights(str(tmp_path / "w.ckpt"))
    assert (other.predict(x) == model.predict(x)).numpy().all()
    third = small_model()
    third.set_weights(model.get_weights())
    assert (third.predict(x) == model.predict(x)).numpy().all()
    with pytest.raises(pl.InvalidArgument):
        third.set_weights([np.ones((1, 1))] * 4)
    model.save(tmp_path / "model")
    loaded = pl.load_layers_model(str(tmp_path / "model" / "model.json"))
    assert isinstance(loaded, pl.Model) and (loaded.predict(x) == model.predict(x)).numpy().all()
    assert "Dense" in model.summary_text() and [layer.name for layer in model.layers] and loaded.count_params() == 49
    loaded.fit(x, y, verbose=0)


def test_every_layer_can_be_made_and_has_the_settings_it_was_given():
    made = [pl.layers.Dense(3, kernel_regularizer="l2"), pl.layers.Dropout(0.5, seed=3), pl.layers.Activation("relu"), pl.layers.Flatten(), pl.layers.Reshape((2, -1)),
            pl.layers.Permute((2, 1)), pl.layers.RepeatVector(3), pl.layers.Embedding(10, 4, mask_zero=True), pl.layers.Masking(), pl.layers.Conv1D(3, 2),
            pl.layers.Conv2D(3, (2, 2), padding="same"), pl.layers.DepthwiseConv2D(2), pl.layers.SeparableConv2D(3, 2), pl.layers.Conv2DTranspose(3, 2),
            pl.layers.ZeroPadding2D(2), pl.layers.Cropping2D(((1, 1), (2, 2))), pl.layers.UpSampling1D(2), pl.layers.UpSampling2D(2), pl.layers.MaxPooling2D((2, 2)),
            pl.layers.AveragePooling2D(2), pl.layers.MaxPooling1D(2), pl.layers.AveragePooling1D(2), pl.layers.GlobalMaxPooling2D(), pl.layers.GlobalAveragePooling2D(),
            pl.layers.GlobalMaxPooling1D(), pl.layers.GlobalAveragePooling1D(), pl.layers.BatchNormalization(), pl.layers.LayerNormalization(), pl.layers.SimpleRNN(3),
            pl.layers.LSTM(3, return_sequences=True), pl.layers.GRU(3), pl.layers.Bidirectional(pl.layers.LSTM(3)), pl.layers.TimeDistributed(pl.layers.Dense(2)),
            pl.layers.MultiHeadAttention(2, 4), pl.layers.Add(), pl.layers.Subtract(), pl.layers.Multiply(), pl.layers.Average(), pl.layers.Maximum(), pl.layers.Minimum(),
            pl.layers.Concatenate(axis=1), pl.layers.Dot(axes=1), pl.layers.ReLU(max_value=6.0), pl.layers.LeakyReLU(), pl.layers.PReLU(), pl.layers.ELU(),
            pl.layers.ThresholdedReLU(), pl.layers.Softmax(), pl.layers.GaussianNoise(0.1), pl.layers.GaussianDropout(0.1), pl.layers.AlphaDropout(0.1),
            pl.layers.SpatialDropout1D(0.1), pl.layers.SpatialDropout2D(0.1)]
    assert {type(layer).__name__ for layer in made} >= {name for name in pl.layers.__all__ if name[0].isupper()} - {"Input", "InputLayer", "Lambda", "Layer"}
    assert made[0].get_config()["units"] == 3
    with pytest.raises(ValueError):
        pl.layers.Dense(-1)
    with pytest.raises(ValueError, match="activation"):
        pl.layers.Dense(1, activation="nothing")


def test_seeds_make_the_same_weights():
    first, second, third = (pl.layers.Dense(3, seed=s)(pl.ones((1, 4))).tolist() for s in (5, 5, 6))
    assert first == second != third


class Scale(pl.layers.Layer):
    def __init__(self, by=1.0, name=""):
        super().__init__(name)
        self.by = by

    def build(self, input_shape):
        self.scale = self.add_weight("scale", (input_shape[-1],), initializer="ones")

    def call(self, x, training=False):
        return x * self.scale * (self.by if training else 1.0)

    def get_config(self):
        return {"by": self.by}


class Project(pl.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.inner = pl.layers.Dense(units, seed=1)

    def call(self, x):
        return pl.relu(self.inner(x))


def test_layers_of_python_are_layers(tmp_path):
    x, y = xor_like()
    model = pl.Sequential([pl.layers.Dense(4, input_shape=(4,), seed=1), Scale(2.0), Project(3), pl.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    assert model.layers[1].by == 2.0 and model.output_shape == (None, 1) and len(model.weights) == 7
    history = model.fit(x, y, epochs=5, verbose=0)
    assert history["loss"][-1] < history["loss"][0] and model.predict(x).shape == (64, 1)
    assert model.layers[1].scale.tolist() != [1, 1, 1, 1]
    pl.layers.register_layer(Scale)
    saved = pl.Sequential([pl.layers.Dense(4, input_shape=(4,)), Scale(3.0)])
    saved.save(tmp_path / "mine")
    loaded = pl.load_layers_model(str(tmp_path / "mine" / "model.json"))
    assert loaded.layers[1].by == 3.0 and isinstance(loaded.layers[1], Scale)
    assert (loaded.predict(x) == saved.predict(x)).numpy().all()


def test_layers_of_python_do_not_leak():
    layer = Scale()
    layer(pl.ones((1, 2)))
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None
    model = pl.Sequential([Scale()])
    gone = weakref.ref(model.layers[0])
    gc.collect()
    assert gone() is not None and model.predict(pl.ones((1, 2))).shape == (1, 2)
    del model
    gc.collect()
    assert gone() is None


def test_errors_in_python_reach_the_caller():
    class Fails(pl.layers.Layer):
        def call(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails()(pl.ones((1, 2)))

    class Stop(pl.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise LookupError("enough")

    x, y = xor_like()
    with pytest.raises(LookupError, match="enough"):
        small_model().fit(x, y, verbose=0, callbacks=[Stop()])


def test_callbacks_are_told_and_may_end_a_fit(tmp_path):
    told = []

    class Watch(pl.callbacks.Callback):
        def on_train_begin(self, logs=None):
            told.append("begin")

        def on_epoch_end(self, epoch, logs=None):
            told.append((epoch, sorted(logs)))
            if epoch == 2:
                self.model.stop_training = True

        def on_train_batch_end(self, batch, logs=None):
            told.append(batch)

    x, y = xor_like()
    model = small_model()
    path = str(tmp_path / "cp-{epoch:04d}.ckpt")
    history = model.fit(x, y, epochs=9, verbose=0, callbacks=[Watch(), pl.callbacks.ModelCheckpoint(path, save_weights_only=True),
                                                              pl.callbacks.CSVLogger(str(tmp_path / "log.csv")), pl.callbacks.LearningRateScheduler(lambda epoch: 0.01)])
    assert told == ["begin", 0, 1, (0, ["loss"]), 0, 1, (1, ["loss"]), 0, 1, (2, ["loss"])] and len(history.epoch) == 3
    assert pl.latest_checkpoint(str(tmp_path)).endswith("cp-0003.ckpt") and (tmp_path / "log.csv").exists()
    stopped = model.fit(x, y, epochs=50, verbose=0, validation_data=(x, y), callbacks=pl.callbacks.EarlyStopping(monitor="loss", min_delta=1e9))
    assert len(stopped.epoch) == 2


def test_losses_and_metrics_may_be_functions_of_python():
    x, y = xor_like()

    def distance(targets, predictions):
        return pl.mean(pl.abs(targets - predictions), axis=-1)

    model = small_model(loss=distance, metrics=[distance, "mae"])
    logs = model.fit(x, y, epochs=2, verbose=0).history
    assert sorted(logs) == ["distance", "loss", "mae"] or "distance" in logs
    np.testing.assert_allclose(logs["loss"], logs["distance"], rtol=1e-5)
    assert pl.losses.Huber()([[1.0]], [[0.0]]).item() == 0.5 and pl.losses.get("mse").name
    metric = pl.metrics.AUC()
    metric.update_state([0, 1], [0.1, 0.9])
    assert metric.result() == 1.0


def test_datasets_come_from_arrays_generators_and_functions():
    x, y = np.arange(10, dtype="float32").reshape(10, 1), np.arange(10)
    data = pl.Dataset.from_tensor_slices((x, y))
    assert len(data) == 10 and [b[0].shape for b in data.batch(4)] == [(4, 1), (4, 1), (2, 1)]
    mapped = data.map(lambda a, b: (a * 2, b)).filter(lambda a, b: b % 2 == 0).batch(10)
    assert next(iter(mapped))[0].flatten().tolist() == [0, 4, 8, 12, 16]
    made = pl.Dataset.from_generator(lambda: ((np.ones(1, "float32") * i, i) for i in range(6))).batch(2).prefetch(2)
    for _ in range(2):
        assert [b[1].tolist() for b in made] == [[0, 1], [2, 3], [4, 5]]
    first, second = data.split([0.8, 0.2])
    assert len(first) == 8 and len(second) == 2
    assert sorted(sum((b[1].tolist() for b in data.shuffle(10, seed=1).batch(5)), [])) == list(range(10))
    windows = pl.timeseries_windows(np.arange(10, dtype="float32"), look_back=3)
    assert len(windows) == 7 and next(iter(windows))[0].shape == (3, 1)
    with pytest.raises(ZeroDivisionError):
        list(data.map(lambda a, b: 1 / 0).prefetch(1))
    with pytest.raises(pl.InvalidArgument):
        pl.Dataset.from_tensor_slices(x, y[:3])


def test_a_dataset_of_python_that_is_left_early_ends_its_thread():
    def endless():
        i = 0
        while True:
            yield np.full(4, i, "float32")
            i += 1

    for _ in range(5):
        for place, batch in enumerate(pl.Dataset.from_generator(endless).batch(2).prefetch(3)):
            if place == 2:
                break
    assert batch.shape == (2, 4)


def test_fit_takes_datasets_of_generators():
    x, y = xor_like()
    model = small_model()
    data = pl.Dataset.from_generator(lambda: zip(x, y)).batch(16).prefetch(2)
    assert len(model.fit(data, epochs=3, verbose=0, validation_data=data).history["val_loss"]) == 3
    assert model.forecast(data).peak_bytes > 0


def test_fit_runs_while_other_threads_of_python_do():
    x, y = xor_like(2048)
    counted, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    small_model().fit(x, y, epochs=5, verbose=0)
    ended.set()
    thread.join()
    assert counted[0] > 0


def test_an_interrupt_ends_a_fit():
    x, y = xor_like(4096)
    model = small_model()
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y, epochs=1_000_000, batch_size=8, verbose=0)
    timer.join()


def test_class_and_sample_weights_count():
    x, y = xor_like()
    first = small_model(optimizer=pl.optimizers.SGD(0.0)).fit(x, y, verbose=0, shuffle=False).history["loss"][0]
    second = small_model(optimizer=pl.optimizers.SGD(0.0)).fit(x, y, verbose=0, shuffle=False, sample_weight=np.full(64, 2.0, "float32")).history["loss"][0]
    assert abs(second - 2 * first) < 1e-4
    small_model().fit(x, y, verbose=0, class_weight={0: 1.0, 1: 3.0})


def test_integers_reach_embeddings_whole():
    model = pl.Sequential([pl.layers.Embedding(50, 4), pl.layers.Flatten(), pl.layers.Dense(3, activation="softmax")])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y = np.random.default_rng(0).integers(0, 50, (32, 5)), np.arange(32) % 3
    model.fit(x, y, epochs=2, verbose=0)
    assert model.predict(x).shape == (32, 3)


def test_summaries_for_tensorboard_are_written(tmp_path):
    with pl.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_histogram("w", np.ones(4, "float32"), 1)
    assert any(name.startswith("events") for name in os.listdir(tmp_path))
