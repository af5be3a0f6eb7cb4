"""Script items: what a scripted model does, independent of any wire format.

    [[Think("Let me look."), Call("read", '{"path": "a.txt"}')], [Say("It says hello.")]]

A step answers one request. It is a list of items, or a function from the decoded body of the request to one. The
modules of `render` decide how an item looks on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Reason = Literal["stop", "tool_calls", "paused", "length", "content_filter", "refusal"]


class Say(Struct, frozen=True):
    """Text; in this many pieces, or in words when `pieces` is 0. Neighbours become one block."""

    text: str
    pieces: int = 0


class Think(Struct, frozen=True):
    """Reasoning: signed in messages, an encrypted item in responses, `reasoning_content` in chat.

    Gemini shows it on request, and Ollama unless the request disables it.
    """

    text: str
    pieces: int = 0


class Redacted(Struct, frozen=True):
    """Reasoning that is not shown: `redacted_thinking` in messages, an item without a summary in responses."""


class Call(Struct, frozen=True):
    """A tool call; without an `id` it gets one in the style of the provider, new to the conversation.

    In gemini and ollama it is sent whole. One whose arguments are not an object is never sent: the answer ends as
    malformed.
    """

    name: str
    arguments: str = "{}"
    pieces: int = 2
    id: str = ""


class HostedTool(Struct, frozen=True):
    """A tool that the provider runs: its call, its result, or both. It is left out if the request does not declare it.

    In messages `name` is the one in the call, such as `bash_code_execution`; a result alone answers an open call of the
    request. The output of a web search is a URL in each line; with an `error` the tool fails.
    """

    name: str
    arguments: str = "{}"
    output: str = ""
    part: Literal["both", "call", "result"] = "both"
    error: str = ""
    id: str = ""  # made by the provider


class Cite(Struct, frozen=True):
    """A text with a citation, in formats that have them; elsewhere a text."""

    text: str
    url: str = "https://example.com/a"
    title: str = "A page"
    quote: str = "as it says"
    pieces: int = 0


class Refuse(Struct, frozen=True):
    """The model declines, in these words."""

    text: str
    pieces: int = 0


class Finish(Struct, frozen=True):
    """The finish reason; without one it follows from the other items."""

    reason: Reason


class ScriptedUsage(Struct, frozen=True):
    """Tokens; `cached` and `written` are part of `input`, `reasoning` is part of `output`."""

    input: int = 100
    output: int = 200
    cached: int = 0
    reasoning: int = 0
    written: int = 0


class Cut(Struct, frozen=True):
    """The connection closes here. As the first item: without any answer, not even a status line."""


class CutAt(Struct, frozen=True):
    """The connection closes after exactly this many bytes of the rendered body, wherever the item stands."""

    byte: int


class Hang(Struct, frozen=True):
    """Nothing more is sent, and the connection stays open."""


class Pause(Struct, frozen=True):
    """Nothing is sent for a while."""

    seconds: float


class InBandError(Struct, frozen=True):
    """The stream begins well and then reports an error, in the way of its format.

    In responses it is `response.failed`, or an `error` event if `kind` is "error". In gemini it is an event, or no
    event at all if `kind` is "bare". In ollama an error before any output is a status.
    """

    message: str = "The server had an error while processing your request. Sorry about that!"
    code: str | None = "server_error"
    kind: str = ""


class Status(Struct, frozen=True):
    """The whole answer is this HTTP status; without a body it gets the error body of the provider."""

    code: int
    body: bytes | str = b""
    headers: Mapping[str, str] = {}


class Raw(Struct, frozen=True):
    """These bytes are the body, unchanged. Besides it only pauses, cuts and hangs count."""

    data: bytes
    content_type: str = "text/event-stream"


class Image(Struct, frozen=True):
    """An image; without bytes, one is drawn for the request."""

    png: bytes = b""
    revised_prompt: str = ""


class Speech(Struct, frozen=True):
    """A sound; without bytes, one is made for the request. Its type is the requested one, or this."""

    data: bytes = b""
    content_type: str = ""


class Transcription(Struct, frozen=True):
    """The text of a recording; without a text, its size and type."""

    text: str = ""


Item: TypeAlias = (
    Say
    | Think
    | Redacted
    | Call
    | HostedTool
    | Cite
    | Refuse
    | Image
    | Speech
    | Transcription
    | Finish
    | ScriptedUsage
    | Cut
    | CutAt
    | Hang
    | Pause
    | InBandError
    | Status
    | Raw
)
Step: TypeAlias = Sequence[Item] | Callable[[dict[str, Any]], Sequence[Item]]


class Script(Struct, frozen=True):
    """The steps of a model and its pace: seconds between chunks, or 0 for whole answers in one write."""

    steps: tuple[Step, ...]
    pace: float = 0.0
    is_sequence: bool = False


def split(text: str, pieces: int) -> list[str]:
    """Cut a text into words, or into that many pieces of one size (the last may be shorter)."""
    if not text:
        return []
    if pieces <= 0:
        words = text.split(" ")
        return [piece for piece in (*(word + " " for word in words[:-1]), words[-1]) if piece]
    size = -(-len(text) // pieces)
    return [text[at : at + size] for at in range(0, len(text), size)]
