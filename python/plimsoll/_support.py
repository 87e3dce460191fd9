"""Small things the extension asks of Python."""
import inspect


def refuse_other_interpreters():
    """The extension has one state for the whole process: only its first interpreter may load it."""
    import importlib

    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            them = importlib.import_module(name)
        except ImportError:
            continue
        if them.get_current() != them.get_main():
            raise ImportError("plimsoll: only the main interpreter of a process can import it; start a process instead (multiprocessing with \"spawn\")")
        return


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


def array_of_frame(frame):
    """A frame or series of pandas as an array: columns of numbers and truths together are numbers."""
    array = frame.__array__()
    if array.dtype != object:
        return array
    dtypes = frame.dtypes if hasattr(frame, "columns") else [frame.dtype]
    wrong = [name for name, dtype in zip(getattr(frame, "columns", [""]), dtypes) if getattr(dtype, "kind", "O") not in "biuf"]
    if wrong:
        raise TypeError(f"asarray: column {wrong[0]!r} of the frame holds no numbers ({frame[wrong[0]].dtype if hasattr(frame, 'columns') else array.dtype}); "
                        "convert it first, such as with .astype(\"float32\") or pandas.get_dummies()")
    return frame.to_numpy(dtype="float64", na_value=float("nan"))


def variable_of(value, name, trainable):
    """What a pickled variable becomes again."""
    from ._plimsoll import Variable

    return Variable(value.copy(), name=name, trainable=trainable)


def files_of_model(model):
    """A model as the files that save() would write, by name: how it is pickled."""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        files = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read()
    return files


def model_of_files(files):
    """What a pickled model becomes again."""
    import os
    import tempfile

    from .models import load_model

    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        return load_model(folder)


def dtype_of_name(name):
    """What a pickled dtype becomes again."""
    from ._plimsoll import dtype

    return dtype(name)
