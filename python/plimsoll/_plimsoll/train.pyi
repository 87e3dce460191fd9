from plimsoll._plimsoll import Tensor, Variable
"""Optimizers whose steps are nodes of a graph."""

from collections.abc import Sequence


class Optimizer:
    def minimize(self, loss: Tensor, var_list: Sequence[Variable] | None = None) -> Tensor:
        """A node; running it changes the variables."""

def GradientDescentOptimizer(learning_rate: float) -> Optimizer: ...

def MomentumOptimizer(learning_rate: float, momentum: float, use_nesterov: bool = False) -> Optimizer: ...

def AdagradOptimizer(learning_rate: float, initial_accumulator_value: float = 0.1) -> Optimizer: ...

def RMSPropOptimizer(learning_rate: float, decay: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10) -> Optimizer: ...

def AdamOptimizer(learning_rate: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-08) -> Optimizer: ...
