"""For tools that need Python packages: runs the calling script again inside an environment that has them.

    import in_venv
    in_venv.enter("tensorflow-cpu", "tensorboard")     # returns inside it; installs what is missing, once

The environment is in build/venv, or where PLIMSOLL_VENV says.
"""
import os
import pathlib
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent


def enter(*packages):
    folder = pathlib.Path(os.environ.get("PLIMSOLL_VENV", ROOT / "build" / "venv"))
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder}")
        venv.create(folder, with_pip=True)
    listed = subprocess.run([python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True,
                            check=True).stdout
    known = {line.split("==")[0].lower().replace("_", "-") for line in listed.splitlines()}
    missing = [package for package in packages if package.lower() not in known]
    if missing:
        print("installing", *missing)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *missing], check=True)
    if pathlib.Path(sys.prefix).resolve() != folder.resolve():
        os.execv(python, [str(python), *sys.argv])


def build_program(name="interop_files"):
    """Builds tools/NAME.cc against the library of build/; returns its path."""
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    if not (ROOT / "build" / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "default"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "build", f"-j{jobs}", "--target", "libplimsoll.so"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    program = ROOT / "build" / name
    subprocess.run(["c++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-I.", f"tools/{name}.cc", "-o",
                    program, "-Lbuild", "-lplimsoll", f"-Wl,-rpath,{ROOT / 'build'}"], cwd=ROOT, check=True)
    return program
