"""The type stubs: they know every name, and find what is wrong."""
import ast
import pathlib
import subprocess
import sys

import pytest

import plimsoll as pl
from plimsoll import _plimsoll

PACKAGE = pathlib.Path(pl.__file__).parent


def test_stubs_know_every_name_of_the_extension():
    tree = ast.parse((PACKAGE / "_plimsoll" / "__init__.pyi").read_text())
    known = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    known |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    known |= {alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    known |= {target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets}
    missing = {name for name in vars(_plimsoll) if not name.startswith("_")} - known
    assert not missing, f"run tools/python_stubs: {sorted(missing)}"
    assert (PACKAGE / "py.typed").exists()


def test_stubs_are_those_of_the_extension(tmp_path):
    """Every function, class, method and attribute: made again, the extension's stubs say what the files say."""
    tool = pathlib.Path(__file__).resolve().parents[2] / "tools" / "python_stubs"
    nanobind = pytest.importorskip("nanobind")
    if sys.version_info[:2] != (3, 11) or not tool.exists():
        pytest.skip("stubs are written with Python 3.11")
    if f"nanobind {nanobind.__version__}." not in (PACKAGE / "_plimsoll" / "__init__.pyi").read_text():
        pytest.skip(f"stubs are written by another nanobind than {nanobind.__version__}")
    subprocess.run([sys.executable, str(tool), str(tmp_path)], check=True, capture_output=True)
    files = {path.name for path in tmp_path.glob("*.pyi")}
    assert files == {path.name for path in (PACKAGE / "_plimsoll").glob("*.pyi")}
    for name in files:
        made, kept = signatures_in(tmp_path / name), signatures_in(PACKAGE / "_plimsoll" / name)
        assert made == kept, f"run tools/python_stubs: {name}: {sorted(made ^ kept)[:5]}"


def signatures_in(path):
    """Everything that a type checker reads, texts left out."""

    def lines(body, inside):
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield f"{inside}class {node.name}({', '.join(map(ast.unparse, node.bases))})"
                yield from lines(node.body, f"{inside}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                yield f"{inside}{decorators} {node.name}({ast.unparse(node.args)}) -> {node.returns and ast.unparse(node.returns)}"
            elif isinstance(node, (ast.AnnAssign, ast.Assign, ast.Import, ast.ImportFrom)):
                yield f"{inside}{ast.unparse(node)}"

    return set(lines(ast.parse(path.read_text()).body, ""))


def test_mypy_finds_nothing_in_the_examples(tmp_path):
    pytest.importorskip("mypy")
    examples = sorted(map(str, (pathlib.Path(__file__).resolve().parents[1] / "examples").glob("*.py")))
    done = subprocess.run([sys.executable, "-m", "mypy", "--check-untyped-defs", "--follow-imports=silent", "--scripts-are-modules", *examples], cwd=tmp_path, capture_output=True, text=True,
                          env={"PATH": "", **({} if PACKAGE.parent.name == "site-packages" else {"MYPYPATH": str(PACKAGE.parent)})})
    assert done.returncode == 0 and len(examples) >= 4, done.stdout + done.stderr


def test_lists_of_public_names_are_complete():
    from plimsoll import array_api, layers

    for module, is_public in [(layers, lambda v: isinstance(v, type) and issubclass(v, layers._OfLibrary)),
                              (sys.modules["plimsoll.array_api._functions"], callable)]:
        public = {name for name, value in vars(module).items() if is_public(value) and not name.startswith("_")}
        assert not public - set(module.__all__), public - set(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)
    assert array_api


PROGRAM = """
import plimsoll as pl
from plimsoll import array_api as xp

x: pl.Tensor = pl.asarray([1.0, 2.0])
y: pl.Tensor = (x + 1) * 2
model = pl.Sequential([pl.layers.Dense(2, input_shape=(2,))])
model.compile(optimizer="adam", loss="mse")
n: int = model.forecast(batch_size=3).smallest_budget
with pl.tidy() as scope:
    kept: pl.Tensor = scope.keep(x)
try:
    pl.zeros((2, 3))
except pl.OutOfMemory as e:
    print(e.limit + 1)
s: pl.SparseTensor = pl.SparseTensor([[0, 0]], [1.0], (1, 1)) * 2
z: object = xp.add(x, y)
wrong: str = pl.ones(2)
"""


def test_mypy_finds_what_is_wrong_and_nothing_else(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-m", "mypy", "program.py"], cwd=tmp_path, capture_output=True, text=True,
                          env={"PATH": "", **({} if PACKAGE.parent.name == "site-packages" else {"MYPYPATH": str(PACKAGE.parent)})})
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1 and "program.py:18" in errors[0], done.stdout + done.stderr
