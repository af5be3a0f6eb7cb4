"""Tool execution: runs one call with its timeout and hooks, and returns its outcome. It never raises."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping

from msgspec.structs import replace

from everturn import failpoints
from everturn.calls.admit import StartCall
from everturn.calls.output import OutputLimits, failure_output, normalize_output, prepare_output, to_output
from everturn.calls.suspend import PausableTimeout
from everturn.calls.tool_context import TurnForTool
from everturn.core.canonical_json import JsonObject
from everturn.core.parts import CallState, Output
from everturn.core.ports import Progress, Tool, ToolContext
from everturn.errors import BadOutput, OutcomeUnknown, ToolError, ToolTimeout
from everturn.running.hook_contexts import CallHookContext, StepHookContext
from everturn.running.permissions import needs_review
from everturn.running.plugin_table import is_task_cancelled
from everturn.running.tool_tasks import ToolOutcome

log = logging.getLogger(__name__)

TOOL_CANCEL_GRACE = 1.0  # seconds for a tool to end after its cancellation


ENDED_WHILE_SUSPENDED = "The turn ended while this call waited for somebody. What it waited for has no effect any more."


class ToolSuspended(BaseException):
    """The tool was suspended; it is resumed once what it waits for has arrived."""


async def run_call(
    ctx: StepHookContext, start: StartCall, limits: OutputLimits, tools: Mapping[str, Tool]
) -> ToolOutcome:
    """Run a tool to its end, or until it is suspended. Never raises, whatever the tool does."""
    tool_turn, is_told = TurnForTool(ctx, start.call, start.tool, tools, start.arguments), False
    subagents = tool_turn.subagents
    try:
        failpoints.hit_failpoint("call.run.before")
        value = await _run_with_timeout(ctx, start.tool, start.arguments, tool_turn)
        state: CallState = "completed"
        output = to_output(value)
        failpoints.hit_failpoint("call.run.after")
    except asyncio.CancelledError:
        if is_task_cancelled():
            raise
        state, output = "failed", Output("the tool was cancelled from within", code="failed")
    except ToolSuspended:
        return ToolOutcome(
            "waiting", Output(ENDED_WHILE_SUSPENDED, code="cancelled"), suspension=tool_turn.wait.suspension
        )
    except BaseException as error:  # a tool may raise SystemExit; that fails its own call and nothing else
        state, output, is_told = "failed", failure_output(error), isinstance(error, ToolError)
        if isinstance(error, OutcomeUnknown):
            state = "outcome_unknown"
    # Plugins see the whole output before it is truncated, so that what they remove is not in the blob either.
    if subagents.spent is not None:
        output = replace(output, untrusted=output.untrusted or subagents.is_untrusted, sensitive=subagents.is_private)
    outcome = ToolOutcome(state, output, subagents.spent, subagents.recent_calls)
    return await finish_outcome(ctx, start, limits, outcome, is_told)


async def finish_outcome(
    ctx: StepHookContext, start: StartCall, limits: OutputLimits, came: ToolOutcome, is_told: bool = False
) -> ToolOutcome:
    """Finish an outcome: run `on_call_end`, set the origin, hide private values and truncate the output."""
    ended, spec = await _run_end_hooks(ctx, start, came.state, came.output), start.tool.spec
    output = ended.output
    with_origin = replace(output, origin=spec.origin, untrusted=output.untrusted or spec.untrusted)
    try:
        shown = await prepare_output(ctx.run, spec, start.call.id, with_origin, limits, is_told=is_told)
        is_for_people = needs_review(spec, ctx.run.state.options, ended.state == "completed")
        return replace(came, state=ended.state, output=shown, needs_review=is_for_people)
    except Exception as error:
        log.exception("the output of call %s could not be kept", start.call.id)
        text = f"its output was too long to show and could not be kept: {error!r}"
        return replace(came, state="failed", output=Output(text, code="failed"))


async def _run_with_timeout(ctx: StepHookContext, tool: Tool, arguments: JsonObject, tool_turn: TurnForTool) -> object:
    """Run a tool within its timeout."""
    seconds, context, waiting = tool.spec.timeout, tool_turn.context(), tool_turn.wait
    task = asyncio.current_task()
    assert task is not None
    waiting.set_task(task)
    has_expired = False

    def expire() -> None:
        nonlocal has_expired
        has_expired = True
        task.cancel()
        # A tool that swallows its cancellation keeps running, but the turn does not wait for it.
        timed_out = ToolOutcome("failed", replace(failure_output(late()), origin=tool.spec.origin))
        clock.call_later(TOOL_CANCEL_GRACE, lambda: ctx.give_up(context.call, timed_out))

    def late() -> ToolTimeout:
        return ToolTimeout(f"the tool did not answer within {seconds:g} s; whether it took effect is unknown")

    clock = ctx.run.setup.clock
    waiting.timeout = PausableTimeout(clock, seconds, expire)
    try:
        return await _await_result(tool.run(arguments, context), context)
    except asyncio.CancelledError:
        if waiting.suspension is not None and task.uncancel() == 0:
            raise ToolSuspended from None
        if not has_expired or task.uncancel() > 0:
            raise
        raise late() from None
    except Exception:
        if waiting.suspension is not None and task.uncancel() == 0:  # it was cancelled to suspend it, and raised this
            raise ToolSuspended from None
        raise
    finally:
        waiting.timeout.stop()


async def _await_result(answer: Awaitable[object] | AsyncIterator[object], context: ToolContext) -> object:
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


async def _run_end_hooks(ctx: StepHookContext, start: StartCall, state: CallState, output: Output) -> ToolOutcome:
    """Run `on_call_end` on a result, a late one included; a hook that fails fails the call."""
    hooks, after = ctx.run.setup.hooks["on_call_end"], getattr(start.tool, "after", None)
    if not hooks and after is None:
        return ToolOutcome(state, output)
    hook_ctx = CallHookContext(ctx.run, start.call, start.tool.spec, start.arguments)
    hook_ctx.output, hook_ctx.state = output, "completed" if state == "completed" else "failed"
    is_unknown = state == "outcome_unknown"
    try:
        if after is not None:
            await ctx.run.call_hook(start.tool.spec.name, "after", after, hook_ctx)
        for plugin, method in hooks:
            await ctx.run.call_hook(plugin, "on_call_end", method, hook_ctx)
        if hook_ctx.state not in ("completed", "failed"):
            raise BadOutput(f"on_call_end set the state to {hook_ctx.state!r}; there are: completed, failed")
        return ToolOutcome("outcome_unknown" if is_unknown else hook_ctx.state, normalize_output(hook_ctx.output))
    except Exception as error:
        return ToolOutcome("failed", failure_output(error))
