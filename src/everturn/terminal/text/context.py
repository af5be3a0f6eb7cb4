"""Context report as text: the gauge, the warning before a compaction, and a bar of what fills the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from everturn.core.context.context_report import ContextReport
from everturn.terminal.text.compaction import format_tokens

WARN_AT: Final = 0.85  # share of the limit from which a person is warned

ContextWarning = Literal["", "soon", "next", "off", "paused"]
"""What a person is warned of: a summary `soon`, or before the `next` request; that none is written, because the policy is
`off` or because summaries are `paused`."""


def format_gauge(report: ContextReport) -> str:
    """How full the context is: `12k / 108k · 11 %`, or `12k tokens` if the limit is unknown; `~` marks an estimate."""
    used = f"{'~' if report.estimated else ''}{format_tokens(report.used)}"
    if report.share is None:
        return f"{used} tokens"
    return f"{used} / {format_tokens(report.limit)} · {percent(report.share)} %"


def percent(share: float) -> int:
    """A share in percent, rounded down: 100 % is full, and not almost full."""
    return int(share * 100)


def find_warning(report: ContextReport) -> ContextWarning:
    """What a person is warned of, if the context is nearly full."""
    if report.share is None or report.share < WARN_AT or report.summarizing:
        return ""
    if report.policy != "auto":
        return "off" if report.policy == "off" else ""
    if report.paused:
        return "paused"
    return "next" if report.used >= report.summarize_at else "soon"


def divide_bar(sizes: Sequence[int], total: int, width: int) -> list[int]:
    """Columns of a bar for each size; what is not zero has at least one, as far as there is room."""
    if total <= 0 or width <= 0:
        return [0] * len(sizes)
    columns = [size * width // total for size in sizes]
    for index, size in enumerate(sizes):
        if size and not columns[index]:
            columns[index] = 1
    while sum(columns) > width:
        columns[max(range(len(columns)), key=lambda index: columns[index])] -= 1
    rest = min(width, sum(sizes) * width // total) - sum(columns)
    remainders = sorted(range(len(sizes)), key=lambda index: -(sizes[index] * width % total))
    for index in remainders[: max(rest, 0)]:
        columns[index] += bool(sizes[index])
    return columns
