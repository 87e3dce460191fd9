"""The program `plimsoll`, which the package brings."""
import os
import sys


def path():
    """Where the program lies."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "plimsoll")


def main():
    """Becomes the program, with the arguments of this process."""
    program = path()
    if not os.path.exists(program):
        sys.exit("plimsoll: this build of the package has no program; install a wheel (make wheel)")
    os.execv(program, ["plimsoll", *sys.argv[1:]])
