"""Which devices there are, how much memory each may take, and how; TensorFlow's names."""
from ._plimsoll.config import *  # noqa: F401,F403
