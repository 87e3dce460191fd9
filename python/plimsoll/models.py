"""Models: layers that are trained and asked together, with Keras' names."""
from . import _plimsoll
from ._plimsoll import Layer, LayerOutput, Model, Sequential


class History:
    """What a fit gives: the numbers of each epoch, by name, and what it took.

    history["loss"] is history.history["loss"]; peak_bytes is the most that the fit held at once, recomputed_fraction how
    much of its work was done again to stay inside the budget, spilled_bytes what it wrote to a directory instead.
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


class _Training:
    """Methods of Model, and so of Sequential: the arguments of Keras, handed to the library."""

    def compile(self, optimizer="rmsprop", loss=None, metrics=None, *, loss_weights=None, clipnorm=0.0, clipvalue=0.0,
                global_clipnorm=0.0, run_eagerly=False):
        """Says how the model is to be trained.

        The optimizer and the losses are names or objects of pl.optimizers and pl.losses; a loss may also be a function of
        targets and predictions that gives a number for each example.
        """
        self.native_compile(optimizer, loss, metrics, loss_weights, clipnorm or 0.0, clipvalue or 0.0,
                            global_clipnorm or 0.0, run_eagerly)

    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, budget=None,
            spill=None, max_slowdown=8.0):
        """Trains. With a budget ("64MiB"), inside of it, or raises OutOfMemory before the first step.

        Steps that do not fit compute values again, to the same bits; a budget in which they would take more than
        max_slowdown times as long is refused (1: never compute again). spill is a directory for values besides.

        x and y are arrays, tensors, lists or pandas' frames, or x is a Dataset of batches. Arrays stay the caller's: they are
        used where they lie, or converted on the budget that is open outside, never on the one given here.
        """
        told = self.native_fit(x, y, batch_size, epochs, int(verbose) if verbose != "auto" else 1, callbacks,
                               validation_split, validation_data, shuffle, class_weight, sample_weight, initial_epoch,
                               budget, spill, max_slowdown)
        self.history = History(self, told)
        return self.history

    def evaluate(self, x, y=None, batch_size=32, verbose=0, sample_weight=None, return_dict=False, budget=None, spill=None):
        """The loss; with metrics a list of it and them, or a dict of all. Budget and spill are as of fit()."""
        logs = self.native_evaluate(x, y, batch_size, sample_weight, budget, spill)
        if return_dict:
            return logs
        return logs["loss"] if len(logs) == 1 else list(logs.values())

    def predict(self, x, batch_size=32, verbose=0, budget=None, spill=None):
        """What the model gives for x, a tensor; a list of them for a model of several outputs.

        The budget is for weights, a batch, the step and all results.
        """
        return self.native_predict(x, batch_size, budget, spill)

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
        """A Layers model: model.json and its weights, in a folder."""
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

__all__ = ["History", "Layer", "LayerOutput", "Model", "Sequential"]
