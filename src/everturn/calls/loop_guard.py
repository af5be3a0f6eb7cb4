"""Loop guard: the fingerprints of the recent calls of a turn, for loop detection."""

from __future__ import annotations

from collections.abc import Callable

from everturn.core.calls import CallRecord
from everturn.core.loop_detection import RECENT_CALLS
from everturn.core.ports import Tool


def recent_fingerprints(
    calls: dict[str, CallRecord], last: CallRecord, named: Callable[[str], Tool | None], most: int = RECENT_CALLS
) -> list[str]:
    """The fingerprints of the calls before `last`, oldest first, without calls of repeatable tools."""
    fingerprints: list[str] = []
    step, index = last.step, last.index
    for call in reversed(calls.values()):
        # Nested calls are compared among themselves, or they would hide repetitions of the model's calls.
        if (call.step == step and call.index >= index) or bool(call.parent) != bool(last.parent):
            continue
        if not _is_repeatable(call, named):
            fingerprints += call.recent_calls[::-1] or (
                call.mark,
            )  # for a sub-agent run: its own calls, if it made any
        if len(fingerprints) >= most:
            break
    fingerprints.reverse()
    return fingerprints[-most:]


def _is_repeatable(call: CallRecord, named: Callable[[str], Tool | None]) -> bool:
    tool = named(call.started.tool if call.started is not None else call.name)
    return tool is not None and tool.spec.repeatable
