"""Elicitation of gates: makes a form for a gate that an MCP client can show to a person, and a reply from what they
filled in.

The form shows exactly what would run, with invisible characters written out. Everything that is not clearly a yes is a
no.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from everturn.chat.replies import GateReply
from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.gates import Gate
from everturn.permissions.explain import escape_invisible

BY = "mcp client"
LONGEST = 20_000  # characters of a form; a longer one is not shown, and the gate is denied
HEADINGS: Final = {
    "call": "{tool} needs approval",
    "egress": "{tool} needs approval: it sends its arguments outside",
    "loop": "{tool} needs approval to repeat",
    "manual": "Your turn: {tool}. Enter the result",
    "result": "Review the result of {tool} before the model reads it",
    "question": "{tool} asks you something",
    "form": "{tool} asks you something",
    "limit": "The step limit is reached: may the turn continue, up to the limit below?",
}
TOO_LONG = "the arguments of {tool} are too long to show here; allow the call with a rule, or answer the approval in another UI"
FOR_A_CLIENT = "{tool} runs in another kind of client, which is not connected here"
NOBODY = (
    "{tool} asks a person first, and this client cannot ask one; "
    'allow it by a rule in the file that --permissions names: [[permissions]] tool = "{tool}" action = "allow"'
)


class ElicitationForm(Struct, frozen=True):
    """The text for a person, and the schema of the reply."""

    text: str
    schema: JsonObject


def make_form(gate: Gate, may_keep: bool = True) -> ElicitationForm | str:
    """Make the form for a gate, or say why there is none; with `may_keep` the form offers to store a rule."""
    if gate.kind == "client":
        return FOR_A_CLIENT.format(tool=gate.tool)
    lines = [HEADINGS[gate.kind].format(tool=escape_invisible(gate.tool))]
    if gate.why:
        lines.append(f"because: {_escape(gate.why)}")
    if gate.kind in ("question", "form"):
        lines.append(_escape(gate.arguments))
    else:
        lines.append(f"arguments: {_escape(gate.arguments)}")
    if gate.preview:
        lines += ["preview:", _escape(gate.preview)]
    if gate.output is not None:
        lines += ["the model would read:", _escape(gate.output.text)]
    offers_rule = may_keep and bool(gate.offers)
    if offers_rule:
        lines.append(f"“always” stores this rule, for this session: {_escape(str(gate.offers[0]))}")
    text = "\n".join(lines)
    if len(text) > LONGEST:
        return TOO_LONG.format(tool=gate.tool)
    return ElicitationForm(text, _schema(gate, offers_rule))


def parse_form_reply(gate: Gate, action: str, content: JsonObject | None, may_keep: bool = True) -> GateReply:
    """Convert the reply of a person: `action` is accept, decline or cancel."""
    values = content or {}
    if action != "accept":
        return GateReply(deny="the person declined" if action == "decline" else "the person did not answer", by=BY)
    reason = str(values.get("reason") or "")[:2000]
    if gate.kind in ("question", "form") and gate.form:
        return GateReply(result=encode_canonical(values), by=BY)
    if gate.kind == "manual":
        return GateReply(result=str(values.get("result") or ""), by=BY)
    match values.get("decision"):
        case "once" | "send":
            return GateReply(allow="once", by=BY)
        case "always" if may_keep and gate.offers:
            return GateReply(allow=gate.offers[0], by=BY)
        case _:
            return GateReply(deny=reason or True, by=BY)


def make_denial(gate: Gate, why: str = "") -> GateReply:
    """Make the reply if no person can be asked; it says what to do about that."""
    return GateReply(deny=why or NOBODY.format(tool=gate.tool), by=BY)


def _schema(gate: Gate, keeps: bool) -> JsonObject:
    if gate.kind in ("question", "form") and gate.form:
        return parse_object(gate.form) or {"type": "object", "properties": {}}
    if gate.kind == "manual":
        result = {"type": "string", "title": "Result", "description": "the result, as the model will read it"}
        return {"type": "object", "properties": {"result": result}, "required": ["result"]}
    choices = ["send", "withhold"] if gate.kind == "result" else ["once", *(["always"] if keeps else []), "deny"]
    properties: dict[str, Any] = {
        "decision": {"type": "string", "enum": choices, "title": "Decision"},
        "reason": {"type": "string", "title": "Reason", "description": "if not: a reason that the model reads"},
    }
    return {"type": "object", "properties": properties, "required": ["decision"]}


def _escape(text: str) -> str:
    return "\n".join(escape_invisible(line, len(line)) for line in text.split("\n"))


class ResumeTicket(Struct, frozen=True):
    """Where a call waits, for the client to send back with the answers; it stays valid when the process ends.

    `asked` are the gates whose forms the client received, with their hashes. It is not a secret, and proves nothing:
    session ids cannot be guessed, and every answer is checked at admission.
    """

    session: str
    turn: str
    cursor: str = ""
    asked: dict[str, str] = {}


def write_ticket(ticket: ResumeTicket) -> str:
    """Encode a ticket for the client."""
    return msgspec.json.encode(ticket).decode()


def read_ticket(text: str) -> ResumeTicket | None:
    """Decode a ticket from the client; None if it is invalid."""
    try:
        return msgspec.json.decode(text, type=ResumeTicket)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
