"""Models: layers that are trained and asked together, with Keras' names."""
import itertools
import operator
import os

from . import _plimsoll, _support
from ._plimsoll import Layer, LayerOutput, Model, Sequential


class History:
    """What a fit gives: the numbers of each epoch, by name, and what it took.

    history["loss"] is history.history["loss"]; peak_bytes is the most that the fit held at once, recomputed_fraction how
    much of its work was done again to stay inside the budget, spilled_bytes what it wrote to a directory instead.

    >>> model = pl.Sequential([pl.layers.Dense(1, input_shape=(4,))])
    >>> model.compile(optimizer="sgd", loss="mse")
    >>> history = model.fit(pl.ones((8, 4)), pl.ones(8), epochs=2, verbose=0)
    >>> list(history.history), len(history["loss"]), history.peak_bytes > 0
    (['loss'], 2, True)
    """

    def __init__(self, model, told):
        self.model = model
        self.history = told["history"]
        self.peak_bytes = told["peak_bytes"]
        self.growth = told["growth"]
        self.recomputed_fraction = told["recomputed_fraction"]
        self.spilled_bytes = told["spilled_bytes"]
        self.epoch = list(range(told["num_epochs"]))

    def __getitem__(self, name):
        try:
            return self.history[name]
        except KeyError:
            raise _plimsoll.NotFound(f"history: no {name!r}; there are {', '.join(self.history)}") from None

    def __repr__(self):
        return f"<History of {len(self.epoch)} epochs: {', '.join(self.history)}>"


def _count(where, name, value, least):
    """A whole number, at least so large."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{where}: {name} is {value!r}; give a whole number") from None
    if number < least:
        raise _plimsoll.InvalidArgument(f"{where}: {name} is {number}; give {least} or more")
    return number


def _made(object_or_maker, module):
    """What a function of pl.losses, pl.metrics or pl.optimizers makes, when the function itself was given."""
    is_maker = getattr(object_or_maker, "__module__", None) == module.__name__ and callable(object_or_maker)
    return object_or_maker() if is_maker and not isinstance(object_or_maker, (_plimsoll.Loss, _plimsoll.Metric)) else object_or_maker


def _data(model, x, epochs=1, steps=None):
    """Inputs by name in the order of the model's; a generator of batches, or a function that makes one, as a Dataset."""
    if isinstance(x, dict):
        names = model.input_names
        missing = [name for name in names if name not in x]
        if missing:
            raise _plimsoll.NotFound(f"model {model.name!r}: no input {missing[0]!r} is given; there are {', '.join(map(repr, x))}")
        return x[names[0]] if len(names) == 1 else [x[name] for name in names]
    if hasattr(x, "__next__"):
        if steps is None and epochs > 1:
            raise TypeError("fit: a generator is gone through once; give a function that makes one, or steps_per_epoch")
        return _plimsoll.Dataset.from_generator(lambda: itertools.islice(x, steps))
    if steps is not None and not callable(x):
        raise TypeError("fit: steps_per_epoch is for generators; a Dataset has take()")
    if callable(x) and not hasattr(x, "__array__"):
        return _plimsoll.Dataset.from_generator((lambda: itertools.islice(x(), steps)) if steps else x)
    return x


