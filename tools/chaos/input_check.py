"""Check of client inputs: compares the ledger of a client with the logs: which inputs were lost, doubled, or answered
wrongly.

It compares the texts that clients sent, not the keys of the system: a store that mixes up keys is detected too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everturn.app import App
from everturn.core.events import Entry, StepFinished, TurnCompleted, TurnStarted
from everturn.core.parts import join_text
from everturn.errors import UnknownSession
from tools.chaos.ledger import LedgerLine
from tools.chaos.scenario import input_hash
from tools.chaos.sets import Input, InputsReport, check_inputs, ended_in


async def check_session_inputs(app: App, session: str, acked: Iterable[LedgerLine]) -> tuple[InputsReport, list[str]]:
    """The outcome of the inputs of a session, and the wrong answers."""
    try:
        entries, tree = await app.store.events(session), await app.store.tree(session)
    except UnknownSession:
        return check_inputs(_sent(acked), (), ()), []
    wrong = [*_misanswered(session, entries)]
    for message in tree.messages.values():
        if message.role == "assistant" and message.text != tree.get(message.parent or "").text:
            wrong.append(f"message {message.id} of {session} is not what its log says")
    return check_inputs(_sent(acked), _begun(session, entries), ended_in(session, entries)), wrong


def _sent(acked: Iterable[LedgerLine]) -> Iterator[Input]:
    return ((line.session, line.hash, line.turn) for line in acked)


def _begun(session: str, entries: Iterable[Entry]) -> Iterator[Input]:
    for entry in entries:
        if isinstance(entry.event, TurnStarted) and entry.event.input is not None:
            yield session, input_hash(entry.event.input.text), entry.event.turn


def _misanswered(session: str, entries: Iterable[Entry]) -> Iterator[str]:
    inputs: dict[str, str] = {}
    answers: dict[str, str] = {}
    for entry in entries:
        match entry.event:
            case TurnStarted(turn=turn, input=message) if message is not None:
                inputs[turn] = message.text
            case StepFinished(turn=turn, parts=parts):
                answers[turn] = answers.get(turn, "") + join_text(parts)
            case TurnCompleted(turn=turn):
                if answers.get(turn) != inputs.pop(turn, None):
                    yield f"turn {turn} of {session} answers {answers.get(turn)!r}"
            case _:
                pass
    for turn in inputs:
        yield f"turn {turn} of {session} was not completed"


def merge_inputs(first: InputsReport, other: InputsReport) -> InputsReport:
    """The inputs of two sessions, or more, together."""
    return InputsReport(*(getattr(first, name) + getattr(other, name) for name in InputsReport.__struct_fields__))
