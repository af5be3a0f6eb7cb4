"""Event index: the keys by which a store finds single events of a session, so that nobody has to read its whole log.

Few events have a key: what is found this way is rare in a log. A store writes the keys of an event with the event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from everturn.core.events import (
    AnswerRated,
    CallFinished,
    CommandDropped,
    Event,
    FilesChanged,
    FilesReverted,
    FileUploadChanged,
    GateOpened,
    InstructionsSet,
    LateResultReceived,
    MessageAdded,
    RevertStarted,
    SessionUpdated,
    StepFinished,
    SubagentStarted,
)

EventIndex = Literal[
    "cache", "command", "files", "gate", "instructions", "late", "parameters", "rating", "result", "subagent", "upload"
]
"""What an event is found by:

- `cache`: the cause for which a step's request missed the provider's prompt cache
- `command`: the key of a command that was dropped, or whose message joined a running turn
- `files`: the root whose files changed, or were reverted
- `gate`: the id of a gate that was opened
- `instructions`: ""; the instructions of the session were set
- `late`: the call of a late result
- `parameters`: ""; the parameters of the session were chosen
- `rating`: the message that a person rated
- `result`: the call of a result that was truncated or has private values
- `subagent`: the session of a sub-agent run that was started
- `upload`: the blob of a file that is uploaded to a provider
"""


def index_key(event: Event) -> tuple[EventIndex, str] | None:
    """The index and the key that an event is found by; None for most events."""
    key = _KEYS.get(type(event))
    return None if key is None else key(event)


def _command(event: CommandDropped | MessageAdded) -> tuple[EventIndex, str] | None:
    return ("command", event.command) if event.command else None


def _files(event: FilesChanged | FilesReverted | RevertStarted) -> tuple[EventIndex, str]:
    return "files", event.root


def _result(event: CallFinished) -> tuple[EventIndex, str] | None:
    output = event.output
    return ("result", event.call) if output.blob or output.private else None


# By exact type: this is asked for every event of an append.
_KEYS: Final[dict[type[Event], Callable[[Any], tuple[EventIndex, str] | None]]] = {
    CommandDropped: _command,
    MessageAdded: _command,
    AnswerRated: lambda event: ("rating", event.message),
    FilesChanged: _files,
    FilesReverted: _files,
    RevertStarted: _files,
    GateOpened: lambda event: ("gate", event.gate.id),
    CallFinished: _result,
    InstructionsSet: lambda event: ("instructions", ""),
    LateResultReceived: lambda event: ("late", event.call),
    SessionUpdated: lambda event: ("parameters", "") if event.parameters is not None else None,
    StepFinished: lambda event: ("cache", event.cache.cause) if event.cache is not None else None,
    SubagentStarted: lambda event: ("subagent", event.session),
    FileUploadChanged: lambda event: ("upload", event.blob),
}