class _Training:
    """Methods of Model, and so of Sequential: the arguments of Keras, handed to the library."""

    def compile(self, optimizer="rmsprop", loss=None, metrics=None, *, loss_weights=None, clipnorm=0.0, clipvalue=0.0,
                global_clipnorm=0.0, run_eagerly=False):
        """Says how the model is to be trained.

        The optimizer and the losses are names or objects of pl.optimizers and pl.losses; a loss may also be a function of
        targets and predictions that gives a number for each example.
        """
        optimizer, metrics = _made(optimizer, _plimsoll.optimizers), [metrics] if isinstance(metrics, str) else metrics
        loss = [_made(each, _plimsoll.losses) for each in loss] if isinstance(loss, (list, tuple)) else _made(loss, _plimsoll.losses)
        metrics = metrics and [_made(each, _plimsoll.metrics) for each in metrics]
        if not isinstance(optimizer, (str, _plimsoll.Optimizer)):
            raise TypeError(f"compile: the optimizer is a {type(optimizer).__name__}; give a name or one of pl.optimizers")
        self.native_compile(optimizer, loss, metrics, loss_weights, clipnorm or 0.0, clipvalue or 0.0,
                            global_clipnorm or 0.0, run_eagerly)

    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, budget=None,
            spill=None, max_slowdown=8.0, steps_per_epoch=None, distributed=None):
        """Trains. With a budget ("64MiB"), stays inside it, or raises OutOfMemory before the first step.

        Steps that do not fit compute values again, to the same bits; a budget in which they would take more than
        max_slowdown times as long is refused (1: never compute again). spill is a directory for values besides. distributed is a job of
        several processes (pl.distributed.Job), or a Training of one.

        x and y are arrays, tensors, lists or pandas' frames, or x is a Dataset of batches, a generator of them (with
        steps_per_epoch for more than one epoch) or a function that makes one. Arrays stay the caller's: they are
        used where they lie, or converted on the budget that is open outside, never on the one given here.
        """
        batch_size, epochs = _count("fit", "batch_size", 32 if batch_size is None else batch_size, 1), _count("fit", "epochs", epochs, 0)
        x = _data(self, x, epochs - initial_epoch, steps_per_epoch)
        told = self.native_fit(x, y, batch_size, epochs, int(verbose) if verbose != "auto" else 1, callbacks,
                               validation_split, validation_data, shuffle, class_weight, sample_weight, initial_epoch,
                               budget, spill, max_slowdown, distributed)
        self.history = History(self, told)
        return self.history

    def evaluate(self, x, y=None, batch_size=32, verbose=0, sample_weight=None, return_dict=False, budget=None, spill=None):
        """The loss; with metrics a list of it and them, or a dict of all. Budget and spill are as of fit()."""
        batch_size = _count("evaluate", "batch_size", 32 if batch_size is None else batch_size, 1)
        logs = self.native_evaluate(_data(self, x), y, batch_size, sample_weight, budget, spill)
        if return_dict:
            return logs
        return logs["loss"] if len(logs) == 1 else list(logs.values())

    def predict(self, x, batch_size=32, verbose=0, budget=None, spill=None):
        """What the model gives for x, a tensor; a list of them for a model of several outputs.

        The budget is for weights, a batch, the step and all results.
        """
        batch_size = _count("predict", "batch_size", 32 if batch_size is None else batch_size, 1)
        return self.native_predict(_data(self, x), batch_size, budget, spill)

    def build(self, input_shape):
        """Makes the weights for inputs of this shape, the batch in front: model.build((None, 10)).

        Models whose first layer knows its input's shape, and those that have seen data, need it not.
        """
        if not self.is_built:
            self(_plimsoll.zeros([1 if size is None or place == 0 else size for place, size in enumerate(input_shape)]))

    def train_on_batch(self, x, y, sample_weight=None):
        """One step; its numbers by name."""
        return self.native_train_on_batch(x, y, sample_weight)

    def test_on_batch(self, x, y, sample_weight=None):
        """The numbers of one batch by name, without a step."""
        return self.native_test_on_batch(x, y, sample_weight)

    def forecast(self, data=None, batch_size=32, spill=None):
        """What training takes with batches of this size, or of this dataset, known without running.

        >>> model = pl.Sequential([pl.layers.Dense(4, input_shape=(8,))])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> f = model.forecast(batch_size=16)
        >>> f.fits(f.smallest_budget), f.fits(f.smallest_budget - 1)
        (True, False)
        >>> [f.front[0].bytes == f.peak_bytes, f.predicted_slowdown(f.peak_bytes), f.predicted_slowdown(1)]
        [True, 1.0, inf]
        """
        return self.native_forecast(data, batch_size, spill)

    def summary(self, print_fn=None):
        """Prints layers, shapes, parameters and the bytes they take."""
        (print_fn or print)(self.summary_text().rstrip("\n"))

    def save(self, directory, include_optimizer=True):
        """A Layers model: model.json and its weights, in a folder; or a file, when the name ends in .keras.

        pl.load_model() reads both.
        """
        if str(directory).endswith(".keras"):
            return _plimsoll.save_keras(self, directory, include_optimizer)
        if str(directory).endswith((".h5", ".hdf5")):
            raise _plimsoll.Unsupported(f"save: {str(directory)!r}: HDF5 files are not written; name a folder, or a file that ends in .keras")
        _plimsoll.save_layers_model(self, str(directory), include_optimizer and self.is_compiled)

    @property
    def stop_training(self):
        """Set it to True, from a callback or another thread: the fit ends after its present step."""
        return False

    @stop_training.setter
    def stop_training(self, value):
        if value:
            self.native_stop_training()


# The library's classes, with these methods: a model that was loaded has them too.
for _name, _value in vars(_Training).items():
    if not _name.startswith("__"):
        setattr(Model, _name, _value)


def load_model(path):
    """A model that save() or others wrote: a folder or model.json (also TensorFlow.js's), .keras, .h5, .onnx.

    >>> pl.Sequential([pl.layers.Dense(2, input_shape=(3,))]).save("model")
    >>> pl.load_model("model").predict(pl.ones((1, 3))).shape
    (1, 2)
    """
    path = os.fspath(path)
    if path.endswith((".keras", ".h5", ".hdf5")):
        return _plimsoll.load_keras(path)
    if path.endswith(".onnx"):
        return _plimsoll.load_onnx(path)
    return _plimsoll.load_layers_model(os.path.join(path, "model.json") if os.path.isdir(path) else path)


def _layer_attribute(layer, name):
    """A weight of the layer by its name (layer.kernel), or one of its settings (layer.units)."""
    if not name.startswith("_"):
        try:
            for weight in layer.weights:
                if weight.name.rsplit("/", 1)[-1] == name:
                    return weight
            config = layer.get_config()
            if name in config:
                return config[name]
        except (_plimsoll.Error, TypeError):  # One that is not made yet, or whose settings nobody knows.
            pass
    raise AttributeError(f"{type(layer).__name__!r} object has no attribute {name!r}")


setattr(Layer, "__getattr__", _layer_attribute)


def _reduce(model):
    if type(model) not in (Model, Sequential):
        raise TypeError(f"a model whose class is written in Python ({type(model).__name__}) is not pickled; make another one and give it "
                        "the weights: other.set_weights(model.get_weights())")
    return _support.model_of_files, (_support.files_of_model(model),)


setattr(Model, "__reduce__", _reduce)

__all__ = ["History", "Layer", "LayerOutput", "Model", "Sequential", "load_model"]
