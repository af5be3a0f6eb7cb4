"""Cut answers: whether the next step continues a text that the model's output limit cut, and what is said if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from everturn.core.context.token_estimate import estimate_tokens
from everturn.core.continuation import MAX_CONTINUATIONS, continued_text
from everturn.core.modality import modality_of
from everturn.core.parts import Finish, StreamedPart, TextPart, ToolPart
from everturn.core.requests import ModelRequest
from everturn.running.active_turn import ActiveTurn

# What names an output limit in the parameters of a request, in whatever format.
OUTPUT_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
CUT_OFF: Final = "the answer was cut off at the model's output limit"


def judge_cut(
    run: ActiveTurn, body: ModelRequest, parts: Sequence[StreamedPart], finish: Finish | None
) -> tuple[bool, str]:
    """Whether the next step continues the text of a step, and otherwise a warning if it was cut.

    A limit that the caller set is meant, and is not a cut. A cut call has a result that says so, and the model goes on.
    """
    has_calls = any(type(part) is ToolPart for part in parts)
    if finish != "length" or modality_of(run.model) != "chat" or has_calls or _is_limit_set(body):
        return False, ""
    state, step = run.state, run.state.step
    if step is None or step.closing:
        return False, CUT_OFF
    if not any(type(part) is TextPart and part.text for part in parts):
        return False, f"{CUT_OFF}, before any text: its reasoning used all of it"
    if state.continuations >= MAX_CONTINUATIONS:
        return False, f"{CUT_OFF}, after {state.continuations} continuations"
    if run.setup.agent is not None and run.setup.agent.output is not None:
        return False, ""  # an output is asked for again, as a whole
    if run.setup.hooks["on_output"]:
        return False, f"{CUT_OFF}; it is not continued, because plugins check the text of each step"
    if _fills_window(run, body, parts):
        return False, f"{CUT_OFF}, and it fills the context window of the model"
    if step.number >= state.max_steps:
        return False, f"{CUT_OFF}, and no step is left to continue it (max_steps={state.max_steps})"
    return True, ""


def _fills_window(run: ActiveTurn, body: ModelRequest, parts: Sequence[StreamedPart]) -> bool:
    """Whether the text so far takes half of the model's limit: a compaction keeps it, so its continuation would not fit."""
    limits = run.context_limits
    if limits is None or not limits.limit:
        return False
    text = "".join(part.text for part in parts if type(part) is TextPart)
    return 2 * estimate_tokens((continued_text(body) or "") + text) >= limits.limit


def _is_limit_set(body: ModelRequest) -> bool:
    """Whether the parameters of a request name an output limit; one that only the model's profile has is not in them."""
    options: Any = body.params.get("options")
    places: list[Any] = [body.params, options if isinstance(options, dict) else {}]
    return any(place.get(name) for place in places for name in OUTPUT_LIMITS)
