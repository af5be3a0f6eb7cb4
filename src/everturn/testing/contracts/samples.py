"""The commands and events the suites are made of: one session `s`, one turn `t`, one call somebody is asked about."""

from __future__ import annotations

from everturn.core.asking import Gate, GateKind, Grant, Verdict
from everturn.core.commands import Answer, Late, Send, Take
from everturn.core.events import (
    AnswerOpened,
    CallJudged,
    CallPaused,
    CallStarted,
    Event,
    GateAnswered,
    GateOpened,
    StepFinished,
    StepStarted,
    TurnCompleted,
    TurnEnding,
    TurnParked,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, TextPart, ToolPart, Usage
from everturn.core.policy import Rule

DONE = Verdict(True, result='"done"', claim="tab")
ALLOW, DENY = Verdict(True, by="ada"), Verdict(False, "no", by="ada")
NOON = 1_700_000_000.0
PLAIN, NOTHING = TurnOptions(), Usage()
RULE = Rule("mail", "allow", {"to": "ada*"})


def send(key: str = "k", session: str = "s", turn: str = "t", text: str = "hello", at: float = NOON) -> Send:
    """A message to the end of the selected branch."""
    return Send(key=key, session=session, at=at, turn=turn, message=f"{turn}.in", parts=(TextPart(text),), at_leaf=True)


def started(
    turn: str = "t",
    parent: str | None = None,
    text: str = "hello",
    command: str = "k",
    options: TurnOptions = PLAIN,
) -> list[Event]:
    """A turn with a message of its own, and a placeholder for the answer."""
    message = Message(f"{turn}.in", parent, "user", (TextPart(text),), turn=turn)
    answer = Message(f"{turn}.out", f"{turn}.in", "assistant", turn=turn)
    return [
        TurnStarted(turn=turn, at=NOON, parent=parent, input=message, command=command, options=options),
        AnswerOpened(turn=turn, at=NOON, message=answer),
    ]


def called(turn: str = "t", usage: Usage = NOTHING, at: float = NOON, step: int = 1) -> list[Event]:
    """A step that makes a call."""
    part = ToolPart(call_of(turn, step), "mail", "{}")
    said = (TextPart("One moment."), part)
    return [
        StepStarted(turn=turn, at=at, step=step),
        StepFinished(turn=turn, at=at, step=step, parts=said, finish="tool_calls", usage=usage),
    ]


def call_of(turn: str, step: int = 1) -> str:
    """The name of the call that a step makes."""
    return f"{turn}.call" if step == 1 else f"{turn}.call{step}"


def asked(turn: str = "t", expires: float = 0.0, kind: GateKind = "call") -> list[Event]:
    """Its first step: a call, a gate before it, and nothing to do until that is answered."""
    gate = Gate(f"{turn}.gate", turn, f"{turn}.call", "mail", "{}", f"{turn}.hash", expires, kind=kind, offers=(RULE,))
    return [
        *called(turn),
        GateOpened(turn=turn, at=NOON, gate=gate),
        TurnParked(turn=turn, at=NOON, step=1),
    ]


def ran(turn: str = "t", step: int = 1, at: float = NOON) -> list[Event]:
    """The call is allowed, and starts."""
    call, hash = call_of(turn, step), f"{turn}.hash"
    return [
        CallJudged(turn=turn, at=at, call=call, tool="mail", identity="i", hash=hash, allowed=True, why=""),
        CallStarted(
            turn=turn, at=at, call=call, tool="mail", arguments="{}", hash=hash, effects="once", key=f"{call}.key"
        ),
    ]


def offered(turn: str = "t", expires: float = 0.0, once: bool = True) -> list[Event]:
    """Its first step: a call that runs, is for a client to do, and waits for one."""
    call, gate = call_of(turn), f"{turn}.gate"
    asks = Gate(gate, turn, call, "mail", "{}", f"{turn}.hash", expires, kind="client", once=once)
    return [
        *called(turn),
        *ran(turn),
        GateOpened(turn=turn, at=NOON, gate=asks),
        CallPaused(turn=turn, at=NOON, call=call, gates=(gate,)),
        TurnParked(turn=turn, at=NOON, step=1),
    ]


def take(
    key: str = "c", by: str = "tab", lease: float = 60.0, at: float = NOON, hash: str = "t.hash", gate: str = "t.gate"
) -> Take:
    """A client claims that call."""
    return Take(key=key, session="s", at=at, gate=gate, hash=hash, by=by, lease=lease)


def granted(session: str = "s", turn: str = "t", at: float = NOON, expires: float = 0.0, command: str = "a") -> Event:
    """The gate is answered, and the answer remembered: for a session, or ("") for all of the tenant's."""
    grant = Grant(f"{turn}.gate", RULE, session, "ada", at, expires)
    verdict = Verdict(True, by="ada", grant=RULE, everywhere=not session, until=expires)
    return GateAnswered(
        turn=turn, at=at, gate=grant.id, call=f"{turn}.call", verdict=verdict, command=command, grant=grant
    )


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
