"""Facts about gates, results, messages and files as plain JSON values, the same in every protocol that can carry them."""

from __future__ import annotations

from typing import Any

import msgspec

from everturn.core.events import FilesChanged
from everturn.core.gates import Gate, GateResolution
from everturn.core.messages import Message
from everturn.core.parts import FilePart, NoticePart, Output, Usage
from everturn.protocols.sse_frames import parse_arguments, without_empty


def gate_facts(gate: Gate, session: str) -> dict[str, Any]:
    """A gate; `hash` must be sent with an answer through our own API."""
    is_call = gate.kind not in ("result", "question")
    return without_empty(
        gate=gate.id,
        session=gate.session or session,
        call=gate.call,
        tool=gate.tool,
        kind=gate.kind,
        hash=gate.hash,
        why=gate.why,
        arguments=parse_arguments(gate.arguments) if is_call else gate.arguments,
        preview=gate.preview,
        expires=gate.expires or None,
        form=parse_arguments(gate.form) if gate.form else None,
        offers=msgspec.to_builtins(gate.offers) if gate.offers else None,
    )


def resolution_facts(resolution: GateResolution) -> dict[str, Any]:
    """The resolution of a gate."""
    edited = parse_arguments(resolution.arguments) if resolution.arguments else None
    return without_empty(allowed=resolution.allowed, reason=resolution.reason, by=resolution.by, arguments=edited)


def output_facts(output: Output, session: str) -> dict[str, Any]:
    """The fields of a result besides its text."""
    files = [
        {"url": file_url(file, session), "mediaType": file.media_type, "name": file.name} for file in output.attachments
    ]
    metadata = output.metadata or None
    return without_empty(title=output.title, code=output.code, blob=output.blob, metadata=metadata, files=files or None)


def message_facts(message: Message) -> dict[str, Any]:
    """A message that was added to the turn, and is neither the person's nor the model's."""
    notices = [part.text for part in message.parts if type(part) is NoticePart]
    text = "\n\n".join(text for text in (message.text, *notices) if text)
    return {"message": message.id, "role": message.role, "by": message.by, "text": text}


def files_facts(event: FilesChanged) -> dict[str, Any]:
    """Changes of files."""
    changes = [{"path": change.path, "kind": change.kind} for change in event.changes]
    return {"step": event.step, "root": event.root, "before": event.before, "after": event.after, "changes": changes}


def usage_facts(usage: Usage) -> dict[str, Any]:
    """Token usage and cost."""
    return without_empty(input=usage.input, output=usage.output, cached=usage.cached or None, cost=usage.cost)


def file_url(file: FilePart, session: str) -> str:
    """The URL of a file, for callers who may read the session."""
    return f"/api/sessions/{session}/blobs/{file.blob}"
