"""A program that uses the library → spans and metrics in its own OpenTelemetry providers, with nothing configured."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased

from everturn import App, Chat, Output, ToolContext, TurnOptions, telemetry, tool
from everturn.core.commands import Send
from everturn.core.deltas import TurnReader
from everturn.core.events import TurnStarted
from everturn.core.hooks import RequestContext
from everturn.core.parts import TextPart
from everturn.core.requests import ModelRequest, RequestMessage, RequestResult
from everturn.errors import ConfigError
from everturn.telemetry import Telemetry
from everturn.telemetry.ids import read_traceparent, span_of_turn
from everturn.telemetry.request_content import MOST_CHARACTERS, request_attributes
from everturn.telemetry.trace_context import caller_trace, current_traceparent
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.testing.crash import MortalStore
from everturn.tools.subagent import SubagentTool
from tests.helpers.server_app import ask, make, make_house, word
from tests.helpers.tools import look

CANARY, PRIVATE, SECRET = "Canary-", "ada.canary@example.com", "sk-canary0123456789abcdef"
UNSAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


@pytest.fixture(autouse=True)
def nothing_stays_instrumented() -> Iterator[None]:
    yield
    telemetry.uninstrument()


class Kept:
    """Real providers that keep what they get."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.tracer = self.provider.get_tracer("the program")

    @property
    def spans(self) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name != "caller"]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [dict(span.attributes or {}) for span in self.spans if span.name.startswith(name)]


def context_of(span: ReadableSpan) -> trace.SpanContext:
    assert span.context is not None
    return span.context


@tool(read_only=True, private=("email",))
async def who(name: str) -> dict[str, str]:
    """Canary-description of a tool."""
    return {"name": name, "email": PRIVATE, "note": f"the key is {SECRET}"}


def canary_chat(**options: Any) -> Chat:
    script = [calls(call("who", name=f"{CANARY}argument")), say(f"{CANARY}answer")]
    return Chat(ScriptedModel(*script), tools=[who], system=f"{CANARY}system", **options)


async def test_every_app_made_afterwards_is_observed_and_its_turn_is_one_trace() -> None:
    recorder = Kept()
    telemetry.instrument(recorder.provider, recorder.meters)
    async with canary_chat(session="talk") as chat:
        turn = await chat.send("hello")
        await turn
    place = span_of_turn("talk", turn.id)
    assert [span.name for span in recorder.spans] == [
        "chat scripted",
        "execute_tool who",
        "chat scripted",
        "invoke_agent",
    ]
    assert {context_of(span).trace_id for span in recorder.spans} == {place.trace}
    assert context_of(recorder.spans[-1]).span_id == place.span
    assert recorder.spans[-1].parent is None
    assert {span.parent.span_id for span in recorder.spans[:-1] if span.parent} == {place.span}
    assert all(span.end_time is not None and span.end_time >= (span.start_time or 0) for span in recorder.spans)
    data = recorder.reader.get_metrics_data()
    assert data is not None
    names = {
        metric.name for group in data.resource_metrics for scope in group.scope_metrics for metric in scope.metrics
    }
    assert {"gen_ai.client.operation.duration", "everturn.turns_started"} <= names


async def test_calling_it_twice_observes_once_and_taking_it_back_ends_it() -> None:
    first, second = Kept(), Kept()
    old = telemetry.instrument(first.provider, first.meters)
    telemetry.instrument(second.provider, second.meters)
    telemetry.instrument(second.provider, second.meters)
    old.uninstrument()  # replaced already: it takes nothing from its successor
    async with Chat(ScriptedModel(say("one"))) as chat:
        await (await chat.send("go"))
    assert (len(first.spans), len(second.spans)) == (0, 2)
    telemetry.uninstrument()
    telemetry.uninstrument()
    async with Chat(ScriptedModel(say("two"))) as chat:
        await (await chat.send("go"))
        assert chat.app.telemetry is None
    assert (len(first.spans), len(second.spans)) == (0, 2)


async def test_an_app_may_have_providers_of_its_own() -> None:
    everybody, own = Kept(), Kept()
    with telemetry.instrument(everybody.provider, everybody.meters):
        model = ScriptedModel(say("Done."))
        app = App(model, telemetry=Telemetry.from_providers(own.provider, own.meters))
        async with Chat(model, app=app) as chat:
            await (await chat.send("go"))
    assert (len(everybody.spans), len(own.spans)) == (0, 2)


