"""Compactions as text: how many tokens a request had before and after one."""

from __future__ import annotations

from everturn.core.parts import CompactionPart


def format_tokens(count: int) -> str:
    """A number of tokens in three digits: `182k`, `4.1k`, `950`."""
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 9_950 else f"{count / 1_000:.0f}k"


def format_sizes(part: CompactionPart) -> str:
    """The sizes before and after a compaction: `182k → 41k`."""
    return f"{format_tokens(part.before)} → {format_tokens(part.after)}"
