"""One call that may run → its result. Never raises, whatever the tool does."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable

from msgspec.structs import replace

from everturn import faults
from everturn.core.canonical import JsonObject
from everturn.core.parts import CallState, Output
from everturn.core.ports import Progress, Tool, ToolContext
from everturn.errors import BadOutput, ToolError, ToolTimeout
from everturn.turn.below import Below
from everturn.turn.contexts import OneCall, OneStep
from everturn.turn.hookup import is_cancelling
from everturn.turn.judging import Start
from everturn.turn.passing import read_range
from everturn.turn.permit import needs_review
from everturn.turn.shaping import Limits, failure, shape, tidy, to_output
from everturn.turn.supervisor import Settlement

log = logging.getLogger(__name__)

GRACE = 1.0  # seconds a tool has to end after it was told to


async def run_call(ctx: OneStep, start: Start, limits: Limits) -> Settlement:
    """Run a tool to its end. Never raises, whatever the tool does."""
    run, call, tool = ctx.run, start.call, start.tool
    below, is_told = Below(run, call), False
    try:
        context = ToolContext(
            run.session,
            run.turn,
            call.id,
            call.id,
            lambda text: run.progress(call.id, text),
            below.sub_turn,
            lambda name, at, length: read_range(run, name, at, length),
        )
        faults.hit("call.run.before")
        value = await _within(ctx, tool, start.arguments, context)
        state: CallState = "completed"
        output = to_output(value)
        faults.hit("call.run.after")
    except asyncio.CancelledError:
        if is_cancelling():
            raise
        state, output = "failed", Output("the tool was cancelled from within", code="failed")
    except BaseException as error:  # a tool may raise SystemExit; it harms its own call and nothing else
        state, output, is_told = "failed", failure(error), isinstance(error, ToolError)
    # Plugins see the whole before it is cut, so that what one of them takes out is not kept in the blob either.
    if below.spent is not None:
        output = replace(output, untrusted=output.untrusted or below.is_untrusted, sensitive=below.is_private)
    came = Settlement(state, output, below.spent, below.trail)
    return await finish_call(ctx, start, limits, came, is_told)


async def finish_call(
    ctx: OneStep, start: Start, limits: Limits, came: Settlement, is_told: bool = False
) -> Settlement:
    """What a call came to, as it is kept: seen by plugins, shaped, and with where it comes from on it."""
    ended, spec = await _after(ctx, start, came.state, came.output), start.tool.spec
    output = ended.output
    marked = replace(output, origin=spec.origin, untrusted=output.untrusted or spec.untrusted)
    try:
        shaped = await shape(ctx.run, spec, start.call.id, marked, limits, is_told=is_told)
        is_for_people = needs_review(spec, ctx.run.state.options, ended.state == "completed")
        return replace(came, state=ended.state, output=shaped, is_for_people=is_for_people)
    except Exception as error:
        log.exception("the output of call %s could not be kept", start.call.id)
        text = f"its output was too long to show and could not be kept: {error!r}"
        return replace(came, state="failed", output=Output(text, code="failed"))


async def _within(ctx: OneStep, tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    """Wait for a tool no longer than it may take."""
    seconds = tool.spec.timeout
    task = asyncio.current_task()
    assert task is not None
    has_expired = False

    def expire() -> None:
        nonlocal has_expired
        has_expired = True
        task.cancel()
        # A tool that swallows its cancellation keeps running, but not the turn waiting.
        gone = Settlement("failed", replace(failure(late()), origin=tool.spec.origin))
        clock.call_later(GRACE, lambda: ctx.give_up(context.call, gone))

    def late() -> ToolTimeout:
        return ToolTimeout(f"the tool did not answer within {seconds:g} s; whether it took effect is unknown")

    clock = ctx.run.setup.clock
    timer = clock.call_later(seconds, expire)
    try:
        return await _result(tool.run(arguments, context), context)
    except asyncio.CancelledError:
        if not has_expired or task.uncancel() > 0:
            raise
        raise late() from None
    finally:
        timer.cancel()


async def _result(answer: Awaitable[object] | AsyncIterator[object], context: ToolContext) -> object:
    if inspect.iscoroutine(answer) or not isinstance(answer, AsyncIterator):
        return await answer
    output: object = None
    try:
        async for item in answer:
            if isinstance(item, Progress):
                context.progress(item.text)
            else:
                output = item
    finally:
        aclose = getattr(answer, "aclose", None)
        if aclose is not None:
            await aclose()
    return output


async def _after(ctx: OneStep, start: Start, state: CallState, output: Output) -> Settlement:
    """Let plugins have the last word on a result, a late one included; one that fails fails the call."""
    hooks, after = ctx.run.setup.hooks["on_call_end"], getattr(start.tool, "after", None)
    if not hooks and after is None:
        return Settlement(state, output)
    one = OneCall(ctx.run, start.call, start.tool.spec, start.arguments)
    one.output, one.state = output, "completed" if state == "completed" else "failed"
    try:
        if after is not None:
            await ctx.run.call_hook(start.tool.spec.name, "after", after, one)
        for plugin, method in hooks:
            await ctx.run.call_hook(plugin, "on_call_end", method, one)
        if one.state not in ("completed", "failed"):
            raise BadOutput(f"on_call_end set the state to {one.state!r}; there are: completed, failed")
        return Settlement(one.state, tidy(one.output))
    except Exception as error:
        return Settlement("failed", failure(error))
