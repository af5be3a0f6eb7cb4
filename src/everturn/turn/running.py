"""One call that may run → its result. Never raises, whatever the tool does."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping

from msgspec.structs import replace

from everturn import faults
from everturn.core.canonical import JsonObject
from everturn.core.parts import CallState, Output
from everturn.core.ports import Progress, Tool, ToolContext
from everturn.errors import BadOutput, OutcomeUnknown, ToolError, ToolTimeout
from everturn.turn.aside import Patience
from everturn.turn.contexts import OneCall, OneStep
from everturn.turn.hookup import is_cancelling
from everturn.turn.judging import Start
from everturn.turn.permit import needs_review
from everturn.turn.shaping import Limits, failure, shape, tidy, to_output
from everturn.turn.supervisor import Settlement
from everturn.turn.within import Within

log = logging.getLogger(__name__)

GRACE = 1.0  # seconds a tool has to end after it was told to


PUT_ASIDE = "The turn ended while this call waited for somebody. What it waited for has no effect any more."


class PutAside(BaseException):
    """The tool waits for somebody; it is begun again when they have answered."""


async def run_call(ctx: OneStep, start: Start, limits: Limits, tools: Mapping[str, Tool]) -> Settlement:
    """Run a tool to its end, or until it is put aside. Never raises, whatever the tool does."""
    within, is_told = Within(ctx, start.call, start.tool, tools, start.arguments), False
    below = within.below
    try:
        faults.hit("call.run.before")
        value = await _in_time(ctx, start.tool, start.arguments, within)
        state: CallState = "completed"
        output = to_output(value)
        faults.hit("call.run.after")
    except asyncio.CancelledError:
        if is_cancelling():
            raise
        state, output = "failed", Output("the tool was cancelled from within", code="failed")
    except PutAside:
        return Settlement("waiting", Output(PUT_ASIDE, code="cancelled"), aside=within.waiting.aside)
    except BaseException as error:  # a tool may raise SystemExit; it harms its own call and nothing else
        state, output, is_told = "failed", failure(error), isinstance(error, ToolError)
        if isinstance(error, OutcomeUnknown):
            state = "outcome_unknown"
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


async def _in_time(ctx: OneStep, tool: Tool, arguments: JsonObject, within: Within) -> object:
    """Wait for a tool no longer than it may take."""
    seconds, context, waiting = tool.spec.timeout, within.context(), within.waiting
    task = asyncio.current_task()
    assert task is not None
    waiting.begin(task)
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
    waiting.patience = Patience(clock, seconds, expire)
    try:
        return await _result(tool.run(arguments, context), context)
    except asyncio.CancelledError:
        if waiting.aside is not None and task.uncancel() == 0:
            raise PutAside from None
        if not has_expired or task.uncancel() > 0:
            raise
        raise late() from None
    except Exception:
        if waiting.aside is not None and task.uncancel() == 0:  # it was ended, and that is how it took it
            raise PutAside from None
        raise
    finally:
        waiting.patience.stop()


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
    is_unknown = state == "outcome_unknown"
    try:
        if after is not None:
            await ctx.run.call_hook(start.tool.spec.name, "after", after, one)
        for plugin, method in hooks:
            await ctx.run.call_hook(plugin, "on_call_end", method, one)
        if one.state not in ("completed", "failed"):
            raise BadOutput(f"on_call_end set the state to {one.state!r}; there are: completed, failed")
        return Settlement("outcome_unknown" if is_unknown else one.state, tidy(one.output))
    except Exception as error:
        return Settlement("failed", failure(error))
