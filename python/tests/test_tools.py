"""`make test` where Python cannot be tested: it says why, and succeeds; `make python` fails there."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "python"
pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="the package is tested outside of its tree")


@pytest.fixture
def python(tmp_path):
    """A python3 that is told of with another tag, so that it gets an environment of its own, and answers as the test wants."""

    def made(answers):
        cases = "".join(f"  *{part}*) {answer} ;;\n" for part, answer in answers.items())
        script = tmp_path / "python3"
        script.write_text(f'#!/bin/sh\ncase "$*" in\n  *cp%d%d*) echo cp3test ;;\n{cases}  *) exec {sys.executable} "$@" ;;\nesac\n')
        script.chmod(0o755)
        return script

    yield made
    shutil.rmtree(ROOT / "build" / "python" / "cp3test", ignore_errors=True)


def results(python, **environment):
    return [subprocess.run([str(TOOL), task], capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHON": str(python), **environment})
            for task in ("test-if-can", "test")]


@pytest.mark.parametrize("answers,reason", [({"get_paths": "echo /nowhere"}, "no headers (/nowhere/Python.h); install python3-dev"),
                                            ({"ensurepip": "exit 1"}, "install python3-venv"), ({"version_info": "exit 1"}, "older than 3.10")])
def test_what_is_missing_is_said(python, answers, reason):
    skipped, failed = results(python(answers))
    assert skipped.returncode == 0 and "is not tested" in skipped.stdout and reason in skipped.stdout, skipped
    assert failed.returncode == 1 and reason in failed.stderr, failed


def test_no_network_is_said(python):
    skipped, failed = results(python({}), PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert skipped.returncode == 0 and "is not tested" in skipped.stdout and "no network?" in skipped.stdout, skipped
    assert failed.returncode == 1 and "no network?" in failed.stderr, failed


def test_no_python_is_said():
    skipped, failed = results("no-such-python")
    assert skipped.returncode == 0 and "there is no no-such-python" in skipped.stdout
    assert failed.returncode == 1
