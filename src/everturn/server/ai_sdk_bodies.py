"""What the AI SDK sends, as far as it is read: ids, what the person says, and what they decided."""

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
    """What is read of a part; there are more kinds and fields."""

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
    """What is read of a message."""

    id: str = ""
    role: str = ""
    parts: list[UIPart] = []


class UIChat(Struct, frozen=True):
    """What `useChat` sends. The last message is read, and how many there are of the person's when one of them is edited;
    `agent`, `model` and `clients` may be put into the body of the transport."""

    id: Id
    messages: list[UIMessage] = []
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    messageId: str | None = None
    agent: api.Name = ""
    model: api.Name = ""
    clients: Annotated[list[ClientTool], Meta(max_length=50)] = []
    busy: Literal["queue", "reject", "fork"] = "queue"  # what would steer has no stream of its own to be read from


class UIAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer beside the stream: yes or no or, of a tool that the client ran, what came of it."""

    approved: bool | None = None
    reason: Annotated[str, Meta(max_length=10_000)] = ""
    output: Any | UnsetType = UNSET
    errorText: Annotated[str, Meta(max_length=100_000)] | None = None
