"""Keras' losses."""

import plimsoll._plimsoll


def BinaryCrossentropy(from_logits: bool = False, label_smoothing: float = 0.0) -> plimsoll._plimsoll.Loss:
    """
    For one class or several that do not exclude each other: targets are 0 or 1.

    >>> pl.losses.BinaryCrossentropy(from_logits=True)([[1.0]], [[1000.0]]).item()
    0.0
    """

def CategoricalCrossentropy(from_logits: bool = False, label_smoothing: float = 0.0) -> plimsoll._plimsoll.Loss:
    """
    For exclusive classes: targets are class probabilities.

    >>> pl.losses.CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[100.0, 0.0]]).item()
    0.0
    """

def SparseCategoricalCrossentropy(from_logits: bool = False, label_smoothing: float = 0.0) -> plimsoll._plimsoll.Loss:
    """
    For exclusive classes: targets are class numbers.

    >>> pl.losses.SparseCategoricalCrossentropy(from_logits=True)([0], [[100.0, 0.0]]).item()
    0.0
    """

def MeanSquaredError() -> plimsoll._plimsoll.Loss:
    """
    The mean of squared differences.

    >>> pl.losses.MeanSquaredError()([[1.0, 2.0]], [[1.0, 4.0]]).item()
    2.0
    """

def MeanAbsoluteError() -> plimsoll._plimsoll.Loss:
    """
    The mean of differences without sign.

    >>> pl.losses.MeanAbsoluteError()([[1.0, 2.0]], [[1.0, 4.0]]).item()
    1.0
    """

def MeanAbsolutePercentageError() -> plimsoll._plimsoll.Loss:
    """
    The mean of differences in percent of the targets.

    >>> pl.losses.MeanAbsolutePercentageError()([[1.0, 2.0]], [[1.0, 4.0]]).item()
    50.0
    """

def MeanSquaredLogarithmicError() -> plimsoll._plimsoll.Loss:
    """
    The mean of squared differences of log(1 + x).

    >>> pl.losses.MeanSquaredLogarithmicError()([[1.0]], [[1.0]]).item()
    0.0
    """

def LogCosh() -> plimsoll._plimsoll.Loss:
    """
    Like squares near 0, like absolute values far from it.

    >>> pl.losses.LogCosh()([[1.0]], [[1.0]]).item()
    0.0
    """

def Poisson() -> plimsoll._plimsoll.Loss:
    """
    For counts: predictions - targets log(predictions).

    >>> pl.losses.Poisson()([[0.0]], [[2.0]]).item()
    2.0
    """

def KLDivergence() -> plimsoll._plimsoll.Loss:
    """
    The divergence of the predicted probabilities from the targets.

    >>> pl.losses.KLDivergence()([[1.0, 0.0]], [[1.0, 0.0]]).item()
    0.0
    """

def Hinge() -> plimsoll._plimsoll.Loss:
    """
    max(1 - target prediction, 0), targets -1 or 1.

    >>> pl.losses.Hinge()([[1.0]], [[0.25]]).item()
    0.75
    """

def SquaredHinge() -> plimsoll._plimsoll.Loss:
    """
    The square of Hinge.

    >>> pl.losses.SquaredHinge()([[1.0]], [[0.5]]).item()
    0.25
    """

def CategoricalHinge() -> plimsoll._plimsoll.Loss:
    """
    How far the right class is from exceeding the others by 1.

    >>> pl.losses.CategoricalHinge()([[1.0, 0.0]], [[1.0, 0.5]]).item()
    0.5
    """

def CosineSimilarity() -> plimsoll._plimsoll.Loss:
    """
    -1 where predictions point as targets do.

    >>> pl.losses.CosineSimilarity()([[1.0, 0.0]], [[1.0, 0.0]]).item()
    -1.0
    """

def Huber(delta: float = 1.0) -> plimsoll._plimsoll.Loss:
    """
    Half squares up to delta, straight beyond.

    >>> pl.losses.Huber(delta=1.0)([[0.0]], [[3.0]]).item()
    2.5
    """

def get(name: object) -> plimsoll._plimsoll.Loss:
    """
    A loss by its name.

    >>> pl.losses.get("mse").name
    'mse'
    """
