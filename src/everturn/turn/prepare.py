"""An admitted input → a turn that can ask the model: the history it starts from, and a placeholder to answer into.

The history is read before the placeholder exists, or the model would read its own empty answer.
"""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.canonical import canonical
from everturn.core.events import AnswerOpened, Append
from everturn.core.messages import Message
from everturn.core.modality import missing, modality_of
from everturn.core.parts import NoticePart, Output, ToolPart
from everturn.errors import TurnError
from everturn.turn.contexts import change_append
from everturn.turn.run import Run

LATE = "late_result:"


async def offer_late(run: Run) -> bool:
    """Tell the model of results that came after their turn was over, once each; True when there were any.

    They are told in a notice of their own. What was sent before is never rewritten.
    """
    if run.state.options.late != "inject" or run.late == {}:
        return False
    calls: dict[str, ToolPart] = {}
    told: set[str] = set()
    for message in (*await run.read_history(), *run.state.messages.values()):
        for part in message.parts:
            if type(part) is ToolPart:
                calls[part.call] = part
            elif type(part) is NoticePart:
                told.add(part.kind)
    found = {call: part.late for call, part in calls.items() if part.late is not None}
    found.update({call: late.output for call, late in (run.late or {}).items() if call in calls})
    run.late = {}
    news = tuple(_notice(calls[call], late) for call, late in found.items() if LATE + call not in told)
    if news:
        number = sum(message.role == "notice" for message in run.state.messages.values())
        notice = Message(f"{run.turn}.late.{number}", None, "notice", news, by="everturn", turn=run.turn)
        await run.join(Append(notice), lambda made: change_append(run, made))
    return bool(news)


def _notice(part: ToolPart, late: Output) -> NoticePart:
    # As JSON, so that no result can pretend to be the end of its own notice.
    told = {"tool_call_id": part.call, "tool": part.name, "result": late.text}
    return NoticePart(LATE + part.call, canonical({"late_tool_result": told}))


async def said_last(run: Run) -> Message | None:
    """What the person said, and this turn answers: the input or, when it answers anew, the message above."""
    if run.state.input is not None:
        return run.state.messages[run.state.input]
    history = await run.read_history()
    return history[-1] if history and history[-1].role == "user" else None


async def check_input(run: Run) -> None:
    """See to it that a model that is not for chat has what it works on, before anything is made.

    Raises:
        TurnError: it has not; kind `input`. At the door it was there, so somebody has taken it away since.
    """
    modality = modality_of(run.model)
    if modality != "chat":
        said = await said_last(run)
        if lack := missing(modality, await run.read_history(), said.parts if said is not None else ()):
            raise TurnError(lack, kind="input")


async def open_answer(run: Run) -> None:
    """Make the placeholder, with the model's badge on it."""
    await check_input(run)
    await run.read_history()
    if modality_of(run.model) == "chat":
        await offer_late(run)
    blank = Message(run.setup.ids.new("msg"), None, "assistant", by=run.model.name, turn=run.turn)
    answer = await change_append(run, blank)

    run.stage([AnswerOpened(turn=run.turn, at=run.now(), message=replace(answer, parent=run.state.tip))])
