"""Keras' metrics."""

import plimsoll._plimsoll


def Accuracy(name: str = 'accuracy') -> plimsoll._plimsoll.Metric:
    """
    How often the prediction is right; the form of the targets decides how that is tested.

    >>> m = pl.metrics.Accuracy()
    >>> m.update_state([0, 1], [[0.9, 0.1], [0.8, 0.2]])
    >>> m.result()
    0.5
    """

def BinaryAccuracy(threshold: float = 0.5, name: str = '') -> plimsoll._plimsoll.Metric:
    """
    How often predictions are on the right side of the threshold.

    >>> m = pl.metrics.BinaryAccuracy()
    >>> m.update_state([[1.0], [0.0]], [[0.9], [0.8]])
    >>> m.result()
    0.5
    """

def Precision(threshold: float = 0.5, name: str = '') -> plimsoll._plimsoll.Metric:
    """
    The fraction of predicted positives that are right.

    >>> m = pl.metrics.Precision()
    >>> m.update_state([[1.0], [0.0]], [[0.9], [0.8]])
    >>> m.result()
    0.5
    """

def Recall(threshold: float = 0.5, name: str = '') -> plimsoll._plimsoll.Metric:
    """
    The fraction of actual positives that are predicted.

    >>> m = pl.metrics.Recall()
    >>> m.update_state([[1.0], [1.0]], [[0.9], [0.2]])
    >>> m.result()
    0.5
    """

def AUC(num_thresholds: int = 200, name: str = '') -> plimsoll._plimsoll.Metric:
    """
    The area under the curve of hits over false alarms.

    >>> m = pl.metrics.AUC()
    >>> m.update_state([[1.0], [0.0]], [[0.9], [0.2]])
    >>> round(m.result(), 3)
    1.0
    """

def TopK(k: int = 5, name: str = '') -> plimsoll._plimsoll.Metric:
    """
    How often the right class is among the k likeliest.

    >>> m = pl.metrics.TopK(k=1)
    >>> m.update_state([0, 1], [[0.9, 0.1], [0.8, 0.2]])
    >>> m.result()
    0.5
    """

def MeanAbsoluteError() -> plimsoll._plimsoll.Metric:
    """
    The mean of differences without sign.

    >>> m = pl.metrics.MeanAbsoluteError()
    >>> m.update_state([[1.0]], [[3.0]])
    >>> m.result()
    2.0
    """

def MeanSquaredError() -> plimsoll._plimsoll.Metric:
    """
    The mean of squared differences.

    >>> m = pl.metrics.MeanSquaredError()
    >>> m.update_state([[1.0]], [[3.0]])
    >>> m.result()
    4.0
    """

def RootMeanSquaredError() -> plimsoll._plimsoll.Metric:
    """
    The root of the mean of squared differences.

    >>> m = pl.metrics.RootMeanSquaredError()
    >>> m.update_state([[1.0]], [[3.0]])
    >>> m.result()
    2.0
    """
