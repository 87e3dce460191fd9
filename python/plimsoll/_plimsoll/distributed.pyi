"""Training by many processes, that mpirun started."""



class Job:
    """
    The processes that train together, that mpirun started; one object in each of them.

    >>> def train(model, x, y):
    ...     with pl.distributed.Job() as job:
    ...         return model.fit(x, y, distributed=job)
    """

    def __init__(self, engine: str = 'mpi', timeout: float = 30.0) -> None: ...

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def engine(self) -> str: ...

    @property
    def is_open(self) -> bool: ...

    def host(self, rank: int) -> str: ...

    @property
    def traffic(self) -> dict[str, float]:
        """What this process has sent and received."""

    def barrier(self) -> None:
        """Returns when all have come."""

    def close(self) -> None:
        """An orderly end, when all processes leave."""

    def __enter__(self) -> Job: ...

    def __exit__(self, *args: object) -> None: ...

class Training:
    """
    How a fit is distributed over a job: fit(..., distributed=Training(job, slices=32, shard_optimizer=True)).

    >>> def train(model, x, y, job):
    ...     return model.fit(x, y, distributed=pl.distributed.Training(job, slices=32, shard_optimizer=True))
    """

    def __init__(self, job: Job, slices: int = 0, shard_optimizer: bool = False, shard_parameters: bool = False) -> None:
        """
        The same slices give the same bits for any number of processes; 0: one for each.
        """
