"""What TensorBoard shows."""
from ._plimsoll import FileWriter

__all__ = ["FileWriter"]
