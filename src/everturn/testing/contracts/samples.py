"""Sample commands and events of the store suites: one session `s`, one turn `t`, one call with a gate."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.commands import ClaimCall, ImportMessages, LateResult, ResolveGate, Send
from everturn.core.events import (
    AnswerStarted,
    CallStarted,
    CallSuspended,
    Event,
    GateOpened,
    GateResolved,
    MessagesImported,
    PermissionDecided,
    StepFinished,
    StepStarted,
    TurnCompleted,
    TurnFinishing,
    TurnStarted,
    TurnSuspended,
)
from everturn.core.gates import Gate, GateKind, GateResolution, Grant
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, StepPart, TextPart, ToolPart, Usage
from everturn.core.rules.policy import Rule

DONE = GateResolution(True, result='"done"', claim="tab")
ALLOW, DENY = GateResolution(True, by="ada"), GateResolution(False, "no", by="ada")
NOON = 1_700_000_000.0
PLAIN, NOTHING = TurnOptions(), Usage()
RULE = Rule("mail", "allow", {"to": "ada*"})


def send_message(key: str = "k", session: str = "s", turn: str = "t", text: str = "hello", at: float = NOON) -> Send:
    """A message to the end of the selected branch."""
    return Send(key=key, session=session, at=at, turn=turn, message=f"{turn}.in", parts=(TextPart(text),), at_leaf=True)


def import_messages(key: str = "i", session: str = "s", parent: str | None = None, at: float = NOON) -> ImportMessages:
    """A conversation of elsewhere: a question, and an answer with a result."""
    output = Output("on its way", origin="import", untrusted=True)
    parts = (ToolPart(f"{key}-1-0", "look", "{}", "completed", output), TextPart("It comes."), StepPart(1, "stop"))
    messages = (
        Message(f"{key}-0", None, "user", (TextPart("Where is it?"),), imported=True),
        Message(f"{key}-1", f"{key}-0", "assistant", parts, by="import", imported=True),
    )
    at_leaf = parent is None
    return ImportMessages(key=key, session=session, at=at, messages=messages, parent=parent, at_leaf=at_leaf, by="ada")


def messages_imported(command: ImportMessages, parent: str | None = None, title: str = "") -> MessagesImported:
    """The event that carries out an import."""
    first, *rest = command.messages
    messages = (replace(first, parent=parent), *rest)
    return MessagesImported(at=NOON, messages=messages, title=title, by=command.by, command=command.key)


def turn_started_events(
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
        AnswerStarted(turn=turn, at=NOON, message=answer),
    ]


def call_requested_events(turn: str = "t", usage: Usage = NOTHING, at: float = NOON, step: int = 1) -> list[Event]:
    """A step that makes a call."""
    part = ToolPart(call_id_of_step(turn, step), "mail", "{}")
    parts = (TextPart("One moment."), part)
    return [
        StepStarted(turn=turn, at=at, step=step),
        StepFinished(turn=turn, at=at, step=step, parts=parts, finish="tool_calls", usage=usage),
    ]


def call_id_of_step(turn: str, step: int = 1) -> str:
    """The id of the call that a step makes."""
    return f"{turn}.call" if step == 1 else f"{turn}.call{step}"


def gate_opened_events(turn: str = "t", expires: float = 0.0, kind: GateKind = "call") -> list[Event]:
    """The first step: a call, a gate for it, and nothing to do until that is answered."""
    gate = Gate(f"{turn}.gate", turn, f"{turn}.call", "mail", "{}", f"{turn}.hash", expires, kind=kind, offers=(RULE,))
    return [
        *call_requested_events(turn),
        GateOpened(turn=turn, at=NOON, gate=gate),
        TurnSuspended(turn=turn, at=NOON, step=1),
    ]


def call_started_events(turn: str = "t", step: int = 1, at: float = NOON) -> list[Event]:
    """The call is allowed, and starts."""
    call, hash = call_id_of_step(turn, step), f"{turn}.hash"
    return [
        PermissionDecided(turn=turn, at=at, call=call, tool="mail", identity="i", hash=hash, allowed=True, why=""),
        CallStarted(turn=turn, at=at, call=call, tool="mail", arguments="{}", hash=hash, key=f"{call}.key"),
    ]


def client_call_events(turn: str = "t", expires: float = 0.0, once: bool = True) -> list[Event]:
    """The first step: a call that runs, is for a client, and waits for one."""
    call, gate = call_id_of_step(turn), f"{turn}.gate"
    asks = Gate(gate, turn, call, "mail", "{}", f"{turn}.hash", expires, kind="client", once=once)
    return [
        *call_requested_events(turn),
        *call_started_events(turn),
        GateOpened(turn=turn, at=NOON, gate=asks),
        CallSuspended(turn=turn, at=NOON, call=call, gates=(gate,)),
        TurnSuspended(turn=turn, at=NOON, step=1),
    ]


def claim_call(
    key: str = "c", by: str = "tab", lease: float = 60.0, at: float = NOON, hash: str = "t.hash", gate: str = "t.gate"
) -> ClaimCall:
    """A client claims that call."""
    return ClaimCall(key=key, session="s", at=at, gate=gate, hash=hash, by=by, lease=lease)


def gate_resolved_with_grant(
    session: str = "s", turn: str = "t", at: float = NOON, expires: float = 0.0, command: str = "a"
) -> Event:
    """The gate is answered, with a grant: for a session, or ("") for the whole tenant."""
    grant = Grant(f"{turn}.gate", RULE, session, "ada", at, expires)
    resolution = GateResolution(True, by="ada", grant=RULE, everywhere=not session, until=expires)
    return GateResolved(
        turn=turn, at=at, gate=grant.id, call=f"{turn}.call", resolution=resolution, command=command, grant=grant
    )


def turn_ended_events(turn: str = "t", command: str = "") -> list[Event]:
    """The end of a turn."""
    return [TurnFinishing(turn=turn, at=NOON, outcome="completed", command=command), TurnCompleted(turn=turn, at=NOON)]


def answer_gate(
    key: str = "a", resolution: GateResolution = ALLOW, hash: str = "t.hash", at: float = NOON, gate: str = "t.gate"
) -> ResolveGate:
    """An answer to the gate of that call."""
    return ResolveGate(key=key, session="s", at=at, gate=gate, hash=hash, resolution=resolution)


def late_result_command(key: str) -> LateResult:
    """The late result of the call."""
    return LateResult(key=key, session="s", turn="t", call="t.call", output=Output("late"))
