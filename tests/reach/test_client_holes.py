"""What a client cannot do is said, and tried again later and later; a face cannot declare what takes for ever."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from everturn import Chat
from everturn.app import App
from everturn.chat import tool_client as clients
from everturn.chat.tool_client import ToolClient
from everturn.core.options import ClientTool
from everturn.core.store_ports import Receipt
from everturn.errors import ConfigError, StoreUnavailable
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools.client import MAX_SCHEMA_BYTES, client_tool
from tests.helpers.conversations import Talk
from tests.helpers.waiting import wait_until
from tests.reach.test_clients import bell, ringing, serving


@pytest.mark.parametrize("lease", [7200, -1, 3600.5, float("nan"), float("inf"), True, "60"])
async def test_a_client_with_a_lease_that_no_claim_may_have_is_refused_at_once(lease: Any):
    talk = Talk(bell())
    async with talk.process(say("Hello.")) as chat:
        with pytest.raises(ConfigError, match="at most 3600"):
            ToolClient(chat, {"bell": lambda times: {"rung": times}}, lease=lease)


class Failing(MemoryStore):
    """Takes no commands of some kinds for some times."""

    def __init__(self, **times: int) -> None:
        super().__init__()
        self.times = times
        self.looks_failed = 0
        self.has_gate = False

    async def admit(self, command: Any) -> Receipt:
        """Admit it, or not yet."""
        kind = type(command).__name__.lower()
        if self.times.get(kind, 0):
            self.times[kind] -= 1
            raise StoreUnavailable(f"no {kind} now")
        return await super().admit(command)

    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> Any:
        """Say what is open, or not yet."""
        found = await super().gates(session, tenant=tenant)
        if found and self.times.get("gates", 0):
            self.times["gates"] -= 1
            raise StoreUnavailable("no gates now")
        return found


@pytest.mark.parametrize(
    ("times", "warning"),
    [
        ({"claimcall": 3}, "could not do bell"),
        ({"resolvegate": 3}, "the result of bell"),
        ({"gates": 3}, "cannot look for calls"),
    ],
    ids=["claims", "answers", "looks"],
)
async def test_what_a_client_cannot_do_now_is_logged_and_done_once_later(
    times: dict[str, int], warning: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(clients, "FIRST_REST", 0.01)
    caplog.set_level(logging.WARNING, clients.__name__)
    rung: list[int] = []

    def ring(times: int) -> dict[str, int]:
        rung.append(times)
        return {"rung": times}

    talk = Talk(bell("once"), store=Failing(**times))
    async with talk.process(*ringing(2)) as chat, serving(ToolClient(chat, {"bell": ring})):
        turn = await chat.send("Ring.")
        while not (await turn.state()).phase.is_terminal:
            talk.clock.advance(0.01)  # what could not be done rests by this clock
            await asyncio.sleep(0.001)
        [settled] = await talk.settled()

    assert (settled.state, rung) == ("completed", [2])
    assert [warning in line for line in caplog.messages] == [True] * 3


class Looking(ToolClient):
    """A client whose looks are counted."""

    looks = 0

    async def start_waiting_calls(self) -> None:
        await super().start_waiting_calls()
        self.looks += 1

    async def again(self) -> None:
        """Until it has looked a few times more, whatever the time is."""
        enough = self.looks + 3
        await wait_until(lambda: self.looks >= enough)


async def test_a_call_that_cannot_be_claimed_is_tried_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(clients, "POLL_PAUSE", 0.0)
    caplog.set_level(logging.WARNING, clients.__name__)
    store = Failing(claimcall=1000)
    talk = Talk(bell(), store=store)
    async with talk.process(*ringing(1)) as chat:
        client = Looking(chat, {"bell": lambda times: {"rung": times}})
        async with serving(client):
            turn = await chat.send("Ring.")
            for tries, rest in ((1, 1), (2, 2), (3, 4)):
                await wait_until(lambda tries=tries: len(caplog.messages) == tries)
                assert caplog.messages[-1].endswith(f"tries again in {rest} s: StoreUnavailable: no claimcall now")
                talk.clock.advance(rest - 0.1)
                await client.again()
                assert store.times["claimcall"] == 1000 - tries
                talk.clock.advance(0.2)
            await turn.cancel()


def large(size: int) -> dict[str, Any]:
    return {"type": "object", "$comment": "x" * (size - len('{"$comment":"","type":"object"}'))}


def test_a_schema_of_64_kb_is_taken_and_none_that_is_larger():
    client_tool("bell", "Ring.", large(MAX_SCHEMA_BYTES), answer=large(MAX_SCHEMA_BYTES))
    with pytest.raises(ConfigError, match="at most 65,536 bytes of JSON, and this one has 65,537"):
        client_tool("bell", "Ring.", large(MAX_SCHEMA_BYTES + 1))
    with pytest.raises(ConfigError, match="check the rest in the tool"):
        client_tool("bell", "Ring.", large(31), answer=large(MAX_SCHEMA_BYTES + 1))


@pytest.mark.parametrize("schemas", [(large(MAX_SCHEMA_BYTES + 1), None), (large(31), large(MAX_SCHEMA_BYTES + 1))])
async def test_a_face_that_declares_a_larger_schema_is_refused_before_anything_is_admitted(schemas: Any):
    store = MemoryStore()
    model = ScriptedModel(say("Hello."))
    async with Chat(model, app=App(model, store=store), session="s") as chat:
        with pytest.raises(ConfigError, match="at most 65,536 bytes"):
            await chat.send("Hello", clients=[ClientTool("bell", "Ring.", *schemas)])
        assert await store.sessions() == []


async def test_two_clients_of_one_name_are_two() -> None:
    done: list[int] = []

    async def ring(number: int) -> str:
        done.append(number)
        await asyncio.sleep(0.01)
        return "rang"

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    talk = Talk(client_tool("bell", "Ring.", schema))
    async with talk.process(calls(*(call("bell", number=n) for n in range(20))), say("Done.")) as chat:
        turn = await chat.send("go")
        async with serving(*(ToolClient(chat, {"bell": ring}, name="tab") for _ in range(2))):
            await turn
    assert sorted(done) == list(range(20))