async def test_the_global_provider_may_be_set_after_instrumenting(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, provider = Kept(), trace.ProxyTracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    telemetry.instrument(meter_provider=recorder.meters)
    async with Chat(ScriptedModel(say("one"), say("two"))) as chat:
        await (await chat.send("go"))
        provider = recorder.provider
        await (await chat.send("go"))
    assert [span.name for span in recorder.spans] == ["chat scripted", "invoke_agent"]


def test_a_provider_that_could_not_keep_our_ids_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"NoOpTracerProvider is not a tracer provider of opentelemetry-sdk"):
        telemetry.instrument(trace.NoOpTracerProvider())


# The caller ------------------------------------------------------------------------------------------------------


async def test_the_caller_s_span_is_the_parent_and_tools_and_sub_agents_are_in_its_trace() -> None:
    recorder = Kept()
    telemetry.instrument(recorder.provider, recorder.meters)

    def answer(request: ModelRequest) -> Any:
        is_above, is_first = request.messages[0].text == "go", len(request.messages) == 1
        if not is_first:
            return say("above" if is_above else "below")
        return calls(call("helper", task="look") if is_above else call("look", at="a"))

    async with Chat(
        ScriptedModel(answer, answer), tools=[look, SubagentTool("helper", "Helps.", tools=["look"])]
    ) as chat:
        with recorder.tracer.start_as_current_span("caller") as caller:
            turn = await chat.send("go")
        assert (await turn).text == "above"
    trace_id, span_id = caller.get_span_context().trace_id, caller.get_span_context().span_id
    assert {context_of(span).trace_id for span in recorder.spans} == {trace_id}
    by_id = {context_of(span).span_id: span for span in recorder.spans}
    below, above = [span for span in recorder.spans if span.name.startswith("invoke_agent")]
    assert above.parent is not None
    assert above.parent.span_id == span_id
    assert below.parent is not None
    assert by_id[below.parent.span_id].name == "execute_tool helper"
    assert not above.links


async def test_the_caller_survives_the_death_of_the_process_that_took_the_message() -> None:
    recorder, inner = Kept(), MemoryStore()
    telemetry.instrument(recorder.provider, recorder.meters)
    mortal = MortalStore(inner, 4)
    script = [calls(call("look", at="a")), say("Done.")]
    chat = Chat(ScriptedModel(*script), tools=[look], store=mortal, session="talk")
    with recorder.tracer.start_as_current_span("caller") as caller:
        sending = asyncio.ensure_future(chat.send("go", key="the one"))
        await mortal.died.wait()
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    await chat.aclose()
    async with Chat(ScriptedModel(*script), tools=[look], store=inner, session="talk") as again:
        with recorder.tracer.start_as_current_span("caller") as other:  # a retry, from elsewhere: the same turn
            await (await again.send("go", key="the one"))
        assert other.get_span_context().trace_id != caller.get_span_context().trace_id
    assert {context_of(span).trace_id for span in recorder.spans} == {caller.get_span_context().trace_id}
    assert recorder.spans[-1].name == "invoke_agent"


@pytest.mark.parametrize(
    ("sampler", "spans"),
    [(ParentBased(ALWAYS_ON), 0), (ALWAYS_ON, 2), (ALWAYS_OFF, 0)],
    ids=["parent based", "always", "never"],
)
async def test_a_caller_that_is_not_recorded_is_no_parent_and_the_sampler_decides(sampler: Sampler, spans: int) -> None:
    recorder = Kept(sampler)
    telemetry.instrument(recorder.provider, recorder.meters)
    async with Chat(ScriptedModel(say("Done.")), options=TurnOptions(trace=UNSAMPLED), session="talk") as chat:
        turn = await chat.send("go")
        await turn
    assert len(recorder.spans) == spans
    for span in recorder.spans:
        assert context_of(span).trace_id == span_of_turn("talk", turn.id).trace
    if spans:
        caller = read_traceparent(UNSAMPLED)
        assert caller is not None
        assert recorder.spans[-1].parent is None
        assert [link.context.span_id for link in recorder.spans[-1].links] == [caller.span]


async def test_a_turn_is_sampled_as_a_whole() -> None:
    recorder = Kept(ParentBased(TraceIdRatioBased(0.5)))
    telemetry.instrument(recorder.provider, recorder.meters)
    for number in range(40):
        async with Chat(ScriptedModel(say("Done.")), session=f"talk-{number}") as chat:
            await (await chat.send("go"))
    traces = [context_of(span).trace_id for span in recorder.spans]
    assert 0 < len(set(traces)) < 40
    assert all(traces.count(each) == 2 for each in traces)


async def test_nobody_s_span_is_recorded_where_nobody_observes() -> None:
    provider, store = TracerProvider(shutdown_on_exit=False), MemoryStore()
    async with Chat(ScriptedModel(say("Done.")), store=store, session="talk") as chat:
        with provider.get_tracer("the program").start_as_current_span("caller"):
            await (await chat.send("go"))
    assert [entry.event.options.trace for entry in await started(store)] == [""]


