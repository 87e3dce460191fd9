"""Callbacks that the library has."""

import plimsoll._plimsoll


def ModelCheckpoint(filepath: str, monitor: str = 'val_loss', save_best_only: bool = False, save_weights_only: bool = False, save_freq: int = 0, verbose: int = 0) -> plimsoll._plimsoll.NativeCallback:
    """
    Saves the model after each epoch, or only when the monitored value improves.

    >>> callback = pl.callbacks.ModelCheckpoint("best", monitor="loss", save_best_only=True)
    """

def EarlyStopping(monitor: str = 'val_loss', patience: int = 0, min_delta: float = 0.0, restore_best_weights: bool = False, verbose: int = 0) -> plimsoll._plimsoll.NativeCallback:
    """
    Ends the fit when the monitored value has not improved for some epochs.

    >>> callback = pl.callbacks.EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True)
    """

def ReduceLROnPlateau(monitor: str = 'val_loss', factor: float = 0.1, patience: int = 10, min_delta: float = 0.0001, cooldown: int = 0, min_lr: float = 0.0, verbose: int = 0) -> plimsoll._plimsoll.NativeCallback:
    """
    Lowers the learning rate when the monitored value has not improved for some epochs.

    >>> callback = pl.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=2)
    """

def TensorBoard(log_dir: str = 'logs', histogram_freq: int = 0, write_graph: bool = True, memory: bool = True, update_freq: int = 0) -> plimsoll._plimsoll.NativeCallback:
    """
    Writes losses, metrics and memory for TensorBoard.

    >>> callback = pl.callbacks.TensorBoard("logs")
    """

def CSVLogger(filename: str) -> plimsoll._plimsoll.NativeCallback:
    """
    Writes a line of numbers for each epoch.

    >>> callback = pl.callbacks.CSVLogger("log.csv")
    """

def LearningRateScheduler(schedule: object) -> plimsoll._plimsoll.NativeCallback:
    """
    The learning rate of each epoch, from schedule(epoch, rate).

    >>> callback = pl.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)
    """
