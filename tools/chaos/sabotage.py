"""Deliberate bugs for a worker: a campaign is trusted only after it has found one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from everturn.calls import pipeline
from everturn.core.canonical_json import parse_object


def once_is_done_again() -> None:
    """A process that takes over repeats a `once` call, whatever its outcome was."""
    turn, start = cast("Any", pipeline), pipeline.StartCall

    async def take_over(ctx: Any, call: Any, found: Any, plan: Any) -> None:
        plan.starts.append(start(call, found[call.started.tool], parse_object(call.started.arguments) or {}))

    turn._take_over = take_over


def nothing_is_written_before_it_is_done() -> None:
    """Tools run before the log says so."""
    turn = cast("Any", pipeline)
    plan = turn._plan

    async def eager(ctx: Any, found: Any, limits: Any) -> Any:
        planned = await plan(ctx, found, limits)
        for started in planned.starts:
            ctx.spawn(started.call.id, turn.run_call(ctx, started, limits, found))
        while planned.starts and set(ctx.running_calls()) - set(ctx.outcomes()):
            await ctx.wait_for_notification(ctx.notifications)
        planned.starts.clear()
        return planned

    turn._plan = eager


SABOTAGES: dict[str, Callable[[], None]] = {
    "once is done again": once_is_done_again,
    "nothing is written before it is done": nothing_is_written_before_it_is_done,
}
