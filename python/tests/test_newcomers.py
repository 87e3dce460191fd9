"""What people who come from NumPy, Keras and PyTorch type first."""
import copy
import pickle

import pytest

import plimsoll as pl

np = pytest.importorskip("numpy")


def data(rows=32):
    x = np.random.default_rng(0).random((rows, 4)).astype("float32")
    return x, (x.sum(axis=1) > 2).astype("int64")


def small(**how):
    model = pl.Sequential([pl.layers.Dense(8, activation="relu", input_shape=(4,)), pl.layers.Dense(1, activation="sigmoid")])
    model.compile(**{"optimizer": "adam", "loss": "binary_crossentropy", **how})
    return model


def test_numpys_reductions_take_tensors():
    a = np.arange(12.0).reshape(3, 4)
    x = pl.asarray(a)
    for name in ["sum", "mean", "max", "min", "prod", "any", "all", "argmax", "cumsum"]:
        assert np.array_equal(np.asarray(getattr(np, name)(x, axis=0)), getattr(np, name)(a, axis=0))
    assert np.isclose(np.std(x, ddof=1).item(), a.std(ddof=1)) and np.isclose(np.var(x).item(), a.var())
    with pytest.raises(TypeError):
        x.sum(out=a)


def test_tensors_are_looked_through_as_arrays_are():
    x = pl.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert 3 in x and 9 not in x and None not in x and [r.tolist() for r in reversed(x)] == [[3, 4], [1, 2]]
    quotient, rest = divmod(pl.asarray([7, -7]), 2)
    assert (quotient.tolist(), rest.tolist()) == ([3, -4], [1, 1]) and divmod(7, pl.asarray(2))[0].item() == 3
    assert round(pl.asarray(1.256), 2).item() == pytest.approx(1.26) and round(pl.asarray([1.5])).tolist() == [2] and round(pl.asarray(3)).item() == 3
    assert x.ravel().shape == (4,) and x.dot(x).tolist() == (x @ x).tolist() and pl.ones((2, 3, 4)).swapaxes(0, -1).shape == (4, 3, 2)
    assert pl.Tensor([1, 2]).dtype == pl.int64 and pl.array([1.5]).item() == 1.5 and pl.convert_to_tensor(np.ones(2)).dtype == "float64"
    with pytest.raises(TypeError):
        divmod(x, "a")


def test_shapes_sizes_and_dtypes_are_taken_as_people_write_them():
    assert pl.zeros(np.array([2, 3])).shape == (2, 3) and pl.zeros(np.int64(3)).shape == (3,) and pl.zeros(n for n in (1, 2)).shape == (1, 2)
    assert pl.ones(2, "int").dtype == pl.int64 and pl.ones(2).astype("float").dtype == pl.float64 and pl.budget("b", 64e6).limit == 64_000_000
    with pytest.raises(TypeError, match="integer"):
        pl.zeros(2.5)
    with pytest.raises(TypeError):
        pl.budget("b", 1.5)
    with pytest.raises(pl.InvalidArgument, match="0 or more"):
        pl.zeros((2, -1))
    with pytest.raises(TypeError, match="astype"):
        pl.asarray(np.array(["2020-01-01"], "datetime64[D]"))
    with pytest.raises(TypeError, match="NoneType"):
        pl.asarray(None)
    with pytest.raises(TypeError, match="list"):
        pl.asarray(i for i in range(3))
    itself = []
    itself.append(itself)
    for f in (pl.asarray, pl.dispose, pl.TensorTree):
        with pytest.raises(RecursionError):
            f(itself)


def test_variables_and_models_are_pickled_and_copied():
    w = pl.Variable([1.0, 2.0], name="w", trainable=False)
    for other in (pickle.loads(pickle.dumps(w)), copy.deepcopy(w)):
        other.assign_add([1, 1])
        assert other.name == "w" and not other.trainable and w.tolist() == [1, 2] and [r.item() for r in other] == [2, 3]
    x, y = data()
    model = small()
    model.fit(x, y, verbose=0)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert (other.predict(x).numpy() == model.predict(x).numpy()).all()

    class Own(pl.Model):
        def call(self, x):
            return x

    with pytest.raises(TypeError, match="set_weights"):
        pickle.dumps(Own())


