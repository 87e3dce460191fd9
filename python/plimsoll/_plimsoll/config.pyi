"""Which devices there are, how much memory each may take, and how."""

from collections.abc import Sequence


class PhysicalDevice:
    """A piece of the machine that has memory and computes."""

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
    """What programs use, with its limit."""

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
    """What one logical device shall be."""

    def __init__(self, memory_limit: str | int | None = None) -> None: ...

    @property
    def memory_limit(self) -> int: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __repr__(self) -> str: ...

def list_physical_devices(device_type: str = '') -> list[PhysicalDevice]: ...

def list_logical_devices(device_type: str = '') -> list[LogicalDevice]:
    """Starts the runtime: from here on settings of devices are fixed."""

def set_visible_devices(devices: PhysicalDevice | Sequence[PhysicalDevice], device_type: str = '') -> None: ...

def get_visible_devices(device_type: str = '') -> list[PhysicalDevice]: ...

def set_logical_device_configuration(device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]) -> None:
    """As many logical devices as there are entries, each with its own limit."""

def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration]: ...

def get_memory_info(device: str) -> dict[str, int]:
    """Bytes in use on a logical device: now, and at most."""

def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Pages are taken as they are needed, instead of all at once."""

def get_memory_growth(device: PhysicalDevice) -> bool: ...

def set_memory_fraction(device: PhysicalDevice, fraction: float) -> None:
    """The device's limit as a share of its memory."""

def get_memory_fraction(device: PhysicalDevice) -> float: ...

def set_lazy_allocation(enable: bool) -> None: ...

def get_lazy_allocation() -> bool: ...

def set_deferred_release(enable: bool) -> None: ...

def get_deferred_release() -> bool: ...

def set_threads(threads: int) -> None: ...

def get_threads() -> int: ...

def set_seed(seed: int) -> None:
    """Of random numbers whose call gives none."""

def get_seed() -> int | None: ...

def set_log_level(level: str) -> None:
    """"debug", "info", "warning", "error" or "off"."""

def get_log_level() -> str: ...

def reset_for_testing() -> None:
    """
    Forgets devices and settings, as if the process had just begun; refuses while tensors live.
    """
