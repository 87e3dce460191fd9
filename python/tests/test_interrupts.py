"""Ctrl-C: a KeyboardInterrupt soon, in calls that are long, and nothing is lost."""
import os
import signal
import threading
import time

import pytest

import plimsoll as pl

np = pytest.importorskip("numpy")


def interrupted(call, after=0.3, within=5.0):
    """What call() raises when Ctrl-C comes after so many seconds; how long it then took."""
    sent = []

    def press():
        time.sleep(after)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        took = time.monotonic() - sent[0] if sent else -1.0
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert 0 <= took < within, took
    return took


def wide():
    """A model that takes more than a tenth of a millisecond for a row: all rows one by one would take half a minute."""
    model = pl.Sequential([pl.layers.Dense(1024, activation="relu", input_shape=(16,), seed=1), pl.layers.Dense(1024, activation="relu", seed=2),
                           pl.layers.Dense(1, seed=3)])
    model.compile(optimizer="sgd", loss="mse")
    return model


ROWS = np.ones((200_000, 16), "float32")
TARGETS = np.ones((200_000, 1), "float32")


def test_a_prediction_ends_and_leaves_nothing(count):
    model = wide()
    model.predict(ROWS[:64])
    held = pl.memory().num_tensors
    interrupted(lambda: model.predict(ROWS, batch_size=1))
    assert pl.memory().num_tensors == held
    assert model.predict(ROWS[:64]).shape == (64, 1)


def test_an_evaluation_ends_and_changes_nothing(count):
    model = wide()
    before = [w.numpy().copy() for w in model.get_weights()]
    interrupted(lambda: model.evaluate(ROWS, TARGETS, batch_size=1))
    assert all((a == b.numpy()).all() for a, b in zip(before, model.get_weights()))
    assert model.evaluate(ROWS[:64], TARGETS[:64]) > 0


def test_a_fit_ends_after_a_whole_step():
    model = wide()
    interrupted(lambda: model.fit(ROWS, TARGETS, batch_size=32, epochs=1000, verbose=0))
    assert all(np.isfinite(w.numpy()).all() for w in model.get_weights())
    assert len(model.fit(ROWS[:64], TARGETS[:64], verbose=0)["loss"]) == 1


def test_the_validation_of_a_fit_ends():
    model = wide()
    interrupted(lambda: model.fit(ROWS[:32], TARGETS[:32], epochs=3, verbose=0, validation_data=(ROWS, TARGETS)))


def test_a_loop_in_a_function_ends(count):
    @pl.function
    def endless(x):
        return pl.while_loop(lambda v: v.sum() < 1e30, lambda v: v + 0.0, x)

    x = pl.ones(4)
    took = interrupted(lambda: endless(x))
    held = pl.memory().num_tensors
    interrupted(lambda: endless(x))
    assert took < 5 and pl.memory().num_tensors == held


def test_a_loop_of_python_ends_between_operations():
    x = pl.ones((64, 64))

    def forever():
        y = x
        while True:
            y = pl.tanh(y @ x)

    interrupted(forever)


def test_what_a_handler_of_ones_own_raises_comes_through():
    class Enough(Exception):
        pass

    def enough(number, frame):
        raise Enough

    model = wide()
    before = signal.signal(signal.SIGALRM, enough)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Enough):
            model.evaluate(ROWS, TARGETS, batch_size=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
