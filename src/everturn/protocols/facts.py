"""What people are told of a gate, a result and a message, as plain values: the same in every protocol that can carry them."""

from __future__ import annotations

from typing import Any

import msgspec

from everturn.core.asking import Gate, Verdict
from everturn.core.events import FilesChanged
from everturn.core.messages import Message
from everturn.core.parts import FilePart, NoticePart, Output, Usage
from everturn.protocols.frames import given, value_of


def gate_facts(gate: Gate, session: str) -> dict[str, Any]:
    """All that is asked; `hash` is to be echoed with an answer over the native API."""
    is_call = gate.kind not in ("result", "question")
    return given(
        gate=gate.id,
        session=gate.session or session,
        call=gate.call,
        tool=gate.tool,
        kind=gate.kind,
        hash=gate.hash,
        why=gate.why,
        arguments=value_of(gate.arguments) if is_call else gate.arguments,
        preview=gate.preview,
        expires=gate.expires or None,
        form=value_of(gate.form) if gate.form else None,
        offers=msgspec.to_builtins(gate.offers) if gate.offers else None,
    )


def verdict_facts(verdict: Verdict) -> dict[str, Any]:
    """What was answered."""
    edited = value_of(verdict.arguments) if verdict.arguments else None
    return given(allowed=verdict.allowed, reason=verdict.reason, by=verdict.by, arguments=edited)


def output_facts(output: Output, session: str) -> dict[str, Any]:
    """What there is to a result beside its text."""
    files = [
        {"url": url_of(file, session), "mediaType": file.media_type, "name": file.name} for file in output.attachments
    ]
    more = output.metadata or None
    return given(title=output.title, code=output.code, blob=output.blob, metadata=more, files=files or None)


def message_facts(message: Message) -> dict[str, Any]:
    """A message that nobody wrote who takes part in the conversation."""
    notices = [part.text for part in message.parts if type(part) is NoticePart]
    text = "\n\n".join(text for text in (message.text, *notices) if text)
    return {"message": message.id, "role": message.role, "by": message.by, "text": text}


def files_facts(event: FilesChanged) -> dict[str, Any]:
    """What became of files."""
    changes = [{"path": change.path, "kind": change.kind} for change in event.changes]
    return {"step": event.step, "root": event.root, "before": event.before, "after": event.after, "changes": changes}


def usage_facts(usage: Usage) -> dict[str, Any]:
    """What was used."""
    return given(input=usage.input, output=usage.output, cached=usage.cached or None, cost=usage.cost)


def url_of(file: FilePart, session: str) -> str:
    """Where a file is to be had, by whoever may read the session."""
    return f"/api/sessions/{session}/blobs/{file.blob}"
