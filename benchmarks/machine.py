"""The machine during a measurement: its load average, and how much of it other programs used."""

from __future__ import annotations

import os
import resource
import threading
from types import TracebackType
from typing import Any, Self

INTERVAL = 5.0  # seconds between two samples
_TICKS = os.sysconf("SC_CLK_TCK")


class MachineLoad:
    """Watches the machine: `with MachineLoad() as load: …`, then `load.figures()`."""

    def __init__(self) -> None:
        self._samples: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._busy = self._own = 0.0

    def __enter__(self) -> Self:
        """Begin."""
        self._busy, self._own = _busy(), _own()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; programs that were started meanwhile have ended."""
        self._stop.set()
        self._thread.join()
        self._busy, self._own = _busy() - self._busy, _own() - self._own

    def _watch(self) -> None:
        while not self._stop.wait(INTERVAL):
            self._samples.append(os.getloadavg()[0])

    def figures(self) -> dict[str, Any]:
        """Load average (mean and maximum), and processor seconds of the measured programs and of all others."""
        samples = self._samples or [os.getloadavg()[0]]
        return {
            "load_mean": round(sum(samples) / len(samples), 1),
            "load_max": round(max(samples), 1),
            "own_cpu": round(self._own),
            "other_cpu": round(max(0.0, self._busy - self._own)),
        }


def _busy() -> float:
    """Processor seconds that the machine has worked: everything but idle and waiting for disks."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, interrupts, soft, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + interrupts + soft) / _TICKS


def _own() -> float:
    """Processor seconds of the programs that this one has started, once they have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
