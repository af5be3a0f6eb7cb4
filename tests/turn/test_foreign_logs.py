"""Whatever log `fold` lets in, the driver can act on: it brings the turn to an end, and never by a fault of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import example, given

from everturn.core.events import (
    AnswerStarted,
    CallStarted,
    CallSuspended,
    PermissionDecided,
    StepFinished,
    StepStarted,
    SubagentStarted,
    TurnEvent,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import ToolPart
from everturn.core.phases import Phase
from tests.helpers import call_records
from tests.helpers.simulated_driver import Dice, dice
from tests.turn.foreign_logs import KEY, drive_to_an_end, foreign_log

JUDGED = PermissionDecided(
    turn="t", call="c", tool="look", identity="id", hash="hash", allowed=True, why="so say the rules"
)
STARTED = CallStarted(turn="t", call="c", tool="look", arguments="{}", hash="hash", read_only=True, key="c")


@pytest.fixture(autouse=True)
def _records() -> Iterator[None]:
    """Not what `tests/helpers/call_records.py` looks at: in these logs calls were judged, and never started, by nobody of ours."""
    yield
    call_records.forget()


# Dice that failed once, and are thrown every time since.
GATE = (
    "e7000000000052007100000000cc000000000036006d006d007d000000830000002500000000df0029000000210000005d00"
    "0000009e000000000000680000ae00000000990000003a00000000000e000091000088000700000000000000000000000000"
    "7b0000008900280000002000009e9500e70000a90000e8"
)
BELOW = (
    "1f0000007600000000009b0000000000a400c7000000000000000000002fbf5cb000aa0000950000000000b2000000004408"
    "00ff0000090059000f23e80057fd0000000000000000000000002d00d700000077000000133250004f000000a300d10000"
)


def one_call(*events: TurnEvent) -> list[TurnEvent]:
    """A turn whose first step has made a call, and what then happened to it."""
    return [
        TurnStarted(turn="t", input=Message("in", None, "user"), command=KEY),
        AnswerStarted(turn="t", message=Message("a", "in", "assistant")),
        StepStarted(turn="t", step=1),
        StepFinished(turn="t", step=1, parts=(ToolPart("c", "look", "{}"),), finish="stop"),
        *events,
    ]


@pytest.mark.timeout(300)  # 2,500 turns in the long form
@given(dice)
@example(Dice(bytes.fromhex(GATE)))  # a question of a plugin while a step streamed
@example(Dice(bytes.fromhex(BELOW)))  # a call that waited for a sub-agent run nobody had begun
def test_whatever_the_fold_lets_in_a_real_driver_brings_to_an_end(dice: Dice) -> None:
    call_records.forget()
    if log := foreign_log(dice):
        assert asyncio.run(drive_to_an_end(log)).phase.is_terminal


async def test_a_call_that_waits_for_a_sub_turn_which_is_gone_goes_on() -> None:
    below = SubagentStarted(turn="t", call="c", session="gone", child="gone.1")
    waits = CallSuspended(turn="t", call="c", saved_state="", child="gone.1")
    state = await drive_to_an_end(one_call(JUDGED, STARTED, below, waits))
    assert (state.phase, state.calls["c"].state) == (Phase.COMPLETED, "outcome_unknown")


async def test_a_call_that_was_denied_before_the_log_was_cut_is_denied() -> None:
    denied = PermissionDecided(
        turn="t", call="c", tool="look", identity="id", hash="", allowed=False, why="a rule says no"
    )
    state = await drive_to_an_end(one_call(denied))
    assert (state.phase, state.calls["c"].state) == (Phase.COMPLETED, "denied")


@pytest.mark.parametrize("tool", ["look", "another"])
async def test_a_call_that_was_allowed_as_something_else_before_the_log_was_cut_does_not_start(tool: str) -> None:
    other = PermissionDecided(turn="t", call="c", tool=tool, identity="id", hash="other", allowed=True, why="a rule")
    state = await drive_to_an_end(one_call(other))
    assert (state.phase, state.calls["c"].state) == (Phase.COMPLETED, "failed")
