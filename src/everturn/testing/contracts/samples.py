"""The commands and events the suites are made of: one session `s`, one turn `t`, one call somebody is asked about."""

from __future__ import annotations

from everturn.core.commands import Answer, Late, Send
from everturn.core.events import (
    AnswerOpened,
    Event,
    Gate,
    GateOpened,
    StepFinished,
    StepStarted,
    TurnCompleted,
    TurnEnding,
    TurnParked,
    TurnStarted,
    Verdict,
)
from everturn.core.messages import Message
from everturn.core.parts import Output, TextPart, ToolPart

ALLOW, DENY = Verdict(True, by="ada"), Verdict(False, "no", by="ada")
NOON = 1_700_000_000.0


def send(key: str = "k", session: str = "s", turn: str = "t", text: str = "hello", at: float = NOON) -> Send:
    """A message to the end of the selected branch."""
    return Send(key=key, session=session, at=at, turn=turn, message=f"{turn}.in", parts=(TextPart(text),), at_leaf=True)


def started(turn: str = "t", parent: str | None = None, text: str = "hello", command: str = "k") -> list[Event]:
    """A turn with a message of its own, and a placeholder for the answer."""
    message = Message(f"{turn}.in", parent, "user", (TextPart(text),), turn=turn)
    answer = Message(f"{turn}.out", f"{turn}.in", "assistant", turn=turn)
    return [
        TurnStarted(turn=turn, at=NOON, parent=parent, input=message, command=command),
        AnswerOpened(turn=turn, at=NOON, message=answer),
    ]


def asked(turn: str = "t", expires: float = 0.0) -> list[Event]:
    """Its first step: a call, a gate before it, and nothing to do until that is answered."""
    call = ToolPart(f"{turn}.call", "mail", "{}")
    gate = Gate(f"{turn}.gate", turn, call.call, "mail", "{}", f"{turn}.hash", expires)
    return [
        StepStarted(turn=turn, at=NOON, step=1),
        StepFinished(turn=turn, at=NOON, step=1, parts=(TextPart("One moment."), call), finish="tool_calls"),
        GateOpened(turn=turn, at=NOON, gate=gate),
        TurnParked(turn=turn, at=NOON, step=1),
    ]


def over(turn: str = "t", command: str = "") -> list[Event]:
    """The end of a turn."""
    return [TurnEnding(turn=turn, at=NOON, outcome="completed", command=command), TurnCompleted(turn=turn, at=NOON)]


def answer(
    key: str = "a", verdict: Verdict = ALLOW, hash: str = "t.hash", at: float = NOON, gate: str = "t.gate"
) -> Answer:
    """An answer to the gate of that call."""
    return Answer(key=key, session="s", at=at, gate=gate, hash=hash, verdict=verdict)


def late(key: str) -> Late:
    """What the call came to after all."""
    return Late(key=key, session="s", turn="t", call="t.call", output=Output("late"))
