"""Small things the extension asks of Python."""
import inspect


def takes_training(layer):
    """Whether layer.call() has a parameter called training."""
    try:
        return "training" in inspect.signature(type(layer).call).parameters
    except (TypeError, ValueError):  # A method of the extension.
        return False


def tensor_of_bytes(data, dtype, shape):
    """What a pickled tensor becomes again."""
    from ._plimsoll import from_bytes

    return from_bytes(data, dtype, shape)


def dtype_of_name(name):
    """What a pickled dtype becomes again."""
    from ._plimsoll import dtype

    return dtype(name)
