"""What is said in Python → the bodies that say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from everturn import api
from everturn.core.asking import Gate
from everturn.core.canonical import JsonObject
from everturn.core.options import ClientTool, HistoryPolicy, LatePolicy
from everturn.core.policy import Rule
from everturn.errors import ConfigError


class Spoken(TypedDict, total=False):
    """What may go with a message; see `api.Said`."""

    files: Sequence[api.FileView]
    agent: str
    model: str
    params: Mapping[str, Any] | None
    tools: Sequence[str] | None
    history: HistoryPolicy | None
    late: LatePolicy | None
    max_steps: int | None
    clients: Sequence[ClientTool]
    busy: api.Busy


class Reply(TypedDict, total=False):
    """What may be said to a gate; see `Turn.answer`. Who says it is known by the token."""

    allow: Literal["once", "always"] | Rule | None
    deny: str | bool | None
    arguments: JsonObject | None
    result: str | None
    text: str | None
    everywhere: bool
    until: float
    others: bool
    failed: bool
    claim: str


def said(text: str, spoken: Spoken) -> dict[str, Any]:
    """The fields of a message."""
    unknown = set(spoken) - set(Spoken.__annotations__)
    if unknown:
        raise TypeError(f"a message has no {', '.join(sorted(unknown))}; it has {', '.join(Spoken.__annotations__)}")
    fields: dict[str, Any] = {**spoken, "text": text}
    fields["files"] = [file.file for file in spoken.get("files", ())]
    fields["clients"] = list(spoken.get("clients", ()))
    for name in ("params", "tools"):
        value = fields.get(name)
        if value is not None:
            fields[name] = dict(value) if name == "params" else list(value)
    return fields


def answered(gate: Gate, reply: Reply) -> api.Answered:
    """The answer to a gate, bound to what was shown of it."""
    unknown = set(reply) - set(Reply.__annotations__)
    if unknown:
        raise TypeError(f"answer() knows no {', '.join(sorted(unknown))}; it knows {', '.join(Reply.__annotations__)}")
    fields: dict[str, Any] = dict(reply)
    allow = fields.pop("allow", None)
    if isinstance(allow, Rule):
        return api.Answered(hash=gate.hash, allow="always", rule=allow, **fields)
    if allow not in (None, "once", "always"):
        raise ConfigError(f'allow={allow!r}: "once", "always", or one of gate.offers')
    return api.Answered(hash=gate.hash, allow=allow, **fields)
