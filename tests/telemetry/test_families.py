"""Every family that is documented moves when its cause happens: one that nothing moves is a promise that is not kept."""

import asyncio
import io
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from everturn import Chat, wire
from everturn.config.options import ServerOptions
from everturn.core.events import Entry
from everturn.core.parts import Usage
from everturn.errors import Stale, StoreUnavailable
from everturn.models.scripted import ScriptedModel, say
from everturn.server import live, lives
from everturn.server.live import Live
from everturn.server.serving import serve
from everturn.server.sse import ending
from everturn.stores.memory import MemoryStore
from everturn.telemetry import logs, metrics
from everturn.telemetry.families import ALL, PROCESS
from everturn.telemetry.services import look_at_services
from everturn.telemetry.setup import open_telemetry
from everturn.telemetry.shapes import Span
from everturn.telemetry.tracing import Tracing
from everturn.telemetry.turns import TurnMetrics
from everturn.telemetry.watching import watched
from everturn.testing.contracts.pagination import claims, waits
from everturn.testing.contracts.samples import NOON, called, over, send, started
from everturn.wiring import Runtime
from tests.server.asking import NoStreams, ask, make, make_house, word
from tests.server.streaming import Page, house_of, serving, so, somebody

ROOT = Path(__file__).parent.parent.parent
PAGES = ("docs/guides/operations.md", "deploy/kubernetes.md")


def silent() -> list[str]:
    """The families of which nothing was ever said; a level that is 0 again is not one of them."""
    ours = metrics.METRICS
    return [name for name in ours._families if not ours._values[name] and not ours._times[name]]


def test_what_the_pages_speak_of_is_counted() -> None:
    known = {family.name for family in (*ALL, *PROCESS)}
    for page in PAGES:
        spoken = set(re.findall(r"\beverturn_[a-z_]*[a-z]\b", (ROOT / page).read_text(encoding="utf-8")))
        assert spoken, page
        assert spoken <= known, (page, spoken - known)


def test_the_guide_speaks_of_every_family() -> None:
    guide = (ROOT / PAGES[0]).read_text(encoding="utf-8")
    assert [family.name for family in ALL if family.name not in guide] == []


# Causes ---------------------------------------------------------------------------------------------------------------


