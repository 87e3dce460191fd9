"""Which devices there are, how much memory each may take, and how."""

from collections.abc import Sequence


class PhysicalDevice:
    """
    A device of this machine.

    >>> pl.config.list_physical_devices("CPU")[0].type
    'CPU'
    """

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def device_type(self) -> str: ...

    @property
    def memory_bytes(self) -> int: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class LogicalDevice:
    """
    A device that tensors go to.

    >>> pl.config.list_logical_devices()[0].type
    'CPU'
    """

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def device_type(self) -> str: ...

    @property
    def memory_limit(self) -> int: ...

    @property
    def physical_device(self) -> str: ...

    def __repr__(self) -> str: ...

class LogicalDeviceConfiguration:
    """
    The settings of a part of a device: its limit.

    >>> pl.config.LogicalDeviceConfiguration(memory_limit="64MiB").memory_limit
    67108864
    """

    def __init__(self, memory_limit: str | int | None = None) -> None: ...

    @property
    def memory_limit(self) -> int: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __repr__(self) -> str: ...

def list_physical_devices(device_type: str = '') -> list[PhysicalDevice]:
    """
    The devices of this machine; of a kind ("CPU") if one is given.

    >>> pl.config.list_physical_devices("CPU")[0].name
    'CPU:0'
    """

def list_logical_devices(device_type: str = '') -> list[LogicalDevice]:
    """
    The devices that tensors go to: parts of physical ones where limits were set.

    >>> pl.config.list_logical_devices()[0].name
    'CPU:0'
    """

def set_visible_devices(devices: PhysicalDevice | Sequence[PhysicalDevice], device_type: str = '') -> None:
    """
    Only these devices may be used from now on; before the first tensor.

    >>> pl.config.set_visible_devices(pl.config.get_visible_devices())
    """

def get_visible_devices(device_type: str = '') -> list[PhysicalDevice]:
    """
    The devices that may be used.

    >>> len(pl.config.get_visible_devices()) >= 1
    True
    """

def set_logical_device_configuration(device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]) -> None:
    """
    Divides a device: as many logical ones as there are entries, each with its own limit; before the first tensor.

    >>> import subprocess, sys
    >>> program = \"\"\"
    ... import plimsoll as pl
    ... cpu = pl.config.list_physical_devices("CPU")[0]
    ... pl.config.set_logical_device_configuration(cpu, [pl.config.LogicalDeviceConfiguration("64MiB")])
    ... print(pl.config.list_logical_devices()[0].memory_limit)
    ... \"\"\"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    '67108864\\n'
    """

def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration]:
    """
    The parts that a device was divided into; None when it was not.

    >>> pl.config.get_logical_device_configuration(pl.config.list_physical_devices("CPU")[0])
    []
    """

def get_memory_info(device: str) -> dict[str, int]:
    """
    Bytes in use on a device, now and at the peak.

    >>> sorted(pl.config.get_memory_info("CPU:0"))
    ['current', 'peak']
    """

def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """
    Pages are taken as they are needed, instead of all at once; before the first tensor.

    >>> import subprocess, sys
    >>> program = \"\"\"
    ... import plimsoll as pl
    ... cpu = pl.config.list_physical_devices("CPU")[0]
    ... pl.config.set_memory_growth(cpu, True)
    ... print(pl.config.get_memory_growth(cpu))
    ... \"\"\"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    'True\\n'
    """

def get_memory_growth(device: PhysicalDevice) -> bool:
    """
    Whether a device takes memory as it needs it.

    >>> pl.config.get_memory_growth(pl.config.list_physical_devices("CPU")[0])
    False
    """

def set_memory_fraction(device: PhysicalDevice, fraction: float) -> None:
    """
    The device's limit as a share of its memory; before the first tensor.

    >>> import subprocess, sys
    >>> program = \"\"\"
    ... import plimsoll as pl
    ... cpu = pl.config.list_physical_devices("CPU")[0]
    ... pl.config.set_memory_fraction(cpu, 0.5)
    ... print(pl.config.get_memory_fraction(cpu))
    ... \"\"\"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    '0.5\\n'
    """

def get_memory_fraction(device: PhysicalDevice) -> float:
    """
    The share of the machine's memory that a device may take.

    >>> pl.config.get_memory_fraction(pl.config.list_physical_devices("CPU")[0])
    0.0
    """

def set_lazy_allocation(enable: bool) -> None:
    """
    Whether memory is taken from the system only when it is touched.

    >>> pl.config.set_lazy_allocation(pl.config.get_lazy_allocation())
    """

def get_lazy_allocation() -> bool:
    """
    Whether memory is taken from the system only when it is touched.

    >>> pl.config.get_lazy_allocation() in (True, False)
    True
    """

def set_deferred_release(enable: bool) -> None:
    """
    Whether freed blocks are released later, at safe points.

    >>> pl.config.set_deferred_release(pl.config.get_deferred_release())
    """

def get_deferred_release() -> bool:
    """
    Whether freed blocks are released later, at safe points.

    >>> pl.config.get_deferred_release() in (True, False)
    True
    """

def set_threads(threads: int) -> None:
    """
    Sets the number of threads that compute.

    >>> pl.config.set_threads(pl.config.get_threads())
    """

def get_threads() -> int:
    """
    The number of threads that compute.

    >>> pl.config.get_threads() >= 1
    True
    """

def set_seed(seed: int) -> None:
    """
    Draws without a seed of their own repeat from here.

    >>> pl.config.set_seed(7)
    >>> first = pl.random_normal((3,))
    >>> pl.config.set_seed(7)
    >>> (pl.random_normal((3,)) == first).all().item()
    True
    """

def get_seed() -> int | None:
    """
    The seed of draws that have none of their own.

    >>> pl.config.set_seed(7)
    >>> pl.config.get_seed()
    7
    """

def set_log_level(level: str) -> None:
    """
    What is written to the log: "off" to "trace".

    >>> pl.config.set_log_level(pl.config.get_log_level())
    """

def get_log_level() -> str:
    """
    What is written to the log: "off" to "trace".

    >>> pl.config.get_log_level()
    'warning'
    """

def reset_for_testing() -> None:
    """
    Forgets devices and settings, as if the process had just begun; refused while tensors live.

    >>> pl.config.reset_for_testing.__name__
    'reset_for_testing'
    """
