"""Memory as people look at it: summaries and reports, in the terminal and in notebooks."""
import base64
import os
import tempfile

from . import _plimsoll
from ._plimsoll import config, format_bytes


def memory_summary(device=None):
    """A table of a device's memory, or of all devices.

    >>> print(pl.memory_summary().splitlines()[0])
    device           in use         peak     reserved        limit
    """
    names = [device] if device else [each.name for each in config.list_logical_devices()]
    lines = [f"{'device':<10}{'in use':>13}{'peak':>13}{'reserved':>13}{'limit':>13}"]
    for name in names:
        stats = _plimsoll.memory_stats(name)
        cells = (stats.bytes_in_use, stats.peak_bytes_in_use, stats.bytes_reserved, stats.bytes_limit)
        lines.append(f"{name:<10}" + "".join(f"{format_bytes(cell):>13}" for cell in cells))
    live = _plimsoll.memory()
    lines.append(f"{live.num_tensors} tensors on {live.num_data_buffers} buffers, {format_bytes(live.num_bytes)}")
    return "\n".join(lines)


def memory_allocated(device=""):
    """Bytes in use on a device.

    >>> x = pl.ones(1000)
    >>> pl.memory_allocated() >= 4000
    True
    """
    return _plimsoll.memory_stats(device).bytes_in_use


def max_memory_allocated(device=""):
    """The most bytes that were in use on a device since the start or reset_memory_stats().

    >>> pl.max_memory_allocated() >= pl.memory_allocated()
    True
    """
    return _plimsoll.memory_stats(device).peak_bytes_in_use


class Report:
    """A recording as a page: shows itself in a notebook, and writes itself to a file.

    findings are what is worth knowing about the run, in words.

    >>> with pl.record("run.trace"):
    ...     x = pl.ones(1000) * 2
    >>> report = pl.Report("run.trace")
    >>> report.findings[0]["level"]
    'note'
    >>> report.write("run.html")
    """

    def __init__(self, trace):
        self.trace = os.fspath(trace)

    @property
    def findings(self):
        return _plimsoll.findings_of(self.trace)

    def write(self, html):
        """One offline page."""
        _plimsoll.write_report(self.trace, html)

    def __str__(self):
        return "\n".join(f"{each['level']}: {each['title']}" for each in self.findings)

    __repr__ = __str__

    def _repr_html_(self):
        if not _plimsoll.has_report_page():
            from html import escape

            return f"<pre>{escape(str(self))}</pre>"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            self.write(path)
            with open(path, "rb") as page:
                encoded = base64.b64encode(page.read()).decode("ascii")
        # A page of its own: it may run its scripts and reach nothing of the notebook's.
        return (f'<iframe sandbox="allow-scripts" src="data:text/html;base64,{encoded}" '
                'style="width: 100%; height: 720px; border: 0"></iframe>')
