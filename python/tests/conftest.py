"""Every test begins without tensors, and is named as a sentence."""
import doctest
import gc
import signal

import pytest

import plimsoll as pl


@pytest.fixture(autouse=True)
def names(doctest_namespace):
    doctest_namespace["pl"] = pl


@pytest.fixture
def count():
    """How many tensors there are more than at the beginning of the test."""
    for _ in range(3):  # What a model held that goes in one pass goes in the next.
        gc.collect()
    before = pl.memory().num_tensors

    def more():
        for _ in range(3):
            gc.collect()
        return pl.memory().num_tensors - before

    return more


assert doctest


def pytest_configure():
    """Lets tests interrupt themselves also where SIGINT is ignored, as it is in a shell's background jobs."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
