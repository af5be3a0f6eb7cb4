"""What a message is made of: text, reasoning, tool calls with their results, files, step boundaries, notices.

Parts are plain frozen data. Text in them is whatever a model, a tool or a person wrote: nothing here is markup.
"""

from __future__ import annotations

from typing import Literal

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
"""The states of a call, as a tool part shows them. `core.calls` says how they follow one another."""

Finish = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "other", "cancelled", "error"]
"""Why a step's stream ended. The last two are ours: the turn was cancelled, or the stream broke."""


MOST_USED = 2**53  # of anything: what comes after it no JSON number can tell apart


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of a request, as the provider counted them, and what they cost.

    `cached` (read from a cache) and `written` (to one) are part of `input`, `reasoning` is part of `output`.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    written: int = 0
    cost: float | None = None  # in US dollars; None where no price is known
    estimated: bool = False  # the provider counted nothing, so we guessed some of it

    def __add__(self, other: Usage) -> Usage:
        """Sum two requests. The cost is that of those whose price is known."""
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
        """The same, as far as it makes sense: a count below nothing would give back what others have used."""
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
    """A count as somebody outside says it, who may say anything."""
    if not isinstance(count, int | float) or count != count:  # as NaN alone is not itself
        return 0
    return int(min(max(count, 0), MOST_USED))


def _cost(cost: object) -> float | None:
    """A cost as somebody outside says it; what is no amount of money is not known."""
    return min(cost, float(MOST_USED)) if isinstance(cost, int | float) and 0 <= cost < float("inf") else None


class Opaque(Struct, frozen=True, gc=False):
    """A provider's sealed payload (a signature, encrypted reasoning), to be replayed to its issuer and nobody else."""

    issuer: str
    data: str


class TextPart(Struct, frozen=True, gc=False, tag="text", omit_defaults=True):
    """Text."""

    text: str
    opaque: Opaque | None = None


class ReasoningPart(Struct, frozen=True, gc=False, tag="reasoning", omit_defaults=True):
    """What the model thought on the way."""

    text: str
    opaque: Opaque | None = None


class FilePart(Struct, frozen=True, gc=False, tag="file", omit_defaults=True):
    """A file, by reference: the bytes are a blob."""

    blob: str
    media_type: str
    size: int
    name: str = ""


class Output(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a call came to. `text` is exactly what the model reads; `blob` holds the whole when `text` is an excerpt.

    `origin` says where the tool came from. What is `untrusted` was written by somebody the person did not ask; the
    values of fields that are `private` are in a blob of that name, and only stand-ins for them in `text`.
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
    sensitive: bool = False  # what it was made of was private
    redacted: bool = False  # a person took something out


class ToolPart(Struct, frozen=True, gc=False, tag="tool", omit_defaults=True):
    """A call and, once it is settled, its result. `arguments` is the text the model wrote, valid JSON or not."""

    call: str
    name: str
    arguments: str
    state: CallState = "pending"
    output: Output | None = None
    late: Output | None = None
    used: str = ""  # the arguments it really ran with, where a plugin or a person changed them
    is_edited: bool = False  # it was the person
    given: str = ""  # the provider's own id of the call; ours is `call`, unique by construction
    opaque: Opaque | None = None
    identity: str = ""  # of the tool that was offered under this name when the model called it
    parent: str = ""  # the call whose tool made this one; no model sees it


class StepPart(Struct, frozen=True, gc=False, tag="step", omit_defaults=True):
    """Where a step ended, and what it used."""

    step: int
    finish: Finish
    usage: Usage = Usage()


class FileChange(Struct, frozen=True, gc=False, omit_defaults=True):
    """A file that is not what it was: how, and by how many lines."""

    path: str
    kind: Literal["added", "modified", "deleted"]
    added: int = 0
    removed: int = 0


class FilesPart(Struct, frozen=True, gc=False, tag="files", omit_defaults=True):
    """What became of files in a step: the tree before and after it, and what changed. "" is the session's own root."""

    step: int
    before: str
    after: str
    changes: tuple[FileChange, ...] = ()
    root: str = ""


class NoticePart(Struct, frozen=True, gc=False, tag="notice", omit_defaults=True):
    """Something the runtime or a plugin has to say to the model; never a person's words."""

    kind: str
    text: str


Part = TextPart | ReasoningPart | ToolPart | FilePart | StepPart | NoticePart | FilesPart
StreamedPart = TextPart | ReasoningPart | ToolPart | FilePart


def text_of(parts: tuple[Part, ...]) -> str:
    """Only what was said: the text parts, one after the other, steps with a blank line between."""
    said: list[str] = [""]
    for part in parts:
        if type(part) is TextPart:
            said[-1] += part.text
        elif type(part) is StepPart and said[-1]:
            said.append("")
    return "\n\n".join(said if said[-1] else said[:-1])


def last_text(parts: tuple[Part, ...]) -> str:
    """What was said in the end: the text of the last step, without what came between the calls before it."""
    ends = [at for at, part in enumerate(parts) if isinstance(part, StepPart)]
    return text_of(parts[ends[-2] + 1 :] if len(ends) > 1 else parts)
