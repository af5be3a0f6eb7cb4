"""Bugs to be built into a worker on purpose: a campaign is trusted only after it has found one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from everturn.core.canonical import parse_object
from everturn.turn import tools


def once_is_done_again() -> None:
    """A process that takes over runs a `once` call again, whatever became of it."""
    turn, start = cast("Any", tools), tools.Start

    async def take_over(ctx: Any, call: Any, found: Any, plan: Any) -> None:
        plan.starts.append(start(call, found[call.started.tool], parse_object(call.started.arguments) or {}))

    turn._take_over = take_over


def nothing_is_written_before_it_is_done() -> None:
    """Tools run before the log says so."""
    turn = cast("Any", tools)
    plan = turn._plan

    async def eager(ctx: Any, found: Any, limits: Any) -> Any:
        made = await plan(ctx, found, limits)
        for one in made.starts:
            ctx.spawn(one.call.id, turn.run_call(ctx, one, limits, found))
        while made.starts and set(ctx.running()) - set(ctx.done()):
            await ctx.stir(ctx.stirs)
        made.starts.clear()
        return made

    turn._plan = eager


SABOTAGES: dict[str, Callable[[], None]] = {
    "once is done again": once_is_done_again,
    "nothing is written before it is done": nothing_is_written_before_it_is_done,
}
