"""What is counted, and how it is told: readable by Prometheus, bounded, and without anybody's name."""

from __future__ import annotations

import sys
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn import Chat, tool
from everturn.app import App
from everturn.errors import ConfigError, UnknownSession
from everturn.events import TurnSuspended
from everturn.telemetry import metrics
from everturn.telemetry.metric_families import ALL, MOST_SERIES, PROCESS
from everturn.telemetry.metrics import Metrics
from everturn.telemetry.store_observer import observe_store
from everturn.telemetry.turn_metrics import TurnMetrics
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.testing.crash import MortalStore
from tests.helpers.tools import look
from tests.telemetry.strict_prometheus import read

WHOSE = ("tenant", "user", "session", "turn", "key", "name", "tool", "path", "ip", "agent", "id")


@tool(idempotent=True, approval="always")
async def mail(to: str) -> str:
    return "sent"


def of(data: bytes, family: str) -> dict[tuple[str, ...], float]:
    return {tuple(value for _, value in sample.labels): sample.value for sample in read(data)[family][1]}


def test_threads_that_count_at_the_same_moment_lose_nothing() -> None:
    ours, interval = Metrics(), sys.getswitchinterval()

    def work() -> None:
        for _ in range(2_000):
            ours.count("http_requests_total", "GET", "/api/me", "200")
            ours.observe("http_request_seconds", 0.012, "/api/me")

    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert ours.value("http_requests_total", "GET", "/api/me", "200") == 8_000
    assert ours.value("http_request_seconds", "/api/me") == 8_000


@given(st.lists(st.tuples(st.sampled_from(ALL), st.lists(st.text(max_size=120), min_size=3, max_size=3), st.floats())))
def test_whatever_is_counted_can_be_read_again_by_a_strict_reader(samples: list[Any]) -> None:
    ours = Metrics()
    for family, values, amount in samples:
        name, labels = family.name.removeprefix("everturn_"), values[: len(family.labels)]
        if family.kind == "counter":
            ours.count(name, *labels, by=1)
        elif family.kind == "gauge":
            ours.set(name, amount, *labels)
        else:
            ours.observe(name, amount if abs(amount) < 1e300 else 1.0, *labels)
    assert set(read(ours.render())) >= {family.name for family, _, _ in samples}


def test_a_value_is_reported_as_it_was_counted_whatever_characters_it_has() -> None:
    ours = Metrics()
    ours.count("rate_limited_total", 'a "b" \\ c{},=é')
    ours.count("rate_limited_total", 'a "b" \\ c{},=é', by=2)
    assert of(ours.render(), "everturn_rate_limited_total") == {('a "b" \\ c{},=é',): 3.0}


def test_what_unknown_clients_send_makes_no_more_than_a_bounded_number_of_series() -> None:
    ours = Metrics()
    for number in range(20_000):
        ours.count("http_requests_total", f"/made/up/{number}", "GET", 404)
        ours.observe("http_request_seconds", 0.1, f"/made/up/{number}")
    ours.count("http_requests_total", "x" * 10_000, "GET", 404)
    ours.count("rate_limited_total", "two\nlines")
    requests = of(ours.render(), "everturn_http_requests_total")
    assert len(requests) == MOST_SERIES + 1
    assert requests["other", "other", "other"] == 20_001 - MOST_SERIES
    assert of(ours.render(), "everturn_rate_limited_total") == {("other",): 1.0}
    assert len(ours.render()) < 1_000_000


def test_no_label_says_whose_something_is() -> None:
    assert [family.name for family in ALL if set(family.labels) & set(WHOSE)] == []
    assert all(len(family.labels) <= 3 for family in (*ALL, *PROCESS))


