"""The stream of a whole tenant: first what there is, then what moves, from whichever node."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import msgspec
import pytest

from everturn import Chat, tool
from everturn.api import InboxItem
from everturn.app import App
from everturn.core.events import TurnCancelled, TurnStarted
from everturn.core.options import TurnOptions
from everturn.core.rules.policy import Rule
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.server.streams import inbox
from tests.helpers.server_streams import Server, house_of, serving
from tests.helpers.tenants import share_with_all

_decode = msgspec.json.Decoder(InboxItem).decode


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "POLL_INTERVAL", 0.05)


@tool(read_only=True, review="always")
async def look() -> str:
    """Look."""
    return "the secret"


def app_on(file: Path) -> App:
    model = ScriptedModel([calls(call("look"))], [say("done")])
    return App(model, tools=[look], store=str(file), rules=[Rule(tool="look", action="allow")])


async def items(server: Server, role: str = "owner") -> AsyncIterator[InboxItem]:
    timeout = aiohttp.ClientTimeout(total=30)
    async with (
        aiohttp.ClientSession(timeout=timeout) as http,
        http.get(f"{server.url}/", params={"role": role}) as response,
    ):
        async for line in response.content:
            if line.startswith(b"data: "):
                yield _decode(line[6:])


async def read_items_until(found: AsyncIterator[InboxItem], holds: Callable[[InboxItem], bool]) -> list[InboxItem]:
    seen: list[InboxItem] = []
    async for item in found:
        seen.append(item)
        if holds(item):
            return seen
    raise AssertionError("the stream has ended")


def waits(item: InboxItem) -> bool:
    return bool(item.waits)


async def test_what_happens_on_one_node_is_told_on_another(tmp_path: Path):
    file = tmp_path / "talks.db"
    driving, watching = app_on(file), app_on(file)
    async with serving(house_of(watching)) as server, Chat("", app=driving, session="s") as chat:
        owner, viewer = items(server), items(server, "viewer")
        first = await anext(owner)
        assert first.snapshot is not None
        assert (first.snapshot.gates, first.snapshot.awake) == ([], [])
        assert (await anext(viewer)).snapshot is not None

        await share_with_all(driving.store, "s", "local")
        turn = await chat.send("go")
        [*_, item] = await read_items_until(owner, waits)
        [*_, veiled] = await read_items_until(viewer, waits)

        assert item.session is not None
        assert item.waits is not None
        assert item.session.id == "s"
        assert item.waits[0].gate.output is not None
        assert "the secret" in repr(item)
        assert "the secret" not in repr(veiled)

        late = await anext(items(server))  # whoever comes now is told at once
        assert late.snapshot is not None
        assert [gate.session for gate in late.snapshot.gates] == ["s"]

        await turn.answer(item.waits[0].gate, allow="once")
        await turn
        # While it waited at the gate it was not awake either, and its list may come once more before the answer.
        await read_items_until(
            owner, lambda item: item.session is not None and item.waits == [] and not item.session.is_awake
        )
        for stream in (owner, viewer):
            await stream.aclose()  # type: ignore[attr-defined]
    await driving.store.aclose()
    await watching.store.aclose()


async def test_nothing_is_told_while_nothing_moves_and_nothing_of_other_tenants(tmp_path: Path):
    app = App(ScriptedModel([say("a")], [say("b")]))
    async with (
        serving(house_of(app)) as server,
        Chat("", app=app, session="ours") as ours,
        Chat("", app=app, session="theirs", tenant="theirs") as theirs,
    ):
        found = items(server)
        await anext(found)
        await (await theirs.send("go"))
        await (await ours.send("go"))
        seen = await read_items_until(found, lambda item: item.session is not None and not item.session.is_awake)
        assert {item.session.id for item in seen if item.session is not None} == {"ours"}

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await anext(found)
        await found.aclose()  # type: ignore[attr-defined]


async def test_a_session_from_the_future_hides_nothing_that_moves_now(tmp_path: Path) -> None:
    app = App(ScriptedModel([say("one")], [say("two")]), store=str(tmp_path / "a.db"))
    async with serving(house_of(app)) as server:
        begun = TurnStarted(turn="t", at=4e12, options=TurnOptions(), input=None)
        await app.store.restore("future", "local", [begun, TurnCancelled(turn="t", at=4e12)])
        seen: set[str] = set()
        reading = items(server)
        await anext(reading)
        for name in ("first", "second"):
            await Chat("", app=app, session=name).send("hello")
            async with asyncio.timeout(20):
                while name not in seen:
                    item = await anext(reading)
                    seen |= {item.session.id} if item.session is not None else set()
        await reading.aclose()  # pyright: ignore[reportAttributeAccessIssue]
    await app.aclose()
