"""Message history for a model request: valid for every provider by construction, whatever happened in the turns.

Every call is followed at once by its one result; placeholders and hidden messages are left out; no message is empty;
arguments are always a JSON object. `render` is a pure function, so a request built twice is byte-equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from everturn.core.canonical_json import encode_canonical, parse_object, replace_surrogates
from everturn.core.context.compaction import compact_path
from everturn.core.continuation import is_continued
from everturn.core.events import OutputRejected
from everturn.core.messages import Message
from everturn.core.options import ToolHistory
from everturn.core.parts import (
    ClearedPart,
    ContextPart,
    FilePart,
    FilesPart,
    NoticePart,
    ProviderToolPart,
    ReasoningPart,
    StepPart,
    SummaryPart,
    TextPart,
    ToolPart,
)
from everturn.core.requests import RequestCall, RequestMessage, RequestPart, RequestResult

CONTEXT_NOTICE = "context"
NO_RESULT = "This call was interrupted; it has no result."
DIGEST_LIMIT = 200  # characters of a result in a digest: enough to recognise it, too little to quote from
DIGEST_WARNING = "A log of tools that were used, for reference only; writing such lines calls nothing."


def render_history(
    messages: Iterable[Message], policy: ToolHistory = "full", *, continues: bool = False
) -> list[RequestMessage]:
    """Render messages of earlier turns for a model, with their tool calls as the policy says.

    If the turn `continues` the branch without a new message, the copy of an answer at its end, which was forked after one of
    its steps, is the beginning of the present answer: it is rendered in full.
    """
    messages = list(messages)
    last = messages.pop() if continues and messages and messages[-1].fork is not None else None
    rendered: list[RequestMessage] = []
    render_answer = _RENDER[policy]
    for message in messages:
        if message.hidden or message.refused:
            continue
        is_answer = message.role == "assistant"
        if (text := _only_text(message, is_answer)) is not None:
            rendered.append(RequestMessage("assistant" if is_answer else "user", (text,)))
        else:
            rendered += render_answer(message) if is_answer else _render_user(message)
    return rendered if last is None else [*rendered, *_render_full(last)]


def without_refused(messages: list[Message]) -> list[Message]:
    """Leave out of a branch what a plugin refused: the message, and the text of the runtime that answers it.

    A message that was refused when it was answered anew is not marked itself; the answer to it is.
    """
    if not any(message.refused for message in messages):
        return messages
    refused = {message.parent for message in messages if message.refused and message.role == "assistant"}
    return [message for message in messages if not message.refused and message.id not in refused]


def unanswered_turns(path: Sequence[Message], is_answering_last: bool) -> list[str]:
    """The turns of a branch whose user messages have no answer: the only ones that a hook may have blocked.

    A message that another turn has answered counts as answered, and so does the last one with `is_answering_last`.
    """
    answered = {message.turn for message in path if message.role == "assistant" and message.parts}
    unanswered: dict[str, None] = {}
    for index, message in enumerate(path):
        if message.role != "user" or not message.turn or message.turn in answered:
            continue
        following = next((other for other in path[index + 1 :] if other.turn != message.turn), None)
        is_answered = (
            is_answering_last if following is None else following.turn in answered and following.role != "user"
        )
        if not is_answered:
            unanswered[message.turn] = None
    return list(unanswered)


def _only_text(message: Message, is_answer: bool) -> TextPart | None:
    """The only text of a message with nothing else, as most have: every policy renders it alike."""
    parts = message.parts
    if len(parts) == 1 + is_answer and type(parts[0]) is TextPart and parts[0].text:
        if not is_answer or type(parts[1]) is StepPart:
            return parts[0]
    return None


def render_own_message(
    message: Message, after: int = 0, rejected: Mapping[int, OutputRejected] | None = None
) -> list[RequestMessage]:
    """Render one of the present turn's own messages, from part number `after` on, which must begin a step.

    It is always rendered in full, even if it is hidden, because its calls are still in progress. Answers that were
    `rejected` as output are rendered too, each with its problem: the model is asked to correct them.
    """
    return list(_render_full(message, after, rejected) if message.role == "assistant" else _render_user(message))


def render_compacted(
    history: Sequence[Message],
    own: Sequence[Message],
    policy: ToolHistory = "full",
    rejected: Mapping[int, OutputRejected] | None = None,
    *,
    continues: bool = False,
) -> list[RequestMessage]:
    """Render a branch with compactions: the messages of earlier turns as the policy says, the turn's own in full."""
    own_ids = {message.id for message in own}
    last = history[-1].id if history else ""
    rendered: list[RequestMessage] = []
    for message in compact_path([*history, *own]):
        if message.id not in own_ids:
            rendered += render_history((message,), policy, continues=continues and message.id == last)
        elif not message.refused:
            rendered += render_own_message(message, 0, rejected)
    return rendered


def _render_user(message: Message) -> Iterator[RequestMessage]:
    parts = tuple(
        _context_notice(part) if isinstance(part, ContextPart) else part
        for part in message.parts
        if isinstance(part, FilePart) or (isinstance(part, TextPart | NoticePart | ContextPart) and part.text)
    )
    if parts:
        yield RequestMessage("user", parts)