def test_buckets_hold_what_took_at_most_as_long() -> None:
    ours = Metrics()
    for seconds in (-1.0, 0.005, 0.0051, 30.0, 31.0):
        ours.observe("store_append_seconds", seconds)
    buckets = {
        dict(sample.labels).get("le"): sample.value
        for sample in read(ours.render())["everturn_store_append_seconds"][1]
    }
    assert (buckets["0.005"], buckets["0.01"], buckets["30"], buckets["+Inf"]) == (2.0, 3.0, 4.0, 5.0)


@pytest.mark.parametrize(
    ("name", "labels"), [("request_total", ()), ("deliveries_total", ()), ("slow_readers_total", ("x",))]
)
def test_a_slip_of_the_programmer_is_reported_at_once(name: str, labels: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=name):
        Metrics().count(name, *labels)


def test_the_process_says_what_it_uses() -> None:
    families = read(metrics.render())
    used = {family.name: families[family.name][1][0].value for family in PROCESS}
    assert used["process_resident_memory_bytes"] > 10_000_000
    assert 3 <= used["process_open_fds"] <= used["process_max_fds"]
    assert 1.6e9 < used["process_start_time_seconds"] < 1e10


async def test_a_turn_is_counted_in_all_its_parts() -> None:
    ours = Metrics()
    counting = TurnMetrics(ours)
    model = ScriptedModel(calls(call("look", at="a"), call("nothing", x=1)), calls(call("mail", to="b")), say("Done."))
    app = App(model, tools=[look, mail], plugins=[counting], store=observe_store(MemoryStore(), counting))
    async with Chat(model, app=app) as chat:
        turn = await chat.send("please")
        async for event in turn.events():
            if isinstance(event, TurnSuspended):
                [gate] = await chat.gates()
                await chat.answer(gate, allow="once")
    text = ours.render()
    assert ours.value("turns_started_total") == 1 == ours.value("turns_ended_total", "completed")
    assert ours.value("turns_underway") == 0 == ours.value("turns_taken_over_total")
    assert of(text, "everturn_model_requests_total") == {("scripted", "tool_calls"): 2.0, ("scripted", "stop"): 1.0}
    assert of(text, "everturn_calls_finished_total") == {("completed",): 2.0, ("failed",): 1.0}
    assert of(text, "everturn_calls_started_total") == {("read_only",): 1.0, ("idempotent",): 1.0}
    assert of(text, "everturn_gates_answered_total") == {("call", "allowed"): 1.0}
    assert ours.value("model_seconds", "scripted") == 3
    assert ours.value("gate_seconds", "call") == 1
    assert ours.value("turn_seconds", "completed") == 1 == ours.value("turns_suspended_total")


async def test_who_goes_on_with_a_turn_counts_what_it_writes_and_that_it_took_it_over() -> None:
    inner, first, second = MemoryStore(), Metrics(), Metrics()
    script = [calls(call("look", at="a")), say("Done.")]

    def app(store: MemoryStore, counting: TurnMetrics) -> App:
        return App(ScriptedModel(*script), tools=[look], plugins=[counting], store=observe_store(store, counting))

    mortal = MortalStore(inner, 5)
    old = app(mortal, TurnMetrics(first))
    chat = Chat(ScriptedModel(*script), app=old, session="talk")
    await chat.send("go", key="one")
    await mortal.died.wait()
    await old.aclose()
    async with Chat(ScriptedModel(*script), app=app(inner, TurnMetrics(second)), session="talk") as again:
        await (await again.send("go", key="one"))
    assert first.value("turns_started_total") == 1
    assert second.value("turns_started_total") == 0
    assert second.value("turns_taken_over_total") == 1 == second.value("turns_ended_total", "completed")


async def test_an_append_that_the_store_refuses_is_counted_and_raised_as_it_is() -> None:
    store = observe_store(MemoryStore(), TurnMetrics(Metrics()))
    before = metrics.METRICS.value("store_errors_total", "UnknownSession")
    with pytest.raises(UnknownSession):
        await store.append("nobody", 7, [], 3)
    assert metrics.METRICS.value("store_errors_total", "UnknownSession") == before + 1
