"""Message parts: text, reasoning, tool calls with their results, files, step boundaries and notices.

Parts are plain frozen data. Their text is what a model, a tool or a person wrote: nothing in it is markup.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

CallState = Literal[
    "pending",
    "asking",
    "running",
    "waiting",
    "reviewing",
    "completed",
    "failed",
    "denied",
    "withheld",
    "cancelled",
    "outcome_unknown",
]
"""The states of a call, as a tool part shows them. `core.calls` has the transitions."""

Finish = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "other", "cancelled", "error"]
"""Why a step's stream ended. The last two are Everturn's: the turn was cancelled, or the stream broke."""


MAX_USAGE_COUNT = 2**53  # upper bound of every count: beyond it JSON numbers lose precision


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Token usage of a request, as the provider counted it, and its cost.

    `cached` (read from a cache) and `written` (to one) are part of `input`, `reasoning` is part of `output`.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    written: int = 0
    cost: float | None = None  # in US dollars; None if no price is known
    estimated: bool = False  # the provider reported no usage, so some of it is estimated

    def __add__(self, other: Usage) -> Usage:
        """Sum two requests. The cost covers those whose price is known."""
        return Usage(
            _tokens(self.input + other.input),
            _tokens(self.output + other.output),
            _tokens(self.cached + other.cached),
            _tokens(self.reasoning + other.reasoning),
            _tokens(self.written + other.written),
            other.cost if self.cost is None else self.cost if other.cost is None else _cost(self.cost + other.cost),
            self.estimated or other.estimated,
        )

    def clamped(self) -> Usage:
        """The same with invalid values replaced: a negative count would give back what other requests used."""
        return Usage(
            _tokens(self.input),
            _tokens(self.output),
            _tokens(self.cached),
            _tokens(self.reasoning),
            _tokens(self.written),
            _cost(self.cost),
            self.estimated is True,
        )


def _tokens(count: object) -> int:
    """A token count from an untrusted source, clamped to a valid range."""
    if not isinstance(count, int | float) or count != count:  # only NaN differs from itself
        return 0
    return int(min(max(count, 0), MAX_USAGE_COUNT))


def _cost(cost: object) -> float | None:
    """A cost from an untrusted source; None if it is not an amount of money."""
    return min(cost, float(MAX_USAGE_COUNT)) if isinstance(cost, int | float) and 0 <= cost < float("inf") else None


class Opaque(Struct, frozen=True, gc=False):
    """A provider's opaque payload (a signature, encrypted reasoning), to be replayed to its issuer only."""

    issuer: str
    data: str


class TextPart(Struct, frozen=True, gc=False, tag="text", omit_defaults=True):
    """Text."""

    text: str
    opaque: Opaque | None = None


class ReasoningPart(Struct, frozen=True, gc=False, tag="reasoning", omit_defaults=True):
    """The model's reasoning."""

    text: str
    opaque: Opaque | None = None


class FilePart(Struct, frozen=True, gc=False, tag="file", omit_defaults=True):
    """A file, by reference: the bytes are a blob."""

    blob: str
    media_type: str
    size: int
    name: str = ""


class Output(Struct, frozen=True, gc=False, omit_defaults=True):
    """The result of a call. `text` is exactly what the model reads; `blob` holds the whole if `text` is an excerpt.

    `origin` names the source of the tool. An `untrusted` result contains text from third parties. The values of private
    fields are in the blob named by `private`, and `text` has only placeholder tokens for them.
    """

    text: str
    title: str = ""
    code: str = ""
    blob: str = ""
    metadata: dict[str, object] | None = None
    attachments: tuple[FilePart, ...] = ()
    origin: str = ""
    untrusted: bool = False
    private: str = ""
    sensitive: bool = False  # it was computed from private values
    redacted: bool = False  # a person removed something from it


class ToolPart(Struct, frozen=True, gc=False, tag="tool", omit_defaults=True):
    """A call and, once it is finished, its result. `arguments` is the text the model wrote, valid JSON or not."""

    call: str
    name: str
    arguments: str
    state: CallState = "pending"
    output: Output | None = None
    late: Output | None = None
    used: str = ""  # the arguments it ran with, if a plugin or a person changed them
    is_edited: bool = False  # a person changed them
    provider_id: str = ""  # the provider's id of the call; `call` is Everturn's, unique by construction
    opaque: Opaque | None = None
    identity: str = ""  # of the tool that was offered under this name when the model called it
    parent: str = ""  # the call whose tool made this one; no model sees it


class StepPart(Struct, frozen=True, gc=False, tag="step", omit_defaults=True):
    """The end of a step, and its token usage."""

    step: int
    finish: Finish
    usage: Usage = Usage()


class FileChange(Struct, frozen=True, gc=False, omit_defaults=True):
    """A changed file: the kind of change, and the lines added and removed."""

    path: str
    kind: Literal["added", "modified", "deleted"]
    added: int = 0
    removed: int = 0


class FilesPart(Struct, frozen=True, gc=False, tag="files", omit_defaults=True):
    """The files that a step changed, with the trees before and after it. "" is the session's own root."""

    step: int
    before: str
    after: str
    changes: tuple[FileChange, ...] = ()
    root: str = ""


LATE_NOTICE_PREFIX: Final = "late_result:"
"""The kind of a notice that reports a late result begins with it; the id of the call follows."""


class NoticePart(Struct, frozen=True, gc=False, tag="notice", omit_defaults=True):
    """A message of the runtime or a plugin to the model; never a person's text."""

    kind: str
    text: str


Part = TextPart | ReasoningPart | ToolPart | FilePart | StepPart | NoticePart | FilesPart
StreamedPart = TextPart | ReasoningPart | ToolPart | FilePart


def join_text(parts: tuple[Part, ...]) -> str:
    """The text parts joined, with a blank line between steps."""
    texts: list[str] = [""]
    for part in parts:
        if type(part) is TextPart:
            texts[-1] += part.text
        elif type(part) is StepPart and texts[-1]:
            texts.append("")
    return "\n\n".join(texts if texts[-1] else texts[:-1])


def final_text(parts: tuple[Part, ...]) -> str:
    """The text of the last step, without the text between the calls before it."""
    ends = [index for index, part in enumerate(parts) if isinstance(part, StepPart)]
    return join_text(parts[ends[-2] + 1 :] if len(ends) > 1 else parts)
