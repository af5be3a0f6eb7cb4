"""Typed output: the final text of a turn is checked before its step is written.

An answer that does not fit is kept in the log, beside the conversation, and the model is asked again with the problem.
The rejection is written before its step is finished, in the same append: a crash in between repeats the step.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from everturn.core.canonical_json import replace_surrogates
from everturn.core.events import Event, OutputRejected, StepFinished
from everturn.core.modality import modality_of
from everturn.core.parts import TextPart, ToolPart, join_text
from everturn.errors import TurnError
from everturn.running.active_turn import ActiveTurn
from everturn.running.drive_setup import OutputPort

CUT_OUTPUT = "The answer was cut off at the output limit: give a whole one, and make it shorter."
GIVEN_UP = "the model gave no valid output in {attempts}: {problem}; output_retries={retries} allows more attempts"


async def check_step(run: ActiveTurn, output: OutputPort, finished: StepFinished) -> Sequence[Event]:
    """The events of a finished step: with its text as it was checked, or without it if it is not a valid output.

    Raises:
        TurnError: no attempt is left; kind `output`. What the model wrote last is in the interrupted step.
    """
    if any(type(part) is ToolPart for part in finished.parts) or modality_of(run.model) != "chat":
        return [finished]
    text = join_text(finished.parts)
    checked = await output.check(text, await run.run_context())
    if not checked.problem:
        if checked.text == text:
            return [finished]
        others = tuple(part for part in finished.parts if type(part) is not TextPart)
        return [replace(finished, parts=(*others, TextPart(replace_surrogates(checked.text))))]
    attempts = len(run.state.rejected.keys() - {finished.step}) + 1  # the step itself may be a repeat
    if attempts > output.retries:
        tries = f"{attempts} attempt{'s' if attempts > 1 else ''}"
        raise TurnError(
            GIVEN_UP.format(attempts=tries, problem=checked.reason or checked.problem, retries=attempts), kind="output"
        )
    problem = f"{CUT_OUTPUT} {checked.problem}" if finished.finish == "length" else checked.problem
    rejected = OutputRejected(turn=run.turn, at=run.now(), step=finished.step, parts=finished.parts, problem=problem)
    return [rejected, replace(finished, parts=())]
