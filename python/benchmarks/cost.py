"""What the package costs beside the library and NumPy. Run: tools/python run python/benchmarks/cost.py"""
import gc
import statistics
import time
import timeit

import numpy as np

import plimsoll as pl


def nanoseconds(statement, names, number, rounds=15):
    """The median of several rounds, taken by turns with the others by the caller."""
    return min(timeit.repeat(statement, globals=names, number=number, repeat=rounds)) / number * 1e9


def one_element():
    x, y = pl.ones(1), pl.ones(1)
    a, b = np.ones(1, "float32"), np.ones(1, "float32")
    ours, theirs = [], []
    for _ in range(7):
        ours.append(nanoseconds("x + y", {"x": x, "y": y}, 20000, 3))
        theirs.append(nanoseconds("a + b", {"a": a, "b": b}, 20000, 3))
    mine, numpys = statistics.median(ours), statistics.median(theirs)
    print(f"x + y of one element: {mine:.0f} ns, NumPy {numpys:.0f} ns: {mine / numpys:.2f} times")


def product():
    pl.config.set_threads(1)
    x, y = pl.random_normal((1024, 1024), seed=1), pl.random_normal((1024, 1024), seed=2)
    python, library = [], []
    for _ in range(20):
        python.append(timeit.timeit(lambda: x @ y, timer=time.thread_time, number=1))
        library.append(pl._plimsoll.time_product(x, y, 1) / 1e9)
    mine, own = min(python), min(library)
    print(f"product of 1024 x 1024: {mine * 1e3:.2f} ms of processor time from Python, {own * 1e3:.2f} ms in C++: {mine / own:.3f} times")


def round_trips():
    a = np.ones((8, 8), "float32")
    for _ in range(2000):
        np.from_dlpack(pl.asarray(a))
    gc.collect()
    before = pl.memory().num_tensors, pl.process_memory()["resident"]
    seconds = timeit.timeit(lambda: np.from_dlpack(pl.asarray(a)), number=100_000)
    gc.collect()
    after = pl.memory().num_tensors, pl.process_memory()["resident"]
    print(f"100,000 round trips NumPy to tensor to NumPy: {seconds * 10:.2f} us each, {after[0] - before[0]} tensors and "
          f"{(after[1] - before[1]) / 1024:.0f} KiB of resident memory more than before")


if __name__ == "__main__":
    one_element()
    product()
    round_trips()
