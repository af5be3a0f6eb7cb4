"""Compaction plan: what is cleared, where a branch is cut, and what of the replaced part is kept word for word.

Pure functions of the branch and the limits. What they choose is written to the log once, and never computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.context.compaction import SUMMARY_NOTICE, last_summary
from everturn.core.context.context_size import ContextLimits
from everturn.core.context.documents import DOCUMENT_ARTIFACT, plain_name
from everturn.core.context.token_estimate import MESSAGE_TOKENS, estimate_output, estimate_parts, estimate_tokens
from everturn.core.messages import Message
from everturn.core.parts import (
    ContextPart,
    FilePart,
    FilesPart,
    NoticePart,
    Part,
    ProviderToolPart,
    Quote,
    StepPart,
    SummaryPart,
    ToolPart,
)

MIN_CLEARED_RESULT: Final = 100  # tokens of a result that is cleared
STUB_TOKENS: Final = 30  # tokens of the line in its place
PROTECTED_STEPS: Final = 2  # newest steps whose results are not cleared
EXPECTED_STEPS: Final = 5  # further steps that pay for the tokens that are not cached once
NEVER_CLEARED: Final = ("load_skill", "find_tools")  # what a model loads: skills, and the tools it has found
ARGUMENTS_EXCERPT: Final = 100  # characters
REASON_EXCERPT: Final = 200
SENTENCE_ENDS: Final = (". ", "! ", "? ", "\n", "\u3002", "\uff01")  # within a text: it has more than one sentence


class Segment(Struct, frozen=True):
    """A piece of a branch that is never split: a message of a person or the runtime, or one step of an answer."""

    message: Message
    after: int  # the step of the same message before this one; 0: it begins the message
    step: int  # its own step; 0: it is no step
    parts: tuple[Part, ...]
    tokens: int


class BranchCut(Struct, frozen=True):
    """Where a branch is cut: everything above `kept` is replaced, but for the message `task`."""

    kept: str
    step: int
    task: str
    head: tuple[Segment, ...]  # what is replaced
    tokens: int  # of the head


def split_segments(view: Sequence[Message], summary: SummaryPart | None = None) -> list[Segment]:
    """The segments of what a model reads of a branch, without the last summary of it."""
    segments: list[Segment] = []
    for message in view:
        if message.hidden or message.refused or _is_summary(message):
            continue
        if message.role != "assistant":
            segments.append(Segment(message, 0, 0, message.parts, estimate_parts(message.parts) + MESSAGE_TOKENS))
            continue
        is_cut = summary is not None and message.id == summary.kept
        after, start = summary.step if is_cut and summary is not None else 0, 0
        for at, part in enumerate(message.parts):
            if type(part) is StepPart:
                parts = message.parts[start : at + 1]
                segments.append(Segment(message, after, part.step, parts, estimate_parts(parts) + MESSAGE_TOKENS))
                after, start = part.step, at + 1
        if start and (rest := message.parts[start:]):  # nested calls and changed files of the last step
            last = segments[-1]
            segments[-1] = replace(last, parts=(*last.parts, *rest))
    return segments


def _is_summary(message: Message) -> bool:
    return (
        message.role == "notice" and len(message.parts) == 1 and getattr(message.parts[0], "kind", "") == SUMMARY_NOTICE
    )


def choose_cut(path: Sequence[Message], view: Sequence[Message], limits: ContextLimits, task: str) -> BranchCut | None:
    """Where to cut a branch, so that the newest steps stay; None if nothing would be replaced.

    `view` is what a model reads of the branch now. The last segment always stays: no model has read the results in it.
    """
    found = last_summary(path)
    segments = split_segments(view, None if found is None else found[1])
    first, size = len(segments), 0
    while first and (first == len(segments) or size + segments[first - 1].tokens <= limits.tail):
        first -= 1
        size += segments[first].tokens
    head = [segment for segment in segments[:first] if segment.message.id != task]
    if not head:
        return None
    kept = segments[first]
    is_task_kept = all(segment.message.id != task for segment in segments[:first])
    return BranchCut(
        kept.message.id, kept.after, "" if is_task_kept else task, tuple(head), sum(s.tokens for s in head)
    )


def cut_at(path: Sequence[Message], view: Sequence[Message], kept: str, step: int, task: str) -> BranchCut:
    """The cut that the log has, on the same branch."""
    found = last_summary(path)
    head: list[Segment] = []
    for segment in split_segments(view, None if found is None else found[1]):
        if segment.message.id == kept and segment.after >= step:
            break
        if segment.message.id != task:
            head.append(segment)
    return BranchCut(kept, step, task, tuple(head), sum(segment.tokens for segment in head))


class Clearing(Struct, frozen=True):
    """Results to clear: their calls, the tokens that become free, and the tokens that have to be cached anew."""

    calls: tuple[str, ...]
    freed: int
    behind: int


def choose_cleared(
    view: Sequence[Message], limits: ContextLimits, cleared: Collection[str], is_forced: bool = False
) -> Clearing | None:
    """The results to clear; None if too little would become free.

    The newest results stay, and those of the last steps. `is_forced`: only as many of them as fit into the tail.
    """
    segments = split_segments(view)
    steps = [segment for segment in segments if segment.step]
    recent = () if is_forced else steps[-PROTECTED_STEPS:]
    protected = limits.tail if is_forced else limits.protected_results
    calls: list[str] = []
    size = freed = following = behind = 0
    for segment in reversed(segments):
        is_recent = any(segment is other for other in recent)
        for part in reversed(segment.parts):
            if type(part) is not ToolPart or part.parent or part.output is None:
                continue
            tokens = estimate_output(part.output)
            size += tokens
            if not is_recent and size > protected and _is_clearable(part, tokens, cleared):
                calls.append(part.call)
                freed += tokens - STUB_TOKENS
                behind = following
        following += segment.tokens
    if not calls or (not is_forced and freed < limits.min_cleared):
        return None
    return Clearing(tuple(reversed(calls)), freed, behind)


def _is_clearable(part: ToolPart, tokens: int, cleared: Collection[str]) -> bool:
    return (
        part.state == "completed"
        and tokens >= MIN_CLEARED_RESULT
        and part.call not in cleared
        and part.name not in NEVER_CLEARED
    )


def is_clearing_worth_it(clearing: Clearing) -> bool:
    """Whether the tokens that become free pay for those that the provider has to cache anew."""
    return clearing.freed * EXPECTED_STEPS > clearing.behind


# What stays of the replaced part ---------------------------------------------------------------------------------


def quote_person(head: Sequence[Segment], summary: SummaryPart | None, size: int) -> tuple[Quote, ...]:
    """The person's own words in the replaced part, up to this size in tokens; returned oldest first.

    The first message comes first, up to a third of the size: it usually has the goal. Then come statements before
    questions, and the newest first: a question has had its answer, while a rule or a correction holds until the person
    says otherwise.
    """
    earlier = list(summary.quotes) if summary is not None else []
    new_quotes = [
        Quote(segment.message.id, _person_text(segment.parts))
        for segment in head
        if segment.message.role == "user" and _person_text(segment.parts)
    ]
    known = list(enumerate([*earlier, *new_quotes]))
    quotes: list[tuple[int, Quote]] = []
    if known and (first := _first_quote(known[0][1], size // 3)) is not None:
        quotes.append((0, first))
        size -= estimate_tokens(first.text) + MESSAGE_TOKENS
        del known[0]
    for number, quote in sorted(known, key=lambda item: (_is_question(item[1].text), -item[0])):
        tokens = estimate_tokens(quote.text) + MESSAGE_TOKENS
        if tokens > size:
            if size > 8 * MESSAGE_TOKENS:
                quotes.append((number, Quote(quote.message, _excerpt_of(quote.text, size - 6 * MESSAGE_TOKENS))))
            break
        quotes.append((number, quote))
        size -= tokens
    return tuple(quote for _, quote in sorted(quotes, key=lambda item: item[0]))


def _first_quote(quote: Quote, size: int) -> Quote | None:
    """The first message, or an excerpt of it, in at most this many tokens; None: there is no room for one."""
    if estimate_tokens(quote.text) + MESSAGE_TOKENS <= size:
        return quote
    if size <= 8 * MESSAGE_TOKENS:
        return None
    return Quote(quote.message, _excerpt_of(quote.text, size - 6 * MESSAGE_TOKENS))


def _is_question(text: str) -> bool:
    """Whether a text is one question and nothing else."""
    text = text.strip()
    return text.endswith(("?", "\uff1f")) and not any(end in text for end in SENTENCE_ENDS)


def _person_text(parts: Sequence[Part]) -> str:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, FilePart):
            texts.append(f"[file {part.name or part.media_type}]")
        elif isinstance(part, ContextPart):
            texts.append(f"[{part.kind} {part.title or part.source}]")
        elif not isinstance(part, NoticePart):
            texts.append(getattr(part, "text", ""))
    return "\n".join(text for text in texts if text)


def _excerpt_of(text: str, tokens: int) -> str:
    """The beginning and the end of a text, in at most about this many tokens."""
    size = max(len(text) * tokens // max(estimate_tokens(text), 1) // 2, 1)
    return f"{text[:size]} [… {max(len(text) - 2 * size, 0)} characters …] {text[-size:]}"


def list_artifacts(head: Sequence[Segment], summary: SummaryPart | None, size: int) -> tuple[str, ...]:
    """Changed files and calls of the replaced part, as the log has them: newest first, up to this size in tokens."""
    lines: dict[str, None] = dict.fromkeys((*_document_lines(head), *_file_lines(head), *_call_lines(head)))
    if summary is not None:
        # Documents first: as long as one is listed, `read_document` is offered.
        earlier = sorted(summary.artifacts, key=lambda line: not line.startswith(DOCUMENT_ARTIFACT))
        lines = dict.fromkeys(sorted((*lines, *earlier), key=lambda line: not line.startswith(DOCUMENT_ARTIFACT)))
    kept: list[str] = []
    for line in lines:
        size -= estimate_tokens(line) + 1
        if size < 0:
            break
        kept.append(line)
    return tuple(kept)


def _document_lines(head: Sequence[Segment]) -> Iterator[str]:
    """A line for each attached document: its text can still be read."""
    for segment in reversed(head):
        for part in reversed(segment.parts):
            attached = part.output.attachments if type(part) is ToolPart and part.output is not None else (part,)
            for file in attached:
                if type(file) is FilePart and file.text:
                    yield f"{DOCUMENT_ARTIFACT}{plain_name(file)}: attached; read_document reads it"


def _file_lines(head: Sequence[Segment]) -> Iterator[str]:
    """A line for each changed file, the last change of each."""
    seen: set[str] = set()
    messages = dict.fromkeys(segment.message.id for segment in head)
    by_id = {segment.message.id: segment.message for segment in head}
    for message in reversed(list(messages)):
        for part in reversed(by_id[message].parts):
            if isinstance(part, FilesPart):
                for change in reversed(part.changes):
                    if change.path not in seen:
                        seen.add(change.path)
                        yield f"file {change.path}: {change.kind} (+{change.added} -{change.removed})"


def _call_lines(head: Sequence[Segment]) -> Iterator[str]:
    """A line for each call: what it was called with, and what became of it."""
    for segment in reversed(head):
        for part in reversed(segment.parts):
            if type(part) is ToolPart and not part.parent:
                reason = ""
                if part.state != "completed" and part.output is not None:
                    reason = f": {_short(part.output.text, REASON_EXCERPT)}"
                arguments = _short(part.used or part.arguments, ARGUMENTS_EXCERPT)
                yield f"call {part.call} {part.name} {arguments} -> {part.state}{reason}"


def _short(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[:length]}…"


def taint_of_parts(parts: Iterable[Part]) -> tuple[bool, bool]:
    """Whether some parts contain (untrusted text, private values)."""
    untrusted = private = False
    for part in parts:
        kind = type(part)
        if kind is ToolPart:
            for output in (cast("ToolPart", part).output, cast("ToolPart", part).late):
                if output is not None:
                    untrusted |= output.untrusted
                    private |= bool(output.private) or output.sensitive
        elif kind is NoticePart or kind is ContextPart:
            untrusted |= cast("NoticePart | ContextPart", part).untrusted
        elif kind is ProviderToolPart:
            untrusted = True  # its results are the text of third parties
        elif kind is SummaryPart:
            untrusted |= cast("SummaryPart", part).untrusted
            private |= cast("SummaryPart", part).private
    return untrusted, private
