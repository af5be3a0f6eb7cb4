"""The trail of a turn: what it has called so far, as the loop guard looks at it."""

from __future__ import annotations

from collections.abc import Callable

from everturn.core.calls import Call
from everturn.core.loops import TRAIL
from everturn.core.ports import Tool


def marks_before(
    calls: dict[str, Call], last: Call, named: Callable[[str], Tool | None], most: int = TRAIL
) -> list[str]:
    """The marks of the calls before one, oldest first: what may be repeated leaves none."""
    found: list[str] = []
    step, index = last.step, last.index
    for call in reversed(calls.values()):
        # What tools call by themselves is a trail of its own, or it would stand between what the model repeats.
        if (call.step == step and call.index >= index) or bool(call.parent) != bool(last.parent):
            continue
        if not _is_repeatable(call, named):
            found += call.trail[::-1] or (call.mark,)  # of a sub-turn what it did, where it did anything
        if len(found) >= most:
            break
    found.reverse()
    return found[-most:]


def _is_repeatable(call: Call, named: Callable[[str], Tool | None]) -> bool:
    tool = named(call.started.tool if call.started is not None else call.name)
    return tool is not None and tool.spec.repeatable