async def streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of somebody who reads is revoked, and somebody else does not read."""
    monkeypatch.setattr(lives, "LOOK", 0.02)
    gone: set[str] = set()
    runtime = Runtime(ScriptedModel([say("a")]))
    async with serving(house_of(runtime), gone=gone) as server, Chat("", runtime=runtime, session="s") as chat:
        await (await chat.send("go"))
        before = metrics.METRICS.value("streams_open", "session")
        reading = asyncio.create_task(Page(f"{server.url}/s", key="bad").read())
        await so(lambda: server.streams.open >= 1)
        assert metrics.METRICS.value("streams_open", "session") == before + 1
        gone.add("bad")
        assert await reading == "revoked"
        await so(lambda: not server.streams.open)
        assert metrics.METRICS.value("streams_open", "session") == before
    monkeypatch.setattr(live, "BYTES", 10)
    never = asyncio.Event()

    async def standing(_: Any) -> set[str]:
        return set()

    async def begin(one: Live) -> None:
        assert one.push(b"x" * 8)
        assert not one.push(b"x" * 8)  # is more than may wait for it

    async def receive() -> Any:
        await never.wait()

    async def sent(_: Any) -> None: ...

    there = lives.Lives(standing, lambda _: 0, 15.0)
    slow = there.count_in(Live(somebody(), begin, ending, there.arrived, there.left))
    await slow({"type": "http", "method": "GET"}, receive, sent)
    assert metrics.METRICS.value("streams_ended_total", "session", "slow") >= 1


async def requests() -> None:
    """Requests that are answered, refused and too many; a key that holds, and one that does not."""
    app = make(await make_house(requests=1.0))
    assert (await ask(app, "GET", "/api/me", word("owner"))).status == 200
    assert (await ask(app, "GET", "/api/me", "wrong")).status == 401
    assert (
        await ask(app, "POST", "/api/sessions", word("owner"), body=b"{", headers={"content-type": "text/x"})
    ).status
    answers = [await ask(app, "GET", "/api/me", word("owner")) for _ in range(5)]
    assert answers[-1].status == 429
    assert metrics.METRICS.value("logins_total", "bearer", "known") >= 1
    assert metrics.METRICS.value("logins_total", "bearer", "refused") >= 1


async def turns() -> None:
    """A turn here, one that another process began, and all that golden logs tell."""
    counting = TurnMetrics()
    store = watched(MemoryStore(), counting)
    for number, path in enumerate(sorted((ROOT / "tests/golden/v1").glob("*.jsonl"))):
        await store.admit(send(f"k{number}", path.stem, f"other{number}"))
        await store.append(path.stem, 0, [entry.event for entry in wire.load_log(path.read_bytes())])
    await store.admit(send())
    await store.append("s", 0, [*started(), *called(usage=Usage(1, 1, cost=0.5)), *over()])
    with suppress(Stale):
        await store.append("s", 99, over())
    taking = Runtime(ScriptedModel([say("a")]), plugins=[TurnMetrics()], store=watched(MemoryStore(), TurnMetrics()))
    async with Chat("", runtime=taking) as chat:
        await (await chat.send("go"))


class Away(MemoryStore):
    """A store that cannot be reached."""

    async def tally(self) -> Any:
        raise StoreUnavailable("away")


async def services() -> None:
    """A command waits, a session is left alone, a question stands open; then the store is away."""
    store = MemoryStore()
    await waits(store, "asks", "t0", NOON)
    await store.admit(send("k1", "waits", "t1", at=NOON))
    await store.admit(send("k2", "stuck", "t2"))
    with suppress(Exception):
        await claims(store, "stuck")
    runtime = Runtime(ScriptedModel(), store=store)
    await look_at_services(runtime)
    assert metrics.METRICS.value("gates_waiting") == metrics.METRICS.value("sessions_stuck") == 1
    assert metrics.METRICS.value("wake_lag_seconds") > 3600
    assert metrics.METRICS.value("service_up", "database") == 1
    await look_at_services(Runtime(ScriptedModel(), store=Away()))
    assert metrics.METRICS.value("service_up", "database") == 0
    await store.append("waits", 0, [*started("t1", command="k1")])
    await look_at_services(runtime)
    assert metrics.METRICS.value("wake_lag_seconds") == 0


class Kept:
    """Takes spans."""

    def export(self, spans: Sequence[Span]) -> None: ...

    def close(self) -> None: ...


async def telling() -> None:
    """Lines are logged, spans made and lost, and a process leaves."""
    open_telemetry()
    before, level = list(logging.getLogger().handlers), logging.getLogger().level
    handler = logs.setup("text", stream=io.StringIO())
    logging.getLogger("everturn.test").warning("something")
    logging.getLogger().removeHandler(handler)
    logging.getLogger().handlers[:], logging.getLogger().level = before, level
    tracing = Tracing(Kept())
    store = MemoryStore()
    await store.admit(send())
    entries = [Entry(seq, event) for seq, event in enumerate([*started(), *called(), *over()], 1)]
    tracing.appended(store, "s", entries)
    tracing.appended(store, "nobody", entries[2:])  # whose beginning cannot be read
    await tracing.aclose()
    leave = asyncio.Event()
    house = await make_house()
    door, none = make(house).entrance, cast("Any", NoStreams())
    await serve(house, door, ServerOptions(port=0, drain=1.0), lambda _: leave.set(), streams=none, leave=leave)


async def test_every_family_moves_when_its_cause_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    for kept in (metrics.METRICS._values, metrics.METRICS._times):
        for series in kept.values():
            series.clear()
    assert len(silent()) == len(ALL)
    await streams(monkeypatch)
    await requests()
    await turns()
    await services()
    await telling()
    assert silent() == []
