"""The examples run and hold what they show; so do those in docstrings."""
import doctest
import gc
import pathlib
import subprocess
import sys

import pytest

import plimsoll as pl

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = sorted((HERE.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path, tmp_path):
    pytest.importorskip("numpy")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


MODULES = [pl, pl.callbacks, pl.config, pl.distributed, pl.layers, pl.losses, pl.metrics, pl.optimizers, pl.train]


def public():
    """Functions and classes that users reach, each once, by the name under which they do."""
    seen = set()
    for module in MODULES:
        for name, value in vars(module).items():
            is_one = isinstance(value, type) or (callable(value) and not isinstance(value, pl.DType))
            if is_one and not name.startswith("_") and id(value) not in seen:
                seen.add(id(value))
                yield f"{module.__name__.removeprefix('plimsoll._')}.{name}", value


def documented():
    for name, value in public():
        yield name, value.__doc__
        if isinstance(value, type):
            for method, function in vars(value).items():
                yield f"{name}.{method}", getattr(function, "__doc__", None)
    for module in MODULES:
        yield module.__name__, module.__doc__


WITH_EXAMPLES = [(name, text) for name, text in documented() if isinstance(text, str) and ">>>" in text]


def test_every_public_function_and_class_has_an_example():
    missing = [name for name, value in public() if ">>>" not in (value.__doc__ or "")]
    assert not missing, f"write one in python/plimsoll/_documentation.py or its docstring: {missing}"
    assert len(list(public())) > 300


def test_every_text_is_of_something_that_is_there():
    from plimsoll import _documentation, _plimsoll

    for name in _documentation.texts():
        value = _plimsoll
        for part in name.split("."):
            value = getattr(value, part)


def test_every_function_of_the_standards_namespace_has_a_text():
    from plimsoll import array_api

    assert not [name for name in array_api.__all__ if callable(getattr(array_api, name)) and not getattr(array_api, name).__doc__]


@pytest.mark.parametrize("name,text", WITH_EXAMPLES, ids=[name for name, _ in WITH_EXAMPLES])
def test_docstring_examples_give_what_they_say(name, text, tmp_path, monkeypatch):
    if "numpy" in text:
        pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    failures = []
    test = doctest.DocTestParser().get_doctest(text, {"pl": pl, "__name__": "example"}, name, name, 0)
    gc.collect()  # What other tests left is not to go while tensors are counted.
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_the_page_of_the_docs_is_true():
    page = HERE.parents[1] / "docs" / "python.md"
    np = pytest.importorskip("numpy")
    failures = []
    text = "\n".join(line for line in page.read_text().splitlines() if not line.startswith("```"))
    test = doctest.DocTestParser().get_doctest(text, {"pl": pl, "np": np, "__name__": "page"}, "python.md", str(page), 0)
    assert len(test.examples) > 10
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(test, out=failures.append)
    assert not failures, "".join(failures)
