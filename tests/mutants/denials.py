"""Seeded bugs in denials that stop their turn; see `mutants.py`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STOP = "tests/turn/test_deny_and_stop.py::"
ENDS = f"{STOP}test_a_denial_with_stop_ends_the_turn_without_another_request"

DENIAL_MUTANTS = [
    Mutant(
        "a turn that was stopped asks its model once more",
        "core/decide.py",
        "if not wants_more or step.closing or state.is_stopped:",
        "if not wants_more or step.closing:",
        ENDS,
    ),
    Mutant(
        "every denial stops its turn",
        "core/state.py",
        "self.is_stopped |= event.resolution.stop and not event.resolution.allowed",
        "self.is_stopped |= not event.resolution.allowed",
        f"{STOP}test_a_denial_without_stop_asks_the_model_again",
    ),
    Mutant(
        "nothing says who stopped a turn",
        "driver/commands.py",
        "return [resolved, _stop_event(state, gate, resolution, at)] if is_stop else [resolved]",
        "return [resolved]",
        ENDS,
    ),
    Mutant(
        "a call that was denied with a stop is told as incomplete",
        "core/decide.py",
        'return FinishIncompleteCalls("stopped")',
        'return FinishIncompleteCalls("max_steps_reached")',
        ENDS,
    ),
    Mutant(
        "an approval can stop a turn",
        "core/gate_rows.py",
        "if v.allowed and v.stop:",
        "if False:",
        f"{STOP}test_only_a_denial_can_stop",
    ),
]
