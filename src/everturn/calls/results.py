"""Earlier results: the results on a branch that a later call may use, by reference, by range, or for private values.

Withheld results, results of calls that never ran, and results that the model never read are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from msgspec import Struct

from everturn.core.messages import Message
from everturn.core.parts import LATE_NOTICE_PREFIX, NoticePart, Output, ToolPart
from everturn.errors import BadArguments, UnknownMessage
from everturn.running.active_turn import ActiveTurn

MAX_LISTED_REFERENCES = 10  # references that an error names
_WITHHELD = "withheld"


class _CallsFound(Struct):
    """The calls in some messages, and those whose late result a notice has reported."""

    source: object = None
    calls: dict[str, ToolPart] = {}
    told: set[str] = set()
    is_cut: bool = False  # some result was truncated
    is_private: bool = False


# The messages before a turn do not change while it runs, so they are scanned once.
_SCANNED_HISTORY: WeakKeyDictionary[ActiveTurn, _CallsFound] = WeakKeyDictionary()


def _scan(messages: Iterable[Message], source: object = None) -> _CallsFound:
    found = _CallsFound(source)
    for message in messages:
        for part in message.parts:
            if type(part) is ToolPart:
                found.calls[part.call] = part
                for output in (part.output, part.late):
                    if output is not None:
                        found.is_cut |= bool(output.blob)
                        found.is_private |= bool(output.private)
            elif type(part) is NoticePart and part.kind.startswith(LATE_NOTICE_PREFIX):
                found.told.add(part.kind[len(LATE_NOTICE_PREFIX) :])
    return found


def _scan_history(run: ActiveTurn) -> _CallsFound:
    scanned = _SCANNED_HISTORY.get(run)
    if scanned is None or scanned.source is not run.history:
        scanned = _SCANNED_HISTORY[run] = _scan(run.history or (), run.history)
    return scanned


def readable_results(run: ActiveTurn) -> Iterator[tuple[str, Output]]:
    """The results that a model may refer to, by call, oldest first.

    The branch must have been read; see `read_history`.
    """
    before, own = _scan_history(run), _scan(run.state.messages.values())
    reported, step = before.told | own.told, run.state.step
    # What a call can use must not depend on which of the other calls of its step finished first.
    same_step = {call.id for call in step.calls} if step is not None else set[str]()
    for call, part in (*before.calls.items(), *own.calls.items()):
        output = part.late if part.late is not None and call in reported else part.output
        # Results of nested calls belong to their tool; the model never read them.
        if call not in same_step and not part.parent and output is not None and _is_readable(part, output):
            yield call, output


def _is_readable(part: ToolPart, output: Output) -> bool:
    if output is part.late:
        return output.code != _WITHHELD
    # The output of a call that ran has an origin; that of one that failed before has none.
    return part.state == "completed" or (part.state == "failed" and bool(output.origin))


async def load_results(run: ActiveTurn) -> dict[str, Output]:
    """The results that a model may refer to, by call."""
    if run.history is None:
        await run.load_outputs()
    reported = _scan(run.state.messages.values()).told
    if any((part := _scan_history(run).calls.get(call)) is not None and part.late is None for call in reported):
        # The late result arrived and was reported after this process had read the branch.
        fresh = await run.setup.store.path(run.session, run.state.parent)
        _SCANNED_HISTORY[run] = _scan(fresh, run.history)
    return dict(readable_results(run))


def has_truncated_result(run: ActiveTurn) -> bool:
    """Whether a result on this branch was truncated, so that it can be read by range."""
    if not _scan_history(run).is_cut and not run.state.has_truncated:
        return False
    return any(output.blob for _, output in readable_results(run))


def has_private_result(run: ActiveTurn) -> bool:
    """Whether a result on this branch has private values. The branch must have been read."""
    return _scan_history(run).is_private or run.state.has_private


async def load_full_text(run: ActiveTurn, call: str, results: dict[str, Output]) -> str:
    """The full text of a result, including what its excerpt leaves out.

    Raises:
        BadArguments: the result does not exist; the error lists those that do.
    """
    output = results.get(call)
    if output is None:
        raise BadArguments(f"there is no result {call[:80]!r} to refer to; {_list_references(results)}")
    if not output.blob:
        return output.text
    try:
        return (await run.setup.store.blob(output.blob)).decode()
    except UnknownMessage:
        raise BadArguments(f"the whole of {call} is not kept any more") from None


def _list_references(results: dict[str, Output]) -> str:
    if not results:
        return "there is none yet"
    newest = [f"$ref{{{call}}}" for call in reversed(results)]
    more = f" and {len(newest) - MAX_LISTED_REFERENCES} older" if len(newest) > MAX_LISTED_REFERENCES else ""
    return f"there are: {', '.join(newest[:MAX_LISTED_REFERENCES])}{more}"


async def read_result_range(run: ActiveTurn, call: str, start: int, length: int) -> str:
    """A range of a result, with its position in the whole.

    Raises:
        BadArguments: the result does not exist, or is shorter than that.
    """
    text = await load_full_text(run, call, await load_results(run))
    if start and start >= len(text):
        raise BadArguments(f"start={start} is behind the end; the whole has {len(text)} characters")
    end = min(start + length, len(text))
    more = f"; it goes on with start={end}" if end < len(text) else ""
    return f"[characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"
