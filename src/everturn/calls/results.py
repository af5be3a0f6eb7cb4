"""Earlier results: the results on a branch that a later call may use, by reference, by range, or for private values.

Withheld results, results of calls that never ran, and results that the model never read are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.context.compaction import compact_path
from everturn.core.messages import Message
from everturn.core.parts import LATE_NOTICE_PREFIX, NoticePart, Output, SummaryPart, ToolPart
from everturn.errors import BadArguments, UnknownMessage
from everturn.running.active_turn import ActiveTurn
from everturn.running.older_calls import OlderCalls

MAX_LISTED_REFERENCES = 10  # references that an error names
MAX_LISTED_RESULTS = 50
MAX_LISTED_LINE = 120  # characters
ARGUMENTS = ".arguments"  # after the name of a call: what it was made with
_WITHHELD = "withheld"


class _CallsFound(Struct):
    """The calls in some messages, and those whose late result a notice has reported."""

    source: object = None
    calls: dict[str, ToolPart] = {}
    reported: set[str] = set()
    is_cut: bool = False  # some result was truncated
    is_private: bool = False
    older: dict[str, ToolPart] = {}  # the calls above the last summary that were looked up, oldest first
    has_private_older: bool = False  # all of those with private values are among them


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
                found.reported.add(part.kind[len(LATE_NOTICE_PREFIX) :])
            elif type(part) is SummaryPart:
                found.is_private |= part.private
    return found


def _scan_history(run: ActiveTurn) -> _CallsFound:
    scanned = _SCANNED_HISTORY.get(run)
    if scanned is None or scanned.source is not run.history:
        scanned = _SCANNED_HISTORY[run] = _scan(run.history or (), run.history)
        scanned.is_private |= any(part.late is not None and part.late.private for part in run.older_late.values())
    return scanned


def readable_results(run: ActiveTurn) -> Iterator[tuple[str, Output]]:
    """The results that a model may refer to, by call, oldest first; of those above the last summary, what was looked up.

    The branch must have been read; see `read_history`.
    """
    before, own = _scan_history(run), _scan(run.state.messages.values())
    reported, step = before.reported | own.reported, run.state.step
    # What a call can use must not depend on which of the other calls of its step finished first.
    same_step = {call.id for call in step.calls} if step is not None else set[str]()
    for call, part in (*before.older.items(), *before.calls.items(), *own.calls.items()):
        output = part.late if part.late is not None and call in reported else part.output
        # Results of nested calls belong to their tool; the model never read them.
        if call not in same_step and not part.parent and output is not None and _is_readable(part, output):
            yield call, output


def _is_readable(part: ToolPart, output: Output) -> bool:
    if output is part.late:
        return output.code != _WITHHELD
    # The output of a call that ran has an origin; that of one that failed before has none.
    return part.state == "completed" or (part.state == "failed" and bool(output.origin))


async def load_results(
    run: ActiveTurn, wanted: Iterable[str] = (), with_private: bool = False, with_all: bool = False
) -> dict[str, Output]:
    """The results that a model may refer to, by call, oldest first.

    Of the calls above the last summary only those are looked up that are `wanted`, or have private values
    (`with_private`); `with_all` reads all of them.
    """
    await run.read_history()
    reported = _scan(run.state.messages.values()).reported
    if any((part := _scan_history(run).calls.get(call)) is not None and part.late is None for call in reported):
        # The late result arrived and was reported after this process had read the branch.
        fresh = await run.setup.store.path(run.session, run.state.parent, run.history_size)
        _SCANNED_HISTORY[run] = _scan(fresh, run.history)
    if run.older is not None:
        await _look_up(run, run.older, set(wanted), reported, with_private, with_all)
    return dict(readable_results(run))


async def _look_up(
    run: ActiveTurn, older: OlderCalls, wanted: set[str], reported: set[str], with_private: bool, with_all: bool
) -> None:
    """Look calls above the last summary up, so that they are among the results."""
    scanned, own = _scan_history(run), run.state.calls
    known = {call for call, part in scanned.older.items() if part.late is not None or call not in reported}
    names = {call for call in wanted if call not in known and call not in scanned.calls and call not in own}
    if with_private and not scanned.has_private_older and scanned.is_private:
        private = [call.call async for call in older.calls() if call.has_private or call.call in run.older_late]
        names.update(private)
        scanned.has_private_older = True
    if with_all:
        names = {call.call async for call in older.calls()}
    if names:
        scanned.reported |= await older.reported()
        scanned.older = await older.find_all(names | scanned.older.keys())


def has_truncated_result(run: ActiveTurn) -> bool:
    """Whether a request lacks some result on this branch, or a part of it, so that it can be read by range."""
    if run.has_compaction or run.state.compactions:  # what was cleared or summarised can be read as well
        return True
    is_cut = run.has_indexed_results and _scan_history(run).is_cut
    if not is_cut and not run.state.has_truncated:
        return False
    return any(output.blob for _, output in readable_results(run))


def has_private_result(run: ActiveTurn) -> bool:
    """Whether a result on this branch has private values. The branch must have been read."""
    return run.state.has_private or (run.has_indexed_results and _scan_history(run).is_private)


async def load_full_text(run: ActiveTurn, call: str, results: dict[str, Output]) -> str:
    """The full text of a result, including what its excerpt leaves out; or `call.arguments`, what a call was made with.

    Raises:
        BadArguments: the result, or the argument, does not exist; the error lists those that do.
    """
    output = results.get(call)
    if output is None and (arguments := _find_arguments(run, call)) is not None:
        return arguments
    if output is None:
        results = await load_results(run, with_all=True)
        raise BadArguments(f"there is no result {call[:80]!r} to refer to; {_list_references(results)}")
    if not output.blob:
        return output.text
    try:
        return (await run.setup.store.blob(output.blob)).decode()
    except UnknownMessage:
        raise BadArguments(f"the full result of {call} is no longer stored") from None


def call_of_reference(name: str) -> str:
    """The call that a reference names, by itself or by one of its arguments."""
    return name.partition(ARGUMENTS)[0]


def _find_arguments(run: ActiveTurn, name: str) -> str | None:
    """The arguments of an earlier call as the model wrote them, or one of them; None if the name is not of this form.

    `call.arguments` is the JSON text, `call.arguments.to.0` a part of it: a text as it is, anything else as JSON.

    Raises:
        BadArguments: the call has no such argument.
    """
    call, mark, path = name.partition(ARGUMENTS)
    before = _scan_history(run)
    found = {**before.older, **before.calls, **_scan(run.state.messages.values()).calls}
    step = run.state.step
    is_same_step = step is not None and any(other.id == call for other in step.calls)
    if not mark or (path and not path.startswith(".")) or is_same_step or call not in found or found[call].parent:
        return None
    written = found[call].arguments
    if not path:
        return written
    try:
        value: Any = msgspec.json.decode(written)
    except msgspec.DecodeError:
        raise BadArguments(f"the arguments of {call} are not JSON; $ref{{{call}{ARGUMENTS}}} is their text") from None
    for key in path[1:].split("."):
        try:
            value = (
                cast("list[Any]", value)[int(key)] if isinstance(value, list) else cast("dict[str, Any]", value)[key]
            )
        except (KeyError, IndexError, ValueError, TypeError):
            names = ", ".join(cast("dict[str, Any]", value))[:200] if isinstance(value, dict) else ""
            choices = f"; there are: {names}" if names else ""
            raise BadArguments(f"{call} was made without an argument {path[1:][:80]!r}{choices}") from None
    return value if isinstance(value, str) else encode_canonical(value)


def _list_references(results: dict[str, Output]) -> str:
    if not results:
        return "there is none yet"
    newest = [f"$ref{{{call}}}" for call in reversed(results)]
    more = f" and {len(newest) - MAX_LISTED_REFERENCES} older" if len(newest) > MAX_LISTED_REFERENCES else ""
    return f"there are: {', '.join(newest[:MAX_LISTED_REFERENCES])}{more}"


async def list_missing_results(run: ActiveTurn, start: int) -> str:
    """The results that a request does not show, or not as a whole, the newest first: one line for each.

    Raises:
        BadArguments: there are fewer.
    """
    results, history = await load_results(run), await run.read_history()
    shown = {
        part.call: (part.output, part.late)
        for message in compact_path([*history, *run.state.messages.values()])
        for part in message.parts
        if type(part) is ToolPart
    }
    missing = [
        (call, output) for call, output in reversed(results.items()) if output.blob or output not in shown.get(call, ())
    ]
    if not missing:
        return "Every earlier result is shown as a whole."
    if start >= len(missing):
        raise BadArguments(f"start={start} is after the end; there are {len(missing)}")
    names = {
        call: part.name
        for found in (_scan_history(run), _scan(run.state.messages.values()))
        for call, part in found.calls.items()
    }
    lines = [
        _describe(call, names.get(call, ""), output) for call, output in missing[start : start + MAX_LISTED_RESULTS]
    ]
    end = start + len(lines)
    more = f"; continue with start={end}" if end < len(missing) else ""
    return "\n".join([f"[{start} to {end} of {len(missing)}{more}; read_result(call) reads one]", *lines])


def _describe(call: str, tool: str, output: Output) -> str:
    """A result in one line, from its text as the model may read it."""
    first = next((line.strip() for line in output.text.splitlines() if line.strip()), "")
    first = first if len(first) <= MAX_LISTED_LINE else f"{first[:MAX_LISTED_LINE]}…"
    size = f"{len(output.text)} characters" + (", an excerpt" if output.blob else "")
    return f"{call} {tool} ({size}): {first}"


async def read_result_range(run: ActiveTurn, call: str, start: int, length: int) -> str:
    """A range of a result, with its position in the whole.

    Raises:
        BadArguments: the result does not exist, or is shorter than that.
    """
    text = await load_full_text(run, call, await load_results(run, (call_of_reference(call),)))
    if start and start >= len(text):
        raise BadArguments(f"start={start} is after the end; the full text has {len(text)} characters")
    end = min(start + length, len(text))
    more = f"; continue with start={end}" if end < len(text) else ""
    return f"[characters {start} to {end} of {len(text)}{more}]\n{text[start:end]}"
