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


def documented():
    import types

    from plimsoll import _plimsoll, callbacks, layers, models, report

    for module in (pl, layers, models, callbacks, report):
        yield module.__name__, module.__doc__
        for name, value in vars(module).items():
            if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
                yield f"{module.__name__}.{name}", value.__doc__
    for name, value in vars(_plimsoll).items():
        yield f"plimsoll.{name}", getattr(value, "__doc__", None)
        if isinstance(value, type):
            for method, function in vars(value).items():
                yield f"plimsoll.{name}.{method}", getattr(function, "__doc__", None)


WITH_EXAMPLES = [(name, text) for name, text in documented() if isinstance(text, str) and ">>>" in text]


@pytest.mark.parametrize("name,text", WITH_EXAMPLES, ids=[name for name, _ in WITH_EXAMPLES])
def test_docstring_examples_give_what_they_say(name, text):
    failures = []
    test = doctest.DocTestParser().get_doctest(text, {"pl": pl, "__name__": "example"}, name, name, 0)
    gc.collect()  # What other tests left is not to go while tensors are counted.
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_there_are_examples_for_the_main_things():
    names = {name for name, _ in WITH_EXAMPLES}
    assert len(names) >= 20 and {"plimsoll.tidy", "plimsoll.function", "plimsoll.budget", "plimsoll.GradientTape"} <= names


def test_the_page_of_the_docs_is_true():
    page = HERE.parents[1] / "docs" / "python.md"
    np = pytest.importorskip("numpy")
    failures = []
    text = "\n".join(line for line in page.read_text().splitlines() if not line.startswith("```"))
    test = doctest.DocTestParser().get_doctest(text, {"pl": pl, "np": np, "__name__": "page"}, "python.md", str(page), 0)
    assert len(test.examples) > 10
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(test, out=failures.append)
    assert not failures, "".join(failures)
