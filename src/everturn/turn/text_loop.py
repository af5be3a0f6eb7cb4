"""Text loops: a model that writes the same text again and again, because a plugin asks it for another step each time."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.core.loop_detection import LOOP_REPETITIONS, find_loop_period, step_texts
from everturn.core.parts import StreamedPart, TextPart, ToolPart
from everturn.running.active_turn import ActiveTurn

REPEATED = "the model wrote the same text for the third time, so no further step follows"


async def find_text_loop(run: ActiveTurn, parts: Sequence[StreamedPart]) -> str:
    """A warning if the text of a step completes the third repetition since the person last spoke; "": it does not.

    Calls are compared by the loop guard. A rule or grant that allows loops allows these, too.
    """
    step = run.state.step
    if step is None or step.number < LOOP_REPETITIONS or any(type(part) is ToolPart for part in parts):
        return ""
    text = " ".join("".join(part.text for part in parts if type(part) is TextPart).split())
    own = list(run.state.messages.values())
    last_input = max((at for at, message in enumerate(own) if message.role == "user" and not message.by), default=-1)
    if not text or not find_loop_period([*step_texts(own[last_input + 1 :]), text]):
        return ""
    decision = run.setup.permissions.decide_loop("", run.state.options, await run.grants())
    return "" if decision.action == "allow" else REPEATED
