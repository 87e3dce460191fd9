"""Training by many processes, that mpirun started."""
from ._plimsoll.distributed import *  # noqa: F401,F403
