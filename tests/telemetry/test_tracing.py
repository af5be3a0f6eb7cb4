"""Turns as they happen → one trace each: through crashes, from several processes, to a real collector."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from everturn import Chat, tool
from everturn.app import App
from everturn.core.events import Entry, TurnStarted
from everturn.core.store_ports import Store
from everturn.errors import ConfigError
from everturn.events import TurnSuspended
from everturn.telemetry.ids import span_of_turn
from everturn.telemetry.setup import Telemetry, TelemetryOptions, open_telemetry
from everturn.telemetry.span_types import Span
from everturn.telemetry.spans import spans_of
from everturn.telemetry.store_observer import observe_store
from everturn.telemetry.tracer import Tracer
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, call, calls, say
from everturn.testing.crash import MortalStore
from tests.helpers.tools import look
from tests.telemetry.collector import collector

SECRET = "sk-canary0123456789abcdef"
PRIVATE = "ada.canary@example.com"


@tool(idempotent=True, approval="always")
async def mail(to: str) -> str:
    return f"sent to {to}"


@tool(read_only=True, private=("email",))
async def who(name: str) -> dict[str, str]:
    return {"name": name, "email": PRIVATE, "note": f"the key is {SECRET}"}


SCRIPT = [calls(call("look", at="a"), call("look", at="b")), calls(call("mail", to="c")), say("Done.")]


class Kept:
    """An exporter that keeps what it gets."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.is_closed = False

    def export(self, spans: Sequence[Span]) -> None:
        self.spans += spans

    def close(self) -> None:
        self.is_closed = True


def process(
    store: Store, exporter: Kept, meter: Kept | None = None, clock: FakeClock | None = None
) -> tuple[Chat, Tracer]:
    tracing = Tracer(exporter, meter=meter)
    model = ScriptedModel(*SCRIPT)
    app = App(model, tools=[look, mail], store=observe_store(store, tracing), clock=clock or FakeClock())
    return Chat(model, app=app, session="talk"), tracing


async def to_the_end(chat: Chat) -> None:
    turn = await chat.send("go", key="the one")
    async for event in turn.events():
        if isinstance(event, TurnSuspended):
            for gate in await chat.gates():
                await chat.answer(gate, allow="once")


async def ended(chat: Chat, tracing: Tracer) -> None:
    await chat.app.aclose()
    await tracing.aclose()


async def whole_log() -> list[Entry]:
    store, exporter = MemoryStore(), Kept()
    chat, tracing = process(store, exporter)
    await to_the_end(chat)
    await ended(chat, tracing)
    return await store.events("talk")


async def test_spans_are_given_as_soon_as_they_are_over_and_once() -> None:
    store, exporter, meter = MemoryStore(), Kept(), Kept()
    chat, tracing = process(store, exporter, meter)
    await to_the_end(chat)
    await ended(chat, tracing)
    assert exporter.spans == spans_of("talk", await store.events("talk")) == meter.spans
    assert exporter.is_closed
    assert meter.is_closed


async def test_wherever_a_process_dies_the_turn_is_one_trace_and_no_span_is_missing_or_another() -> None:
    events = len(await whole_log())
    for lives in range(1, events):  # at the last one nobody goes on: there is nothing left to do
        for before_next in (False, True):
            inner, first, second, meter = MemoryStore(), Kept(), Kept(), Kept()
            mortal = MortalStore(inner, lives, before_next=before_next)
            chat, tracing = process(mortal, first, meter)
            playing = asyncio.ensure_future(to_the_end(chat))
            dying = asyncio.ensure_future(mortal.died.wait())
            await asyncio.wait({playing, dying}, return_when="FIRST_COMPLETED")
            for task in (playing, dying):
                task.cancel()
            await asyncio.gather(playing, dying, return_exceptions=True)
            await ended(chat, tracing)
            chat, tracing = process(inner, second, meter)
            await to_the_end(chat)
            await ended(chat, tracing)

            whole = spans_of("talk", await inner.events("talk"))
            assert len({span.key.trace for span in whole}) == 1
            exported = {span.key: span for span in (*first.spans, *second.spans)}
            assert exported == {span.key: span for span in whole}, (lives, before_next)
            assert all(exported[span.key] == span for span in (*first.spans, *second.spans)), "the same again"
            counted = [span.key for span in meter.spans]
            assert len(counted) == len(set(counted)), "what is counted is counted once"


