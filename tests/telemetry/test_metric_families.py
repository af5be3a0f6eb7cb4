"""Every family that is documented moves when its cause happens: one that nothing moves is a promise that is not kept."""

import asyncio
import io
import logging
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from everturn import Chat, wire
from everturn.app import App
from everturn.clock import SystemClock
from everturn.config.server_options import ServerOptions
from everturn.core.events import Entry, StepFinished
from everturn.core.parts import CacheCollapse, Usage
from everturn.core.rate_limits import BreakerPolicy, LimiterHandle, RateLimit, Sender
from everturn.errors import Stale, StoreUnavailable
from everturn.limiter.limiter import RateLimiter
from everturn.models.scripted import ScriptedModel, say
from everturn.server.serve import serve
from everturn.server.streams import registry, response
from everturn.server.streams.response import EventStreamResponse
from everturn.server.streams.sse import encode_end
from everturn.stores.memory import MemoryStore
from everturn.stores.rate_limits import MemoryRateLimits
from everturn.telemetry import logs, metrics
from everturn.telemetry.limiter_metrics import LimiterMetrics
from everturn.telemetry.metric_families import ALL, PROCESS
from everturn.telemetry.service_gauges import poll_services
from everturn.telemetry.setup import open_telemetry
from everturn.telemetry.span_types import Span
from everturn.telemetry.store_observer import observe_store
from everturn.telemetry.tracer import Tracer
from everturn.telemetry.turn_metrics import TurnMetrics
from everturn.testing.contracts.pagination import add_waiting_session, claim_until_quarantined
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from tests.helpers.server_app import NoStreams, ask, make, make_house, word
from tests.helpers.server_streams import Page, house_of, serving, so, somebody
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent
PAGES = ("docs/deploy/operations.md", "docs/deploy/kubernetes.md", "docs/deploy/alerts.md")


def silent() -> list[str]:
    """The families of which nothing was ever said; a level that is 0 again is not one of them."""
    ours = metrics.METRICS
    return [name for name in ours._families if not ours._values[name] and not ours._histograms[name]]


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
    monkeypatch.setattr(registry, "CHECK_INTERVAL", 0.02)
    gone: set[str] = set()
    runtime = App(ScriptedModel([say("a")]))
    async with serving(house_of(runtime), gone=gone) as server, Chat("", app=runtime, session="s") as chat:
        await (await chat.send("go"))
        before = metrics.METRICS.value("streams_open", "session")
        reading = asyncio.create_task(Page(f"{server.url}/s", key="bad").read())
        await so(lambda: server.streams.open >= 1)
        assert metrics.METRICS.value("streams_open", "session") == before + 1
        gone.add("bad")
        assert await reading == "revoked"
        await so(lambda: not server.streams.open)
        assert metrics.METRICS.value("streams_open", "session") == before
    monkeypatch.setattr(response, "OUTBOX_BYTES", 10)
    never = asyncio.Event()

    async def standing(_: Any) -> set[str]:
        return set()

    async def begin(stream: EventStreamResponse) -> None:
        assert stream.push(b"x" * 8)
        assert not stream.push(b"x" * 8)  # is more than may wait for it

    async def receive() -> Any:
        await never.wait()

    async def sent(_: Any) -> None: ...

    stream_registry = registry.StreamRegistry(standing, lambda _: 0, 15.0)
    slow = stream_registry.count_stream(
        EventStreamResponse(somebody(), begin, encode_end, stream_registry.register, stream_registry.unregister)
    )
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
    store = observe_store(MemoryStore(), counting)
    for number, path in enumerate(sorted((ROOT / "tests/golden/v1").glob("*.jsonl"))):
        await store.admit(send_message(f"k{number}", path.stem, f"other{number}"))
        await store.append(path.stem, 0, [entry.event for entry in wire.load_log(path.read_bytes())])
    await store.admit(send_message())
    await store.append(
        "s", 0, [*turn_started_events(), *call_requested_events(usage=Usage(1, 1, cost=0.5)), *turn_ended_events()]
    )
    missed = CacheCollapse("unexpected", 4_000)
    step = StepFinished(turn="t", step=2, parts=(), finish="stop", usage=Usage(5_000, 1), cache=missed)
    await store.append("s", await store.head("s"), [step])
    assert metrics.METRICS.value("prompt_cache_missed_tokens_total", "unknown", "unexpected") == 4_000
    with suppress(Stale):
        await store.append("s", 99, turn_ended_events())
    taking = App(ScriptedModel([say("a")]), plugins=[TurnMetrics()], store=observe_store(MemoryStore(), TurnMetrics()))
    async with Chat("", app=taking) as chat:
        await (await chat.send("go"))


class Away(MemoryStore):
    """A store that cannot be reached."""

    async def count_all(self) -> Any:
        raise StoreUnavailable("away")


async def services() -> None:
    """A command waits, a session is left alone, a question stands open; then the store is away."""
    store = MemoryStore()
    await add_waiting_session(store, "asks", "t0", NOON)
    await store.admit(send_message("k1", "waits", "t1", at=NOON))
    await store.admit(send_message("k2", "quarantined", "t2"))
    with suppress(Exception):
        await claim_until_quarantined(store, "quarantined")
    runtime = App(ScriptedModel(), store=store)
    await poll_services(runtime)
    assert metrics.METRICS.value("gates_waiting") == metrics.METRICS.value("sessions_quarantined") == 1
    assert metrics.METRICS.value("wake_lag_seconds") > 3600
    assert metrics.METRICS.value("service_up", "database") == 1
    await poll_services(App(ScriptedModel(), store=Away()))
    assert metrics.METRICS.value("service_up", "database") == 0
    await store.append("waits", 0, [*turn_started_events("t1", command="k1")])
    await poll_services(runtime)
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
    tracing = Tracer(Kept())
    store = MemoryStore()
    await store.admit(send_message())
    entries = [
        Entry(seq, event)
        for seq, event in enumerate([*turn_started_events(), *call_requested_events(), *turn_ended_events()], 1)
    ]
    tracing.appended(store, "s", entries)
    tracing.appended(store, "nobody", entries[2:])  # whose beginning cannot be read
    await tracing.aclose()
    leave = asyncio.Event()
    house = await make_house()
    door, none = make(house).authenticator, cast("Any", NoStreams())
    await serve(house, door, ServerOptions(port=0, drain=1.0), lambda _: leave.set(), streams=none, leave=leave)


async def limits() -> None:
    """Requests that wait for a rate limit; a provider that refuses one, and one that fails."""
    breaker = BreakerPolicy(failures=1, seconds=30)
    limiter = RateLimiter(MemoryRateLimits(time.time), SystemClock(), "p", breaker=breaker, observer=LimiterMetrics)
    bucket = limiter.bucket("k", "m", RateLimit(requests_per_minute=6_000))
    sender = Sender(LimiterHandle(limiter), "t")
    first = bucket.enqueue(sender, (1.0, 0.0, 0.0, 0.0))
    await wait_until(lambda: first.is_granted)
    bucket.count_failure()
    bucket.observe(None, 0.01)
    bucket.enqueue(sender, (1.0, 0.0, 0.0, 0.0))
    await wait_until(lambda: metrics.METRICS.value("breaker_open", "m") == 1)
    await bucket.aclose()


async def test_every_family_moves_when_its_cause_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (metrics.METRICS._values, metrics.METRICS._histograms):
        for series in table.values():
            series.clear()
    assert len(silent()) == len(ALL)
    await streams(monkeypatch)
    await requests()
    await turns()
    await services()
    await telling()
    await limits()
    assert silent() == []
