"""Callbacks: called while a fit runs, and able to end it; Keras' names.

A callback of your own derives from Callback, or is any object that has some of its methods.
"""
from ._plimsoll import native_callbacks as _native

ModelCheckpoint = _native.ModelCheckpoint
EarlyStopping = _native.EarlyStopping
ReduceLROnPlateau = _native.ReduceLROnPlateau
TensorBoard = _native.TensorBoard
CSVLogger = _native.CSVLogger


def LearningRateScheduler(schedule):
    """The learning rate of each epoch, from schedule(epoch, rate) or schedule(epoch).

    >>> callback = pl.callbacks.LearningRateScheduler(lambda epoch: 0.1 if epoch < 10 else 0.01)
    """
    import inspect

    takes_rate = len(inspect.signature(schedule).parameters) > 1
    return _native.LearningRateScheduler(schedule if takes_rate else lambda epoch, rate: schedule(epoch))


class Callback:
    """Override what you want to be told of. self.model is the model; self.model.stop_training = True ends the fit.

    >>> class Enough(pl.callbacks.Callback):
    ...     def on_epoch_end(self, epoch, logs=None):
    ...         if epoch == 2:
    ...             self.model.stop_training = True
    >>> model = pl.Sequential([pl.layers.Dense(1, input_shape=(4,))])
    >>> model.compile(optimizer="sgd", loss="mse")
    >>> model.fit(pl.ones((8, 4)), pl.ones(8), epochs=10, verbose=0, callbacks=[Enough()])
    <History of 3 epochs: loss>
    """

    model = None

    def set_model(self, model):
        self.model = model

    def on_train_begin(self, logs=None):
        """Before the first epoch."""

    def on_train_end(self, logs=None):
        """After the last one, also when the fit fails."""

    def on_epoch_begin(self, epoch, logs=None):
        """Epochs count from 0."""

    def on_epoch_end(self, epoch, logs=None):
        """With val_* when there is validation."""

    def on_train_batch_end(self, batch, logs=None):
        """Batches count from 0."""


class LambdaCallback(Callback):
    """Functions as a callback.

    >>> callback = pl.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch, logs["loss"]))
    """

    def __init__(self, **functions):
        for name, function in functions.items():
            if not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback: a callback is not told of {name!r}")
            setattr(self, name, function)
