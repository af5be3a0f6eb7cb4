"""Forks inside an answer: a copy of an answer up to one of its finished steps, with the calls and results of those steps. Pure.

A branch begins at a message, and an answer of many steps is one message. So that a conversation can continue from the
middle of an answer, its first steps are copied into a message beside it. What is above the answer is shared. Nothing of a
copy is run again: it is `imported`, so its calls are those of the original, under the same ids, and it has no usage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from everturn.core.messages import ForkPoint, Message
from everturn.core.parts import FilesPart, Part, StepPart, ToolPart, Usage
from everturn.errors import CommandRefused


def forkable_steps(answer: Message) -> list[int]:
    """The steps of an answer after which it can be forked, in order."""
    return [step for step, _ in _ends(answer)]


def fork_answer(answer: Message, step: int, copy: str) -> Message:
    """Return a copy of an answer that ends with a step; `copy` is its id.

    What the steps did to files is left out: a fork does not revert files, and the original says what happened.

    Raises:
        CommandRefused: the answer has no such step, or it is not finished; the text names the steps there are.
    """
    end = next((end for number, end in _ends(answer) if number == step), None)
    if end is None:
        raise CommandRefused(_explain(answer, step))
    parts: list[Part] = []
    for part in answer.parts[:end]:
        if isinstance(part, StepPart):
            parts.append(replace(part, usage=Usage()))
        elif not isinstance(part, FilesPart):
            parts.append(part)
    parts += _nested_calls(answer.parts[end:], {part.call for part in parts if isinstance(part, ToolPart)})
    fork = ForkPoint(answer.id, step)
    return Message(copy, answer.parent, "assistant", tuple(parts), by=answer.by, imported=True, fork=fork)


def _ends(answer: Message) -> Iterator[tuple[int, int]]:
    """The finished steps of an answer, and where in its parts each of them ends."""
    if answer.role != "assistant" or answer.hidden or answer.refused:
        return
    calls: list[ToolPart] = []
    for at, part in enumerate(answer.parts, 1):
        if isinstance(part, ToolPart):
            calls.append(part)
        elif isinstance(part, StepPart):
            if part.finish in ("cancelled", "error") or any(call.output is None for call in calls):
                return  # nothing follows a step that broke off, or whose calls have no results yet
            if not part.continues:
                yield part.step, at


def _nested_calls(later: Sequence[Part], calls: set[str]) -> Iterator[ToolPart]:
    """The calls that tools of these calls made: they follow the end of the step."""
    for part in later:
        if isinstance(part, ToolPart) and part.parent in calls:
            calls.add(part.call)
            yield part


def _explain(answer: Message, step: int) -> str:
    if answer.role != "assistant":
        return f"message {answer.id!r} is not an answer: only an answer has steps to fork after; fork at the message itself"
    if not (steps := forkable_steps(answer)):
        return f"answer {answer.id!r} has no finished step to fork after"
    listed = ", ".join(map(str, steps))
    return f"answer {answer.id!r} cannot be forked after step {step}; its finished steps are: {listed}"