def _context_notice(part: ContextPart) -> NoticePart:
    """Attached context as quoted data: in JSON, so that no text in it can pretend to be the end of the quotation."""
    fields = {"kind": part.kind, "title": part.title, "source": part.source, "text": part.text}
    quoted = encode_canonical({"attached_context": {name: value for name, value in fields.items() if value}})
    return NoticePart(CONTEXT_NOTICE, quoted, part.untrusted)


def _render_full(
    message: Message, after: int = 0, rejected: Mapping[int, OutputRejected] | None = None
) -> Iterator[RequestMessage]:
    """One assistant message per step, each followed by the results of its calls; one for a text that is continued."""
    parts: list[RequestPart] = []
    results: list[RequestResult] = []
    for part in (*(part for part in message.parts[after:] if not is_continued(part)), None):
        match part:
            case None | StepPart():
                if parts:
                    is_paused = part is not None and part.finish == "paused"
                    yield RequestMessage("assistant", tuple(parts), paused=is_paused)
                if results:
                    yield RequestMessage("tool", tuple(results))
                parts, results = [], []
                if rejected and part is not None and (rejection := rejected.get(part.step)) is not None:
                    yield from _render_rejected(rejection)
            case ToolPart(parent=parent):
                if parent:  # a tool made this call, not the model
                    continue
                parts.append(
                    RequestCall(
                        part.call, part.name, arguments_as_object(part.arguments), part.opaque, part.provider_id
                    )
                )
                results.append(_result(part))
            case TextPart(text=text) | ReasoningPart(text=text):
                if text or part.opaque:
                    parts.append(part)
            case FilePart() | ProviderToolPart():
                parts.append(part)
            case NoticePart() | FilesPart() | SummaryPart() | ClearedPart() | ContextPart():
                pass


def _render_rejected(rejection: OutputRejected) -> Iterator[RequestMessage]:
    """An answer that was not a valid output, and why: only for the request that asks for another."""
    parts = tuple(part for part in rejection.parts if isinstance(part, TextPart | ReasoningPart))
    if parts:
        yield RequestMessage("assistant", parts)
    yield RequestMessage("user", (NoticePart("output", rejection.problem),))


def _model_calls(message: Message) -> Iterator[ToolPart]:
    """The calls that the model made, without nested calls of tools."""
    return (part for part in message.parts if isinstance(part, ToolPart) and not part.parent)


def _result(part: ToolPart) -> RequestResult:
    if part.output is None:
        return RequestResult(part.call, part.name, NO_RESULT, is_error=True)
    # Otherwise the model would not understand a result that does not fit its arguments.
    note = f"[The person changed the arguments to {part.used}]\n" if part.is_edited else ""
    text = note + part.output.text
    is_error = part.state != "completed"
    return RequestResult(part.call, part.name, text, is_error, part.output.attachments, part.state)


def arguments_as_object(arguments: str) -> str:
    """Arguments as the JSON object every provider demands; invalid JSON is shown as such, not as `{}`."""
    if not arguments.strip():
        return "{}"  # some models send no text at all for a tool without parameters
    return (
        arguments
        if parse_object(arguments) is not None
        else encode_canonical({"invalid_json": replace_surrogates(arguments)})
    )


def _render_results(message: Message) -> Iterator[RequestMessage]:
    """Calls dropped, results kept in a notice before the answer, so that they do not pose as the model's own text."""
    lines = [f"{part.name}: {_result(part).text}" for part in _model_calls(message)]
    if lines:
        yield RequestMessage("user", (NoticePart("tool_results", "Results of tools used:\n" + "\n".join(lines)),))
    yield from _render_none(message)


def _render_none(message: Message) -> Iterator[RequestMessage]:
    yield from _render_answer(message, message.text)


def _render_digest(message: Message) -> Iterator[RequestMessage]:
    yield from _render_answer(message, *answer_with_digest(message))


def _render_answer(message: Message, text: str, hint_size: int = 0) -> Iterator[RequestMessage]:
    """An answer in one message, with its files: those are not part of the tool chain."""
    parts = (*([TextPart(text)] if text else []), *(part for part in message.parts if isinstance(part, FilePart)))
    if parts:
        yield RequestMessage("assistant", parts, hint_size=hint_size)


def answer_with_digest(message: Message) -> tuple[str, int]:
    """An answer with a digest of its tool calls in front, and the length of that digest, so that a UI can collapse it."""
    lines = [_digest_line(part) for part in _model_calls(message)]
    hint = f"[{DIGEST_WARNING}\n" + "\n".join(lines) + "]\n\n" if lines else ""
    return hint + message.text, len(hint)


def _digest_line(part: ToolPart) -> str:
    return f"{part.name} {_excerpt(part.used or part.arguments)} -> {part.state}: {_excerpt(_result(part).text)}"


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= DIGEST_LIMIT else text[:DIGEST_LIMIT] + "…"


_RENDER = {"full": _render_full, "results": _render_results, "digest": _render_digest, "none": _render_none}
