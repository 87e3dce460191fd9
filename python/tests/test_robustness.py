"""What programs do to a package by accident: every one ends in an answer or an exception, and nothing is left behind."""
import copy
import gc
import importlib
import pickle
import subprocess
import sys
import threading
import weakref

import pytest

import plimsoll as pl


def small():
    model = pl.Sequential([pl.layers.Dense(2, input_shape=(3,)), pl.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    return model


def run(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("call", [
    lambda: pl.zeros((2 ** 62, 4)), lambda: pl.ones(2 ** 50), lambda: pl.full((2 ** 31, 2 ** 31), 1), lambda: pl.eye(2 ** 40), lambda: pl.arange(2 ** 60),
    lambda: pl.linspace(0, 1, 2 ** 60), lambda: pl.random_normal((2 ** 45,)), lambda: pl.tile([1.0], 2 ** 60), lambda: pl.repeat([1.0], 2 ** 60),
    lambda: pl.broadcast_to([1.0], (2 ** 61,)), lambda: pl.one_hot([1], 2 ** 60), lambda: pl.pad([1.0], [(2 ** 60, 0)]), lambda: pl.zeros(2 ** 70),
    lambda: pl.ones(3) * 10 ** 400, lambda: pl.asarray([10 ** 30]), lambda: pl.ones(2)[2 ** 80], lambda: pl.ones((2, 3)).reshape(2 ** 62, 4)],
    ids=lambda f: f"line {f.__code__.co_firstlineno}")
def test_huge_sizes_are_refused(call, count):
    with pytest.raises((MemoryError, ValueError, OverflowError, IndexError, TypeError)):
        call()
    assert count() == 0


def test_exceptions_of_generators_functions_and_callbacks_reach_the_caller(count):
    class Own(Exception):
        pass

    def raises(*arguments, **named):
        raise Own

    def batches():
        yield [[1.0, 2.0, 3.0]], [[1.0]]
        raise Own

    model, x, y = small(), pl.ones((4, 3)), pl.ones((4, 1))
    calls = [lambda: small().fit(batches, verbose=0), lambda: list(pl.Dataset.from_generator(batches)),
             lambda: list(pl.Dataset.from_tensors(x, y).map(raises)), lambda: list(pl.Dataset.from_tensors(x, y).map(raises).prefetch(2)),
             lambda: model.fit(x, y, verbose=0, callbacks=[pl.callbacks.LambdaCallback(on_train_batch_end=raises)]),
             lambda: pl.tidy(raises), lambda: pl.function(raises)(x), lambda: pl.grad(raises)(1.0),
             lambda: pl.while_loop(raises, raises, x), lambda: pl.layers.Lambda(raises)(x)]
    for call in calls:
        with pytest.raises(Own):
            call()
    compiled = pl.Sequential([pl.layers.Dense(1, input_shape=(3,))])
    compiled.compile(optimizer="sgd", loss=raises)
    with pytest.raises(Own):
        compiled.fit(x, y, verbose=0)
    del model, compiled, x, y, calls, call
    assert count() == 0


def test_objects_that_are_copied_pickled_or_weakly_held():
    x = pl.asarray([[1.0, 2.0]])
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(x, protocol=5))):
        assert other.tolist() == x.tolist() and other.dtype == x.dtype and other.shape == x.shape
    for dtype in ("bool", "bfloat16", "float16", "int64"):
        assert pickle.loads(pickle.dumps(pl.ones((2, 0, 3), dtype))).shape == (2, 0, 3)
    held = weakref.ref(x)
    del x, other
    gc.collect()
    assert held() is None
    for unpickled in (pl.GradientTape(), pl.budget("b", 100), pl.tidy()):
        with pytest.raises(TypeError):
            pickle.dumps(unpickled)


def test_cycles_through_python_are_collected(count):
    class Owner:
        pass

    for _ in range(3):
        owner = Owner()
        owner.tensor = pl.ones(1000)
        owner.model = small()
        owner.traced = pl.function(owner.tensor.__mul__)
        owner.callback = pl.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs, owner=owner: None)
        owner.function = pl.function(lambda x, owner=owner: x * 2)
        owner.itself = owner
    owner.model.fit(pl.ones((4, 3)), pl.ones((4, 1)), verbose=0, callbacks=[owner.callback])
    del owner
    assert count() <= 1