async def test_who_goes_on_long_after_gives_again_only_what_ended_just_before() -> None:
    store, first, second = MemoryStore(), Kept(), Kept()
    clock = FakeClock()
    chat, tracing = process(store, first, clock=clock)
    turn = await chat.send("go", key="the one")
    async for event in turn.events():
        if isinstance(event, TurnSuspended):
            break
    await ended(chat, tracing)
    # As if the first step had ended a minute before the turn began to wait.
    entries = await store.events("talk")
    parked = entries[-1].event.at
    clock.advance(86_400)
    chat, tracing = process(store, second, clock=clock)
    await to_the_end(chat)
    await ended(chat, tracing)
    wait = next(span for span in second.spans if span.name == "gate call")
    assert (wait.start, wait.end) == (parked, parked + 86_400)
    [turn_span] = [span for span in second.spans if span.parent is None]
    assert turn_span.end - turn_span.start == 86_400
    assert {span.key.trace for span in (*first.spans, *second.spans)} == {turn_span.key.trace}


async def test_what_ended_long_before_another_process_came_is_not_given_again() -> None:
    exporter, store = Kept(), MemoryStore()
    entries = await whole_log()
    old = [entry for entry in entries if entry.seq < len(entries) - 3]
    tracing = Tracer(exporter)

    class Late:
        async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
            moved = [msgspec.structs.replace(e.event, at=e.event.at + (0 if e in old[:8] else 1000)) for e in entries]
            return [Entry(n, event) for n, event in enumerate(moved, 1) if n > after]

    tracing.appended(Late(), "talk", [entries[-1]])  # pyright: ignore[reportArgumentType]
    await tracing.aclose()
    whole = spans_of("talk", await Late().events("talk"))
    assert exporter.spans == [span for span in whole if span.end >= 1_700_000_900]
    assert 0 < len(exporter.spans) < len(whole)
    assert await store.sessions() == []


async def test_what_is_written_while_another_process_s_log_is_read_is_not_lost() -> None:
    entries, exporter = await whole_log(), Kept()
    reading, go_on = asyncio.Event(), asyncio.Event()

    class Slow:
        """A store that answers with what was there when it was asked."""

        there = len(entries) - 4

        async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
            found = entries[after : self.there]
            reading.set()
            await go_on.wait()
            return found

    tracing, store = Tracer(exporter), Slow()
    tracing.appended(store, "talk", entries[store.there - 1 : store.there])  # pyright: ignore[reportArgumentType]
    await reading.wait()
    for number in range(store.there, len(entries)):
        store.there += 1
        tracing.appended(store, "talk", [entries[number]])  # pyright: ignore[reportArgumentType]
    go_on.set()
    await tracing.aclose()
    assert exporter.spans == spans_of("talk", entries)


async def test_a_trace_that_cannot_be_read_stops_nothing() -> None:
    exporter, entries = Kept(), await whole_log()

    class Broken:
        async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
            raise OSError("the store is away")

    tracing = Tracer(exporter)
    tracing.appended(Broken(), "talk", entries[5:6])  # pyright: ignore[reportArgumentType]
    await tracing.aclose()
    assert exporter.spans == []


async def test_a_watcher_that_fails_does_not_touch_the_turn() -> None:
    class Failing:
        def appended(self, store: Store, session: str, entries: Sequence[Entry]) -> None:
            raise RuntimeError("no")

    model = ScriptedModel(say("Done."))
    async with Chat(model, app=App(model, store=observe_store(MemoryStore(), Failing()))) as chat:
        assert (await (await chat.send("go"))).text == "Done."


async def test_all_spans_of_a_session_can_be_given_once_more() -> None:
    store, exporter = MemoryStore(), Kept()
    chat, tracing = process(store, Kept())
    await to_the_end(chat)
    await ended(chat, tracing)
    again = Tracer(exporter)
    assert await again.export_again(store, "talk") == len(exporter.spans) == 8


async def watched_talk(options: TelemetryOptions) -> tuple[Telemetry, MemoryStore]:
    seen, store = open_telemetry(options), MemoryStore()
    script = [calls(call("who", name="Canary-name")), say(f"It is Canary-text, and {SECRET}.")]
    model = ScriptedModel(*script)
    app = App(model, tools=[who], store=store, telemetry=seen)
    async with Chat(model, app=app, session="talk") as chat:
        await (await chat.send(f"Canary-question with {SECRET}"))
    await seen.aclose()
    return seen, store


