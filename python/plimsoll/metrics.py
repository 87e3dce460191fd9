"""Keras' metrics: what is told of a model beside its loss."""
from ._plimsoll.metrics import *  # noqa: F401,F403
