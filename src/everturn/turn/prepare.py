"""Preparation of an answer: checks the input, reports late results, and adds the placeholder of the answer.

The history is read before the placeholder exists, or the model would read its own empty answer.
"""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical
from everturn.core.events import AnswerStarted, DeferredMessage
from everturn.core.messages import Message
from everturn.core.modality import explain_missing_input, modality_of
from everturn.core.parts import LATE_NOTICE_PREFIX, NoticePart, Output, ToolPart
from everturn.errors import TurnError
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import run_append_hooks


async def report_late_results(run: ActiveTurn) -> bool:
    """Report late results to the model, once each; True if there were any.

    They are sent in a separate notice. Messages that were sent before are never rewritten.
    """
    if run.state.options.late != "inject" or run.late == {}:
        return False
    calls: dict[str, ToolPart] = {}
    reported: set[str] = set()
    for message in (*await run.read_history(), *run.state.messages.values()):
        for part in message.parts:
            if type(part) is ToolPart:
                calls[part.call] = part
            elif type(part) is NoticePart:
                reported.add(part.kind)
    late_results = {call: part.late for call, part in calls.items() if part.late is not None}
    late_results.update({call: late.output for call, late in (run.late or {}).items() if call in calls})
    run.late = {}
    notices = tuple(
        _notice(calls[call], late) for call, late in late_results.items() if LATE_NOTICE_PREFIX + call not in reported
    )
    if notices:
        number = sum(message.role == "notice" for message in run.state.messages.values())
        notice = Message(f"{run.turn}.late.{number}", None, "notice", notices, by="everturn", turn=run.turn)
        await run.add_message(DeferredMessage(notice), lambda message: run_append_hooks(run, message))
    return bool(notices)


def _notice(part: ToolPart, late: Output) -> NoticePart:
    # As JSON, so that no result can pretend to be the end of its own notice.
    result = {"tool_call_id": part.call, "tool": part.name, "result": late.text}
    return NoticePart(LATE_NOTICE_PREFIX + part.call, encode_canonical({"late_tool_result": result}))


async def load_user_message(run: ActiveTurn) -> Message | None:
    """The user message that this turn answers: its input or, if it regenerates an answer, its parent message."""
    if run.state.input is not None:
        return run.state.messages[run.state.input]
    history = await run.read_history()
    return history[-1] if history and history[-1].role == "user" else None


async def check_input(run: ActiveTurn) -> None:
    """Check that a model that is not for chat has its input, before the answer is started.

    Raises:
        TurnError: the input is missing; kind `input`. It existed at admission, so it was removed since.
    """
    modality = modality_of(run.model)
    if modality != "chat":
        message = await load_user_message(run)
        if problem := explain_missing_input(
            modality, await run.read_history(), message.parts if message is not None else ()
        ):
            raise TurnError(problem, kind="input")


async def start_answer(run: ActiveTurn) -> None:
    """Add the placeholder of the answer, with the model's name."""
    await check_input(run)
    await run.read_history()
    if modality_of(run.model) == "chat":
        await report_late_results(run)
    placeholder = Message(run.setup.ids.new("msg"), None, "assistant", by=run.model.name, turn=run.turn)
    answer = await run_append_hooks(run, placeholder)

    run.stage([AnswerStarted(turn=run.turn, at=run.now(), message=replace(answer, parent=run.state.tip))])
