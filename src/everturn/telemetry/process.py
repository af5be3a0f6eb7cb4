"""Process metrics: CPU, memory, threads and file descriptors from the operating system; unknown ones are left out."""

from __future__ import annotations

import os
import time
from pathlib import Path

_SELF = Path("/proc/self")


def process_values() -> dict[str, float]:
    """Values by metric name."""
    times = os.times()
    values = {"process_cpu_seconds_total": times.user + times.system}
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        values["process_max_fds"] = float(limit if limit != resource.RLIM_INFINITY else 2**53 - 1)
    except (ImportError, OSError, ValueError):  # not on this system
        pass
    try:
        values |= _from_proc()
    except (OSError, IndexError, ValueError):  # no /proc, or one in another format
        pass
    return values


def _from_proc() -> dict[str, float]:
    # The process name is in parentheses and may contain anything; the fields after it begin with the third.
    fields = (_SELF / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    page, ticks = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    age = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0]) - int(fields[19]) / ticks
    return {
        "process_threads": float(fields[17]),
        "process_start_time_seconds": round(time.time() - age, 2),
        "process_virtual_memory_bytes": float(fields[20]),
        "process_resident_memory_bytes": float(fields[21]) * page,
        "process_open_fds": float(len(os.listdir(_SELF / "fd"))),
    }
