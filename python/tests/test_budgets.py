"""Budgets below what work would like: eviction, recomputing, spilling, and what a forecast says of them."""
import math
import pathlib

import pytest

import plimsoll as pl

np = pytest.importorskip("numpy")


def deep(width=64, depth=8, batch=128, **how):
    model = pl.Sequential([pl.layers.Dense(width, activation="tanh", seed=i, **({"input_shape": (width,)} if i == 0 else {}))
                           for i in range(depth)])
    model.compile(**{"optimizer": "sgd", "loss": "mse", **how})
    x = np.random.default_rng(0).normal(size=(batch * 2, width)).astype("float32")
    return model, x, np.tanh(x)


def test_a_budget_that_evicts_computes_again_to_the_same_bits():
    def chain():
        values = [pl.random_normal((64, 64), seed=1)]
        for _ in range(12):
            values.append(pl.tanh(values[-1] @ values[0]))
        return values

    free = [x.numpy().copy() for x in chain()]
    with pl.budget("refuses", "100KiB"), pytest.raises(pl.OutOfMemory):
        chain()
    with pl.budget("evicts", "100KiB", evict=True) as budget:
        values = chain()
        for there, here in zip(free, values):
            assert (here.numpy() == there).all()
    assert budget.peak <= 100 << 10


def test_a_view_holds_evictable_bytes_until_it_goes():
    with pl.budget("evicts", "64KiB", evict=True) as budget:
        base = pl.ones((64, 64))  # 16 KiB each.
        x = base * 3
        view = x.numpy()
        others = [base * i for i in range(8)]
        assert (view == 3).all() and [o[0, 0].item() for o in others] == list(range(8))
        del view
        more = [base * i for i in range(8, 12)]
        assert x[0, 0].item() == 3 and [m[0, 0].item() for m in more] == [8, 9, 10, 11]
        assert budget.used <= budget.limit


def test_gradients_are_the_same_under_eviction():
    w = pl.Variable(pl.random_normal((32, 32), seed=3))
    x = pl.random_normal((16, 32), seed=4)

    def gradient():
        with pl.GradientTape() as tape:
            h = x
            for _ in range(6):
                h = pl.tanh(h @ w)
            loss = h.sum()
        return tape.gradient(loss, w)

    expected = gradient().numpy().copy()
    with pl.budget("evicts", "28KiB", evict=True):
        assert (gradient().numpy() == expected).all()


def test_a_spill_directory_needs_eviction(tmp_path):
    with pytest.raises((pl.InvalidArgument, pl.Unsupported)):
        pl.budget("wrong", "1MiB", spill=tmp_path)
    with pytest.raises(TypeError):
        pl.budget("wrong", "1MiB", evict=True, spill=3)


def test_fit_recomputes_inside_of_a_budget():
    runs = []
    model, x, y = deep()
    forecast = model.forecast(batch_size=128)
    assert forecast.smallest_budget < forecast.peak_bytes and forecast.floor_bytes <= forecast.smallest_budget and forecast.floor_step
    front = forecast.front
    assert front[0].bytes == forecast.peak_bytes and front[0].slowdown == 1 and front[-1].bytes == forecast.smallest_budget
    assert all(a.bytes > b.bytes and a.slowdown < b.slowdown for a, b in zip(front, front[1:])) and "bytes=" in repr(front[0])
    size, slowdown = front[-1]
    assert slowdown == forecast.predicted_slowdown(size) and math.isinf(forecast.predicted_slowdown(size - 1))
    for budget in (None, forecast.smallest_budget):
        model, x, y = deep()
        history = model.fit(x, y, batch_size=128, epochs=2, verbose=0, shuffle=False, budget=budget)
        runs.append((history["loss"], [w.tolist() for w in model.get_weights()]))
        assert history.spilled_bytes == 0
    assert runs[0] == runs[1] and history.peak_bytes <= forecast.smallest_budget and 0 < history.recomputed_fraction < 1
    with pytest.raises(pl.OutOfMemory):
        deep()[0].fit(x, y, batch_size=128, verbose=0, budget=forecast.smallest_budget, max_slowdown=1)
    assert model.max_batch_size(forecast.peak_bytes, 1) >= 128 and model.max_batch_size(forecast.smallest_budget) >= 128
    assert model.max_batch_size(forecast.smallest_budget, max_slowdown=1) < 128


