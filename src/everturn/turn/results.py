"""A branch → the results on it that a later call may use: by reference, by range, and with their private values.

What was withheld, what never ran, and what the model was never told of is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from msgspec import Struct

from everturn.core.messages import Message
from everturn.core.parts import NoticePart, Output, ToolPart
from everturn.errors import BadArguments, UnknownMessage
from everturn.turn.run import Run

MOST_NAMED = 10  # references that an error names
_LATE = "late_result:"  # the kind of a notice that tells of one
_WITHHELD = "withheld"


class _Found(Struct):
    """The calls of some messages, and those of them of which a notice has told what came of them late."""

    source: object = None
    calls: dict[str, ToolPart] = {}
    told: set[str] = set()
    is_cut: bool = False  # some of it
    is_private: bool = False


# What lies before a turn stays as it is while the turn runs, so it is looked through once.
_BEFORE: WeakKeyDictionary[Run, _Found] = WeakKeyDictionary()


def _look(messages: Iterable[Message], source: object = None) -> _Found:
    found = _Found(source)
    for message in messages:
        for part in message.parts:
            if type(part) is ToolPart:
                found.calls[part.call] = part
                for output in (part.output, part.late):
                    if output is not None:
                        found.is_cut |= bool(output.blob)
                        found.is_private |= bool(output.private)
            elif type(part) is NoticePart and part.kind.startswith(_LATE):
                found.told.add(part.kind[len(_LATE) :])
    return found


def _before(run: Run) -> _Found:
    found = _BEFORE.get(run)
    if found is None or found.source is not run.history:
        found = _BEFORE[run] = _look(run.history or (), run.history)
    return found


def shown(run: Run) -> Iterator[tuple[str, Output]]:
    """The results a model may refer to, by call, oldest first. The branch must have been read; see `read_branch`."""
    before, own = _before(run), _look(run.state.messages.values())
    told, step = before.told | own.told, run.state.step
    # What one call of a step can use must not hang on which of its neighbours was first.
    beside = {call.id for call in step.calls} if step is not None else set[str]()
    for call, part in (*before.calls.items(), *own.calls.items()):
        output = part.late if part.late is not None and call in told else part.output
        # What a tool called by itself is for that tool, and the model was never told of it.
        if call not in beside and not part.parent and output is not None and _is_readable(part, output):
            yield call, output


def _is_readable(part: ToolPart, output: Output) -> bool:
    if output is part.late:
        return output.code != _WITHHELD
    # Whatever ran has an origin; what failed before it ran has none.
    return part.state == "completed" or (part.state == "failed" and bool(output.origin))


async def read_branch(run: Run) -> dict[str, Output]:
    """The results a model may refer to, by call."""
    if run.history is None:
        await run.outputs()
    told = _look(run.state.messages.values()).told
    if any((part := _before(run).calls.get(call)) is not None and part.late is None for call in told):
        # It came, and was told of, after this process had read the branch.
        fresh = await run.setup.store.path(run.session, run.state.parent)
        _BEFORE[run] = _look(fresh, run.history)
    return dict(shown(run))


def has_cut(run: Run) -> bool:
    """Whether something on this branch was too long to show, so that there is something to read by range."""
    if not _before(run).is_cut and not run.state.has_cut:
        return False
    return any(output.blob for _, output in shown(run))


def has_private(run: Run) -> bool:
    """Whether something on this branch has private values. The branch must have been read."""
    return _before(run).is_private or run.state.has_private


async def whole_of(run: Run, call: str, results: dict[str, Output]) -> str:
    """All of a result: what was left out of its excerpt as well.

    Raises:
        BadArguments: there is no such result here; it says which there are.
    """
    output = results.get(call)
    if output is None:
        raise BadArguments(f"there is no result {call[:80]!r} to refer to; {_there_are(results)}")
    if not output.blob:
        return output.text
    try:
        return (await run.setup.store.blob(output.blob)).decode()
    except UnknownMessage:
        raise BadArguments(f"the whole of {call} is not kept any more") from None


def _there_are(results: dict[str, Output]) -> str:
    if not results:
        return "there is none yet"
    newest = [f"$ref{{{call}}}" for call in reversed(results)]
    more = f" and {len(newest) - MOST_NAMED} older" if len(newest) > MOST_NAMED else ""
    return f"there are: {', '.join(newest[:MOST_NAMED])}{more}"


async def read_range(run: Run, call: str, start: int, length: int) -> str:
    """A piece of a result, with where it stands in the whole.

    Raises:
        BadArguments: there is no such result here, or it is shorter than that.
    """
    text = await whole_of(run, call, await read_branch(run))
    if start and start >= len(text):
        raise BadArguments(f"start={start} is behind the end; the whole has {len(text)} characters")
    end = min(start + length, len(text))
    more = f"; it goes on with start={end}" if end < len(text) else ""
    return f"[characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"
