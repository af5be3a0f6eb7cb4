"""The ledger of a client and the log of a session → which inputs were lost, doubled, or answered wrongly.

What is compared are the texts that clients sent, not the keys the system kept: a store that mixes up keys is found too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from everturn.core.events import Entry, StepFinished, TurnCompleted, TurnStarted
from everturn.core.parts import text_of
from everturn.errors import UnknownSession
from everturn.testing.chaos.ledger import Line
from everturn.testing.chaos.scenario import input_hash
from everturn.testing.chaos.sets import Input, Inputs, check_inputs, ended_in
from everturn.wiring import Runtime


async def judge(runtime: Runtime, session: str, acked: Iterable[Line]) -> tuple[Inputs, list[str]]:
    """What became of the inputs of a session, and which answers are not what they should be."""
    try:
        entries, tree = await runtime.store.events(session), await runtime.store.tree(session)
    except UnknownSession:
        return check_inputs(_sent(acked), (), ()), []
    wrong = [*_misanswered(session, entries)]
    for message in tree.messages.values():
        if message.role == "assistant" and message.text != tree.get(message.parent or "").text:
            wrong.append(f"message {message.id} of {session} is not what its log says")
    return check_inputs(_sent(acked), _begun(session, entries), ended_in(session, entries)), wrong


def _sent(acked: Iterable[Line]) -> Iterator[Input]:
    return ((line.session, line.hash, line.turn) for line in acked)


def _begun(session: str, entries: Iterable[Entry]) -> Iterator[Input]:
    for entry in entries:
        if isinstance(entry.event, TurnStarted) and entry.event.input is not None:
            yield session, input_hash(entry.event.input.text), entry.event.turn


def _misanswered(session: str, entries: Iterable[Entry]) -> Iterator[str]:
    asked: dict[str, str] = {}
    said: dict[str, str] = {}
    for entry in entries:
        match entry.event:
            case TurnStarted(turn=turn, input=message) if message is not None:
                asked[turn] = message.text
            case StepFinished(turn=turn, parts=parts):
                said[turn] = said.get(turn, "") + text_of(parts)
            case TurnCompleted(turn=turn):
                if said.get(turn) != asked.pop(turn, None):
                    yield f"turn {turn} of {session} answers {said.get(turn)!r}"
            case _:
                pass
    for turn in asked:
        yield f"turn {turn} of {session} was not completed"


def add(one: Inputs, other: Inputs) -> Inputs:
    """Two sessions, or more, as if they were one."""
    return Inputs(*(getattr(one, name) + getattr(other, name) for name in Inputs.__struct_fields__))
