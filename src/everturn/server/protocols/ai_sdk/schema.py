"""AI SDK request schema: the fields that are read: ids, the person's message, approvals and tool results."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from everturn import api
from everturn.core.options import ClientTool

Id = Annotated[str, Meta(min_length=1, max_length=150)]


class UIApproval(Struct, frozen=True):
    """An approval as a client shows it."""

    id: str = ""
    approved: bool | None = None
    reason: str | None = None


class UIPart(Struct, frozen=True):
    """The fields of a part that are read; there are more kinds and fields."""

    type: str = ""
    text: str = ""
    url: str = ""
    mediaType: str = ""
    filename: str | None = None
    toolCallId: str = ""
    state: str = ""
    output: Any = None
    errorText: str | None = None
    approval: UIApproval | None = None


class UIMessage(Struct, frozen=True):
    """The fields of a message that are read."""

    id: str = ""
    role: str = ""
    parts: list[UIPart] = []


class UIChat(Struct, frozen=True):
    """The body that `useChat` sends. Only the last message is read, and the number of user messages when one is edited;
    `agent`, `model` and `clients` may be added to the body by the transport."""

    id: Id
    messages: list[UIMessage] = []
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    messageId: str | None = None
    agent: api.Name = ""
    model: api.Name = ""
    clients: Annotated[list[ClientTool], Meta(max_length=50)] = []
    busy: Literal["queue", "reject", "fork"] = "queue"  # no "steer": a steering message has no stream of its own


class UIAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to a gate outside of the stream: approved or denied or, of a client tool, its output."""

    approved: bool | None = None
    reason: Annotated[str, Meta(max_length=10_000)] = ""
    output: Any | UnsetType = UNSET
    errorText: Annotated[str, Meta(max_length=100_000)] | None = None
