"""Request bodies: builds the bodies for messages and gate answers from keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from everturn import api
from everturn.core.canonical_json import JsonObject
from everturn.core.gates import Gate
from everturn.core.options import ClientTool, LatePolicy, PermissionMode, StepLimitPolicy, ToolHistory
from everturn.core.parts import ContextPart
from everturn.core.rate_limits import Priority
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError


class MessageOptions(TypedDict, total=False):
    """The options of a message; see `api.MessageRequest`."""

    files: Sequence[api.FileView]
    contexts: Sequence[ContextPart]
    agent: str
    model: str
    params: Mapping[str, Any] | None
    tools: Sequence[str] | None
    tool_history: ToolHistory | None
    context: str | None
    late: LatePolicy | None
    max_steps: int | None
    mode: PermissionMode
    at_step_limit: StepLimitPolicy
    clients: Sequence[ClientTool]
    busy: api.Busy
    priority: Priority | None
    at: float


class RemoteGateReply(TypedDict, total=False):
    """The keyword arguments of an answer; see `Turn.answer`. The token identifies the person."""

    allow: Literal["once", "always"] | Rule | None
    deny: str | bool | None
    arguments: JsonObject | None
    result: str | None
    text: str | None
    everywhere: bool
    within: api.GrantReach
    until: float
    others: bool
    stop: bool
    failed: bool
    claim: str


def message_fields(text: str, options: MessageOptions) -> dict[str, Any]:
    """The fields of a message."""
    unknown = set(options) - set(MessageOptions.__annotations__)
    if unknown:
        raise TypeError(
            f"a message has no {', '.join(sorted(unknown))}; it has {', '.join(MessageOptions.__annotations__)}"
        )
    fields: dict[str, Any] = {**options, "text": text}
    fields["files"] = [file.file for file in options.get("files", ())]
    fields["contexts"] = [
        api.AttachedContext(
            kind=part.kind, text=part.text, title=part.title, source=part.source, untrusted=part.untrusted
        )
        for part in options.get("contexts", ())
    ]
    fields["clients"] = list(options.get("clients", ()))
    for name in ("params", "tools"):
        value = fields.get(name)
        if value is not None:
            fields[name] = dict(value) if name == "params" else list(value)
    return fields


def answer_body(gate: Gate, reply: RemoteGateReply) -> api.AnswerGate:
    """The body of an answer, with the hash of the gate that was shown."""
    unknown = set(reply) - set(RemoteGateReply.__annotations__)
    if unknown:
        raise TypeError(
            f"answer() does not accept {', '.join(sorted(unknown))}; it knows "
            f"{', '.join(RemoteGateReply.__annotations__)}"
        )
    fields: dict[str, Any] = dict(reply)
    allow = fields.pop("allow", None)
    if isinstance(allow, Rule):
        return api.AnswerGate(hash=gate.hash, allow="always", rule=allow, **fields)
    if allow not in (None, "once", "always"):
        raise ConfigError(f'allow={allow!r}: "once", "always", or one of gate.offers')
    return api.AnswerGate(hash=gate.hash, allow=allow, **fields)