def test_fit_spills_to_a_directory(tmp_path):
    scratch = pathlib.Path(__file__).parent if not can_spill(tmp_path) else tmp_path
    if not can_spill(scratch):
        pytest.skip("no directory on a disk to spill to")
    model, x, y = deep(192, 8, 1024)  # Products take longer than storing what they give.
    forecast = model.forecast(batch_size=1024, spill=scratch)
    assert forecast.smallest_budget <= model.forecast(batch_size=1024).smallest_budget
    budget, runs = forecast.front[1].bytes, []
    for how in ({}, {"budget": budget, "spill": scratch}):
        model, x, y = deep(192, 8, 1024)
        history = model.fit(x, y, batch_size=1024, verbose=0, shuffle=False, **how)
        runs.append(history["loss"])
    assert runs[0] == runs[1] and history.peak_bytes <= budget and history.spilled_bytes > 0
    assert model.max_batch_size(budget, spill=scratch) >= 1024
    assert model.predict(x, budget="8MiB", spill=scratch).shape == (2048, 192)
    assert model.evaluate(x, y, budget="8MiB", spill=str(scratch)) > 0
    with pytest.raises(pl.InvalidArgument):
        model.fit(x, y, verbose=0, spill=scratch)  # Without a budget.
    with pytest.raises((pl.NotFound, pl.InvalidArgument)):
        model.fit(x, y, verbose=0, budget="1MiB", spill=tmp_path / "none")
    with pytest.raises(TypeError):
        model.forecast(pl.Dataset.from_tensor_slices((x, y)).batch(8), spill=scratch)
    with pytest.raises(TypeError):
        model.forecast(x)


def can_spill(directory):
    try:
        pl.Session(pl.Graph(), budget="1MiB", spill=directory).close()
        return True
    except pl.Error:
        return False


def test_evaluate_and_predict_take_budgets():
    model, x, y = deep()
    loss, values = model.evaluate(x, y), model.predict(x).numpy()
    assert model.evaluate(x, y, budget="1MiB") == loss and (model.predict(x, budget="1MiB").numpy() == values).all()
    with pytest.raises(pl.OutOfMemory):
        model.evaluate(x, y, budget="4KiB")
    with pytest.raises(pl.OutOfMemory):
        model.predict(x, budget="4KiB")


def steps(x):
    values = [x]
    for _ in range(10):
        values.append(pl.tanh(values[-1]))
    total = values[0]
    for each in reversed(values):
        total = total * each
    return total


def test_functions_and_sessions_recompute_and_spill(tmp_path):
    x = pl.random_normal((100, 100), seed=1)
    free = pl.function(steps)
    plan = free.memory_plan(x)
    assert plan["smallest_bytes"] < plan["peak_bytes"] and plan["front"][0].slowdown == 1 and plan["floor_bytes"] > 0
    expected = free(x).numpy()
    tight = pl.function(budget=plan["smallest_bytes"])(steps)
    assert (tight(x).numpy() == expected).all()
    spilling = pl.function(budget=plan["smallest_bytes"], spill=tmp_path)(steps)
    assert (spilling(x).numpy() == expected).all() and list(tmp_path.iterdir()) == []
    with pl.Graph() as graph:
        p = pl.placeholder("float32", (100, 100))
        y = steps(p)
    with pl.Session(graph, budget=plan["smallest_bytes"] + 4096, spill=str(tmp_path)) as session:
        assert (session.run(y, {p: x}).numpy() == expected).all()
    with pytest.raises(pl.InvalidArgument):
        pl.Session(graph, spill=tmp_path)


def test_what_the_caller_gives_is_never_charged_to_the_budget_of_a_fit():
    model, x, y = deep(depth=2)
    need = model.forecast(batch_size=128).smallest_budget
    rows = np.repeat(x, 40, axis=0)
    targets = np.tanh(rows)
    assert rows.nbytes > 4 * need
    for a, b in [(rows, targets), (rows.astype("float64"), targets), (rows[:, ::-1], targets), (pl.asarray(rows), pl.asarray(targets)),
                 (rows.tolist()[:256], targets.tolist()[:256])]:
        model.fit(a, b, batch_size=128, verbose=0, budget=need)
        with pytest.raises(pl.OutOfMemory):
            model.fit(a, b, batch_size=128, verbose=0, budget=need - 1)
    with pl.budget("outside", need + (1 << 20)), pytest.raises(pl.OutOfMemory):
        model.fit(rows.astype("float64"), targets, batch_size=128, verbose=0, budget=need)  # Converted: charged outside.
    with pl.budget("outside", need + (1 << 20)) as outside:
        model.fit(rows, targets, batch_size=128, verbose=0, budget=need)  # Used where they lie.
        assert outside.peak <= need + (1 << 20)
