"""A gate → a form that a client can put to a person, and what they filled in → an answer.

The form says exactly what would run, with everything written out that cannot be seen. What is not plainly a yes is a no.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from everturn.chat.answering import Reply
from everturn.core.asking import Gate
from everturn.core.canonical import JsonObject, canonical, parse_object
from everturn.permissions.explaining import visible

BY = "mcp client"
LONGEST = 20_000  # characters of what would run; a form that is longer is no form, and nobody is asked
ASKS: Final = {
    "call": "{tool} asks to run",
    "egress": "{tool} asks to run, and what it is given leaves the house",
    "loop": "{tool} asks to run once more",
    "hand": "{tool} is for you to do; say what came of it",
    "result": "{tool} has run, and the model waits to read what came of it",
    "question": "{tool} asks you something",
    "form": "{tool} asks you something",
}
TOO_LONG = (
    "what {tool} would run with is too long to be put to a person here; allow it by a rule, or answer it elsewhere"
)
FOR_A_CLIENT = "{tool} is run by a client of another kind, and there is none here"
NOBODY = (
    "{tool} asks a person first, and this client cannot ask one; "
    'allow it by a rule in the file that --permissions names: [[permissions]] tool = "{tool}" action = "allow"'
)


class Form(Struct, frozen=True):
    """What a person is shown, and the schema of what they fill in."""

    text: str
    schema: JsonObject


def form_of(gate: Gate, may_keep: bool = True) -> Form | str:
    """The form for a gate, or why there can be none; with `may_keep` an answer may be remembered."""
    if gate.kind == "client":
        return FOR_A_CLIENT.format(tool=gate.tool)
    lines = [ASKS[gate.kind].format(tool=visible(gate.tool))]
    if gate.why:
        lines.append(f"because: {_shown(gate.why)}")
    if gate.kind in ("question", "form"):
        lines.append(_shown(gate.arguments))
    else:
        lines.append(f"with exactly these arguments: {_shown(gate.arguments)}")
    if gate.preview:
        lines += ["it would do this:", _shown(gate.preview)]
    if gate.output is not None:
        lines += ["the model would read:", _shown(gate.output.text)]
    keeps = may_keep and bool(gate.offers)
    if keeps:
        lines.append(f"always would store this rule, for this session: {_shown(str(gate.offers[0]))}")
    text = "\n".join(lines)
    if len(text) > LONGEST:
        return TOO_LONG.format(tool=gate.tool)
    return Form(text, _schema(gate, keeps))


def reply_of(gate: Gate, action: str, content: JsonObject | None, may_keep: bool = True) -> Reply:
    """What a person has answered: `action` is accept, decline or cancel."""
    given = content or {}
    if action != "accept":
        return Reply(deny="the person declined" if action == "decline" else "the person did not answer", by=BY)
    reason = str(given.get("reason") or "")[:2000]
    if gate.kind in ("question", "form") and gate.form:
        return Reply(result=canonical(given), by=BY)
    if gate.kind == "hand":
        return Reply(result=str(given.get("result") or ""), by=BY)
    match given.get("decision"):
        case "once" | "send":
            return Reply(allow="once", by=BY)
        case "always" if may_keep and gate.offers:
            return Reply(allow=gate.offers[0], by=BY)
        case _:
            return Reply(deny=reason or True, by=BY)


def denial(gate: Gate, why: str = "") -> Reply:
    """The answer where nobody can be asked, in words that say what to do about it."""
    return Reply(deny=why or NOBODY.format(tool=gate.tool), by=BY)


def _schema(gate: Gate, keeps: bool) -> JsonObject:
    if gate.kind in ("question", "form") and gate.form:
        return parse_object(gate.form) or {"type": "object", "properties": {}}
    if gate.kind == "hand":
        result = {"type": "string", "title": "Result", "description": "what came of it"}
        return {"type": "object", "properties": {"result": result}, "required": ["result"]}
    words = ["send", "withhold"] if gate.kind == "result" else ["once", *(["always"] if keeps else []), "deny"]
    properties: dict[str, Any] = {
        "decision": {"type": "string", "enum": words, "title": "Decision"},
        "reason": {"type": "string", "title": "Reason", "description": "if not: a reason that the model reads"},
    }
    return {"type": "object", "properties": properties, "required": ["decision"]}


def _shown(text: str) -> str:
    return "\n".join(visible(line, len(line)) for line in text.split("\n"))


class Ticket(Struct, frozen=True):
    """Where a call waits, for the client to bring back with the answers: it outlives every process.

    `asked` are the gates whose forms were given to it, with what each was opened for. It is no secret, and proves
    nothing: names of sessions cannot be guessed, and an answer is checked at the door like any other.
    """

    session: str
    turn: str
    cursor: str = ""
    asked: dict[str, str] = {}


def write_ticket(ticket: Ticket) -> str:
    """As the client keeps it."""
    return msgspec.json.encode(ticket).decode()


def read_ticket(text: str) -> Ticket | None:
    """As it comes back, if it is one."""
    try:
        return msgspec.json.decode(text, type=Ticket)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
