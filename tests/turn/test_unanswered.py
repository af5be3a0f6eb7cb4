"""`await turn` on a turn that waits for a person, in a script where nobody asks one: it says why it does not return."""

from __future__ import annotations

import asyncio

import pytest

from everturn import Chat, Turn, tool
from everturn.app import App
from everturn.chat.unanswered_gates import WARN_AFTER
from everturn.events import Phase
from everturn.testing import FakeClock, ScriptedModel, call, calls, say


@tool(approval="always")
async def pay(cents: int) -> str:
    """Pay."""
    return "paid"


class Script:
    """A chat whose first turn asks before it pays, on a clock that a test owns."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        model = ScriptedModel([calls(call("pay", cents=900))], [say("Done.")])
        self.chat = Chat(model, app=App(model, tools=[pay], clock=self.clock))

    async def parked(self) -> tuple[Turn, asyncio.Task[object]]:
        """The turn, once it waits, and somebody who awaits it."""
        turn = await self.chat.send("Pay")
        waiting: asyncio.Task[object] = asyncio.ensure_future(self._await(turn))
        while (await turn.state()).phase is not Phase.WAITING or self.clock.waiting != 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        return turn, waiting

    async def _await(self, turn: Turn) -> object:
        return await turn


async def test_after_a_while_the_reason_and_the_ways_out_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    script = Script()
    async with script.chat as chat:
        turn, waiting = await script.parked()
        script.clock.advance(WARN_AFTER - 0.1)
        assert caplog.text == ""
        script.clock.advance(0.2)
        (gate,) = await chat.gates()
        (warning,) = caplog.messages
        assert f'gate {gate.id} (call: pay {{"cents":900}})' in warning
        assert "chat.gates()" in warning
        assert "turn.cancel()" in warning
        await turn.answer(gate, allow="once")
        assert (await waiting).text == "Done."  # pyright: ignore[reportAttributeAccessIssue]
    assert len(caplog.messages) == 1


async def test_who_answers_in_time_reads_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    script = Script()
    async with script.chat as chat:
        turn, waiting = await script.parked()
        (gate,) = await chat.gates()
        await turn.answer(gate, deny="no")
        await waiting
        script.clock.advance(10 * WARN_AFTER)
        assert ((await turn.state()).phase, caplog.messages) == (Phase.COMPLETED, [])


async def test_where_somebody_else_follows_or_listens_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    script = Script()
    async with script.chat as chat:
        turn, waiting = await script.parked()
        stop = chat.subscribe(lambda snapshot: None)
        script.clock.advance(2 * WARN_AFTER)
        assert caplog.messages == []
        stop()
        await turn.cancel()
        await waiting