async def started(store: MemoryStore) -> list[Any]:
    return [entry for entry in await store.events("talk") if isinstance(entry.event, TurnStarted)]


def test_a_retry_with_another_trace_is_the_same_command() -> None:
    send = Send(key="k", session="s", turn="t", parts=(TextPart("go"),), options=TurnOptions(trace=UNSAMPLED))
    again = replace(send, turn="u", options=TurnOptions(trace=UNSAMPLED.replace("b7ad", "b7ae")))
    assert send.body == again.body == replace(send, options=TurnOptions()).body


def test_the_header_of_a_request_counts_where_there_is_no_current_span() -> None:
    with caller_trace("nonsense"):
        assert current_traceparent() == ""
    with caller_trace(UNSAMPLED):
        assert current_traceparent() == UNSAMPLED
        with TracerProvider(shutdown_on_exit=False).get_tracer("the program").start_as_current_span("caller") as own:
            found = read_traceparent(current_traceparent())
            assert found is not None
            assert found.span == own.get_span_context().span_id
    assert current_traceparent() == ""


@pytest.mark.parametrize("sampler", [ALWAYS_ON, ParentBased(ALWAYS_OFF)], ids=["recorded", "not recorded"])
async def test_the_spans_of_a_tool_are_below_its_call(sampler: Sampler) -> None:
    recorder = Kept(sampler)
    telemetry.instrument(recorder.provider, recorder.meters)

    @tool(read_only=True)
    async def ask_database(at: str) -> str:
        with recorder.tracer.start_as_current_span(f"SELECT {at}"):
            return at

    script = [calls(call("ask_database", at="a"), call("ask_database", at="b")), say("Done.")]
    async with Chat(ScriptedModel(*script), tools=[ask_database]) as chat:
        await (await chat.send("go"))
    if sampler is not ALWAYS_ON:
        assert recorder.spans == []
        return
    by_id = {context_of(span).span_id: span for span in recorder.spans}
    selects = {span.name: span for span in recorder.spans if span.name.startswith("SELECT")}
    parents = [by_id[span.parent.span_id] for span in selects.values() if span.parent is not None]
    assert [span.name for span in parents] == ["execute_tool ask_database"] * 2
    assert parents[0] is not parents[1]
    assert len({context_of(span).trace_id for span in recorder.spans}) == 1


async def test_a_server_s_caller_is_the_parent_by_its_header() -> None:
    recorder, store = Kept(), MemoryStore()
    telemetry.instrument(recorder.provider, recorder.meters)
    model = ScriptedModel(say("one"), say("two"))
    app = App(model, store=store)
    server = make(await make_house(app))
    caller = UNSAMPLED[:-2] + "01"
    for headers in ({"traceparent": caller}, {"traceparent": "nonsense"}):
        answer = await ask(server, "POST", "/api/sessions", word("owner"), json={"text": "go"}, headers=headers)
        assert answer.status == 201, answer.body
        sent = answer.json
        async for _ in app.follow(sent["session"], TurnReader(sent["turn"], None)):
            pass
    await app.aclose()
    first, second = [span for span in recorder.spans if span.name.startswith("invoke_agent")]
    assert first.parent is not None
    assert (first.parent.trace_id, first.parent.span_id) == (int(caller[3:35], 16), int(caller[36:52], 16))
    assert second.parent is None


# Content -----------------------------------------------------------------------------------------------------------


class Shouting:
    """A plugin that changes the request."""

    def on_before_request(self, ctx: RequestContext) -> None:
        ctx.body.system += " SHOUT"
        ctx.body.messages = [*ctx.body.messages, RequestMessage("user", (TextPart(f"step {ctx.step}"),))]