def test_models_begin_with_an_input():
    x, _ = data()
    begun = pl.Sequential([pl.layers.Input(shape=(4,)), pl.layers.Dense(2)])
    assert begun.is_built and begun.input_shape == (None, 4) and begun.predict(x).shape == (32, 2)
    added = pl.Sequential()
    added.add(pl.layers.InputLayer(input_shape=(4,)))
    added.add(pl.layers.Dense(3, activation=pl.relu))
    assert added.output_shape == (None, 3) and added.layers[0].units == 3 and added.layers[0].kernel.shape == (4, 3)
    with pytest.raises(AttributeError, match="nothing"):
        added.layers[0].nothing
    with pytest.raises(TypeError):
        added.add(3)
    with pytest.raises(TypeError, match="Lambda"):
        pl.layers.Dense(3, activation=lambda v: v)


def test_places_in_a_model_have_operators():
    a = pl.Input((4,), name="a")
    h = pl.layers.Dense(4, seed=1)(a)
    model = pl.Model(a, pl.layers.Lambda(lambda v: v.sum(axis=-1, keepdims=True))((a + h) * 2 - h / 2 + (1 - a) - (-h) + 2 * a * h))
    x, y = data()
    first = model.predict(x).numpy()
    w = model.get_weights()[0].numpy()
    g = x @ w
    np.testing.assert_allclose(first[:, 0], ((x + g) * 2 - g / 2 + (1 - x) + g + 2 * x * g).sum(axis=1), rtol=1e-4)
    model.compile(optimizer="sgd", loss="mse")
    model.fit({"a": x}, y, verbose=0)
    with pytest.raises(pl.NotFound):
        model.predict({"b": x})
    with pytest.raises(TypeError, match="layers"):
        pl.relu(a)
    with pytest.raises(TypeError):
        a + "b"


def test_fit_takes_generators():
    x, y = data()

    def batches():
        for i in range(0, 32, 8):
            yield x[i:i + 8], y[i:i + 8]

    assert len(small().fit(batches, epochs=2, verbose=0)["loss"]) == 2 and len(small().fit(batches(), verbose=0)["loss"]) == 1

    def endless():
        while True:
            yield from batches()

    counted = []

    class Counts(pl.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            counted.append(batch)

    small().fit(endless(), epochs=3, steps_per_epoch=5, verbose=0, callbacks=Counts())
    small().fit(endless, epochs=1, steps_per_epoch=2, verbose=0, callbacks=[Counts()])
    assert len(counted) == 17
    with pytest.raises(TypeError, match="steps_per_epoch"):
        small().fit(batches(), epochs=2, verbose=0)
    with pytest.raises(TypeError, match="take"):
        small().fit(x, y, steps_per_epoch=2, verbose=0)


def test_arguments_of_training_that_are_wrong_are_named():
    x, y = data()
    model = small(optimizer=pl.optimizers.Adam, loss=pl.losses.BinaryCrossentropy, metrics="accuracy")
    assert sorted(model.fit(x, y, verbose=0, batch_size=None).history) == ["accuracy", "loss"]
    for wrong, error in [({"batch_size": 0}, pl.InvalidArgument), ({"batch_size": -1}, pl.InvalidArgument), ({"epochs": 1.5}, TypeError),
                         ({"callbacks": [3]}, TypeError), ({"callbacks": [lambda e: 0]}, TypeError)]:
        with pytest.raises(error, match=next(iter(wrong))):
            model.fit(x, y, verbose=0, **wrong)
    with pytest.raises(TypeError, match="optimizer"):
        small(optimizer=3)
    with pytest.raises(AttributeError, match="pl.relu"):
        pl.nn


class Counter:
    def __init__(self, step):
        self.step, self.total = step, pl.Variable(0.0)

    @pl.function
    def advance(self, by=1.0):
        self.total.assign_add(self.step * by)
        return self.total + 0


def test_functions_may_be_methods_and_keep_objects_apart():
    first, second = Counter(1.0), Counter(10.0)
    assert first.advance().item() == 1 and second.advance().item() == 10 and first.advance(by=2.0).item() == 3
    for step in range(20):  # An object that goes and one that comes where it was are two.
        assert Counter(float(step)).advance().item() == step


def test_models_are_saved_and_loaded_by_folder(tmp_path):
    x, _ = data()
    model = small()
    model.save(tmp_path / "model")
    for path in (tmp_path / "model", str(tmp_path / "model" / "model.json")):
        assert (pl.load_model(path).predict(x).numpy() == model.predict(x).numpy()).all()
    with pytest.raises(pl.Unsupported, match="HDF5"):
        model.save(tmp_path / "model.h5")
