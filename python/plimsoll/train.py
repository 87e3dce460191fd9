"""TensorFlow 1's optimizers, whose steps are nodes of a graph."""
from ._plimsoll.train import *  # noqa: F401,F403
