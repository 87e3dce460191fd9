"""Models that are written in Python: layers as attributes, call() uses them."""
import gc
import weakref

import pytest

import plimsoll as pl

np = pytest.importorskip("numpy")


class Block(pl.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.inner = pl.layers.Dense(units, activation="relu", seed=5)
        self.norm = [pl.layers.LayerNormalization()]

    def call(self, x):
        return self.norm[0](self.inner(x))


class Net(pl.Model):
    def __init__(self, units=8):
        super().__init__()
        self.first = pl.layers.Dense(units, activation="tanh", seed=1)
        self.blocks = [Block(units), Block(units)]
        self.heads = {"out": pl.layers.Dense(1, seed=2)}
        self.dropout = pl.layers.Dropout(0.5, seed=3)

    def call(self, x, training=False):
        h = self.first(x)
        for block in self.blocks:
            h = h + block(h)
        if training:
            h = self.dropout(h, training=True)
        return self.heads["out"](h)


def data(rows=64):
    x = np.random.default_rng(0).normal(size=(rows, 4)).astype("float32")
    return x, x.sum(axis=1, keepdims=True)


def test_a_model_of_ones_own_trains_and_predicts():
    x, y = data()
    model = Net()
    model.compile(optimizer=pl.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
    history = model.fit(x, y, epochs=30, verbose=0, batch_size=16)
    assert history["loss"][-1] < 0.5 * history["loss"][0] and model.predict(x).shape == (64, 1)
    assert len(model.evaluate(x, y)) == 2 and model.count_params() > 0
    assert [type(layer).__name__ for layer in model.layers] == ["Dense", "Block", "Block", "Dense", "Dropout"]


def test_weights_have_names_of_their_own():
    model = Net()
    model.build((None, 4))
    names = [w.name for w in model.weights]
    assert len(names) == len(set(names)) == 12 and all(name.count("/") >= 1 for name in names), names


def test_forecasts_and_budgets_hold_for_it():
    x, y = data()
    model = Net()
    model.compile(optimizer="sgd", loss="mse")
    with pytest.raises(pl.FailedPrecondition):
        model.forecast(batch_size=16)
    model.build((None, 4))
    need = model.forecast(batch_size=16).smallest_budget
    assert model.fit(x, y, batch_size=16, verbose=0, budget=need).peak_bytes <= need
    with pytest.raises(pl.OutOfMemory):
        model.fit(x, y, batch_size=16, verbose=0, budget=need - 1)


def test_steps_by_hand_reach_all_of_its_weights():
    x, y = data()
    model = Net()
    optimizer = pl.optimizers.SGD(0.05)
    losses = []
    for _ in range(20):
        with pl.GradientTape() as tape:
            loss = pl.square(model(x, training=True) - y).mean()
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        losses.append(loss.item())
    assert len(weights) == 12 and losses[-1] < losses[0]


def test_its_weights_are_saved_and_loaded(tmp_path):
    x, _ = data()
    a, b = Net(), Net()
    a.predict(x)
    for w in a.weights:
        w.assign(w.value() + 0.25)
    a.save_weights(str(tmp_path / "weights"))
    b.build((None, 4))
    b.load_weights(str(tmp_path / "weights"))
    assert (a.predict(x).numpy() == b.predict(x).numpy()).all()
    with pytest.raises(pl.Unsupported):
        a.save(tmp_path / "model")


def test_it_may_be_a_part_of_another_model():
    x, y = data()
    outer = pl.Sequential([Net(), pl.layers.Dense(1, seed=9)])
    outer.compile(optimizer="sgd", loss="mse")
    outer.fit(x, y, verbose=0)
    assert outer.predict(x).shape == (64, 1)


def test_models_of_ones_own_do_not_leak(count):
    x, y = data()
    model = Net()
    model.compile(optimizer="adam", loss="mse")
    model.fit(x, y, verbose=0)
    gone = weakref.ref(model)
    del model
    assert count() == 0 and gone() is None
    outer = pl.Sequential([Net()])
    outer.predict(x)
    gc.collect()
    assert outer.predict(x).shape == (64, 1)
    del outer
    assert count() == 0


def test_what_is_wrong_is_said():
    with pytest.raises(TypeError, match="call"):
        pl.Model()

    class Fails(pl.Model):
        def call(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails().predict(np.ones((2, 2), "float32"))

    class Forgets(pl.Model):
        def __init__(self):
            self.dense = pl.layers.Dense(2)

    with pytest.raises((TypeError, RuntimeError, AttributeError)):
        Forgets().predict(np.ones((2, 2), "float32"))
