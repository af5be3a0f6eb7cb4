"""Messages as a model reads them: provider-valid by construction, whatever happened on the way.

Every call is followed at once by its one result; placeholders and hidden messages are left out; no message is empty;
arguments are always a JSON object. `render` is a pure function, so a request built twice is byte-equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from everturn.core.canonical import canonical, clean, parse_object
from everturn.core.messages import Message
from everturn.core.options import HistoryPolicy
from everturn.core.parts import FilePart, FilesPart, NoticePart, ReasoningPart, StepPart, TextPart, ToolPart
from everturn.core.requests import RequestCall, RequestMessage, RequestPart, RequestResult

NO_RESULT = "This call was interrupted; it has no result."
DIGEST_LIMIT = 200  # characters of a result in a digest: enough to recognise it, too little to quote from
DIGEST_WARNING = "A log of tools that were used, for reference only; writing such lines calls nothing."


def render(messages: Iterable[Message], policy: HistoryPolicy = "full") -> list[RequestMessage]:
    """Show messages of earlier turns to a model, with their tool calls as the policy says."""
    shown: list[RequestMessage] = []
    answer = _RENDER[policy]
    for message in messages:
        if message.hidden:
            continue
        is_answer = message.role == "assistant"
        if (text := _only_text(message, is_answer)) is not None:
            shown.append(RequestMessage("assistant" if is_answer else "user", (text,)))
        else:
            shown += answer(message) if is_answer else _said(message)
    return shown


def unanswered_turns(path: Sequence[Message], is_answering_last: bool) -> list[str]:
    """The turns of a branch whose messages nobody has answered: the only ones that may have been blocked.

    A message that another turn has answered anew counts as answered, and so does the last one when it is about to be.
    """
    answered = {message.turn for message in path if message.role == "assistant" and message.parts}
    found: dict[str, None] = {}
    for at, message in enumerate(path):
        if message.role != "user" or not message.turn or message.turn in answered:
            continue
        following = next((other for other in path[at + 1 :] if other.turn != message.turn), None)
        is_answered = (
            is_answering_last if following is None else following.turn in answered and following.role != "user"
        )
        if not is_answered:
            found[message.turn] = None
    return list(found)


def _only_text(message: Message, is_answer: bool) -> TextPart | None:
    """What nearly every message is: one text and nothing else, which every policy shows alike."""
    parts = message.parts
    if len(parts) == 1 + is_answer and type(parts[0]) is TextPart and parts[0].text:
        if not is_answer or type(parts[1]) is StepPart:
            return parts[0]
    return None


def render_own(message: Message, after: int = 0) -> list[RequestMessage]:
    """Show a turn one of its own messages, from its part number `after` on, which must begin a step.

    Always in full, hidden ones too, for their calls are still being worked on.
    """
    return list(_full(message, after) if message.role == "assistant" else _said(message))


def _said(message: Message) -> Iterator[RequestMessage]:
    parts = tuple(
        part
        for part in message.parts
        if isinstance(part, FilePart) or (isinstance(part, TextPart | NoticePart) and part.text)
    )
    if parts:
        yield RequestMessage("user", parts)


def _full(message: Message, after: int = 0) -> Iterator[RequestMessage]:
    """One assistant message per step, each followed by the results of its calls."""
    said: list[RequestPart] = []
    results: list[RequestResult] = []
    for part in (*message.parts[after:], None):
        match part:
            case None | StepPart():
                if said:
                    yield RequestMessage("assistant", tuple(said))
                if results:
                    yield RequestMessage("tool", tuple(results))
                said, results = [], []
            case ToolPart(parent=parent):
                if parent:  # it was no model that made it
                    continue
                said.append(RequestCall(part.call, part.name, as_object(part.arguments), part.opaque, part.given))
                results.append(_result(part))
            case TextPart(text=text) | ReasoningPart(text=text):
                if text or part.opaque:
                    said.append(part)
            case FilePart():
                said.append(part)
            case NoticePart() | FilesPart():
                pass


def _called(message: Message) -> Iterator[ToolPart]:
    """The calls that the model made; not those of its tools."""
    return (part for part in message.parts if isinstance(part, ToolPart) and not part.parent)


def _result(part: ToolPart) -> RequestResult:
    if part.output is None:
        return RequestResult(part.call, part.name, NO_RESULT, is_error=True)
    # Otherwise the model would puzzle over a result that does not fit what it asked for.
    note = f"[The person changed the arguments to {part.used}]\n" if part.is_edited else ""
    text = note + part.output.text
    is_error = part.state != "completed"
    return RequestResult(part.call, part.name, text, is_error, part.output.attachments, part.state)


def as_object(arguments: str) -> str:
    """Arguments as the JSON object every provider demands; a broken text is shown as what it is, not as `{}`."""
    if not arguments.strip():
        return "{}"  # none at all, which is how some models call a tool without parameters
    return arguments if parse_object(arguments) is not None else canonical({"invalid_json": clean(arguments)})


def _results(message: Message) -> Iterator[RequestMessage]:
    """Calls dropped, results kept: in a notice before the answer, so that nothing poses as the model's own words."""
    found = [f"{part.name}: {_result(part).text}" for part in _called(message)]
    if found:
        yield RequestMessage("user", (NoticePart("tool_results", "Results of tools used:\n" + "\n".join(found)),))
    yield from _none(message)


def _none(message: Message) -> Iterator[RequestMessage]:
    yield from _answer(message, message.text)


def _digest(message: Message) -> Iterator[RequestMessage]:
    yield from _answer(message, *digest_of(message))


def _answer(message: Message, text: str, hint_size: int = 0) -> Iterator[RequestMessage]:
    """An answer in one piece, with the files it brought: those are no part of the tool chain."""
    parts = (*([TextPart(text)] if text else []), *(part for part in message.parts if isinstance(part, FilePart)))
    if parts:
        yield RequestMessage("assistant", parts, hint_size=hint_size)


def digest_of(message: Message) -> tuple[str, int]:
    """An answer with its tool chain folded into a hint in front, and how long that hint is: a face can fold it."""
    lines = [_line(part) for part in _called(message)]
    hint = f"[{DIGEST_WARNING}\n" + "\n".join(lines) + "]\n\n" if lines else ""
    return hint + message.text, len(hint)


def _line(part: ToolPart) -> str:
    return f"{part.name} {_excerpt(part.used or part.arguments)} -> {part.state}: {_excerpt(_result(part).text)}"


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= DIGEST_LIMIT else text[:DIGEST_LIMIT] + "…"


_RENDER = {"full": _full, "results": _results, "digest": _digest, "none": _none}
