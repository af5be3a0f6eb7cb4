"""Messages of the event streams of a session and of a tenant."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.api.base import View
from everturn.api.gates import GateView
from everturn.api.sessions import SessionView
from everturn.core.deltas import CallDelta, CallProgress, ReasoningDelta, TextDelta
from everturn.core.events import LogEvent

StreamDelta = TextDelta | ReasoningDelta | CallDelta


class StreamItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `data:` of one message of an event stream; its `id:` is the cursor after it. Exactly one field is set.

    `seq` comes with an `event`: its position in the log. `end` is the last message: why the server closes the stream.
    """

    seq: int = 0
    event: LogEvent | None = None
    delta: StreamDelta | None = None
    progress: CallProgress | None = None
    end: Literal["", "over", "drain", "slow", "revoked", "unshared", "erased", "lost"] = ""


class InboxItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of the event stream of a tenant: first a snapshot, then changes. A missed message is harmless: every
    connection starts with a new snapshot.
    """

    snapshot: InboxView | None = None
    session: SessionView | None = None  # it changed: started, titled, busy or idle
    waits: list[GateView] | None = None  # the open gates of `session`, if it changed
    end: Literal["", "drain", "slow", "revoked"] = ""


class InboxView(View, frozen=True, kw_only=True):
    """The open gates and the active sessions. If `next` is set, the rest follows session by session."""

    gates: list[GateView]
    awake: list[SessionView]
    next: str = ""
