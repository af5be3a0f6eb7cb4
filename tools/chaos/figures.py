"""Figures of a campaign: percentiles, and the file from which `benchmarks/publish.py` writes the tables of the pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec


def percentiles(values: Iterable[float]) -> dict[str, float]:
    """How many values there are, their median, their 99th percentile and the largest."""
    ordered = sorted(values) or [0.0]
    p50, p99 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return {"count": len(ordered), "p50": p50, "p99": p99, "max": ordered[-1]}


def write_figures(file: str, figures: object) -> None:
    """Write a report as JSON, if a file was named."""
    if file:
        Path(file).write_bytes(msgspec.json.encode(figures))