async def test_a_real_collector_gets_one_trace_and_the_metrics_and_nothing_that_was_said() -> None:
    with collector() as receiver:
        _, store = await watched_talk(TelemetryOptions(otlp=receiver.url, headers={"x-key": "of the collector"}))
        entries = await store.events("talk")
        [turn] = [entry.event.turn for entry in entries if isinstance(entry.event, TurnStarted)]
        place = span_of_turn("talk", turn)
        assert {int.from_bytes(span.trace_id) for span in receiver.spans} == {place.trace}
        assert [span.name for span in receiver.spans] == [
            "chat scripted",
            "execute_tool who",
            "chat scripted",
            "invoke_agent",
        ]
        assert int.from_bytes(receiver.spans[-1].span_id) == place.span
        assert receiver.spans[-1].parent_span_id == b""
        assert {span.parent_span_id for span in receiver.spans[:-1]} == {receiver.spans[-1].span_id}
        assert receiver.spans[0].start_time_unix_nano <= receiver.spans[0].end_time_unix_nano
        assert receiver.resources[0]["service.name"] == "everturn"
        assert all(headers["x-key"] == "of the collector" for headers in receiver.headers)
        tokens, seconds = (
            receiver.metrics["gen_ai.client.token.usage"],
            receiver.metrics["gen_ai.client.operation.duration"],
        )
        assert tokens.histogram.data_points[0].explicit_bounds[:3] == [1, 4, 16]
        assert {attribute(point, "gen_ai.operation.name") for point in seconds.histogram.data_points} == {
            "chat",
            "execute_tool",
            "invoke_agent",
        }
        assert receiver.metrics["everturn.turns_started"].sum.is_monotonic
        for word in (b"Canary", SECRET.encode(), PRIVATE.encode()):
            assert word not in receiver.bodies


async def test_who_asks_for_content_sees_what_was_said_and_still_no_secret() -> None:
    with collector() as receiver:
        await watched_talk(TelemetryOptions(otlp=receiver.url, content=True))
        for word in (b"Canary-question", b"Canary-text", b"Canary-name", b"gen_ai.output.messages"):
            assert word in receiver.bodies
        _, second = [span for span in receiver.spans if span.name.startswith("chat")]
        request = {each.key: each.value.string_value for each in second.attributes}
        assert [message["role"] for message in msgspec.json.decode(request["gen_ai.input.messages"])] == [
            *("user", "assistant", "tool"),
        ]
        assert msgspec.json.decode(request["gen_ai.tool.definitions"])[0]["name"] == "who"
        for word in (SECRET.encode(), PRIVATE.encode()):
            assert word not in receiver.bodies


def attribute(point: Any, name: str) -> str:
    return next(each.value.string_value for each in point.attributes if each.key == name)


async def test_a_request_is_a_span_of_its_caller_s_trace_and_links_to_the_turn() -> None:
    exporter = Kept()
    tracing = Tracer(exporter)
    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    about = {"method": "POST", "route": "/api/sessions/{session}/messages", "start": 1.0, "end": 2.0}
    tracing.export_request(**about, status=202, span=7, traceparent=caller, turn=("talk", "turn_1"))  # pyright: ignore[reportArgumentType]
    tracing.export_request(**about, status=500, span=8, traceparent="nonsense")  # pyright: ignore[reportArgumentType]
    first, other = exporter.spans
    assert first.parent is not None
    assert first.parent.traceparent == caller
    assert first.key.trace == first.parent.trace
    assert first.links == (span_of_turn("talk", "turn_1"),)
    assert other.parent is None
    assert other.failed == "500"


@pytest.mark.parametrize("options", [{"otlp": "127.0.0.1:4318"}, {"ratio": 1.5}, {"interval": 0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="telemetry"):
        open_telemetry(TelemetryOptions(**options))


async def test_a_collector_that_is_away_holds_nobody_up() -> None:
    seen, store = await watched_talk(TelemetryOptions(otlp="http://127.0.0.1:9"))
    assert len(await store.events("talk")) > 5
    assert seen.tracer is not None
