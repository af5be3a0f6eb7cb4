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

Finish = Literal["stop", "tool_calls", "paused", "length", "content_filter", "refusal", "other", "cancelled", "error"]
"""Why a step's stream ended. `paused`: the provider stopped amid its own tools, and the next request continues there. The
last two are Everturn's: the turn was cancelled, or the stream broke."""


MAX_USAGE_COUNT = 2**53  # upper bound of every count: beyond it JSON numbers lose precision


class Usage(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
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
    provider_calls: int = 0  # calls of tools that the provider ran, as far as it reports them
    web_searches: int = 0  # those of them for which it charges a fee as searches of the web
    file_searches: int = 0  # and as searches of files

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
            _tokens(self.provider_calls + other.provider_calls),
            _tokens(self.web_searches + other.web_searches),
            _tokens(self.file_searches + other.file_searches),
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
            _tokens(self.provider_calls),
            _tokens(self.web_searches),
            _tokens(self.file_searches),
        )


def _tokens(count: object) -> int:
    """A token count from an untrusted source, clamped to a valid range."""
    if type(count) is int and 0 <= count <= MAX_USAGE_COUNT:
        return count
    if not isinstance(count, int | float) or count != count:  # only NaN differs from itself
        return 0
    return int(min(max(count, 0), MAX_USAGE_COUNT))


def _cost(cost: object) -> float | None:
    """A cost from an untrusted source; None if it is not an amount of money."""
    return min(cost, float(MAX_USAGE_COUNT)) if isinstance(cost, int | float) and 0 <= cost < float("inf") else None


CacheCause = Literal["model changed", "compacted", "tools changed", "instructions changed", "expired", "unexpected"]
"""Why a request read less from the provider's prompt cache than expected. Of several causes, the first of this order."""


