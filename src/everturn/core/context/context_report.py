"""Context report: what fills the context window of a branch, and when the conversation is compacted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

from everturn.core.context.context_size import CLEAR_AT, SUMMARIZE_AT, ContextLimits

ContextKind = Literal[
    "instructions", "tools", "skills", "summary", "person", "answers", "results", "files", "notices", "other"
]
"""What tokens of a request are for, in the order in which a report lists them. `skills` are instructions that the model
has loaded; `other` is what the provider counted and no estimate explains."""

MAX_SCALE: Final = 2.0  # by which an estimate may differ from what was counted; the rest is `other`


class ContextUsage(Struct, frozen=True):
    """The tokens of a request that are for one thing."""

    kind: ContextKind
    tokens: int


class ContextReport(Struct, frozen=True, kw_only=True):
    """The context of a branch: how long its next request is, what fills it, and when it is compacted."""

    model: str
    window: int = 0  # tokens that the model reads; 0: unknown
    limit: int = 0  # the window less the reserve for the answer, or what an overflow has shown; 0: unknown
    used: int = 0  # tokens of the next request
    estimated: bool = True  # the model has not counted a request of this branch since its last compaction
    share: float | None = None  # of the limit that is used; None: the limit is unknown
    free: int | None = None  # tokens below the limit; None: the limit is unknown
    clear_at: int = 0  # tokens from which old tool results are cleared; 0: never
    summarize_at: int = 0  # tokens from which earlier messages are summarised; 0: never
    policy: str = "auto"  # auto, off, or last_turns(n)
    compactions: int = 0  # on this branch
    strikes: int = 0  # compactions that failed or freed too little, since the person last said something
    paused: bool = False  # no summary is asked for until the person says something
    summarizing: bool = False  # a summary is being written
    parts: tuple[ContextUsage, ...] = ()  # they add up to `used`
    cost: float | None = (
        None  # of the conversation so far, with its sub-agents; None: no price is known, or not asked for
    )


def build_report(
    *,
    model: str,
    limits: ContextLimits,
    used: int,
    estimated: bool,
    policy: str,
    estimates: Mapping[ContextKind, int],
    compactions: int = 0,
    strikes: int = 0,
    paused: bool = False,
    summarizing: bool = False,
) -> ContextReport:
    """The report of a request of which the size, the limits and the estimated parts are known."""
    is_compacted = policy == "auto" and limits.limit > 0
    return ContextReport(
        model=model,
        window=limits.window,
        limit=limits.limit,
        used=used,
        estimated=estimated,
        share=used / limits.limit if limits.limit else None,
        free=max(limits.limit - used, 0) if limits.limit else None,
        clear_at=int(limits.limit * CLEAR_AT) if is_compacted else 0,
        summarize_at=int(limits.limit * SUMMARIZE_AT) if is_compacted else 0,
        policy=policy,
        compactions=compactions,
        strikes=strikes,
        paused=paused,
        summarizing=summarizing,
        parts=scale_parts(estimates, used),
    )


def scale_parts(estimates: Mapping[ContextKind, int], used: int) -> tuple[ContextUsage, ...]:
    """Estimated parts as they add up to the tokens that are used; what no estimate explains is `other`."""
    total = sum(estimates.values())
    scaled = min(used, int(total * MAX_SCALE))  # of what the estimates explain
    sizes: dict[ContextKind, int] = {kind: size * scaled // total for kind, size in estimates.items() if size > 0}
    rest = scaled - sum(sizes.values())
    for kind in sorted(sizes, key=lambda kind: -(estimates[kind] * scaled % total))[:rest]:  # largest remainder
        sizes[kind] += 1
    sizes["other"] = sizes.get("other", 0) + used - scaled
    return tuple(ContextUsage(kind, sizes[kind]) for kind in get_args(ContextKind) if sizes.get(kind, 0) > 0)