async def test_with_content_the_chat_span_has_the_request_as_it_was_sent() -> None:
    recorder = Kept()
    telemetry.instrument(recorder.provider, recorder.meters, content=True)
    async with canary_chat(plugins=[Shouting()]) as chat:
        await (await chat.send("hello"))
    first, second = recorder.named("chat")
    [instructions] = json.loads(first["gen_ai.system_instructions"])
    assert instructions["type"] == "text"
    assert instructions["content"].startswith(f"{CANARY}system")
    assert instructions["content"].endswith(" SHOUT")
    assert json.loads(first["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "hello"}]},
        {"role": "user", "parts": [{"type": "text", "content": "step 1"}]},
    ]
    [definition] = json.loads(first["gen_ai.tool.definitions"])
    assert (definition["type"], definition["name"]) == ("function", "who")
    assert definition["description"] == who.spec.description
    assert definition["parameters"] == who.spec.schema
    question, wrote, tool_message, step_note = json.loads(second["gen_ai.input.messages"])
    assert question == {"role": "user", "parts": [{"type": "text", "content": "hello"}]}
    assert wrote["role"] == "assistant"
    assert (wrote["parts"][0]["type"], wrote["parts"][0]["name"]) == ("tool_call", "who")
    assert tool_message["role"] == "tool"
    assert tool_message["parts"][0]["type"] == "tool_call_response"
    assert tool_message["parts"][0]["id"] == wrote["parts"][0]["id"]
    assert "$private{" in tool_message["parts"][0]["response"], "a placeholder stays one"
    assert step_note["parts"][0]["content"] == "step 2"
    whole = "".join(span.to_json() for span in recorder.spans)
    for leak in (SECRET, PRIVATE):
        assert leak not in whole


async def test_without_content_nothing_that_was_said_leaves_in_spans_metrics_or_logs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = Kept()
    telemetry.instrument(recorder.provider, recorder.meters)
    caplog.set_level(logging.DEBUG)
    async with canary_chat(plugins=[Shouting()]) as chat:
        with recorder.tracer.start_as_current_span("caller"):
            await (await chat.send(f"{CANARY}question with {SECRET}"))
        with pytest.raises(Exception, match="script"):  # a failing turn says no more
            await (await chat.send(f"{CANARY}question"))
    assert len(recorder.named("invoke_agent")) == 2
    data = recorder.reader.get_metrics_data()
    assert data is not None
    for seen in ("".join(span.to_json() for span in recorder.spans), data.to_json(), caplog.text):
        assert len(seen) > 100
        for leak in (CANARY, SECRET, PRIVATE, "SHOUT"):
            assert leak not in seen


@tool(read_only=True)
async def derived(ctx: ToolContext) -> Output:
    return Output(f"made of {PRIVATE}", sensitive=True)


async def test_a_result_made_of_private_values_is_not_in_the_request_either() -> None:
    recorder = Kept()
    telemetry.instrument(recorder.provider, recorder.meters, content=True)
    script = [calls(call("derived")), say("one"), say("two")]
    async with Chat(ScriptedModel(*script), tools=[derived]) as chat:
        await (await chat.send("first"))
        await (await chat.send("second"))
    requests = [json.loads(span["gen_ai.input.messages"]) for span in recorder.named("chat")]
    for request in requests[1:]:  # in its own turn, and as history
        responses = [part["response"] for message in request for part in message["parts"] if "response" in part]
        assert responses == ["[private]"]
    assert PRIVATE not in "".join(span.to_json() for span in recorder.spans)


def test_of_a_long_request_the_newest_messages_are_shown() -> None:
    messages = [RequestMessage("user", (TextPart(f"{number} " + "x" * 7000),)) for number in range(20)]
    messages.append(RequestMessage("tool", (RequestResult("c", "look", "y" * 7000),)))
    attributes = request_attributes(ModelRequest("m", "", messages, [], {}), frozenset("c"))
    shown = json.loads(str(attributes["gen_ai.input.messages"]))
    assert len(str(attributes["gen_ai.input.messages"])) < MOST_CHARACTERS + 8200
    assert shown[-1]["parts"] == [{"type": "tool_call_response", "id": "c", "response": "[private]"}]
    assert shown[-2]["parts"][0]["content"].startswith("19 ")
    assert attributes["everturn.request.messages_left_out"] == len(messages) - len(shown) > 0
    assert "gen_ai.system_instructions" not in attributes


async def test_a_request_that_cannot_be_recorded_stops_no_turn(caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        def on_before_request(self, ctx: RequestContext) -> None:
            ctx.body.tools = [object()]  # pyright: ignore[reportAttributeAccessIssue]

    recorder = Kept()
    telemetry.instrument(recorder.provider, recorder.meters, content=True)
    async with Chat(ScriptedModel(say("Done.")), plugins=[Odd()]) as chat:
        await (await chat.send("go"))
    assert "could not be recorded" in caplog.text
    assert [span.name for span in recorder.spans] == ["chat scripted", "invoke_agent"]


# Cost --------------------------------------------------------------------------------------------------------------

UNOBSERVED = """
import asyncio, sys
from everturn import Chat
from everturn.testing import ScriptedModel, say

async def main():
    async with Chat(ScriptedModel(say("Done."))) as chat:
        await (await chat.send("go"))

asyncio.run(main())
print(*(name for name in sys.modules if "opentelemetry" in name or name.startswith("everturn.telemetry")))
"""


def test_who_does_not_instrument_imports_and_pays_nothing() -> None:
    run = [sys.executable, "-c", UNOBSERVED]
    loaded = subprocess.run(run, capture_output=True, check=True, text=True).stdout.split()
    assert set(loaded) == {"everturn.telemetry", "everturn.telemetry.instrumentation"}
