"""How steps change weights; Keras' formulas and defaults."""

import plimsoll._plimsoll


def SGD(learning_rate: float = 0.01, momentum: float = 0.0, nesterov: bool = False) -> plimsoll._plimsoll.Optimizer:
    """
    Steps along the gradient, with momentum if wanted.

    >>> pl.optimizers.SGD(0.1, momentum=0.9).learning_rate
    0.1
    """

def RMSprop(learning_rate: float = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-07, centered: bool = False) -> plimsoll._plimsoll.Optimizer:
    """
    Steps divided by a moving root of squared gradients.

    >>> pl.optimizers.RMSprop().learning_rate
    0.001
    """

def Adagrad(learning_rate: float = 0.001, initial_accumulator_value: float = 0.1, epsilon: float = 1e-07) -> plimsoll._plimsoll.Optimizer:
    """
    Steps divided by the root of all squared gradients so far.

    >>> pl.optimizers.Adagrad().learning_rate
    0.001
    """

def Adadelta(learning_rate: float = 0.001, rho: float = 0.95, epsilon: float = 1e-07) -> plimsoll._plimsoll.Optimizer:
    """
    Steps by moving roots of squared gradients and of squared steps.

    >>> pl.optimizers.Adadelta().learning_rate
    0.001
    """

def Adam(learning_rate: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-07) -> plimsoll._plimsoll.Optimizer:
    """
    Moving means of gradients and of their squares.

    >>> pl.optimizers.Adam(0.01).learning_rate
    0.01
    """

def AdamW(learning_rate: float = 0.001, weight_decay: float = 0.004, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-07) -> plimsoll._plimsoll.Optimizer:
    """
    Adam, with weights that decay on their own.

    >>> pl.optimizers.AdamW(weight_decay=0.01).learning_rate
    0.001
    """

def Adamax(learning_rate: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-07) -> plimsoll._plimsoll.Optimizer:
    """
    Adam with the largest gradient in place of squares.

    >>> pl.optimizers.Adamax().learning_rate
    0.001
    """

def get(name: str) -> plimsoll._plimsoll.Optimizer:
    """
    An optimizer by its name.

    >>> pl.optimizers.get("adam").learning_rate
    0.001
    """