def test_threads_share_models_and_tensors_and_have_their_own_scopes():
    model, x, wrong = small(), pl.ones((8, 3)), []
    expected = model.predict(x).tolist()

    def work(number):
        for _ in range(10):
            with pl.budget(f"thread {number}", "1MiB") as budget, pl.tidy():
                if model.predict(x).tolist() != expected or (x * number).sum().item() != 24 * number:
                    wrong.append(number)
            if budget.peak > 1 << 20:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_package_is_imported_again_and_reloaded():
    before = pl.Tensor
    assert importlib.import_module("plimsoll") is pl and importlib.reload(pl) is pl
    assert pl.Tensor is before and (pl.ones(2) + 1).tolist() == [2, 2] and isinstance(pl.ones(1), pl.Tensor)
    done = run("import sys, plimsoll\nfor name in [n for n in sys.modules if n.startswith('plimsoll')]: del sys.modules[name]\n"
               "try:\n  import plimsoll as again\n  print((again.ones(2) + 1).tolist())\nexcept ImportError as e: print('refused', e)")
    assert done.returncode == 0 and done.stdout.startswith(("[2.0, 2.0]", "refused")), done.stdout + done.stderr


def test_other_interpreters_of_the_process_are_refused_or_work():
    done = run("""
try:
    import _interpreters as them
except ImportError:
    try:
        import _xxsubinterpreters as them
    except ImportError:
        them = None
import plimsoll as pl
x = pl.ones(3)
if them:
    other = them.create()
    try:
        print(them.run_string(other, "try:\\n  import plimsoll\\nexcept ImportError: pass"))
    except Exception as e:
        print(type(e).__name__)
    them.destroy(other)
print((x + 1).tolist())
""")
    assert done.returncode == 0 and done.stdout.endswith("[2.0, 2.0, 2.0]\n"), done.stdout + done.stderr


def test_a_forked_pool_says_what_to_do():
    done = run("""
import multiprocessing as mp, sys
import plimsoll as pl
x = pl.ones(3)
def work():
    return (x + 1).tolist()
if __name__ == "__main__":
    with mp.get_context("fork").Pool(1) as pool:
        try:
            pool.apply(work)
        except pl.FailedPrecondition as e:
            print("spawn" in str(e))
    sys.stdout.flush()
""")
    assert done.returncode == 0 and done.stdout == "True\n", done.stdout + done.stderr


def test_a_spawned_process_computes(tmp_path):
    (tmp_path / "spawned.py").write_text("""
import multiprocessing as mp
import plimsoll as pl
def work(x, model):
    return (x + 1).tolist(), model.predict(x).shape
if __name__ == "__main__":
    model = pl.Sequential([pl.layers.Dense(2, input_shape=(3,))])
    with mp.get_context("spawn").Pool(1) as pool:
        print(pool.apply(work, (pl.ones((1, 3)), model)))
""")
    done = subprocess.run([sys.executable, str(tmp_path / "spawned.py")], capture_output=True, text=True, timeout=120)
    assert done.stdout == "([[2.0, 2.0, 2.0]], (1, 2))\n", done.stdout + done.stderr


def test_wrong_types_are_type_errors_that_name_them():
    for call in [lambda: pl.ones(3) + "a", lambda: pl.ones(3) @ None, lambda: pl.asarray({"a": 1}), lambda: pl.asarray(object()), lambda: pl.zeros("a"),
                 lambda: pl.ones(2, "float31"), lambda: pl.layers.Dense("a")(pl.ones((1, 2))), lambda: pl.Sequential([3]), lambda: small().fit("a", "b"),
                 lambda: small().predict(None), lambda: pl.concat(3), lambda: pl.Variable(None), lambda: pl.Session(3), lambda: pl.budget(3, 3)]:
        with pytest.raises((TypeError, ValueError)) as refused:
            call()
        assert str(refused.value) and "std::" not in str(refused.value)
