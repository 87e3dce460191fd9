"""Keras' losses: what a model is trained to make small."""
from ._plimsoll.losses import *  # noqa: F401,F403
