from plimsoll._plimsoll import Tensor, Variable
"""Optimizers whose steps are nodes of a graph."""

from collections.abc import Sequence


class Optimizer:
    """
    One whose steps are nodes of a graph.

    >>> with pl.Graph() as g:
    ...     w = pl.Variable(1.0)
    ...     step = pl.train.GradientDescentOptimizer(0.5).minimize(w * w)
    >>> with pl.Session(g) as session:
    ...     session.run(pl.global_variables_initializer())
    ...     session.run(step)
    ...     print(session.run(w).item())
    0.0
    """

    def minimize(self, loss: Tensor, var_list: Sequence[Variable] | None = None) -> Tensor:
        """A node; running it changes the variables."""

def GradientDescentOptimizer(learning_rate: float) -> Optimizer:
    """
    TensorFlow 1's: steps along the gradient.

    >>> step = pl.train.GradientDescentOptimizer(0.1)
    """

def MomentumOptimizer(learning_rate: float, momentum: float, use_nesterov: bool = False) -> Optimizer:
    """
    TensorFlow 1's: steps with momentum.

    >>> step = pl.train.MomentumOptimizer(0.1, 0.9)
    """

def AdagradOptimizer(learning_rate: float, initial_accumulator_value: float = 0.1) -> Optimizer:
    """
    TensorFlow 1's Adagrad.

    >>> step = pl.train.AdagradOptimizer(0.1)
    """

def RMSPropOptimizer(learning_rate: float, decay: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10) -> Optimizer:
    """
    TensorFlow 1's RMSProp.

    >>> step = pl.train.RMSPropOptimizer(0.001)
    """

def AdamOptimizer(learning_rate: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-08) -> Optimizer:
    """
    TensorFlow 1's Adam.

    >>> step = pl.train.AdamOptimizer(0.001)
    """
