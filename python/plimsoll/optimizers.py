"""Keras' optimizers: how steps change weights."""
from ._plimsoll.optimizers import *  # noqa: F401,F403
