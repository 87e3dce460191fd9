"""Keras' metrics: figures about a model reported with its loss."""
from ._plimsoll.metrics import *  # noqa: F401,F403