class CacheCollapse(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A request that read much less from the provider's prompt cache than the request before it had left there."""

    cause: CacheCause
    missed: int  # tokens that were expected from the cache and not read from it


class Opaque(Struct, frozen=True, gc=False):
    """A provider's opaque payload (a signature, encrypted reasoning), to be replayed to its issuer only."""

    issuer: str
    data: str


class Citation(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A source that a model names for the characters from `start` to `end` of a text part."""

    start: int
    end: int
    source: str = ""  # a URL, or the id of a file
    title: str = ""
    quote: str = ""  # what the source says, as the provider quotes it


class TextPart(Struct, frozen=True, gc=False, tag="text", omit_defaults=True, repr_omit_defaults=True):
    """Text in a message, of a user or a model."""

    text: str
    opaque: Opaque | None = None
    citations: tuple[Citation, ...] = ()


class ReasoningPart(Struct, frozen=True, gc=False, tag="reasoning", omit_defaults=True, repr_omit_defaults=True):
    """The model's reasoning."""

    text: str
    opaque: Opaque | None = None


ProviderToolState = Literal["called", "completed", "failed"]


class ProviderToolPart(Struct, frozen=True, gc=False, tag="provider_tool", omit_defaults=True, repr_omit_defaults=True):
    """A call of a tool that the provider ran, its result, or both in one, as the provider sent it.

    `opaque` is sent back unchanged to its issuer. Every other model reads `title` and `text`, and so does a person.
    """

    name: str  # such as web_search
    state: ProviderToolState = "completed"
    id: str = ""  # the provider's; a call and its result have the same
    title: str = ""  # what it was asked: a query, a URL, code
    text: str = ""  # what it returned: sources, output, or why it failed
    opaque: Opaque | None = None


class FilePart(Struct, frozen=True, gc=False, tag="file", omit_defaults=True, repr_omit_defaults=True):
    """A file in a message, by reference to a blob: an attachment of a user, or a file that a model or tool made."""

    blob: str
    media_type: str
    size: int
    name: str = ""
    text: str = ""  # of a document: the blob with its text, as `core.context.documents` stores it; "": it was not read
    pages: int = 0  # of a document: its pages, slides or sheets


class ContextPart(Struct, frozen=True, gc=False, tag="context", omit_defaults=True, repr_omit_defaults=True):
    """Context that a client attached to a message: a selection, a page, a note. A model reads it as quoted data.

    It is not what the person wrote. Context that is `untrusted`, which is the default, may contain text of third parties.
    """

    kind: str  # "selection", "page", "note", or any other word
    text: str
    title: str = ""
    source: str = ""  # where it is from: a URL, a path
    untrusted: bool = True


class Output(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
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

    @property
    def exit_status(self) -> int:
        """The exit status of the program that the call ran; 0: it succeeded, or the call ran none."""
        status = (self.metadata or {}).get("exit")
        return status if type(status) is int else 0


class ToolPart(Struct, frozen=True, gc=False, tag="tool", omit_defaults=True, repr_omit_defaults=True):
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


class StepPart(Struct, frozen=True, gc=False, tag="step", omit_defaults=True, repr_omit_defaults=True):
    """The end of a step, and its token usage."""

    step: int
    finish: Finish
    usage: Usage = Usage()
    model: str = ""  # the model that wrote the step, if another than the message's `by` (a fallback)
    continues: bool = False  # its text was cut at the output limit, and the text of the next step belongs to it


class FileChange(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A changed file: the kind of change, and the lines added and removed."""

    path: str
    kind: Literal["added", "modified", "deleted"]
    added: int = 0
    removed: int = 0


class FilesPart(Struct, frozen=True, gc=False, tag="files", omit_defaults=True, repr_omit_defaults=True):
    """The files that a step changed, with the trees before and after it. "" is the session's own root."""

    step: int
    before: str
    after: str
    changes: tuple[FileChange, ...] = ()
    root: str = ""


LATE_NOTICE_PREFIX: Final = "late_result:"
"""The kind of a notice that reports a late result begins with it; the id of the call follows."""


class NoticePart(Struct, frozen=True, gc=False, tag="notice", omit_defaults=True, repr_omit_defaults=True):
    """A message of the runtime or a plugin to the model; never a person's text.

    An `untrusted` notice quotes text of third parties, as an untrusted result does.
    """

    kind: str
    text: str
    untrusted: bool = False


CompactionReason = Literal["limit", "overflow", "command"]
"""Why a conversation was compacted: it neared the limit, a provider refused it as too long, or a person asked for it."""


class Quote(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """What a person wrote in a message that a summary replaces, word for word."""

    message: str
    text: str


class LearnedSize(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """What a branch has shown about the sizes of a model's requests, carried from one summary to the next."""

    model: str
    weight: float = 1.0  # counted tokens by estimated ones
    limit: int = 0  # in tokens, from a request that was too long; 0: none was


class SummaryPart(Struct, frozen=True, gc=False, tag="summary", omit_defaults=True, repr_omit_defaults=True):
    """A compaction: in later requests on this branch it takes the place of everything above `kept`.

    `text` is what a model wrote; without a text the messages were left out and not summarised. `untrusted` and `private`
    say what the replaced messages contained.
    """

    text: str
    kept: str = ""  # the first message that stays; "": none of those above this one
    step: int = 0  # the steps of `kept` up to this one are replaced, too
    task: str = ""  # a message above `kept` that stays: the one that the turn answers
    quotes: tuple[Quote, ...] = ()  # the person's own words, oldest first
    artifacts: tuple[str, ...] = ()  # changed files and calls, newest first, as the log has them
    messages: int = 0  # how many messages it replaces, as a whole or in part
    before: int = 0  # tokens of a request before and after the compaction
    after: int = 0
    limit: int = 0  # the limit at that time, in tokens
    why: CompactionReason = "limit"
    during: int = 0  # the step that was open; 0: between two steps
    model: str = ""  # the model whose limit it is
    by: str = ""  # the model that wrote the text
    focus: str = ""  # what the person asked to keep
    untrusted: bool = False
    private: bool = False
    learned: tuple[LearnedSize, ...] = ()
    calls: str = ""  # the blob that lists the calls above `kept` and `task`; "": none does, and the branch is read


class ClearedPart(Struct, frozen=True, gc=False, tag="cleared", omit_defaults=True, repr_omit_defaults=True):
    """A compaction without a summary: in later requests on this branch the results of these calls are left out.

    They stay in the log, and `read_result` reads them.
    """

    calls: tuple[str, ...]
    before: int = 0
    after: int = 0
    limit: int = 0
    during: int = 0


CompactionPart = SummaryPart | ClearedPart
COMPACTION_PARTS: Final = (SummaryPart, ClearedPart)

Part = (
    TextPart
    | ReasoningPart
    | ToolPart
    | FilePart
    | StepPart
    | NoticePart
    | FilesPart
    | SummaryPart
    | ClearedPart
    | ContextPart
    | ProviderToolPart
)
StreamedPart = TextPart | ReasoningPart | ToolPart | FilePart | ProviderToolPart


MAX_NOTE = 4000  # characters of a result in a note


def provider_tool_note(part: ProviderToolPart) -> str:
    """A call or result of a provider's tool as text, for models of other vendors and for summaries."""
    text = part.text if len(part.text) <= MAX_NOTE else f"{part.text[:MAX_NOTE]}…"
    head = " ".join(word for word in (part.name, part.title) if word)
    return f"[{head}: {part.state}]" + (f"\n{text}" if text else "")


def join_text(parts: tuple[Part, ...]) -> str:
    """The text parts joined, with a blank line between steps; a text that was cut goes on in the next step."""
    texts: list[str] = [""]
    for part in parts:
        if type(part) is TextPart:
            texts[-1] += part.text
        elif type(part) is StepPart and texts[-1] and not part.continues:
            texts.append("")
    return "\n\n".join(texts if texts[-1] else texts[:-1])


def final_text(parts: tuple[Part, ...]) -> str:
    """The text of the last step and of those that it continues, without the text between the calls before it."""
    ends = [(index, part) for index, part in enumerate(parts) if isinstance(part, StepPart)]
    before = [index for index, part in ends[:-1] if not part.continues]
    return join_text(parts[before[-1] + 1 :] if before else parts)
