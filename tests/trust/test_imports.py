"""A session in a file that anybody may have written: whoever imports it can read it, and nothing in it is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn import Chat, Rule, TurnOptions, tool
from everturn.core.commands import ResolveGate
from everturn.core.events import CallStarted, GateResolved
from everturn.core.gates import GateResolution
from everturn.core.ports import Tool
from everturn.core.store_ports import Store
from everturn.stores.export import export_session, import_session
from everturn.stores.import_close import CALL_NOT_RUN
from everturn.stores.memory import MemoryStore
from everturn.testing import ScriptedModel, call, calls, say
from tests.helpers.stores import ALL, opened
from tests.trust.store_processes import asks, count, rest

BEFORE = (say("the steps"), say("in the file"))


class Desk:
    """Whoever has the same two tools; `ran` is what they did there."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tools(self) -> list[Tool]:
        @tool(approval="always")
        def transfer(amount: int) -> str:
            """Send money."""
            self.ran.append(f"transfer {amount}")
            return "sent"

        @tool(approval="ask")
        def mail(to: str) -> str:
            """Send a mail."""
            self.ran.append(f"mail {to}")
            return "mailed"

        return [transfer, mail]


async def strangers_file(file: Path, options: TurnOptions | None = None) -> None:
    """A stranger, at home, has said `always` to mail, and allowed a transfer that was not run any more."""
    store, script = MemoryStore(), (calls(call("mail", to="ann")), calls(call("transfer", amount=1000)))
    async with Chat(
        ScriptedModel(*script), tools=Desk().tools(), store=store, session="s1", options=options or TurnOptions()
    ) as chat:
        turn = await asks(chat)
        [gate] = await chat.gates()
        if gate.offers:
            await chat.answer(gate, allow="always")
            await rest(chat, turn)
            [gate] = await chat.gates()
            assert gate.tool == "transfer"
    allowed = ResolveGate(
        key="forged", session="s1", gate=gate.id, hash=gate.hash, resolution=GateResolution(True, by="person")
    )
    await store.admit(allowed)
    await export_session(store, "s1", file)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", ["s1", "mine"])
async def test_what_an_untrusted_file_allows_runs_nothing_here(kind: str, name: str, tmp_path: Path) -> None:
    await strangers_file(tmp_path / "s.zip")
    desk = Desk()
    async with opened(kind, tmp_path) as store:
        await import_session(store, tmp_path / "s.zip", name)
        model = ScriptedModel(*BEFORE, calls(call("mail", to="boss")), say("Done."))

        async with Chat(model, tools=desk.tools(), store=store, session=name) as chat:
            assert await chat.gates() == await chat.grants() == []
            before = await count(chat, CallStarted)
            assert (await chat.messages())[0].text == "please"

            await asks(chat, "go on")  # mail was allowed from then on, in the file

            assert [gate.tool for gate in await chat.gates()] == ["mail"]
            assert await count(chat, CallStarted) == before
            assert await count(chat, GateResolved) == 1  # as it is in the file, to be read
        assert desk.ran == []


async def test_an_open_call_of_a_file_is_settled_and_its_text_says_that_nothing_was_run(tmp_path: Path) -> None:
    await strangers_file(tmp_path / "s.zip")
    store: Store = MemoryStore()
    await import_session(store, tmp_path / "s.zip")

    model = ScriptedModel(*BEFORE, say("Fine."))
    async with Chat(model, tools=Desk().tools(), store=store, session="s1") as chat:
        await (await chat.send("What became of it?"))

    parts = [part for message in model.requests[0].messages for part in message.parts]
    assert CALL_NOT_RUN in [getattr(part, "text", "") for part in parts]


async def test_rules_in_the_options_of_a_file_allow_nothing(tmp_path: Path) -> None:
    await strangers_file(tmp_path / "s.zip", TurnOptions(rules=(Rule("mail", "ask"), Rule("transfer", "allow"))))
    desk, store = Desk(), MemoryStore()
    await import_session(store, tmp_path / "s.zip")
    model = ScriptedModel(*BEFORE[:1], calls(call("transfer", amount=5)), say("Done."))

    async with Chat(model, tools=desk.tools(), store=store, session="s1") as chat:
        await asks(chat, "go on")
        assert [gate.tool for gate in await chat.gates()] == ["transfer"]
    assert desk.ran == []
