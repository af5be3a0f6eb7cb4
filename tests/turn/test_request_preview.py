"""The context report: the size of the next request and what fills it, without sending anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn import Agent, App, Chat, TurnError, TurnOptions, last_turns, tool
from everturn.chat.context import PREVIEW
from everturn.core.chunks import Chunk, TextChunk
from everturn.core.context.context_report import ContextKind, ContextReport, scale_parts
from everturn.core.events import TurnStarted
from everturn.core.hooks import Plugin, RequestContext
from everturn.core.messages import Message
from everturn.core.requests import ModelRequest
from everturn.core.state import fold
from everturn.errors import ModelError, TurnClosed, UnknownMessage
from everturn.turn.request_preview import open_preview, preview_request
from everturn.turn.window_usage import estimate_request
from tests.helpers.window_model import WindowModel, counting, is_summary_request

SAID = "what the person says next"


@tool(read_only=True)
def look(n: int) -> str:
    """Look at something."""
    return f"result {n} " + "lorem ipsum dolor sit amet " * 40


def sizes(report: ContextReport) -> dict[str, int]:
    return {part.kind: part.tokens for part in report.parts}


async def run(chat: Chat, text: str, **how: Any) -> None:
    await (await chat.send(text, **how)).result()


async def predicted(chat: Chat, model: WindowModel, **how: Any) -> float:
    """What the report says of the next request, divided by what the model then counts without the new message."""
    report = await chat.context()
    assert sum(part.tokens for part in report.parts) == report.used
    before = len(model.sizes)
    await run(chat, SAID, **how)
    return report.used / (model.sizes[before] - len(SAID) // 4)


@given(
    st.dictionaries(st.sampled_from(["instructions", "tools", "person", "results", "files"]), st.integers(0, 10**7)),
    st.integers(0, 10**7),
)
def test_parts_add_up_and_keep_their_order_of_size(estimates: dict[ContextKind, int], used: int) -> None:
    parts = {part.kind: part.tokens for part in scale_parts(estimates, used)}
    assert sum(parts.values()) == used
    assert all(tokens > 0 for tokens in parts.values())
    for kind, size in estimates.items():
        assert parts.get(kind, 0) <= 2 * size + 1
        for other, smaller in estimates.items():
            if size > smaller:
                assert parts.get(kind, 0) >= parts.get(other, 0)


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.4])
async def test_the_report_is_what_the_provider_counts_for_the_next_request(factor: float) -> None:
    model = WindowModel(counting(3), window=100_000, count=lambda body: int(estimate_request(body) * factor) + 150)
    chat = App(model, tools=[look]).chat("s")
    await run(chat, "count to 3")
    for _ in range(6):
        assert 0.9 < await predicted(chat, model) < 1.1
    report = await chat.context()
    assert not report.estimated
    assert report.model == "window"
    assert report.share == pytest.approx(report.used / report.limit)
    assert report.free == report.limit - report.used
    assert (report.clear_at, report.summarize_at) == (int(report.limit * 0.75), int(report.limit * 0.9))
    assert {"tools", "person", "answers", "results"} <= sizes(report).keys()


async def preview(app: App, session: str, options: TurnOptions) -> ModelRequest:
    info, setup = await app.store.info(session), app.drive_setup(options)
    assert setup is not None
    message = Message(f"{PREVIEW}.input", info.leaf, "user", (), turn=PREVIEW)
    started = TurnStarted(turn=PREVIEW, at=app.clock.now(), parent=info.leaf, input=message, options=options)
    return await preview_request(open_preview(setup, info, fold([started])))


async def test_the_preview_is_the_request_that_is_sent() -> None:
    model = WindowModel(counting(2), window=8_000)
    app = App(agents=[Agent(model, name="a", instructions="Be brief.", tools=[look])])
    chat = app.chat("s")
    compared = compacted = 0
    await run(chat, "hello")
    for _ in range(12):
        options, head = app.agent_options("a", TurnOptions()), (await chat.context()).compactions
        expected, before = await preview(app, "s", options), len(model.requests)
        await run(chat, "count to 2 " + "words " * 60)
        if (await chat.context()).compactions == head:  # the new turn has not compacted its branch first
            sent = model.requests[before]
            assert (expected.system, expected.tools, expected.params) == (sent.system, sent.tools, sent.params)
            assert expected.messages == sent.messages[:-1]
            compared, compacted = compared + 1, compacted + bool(head)
    assert compared > 5
    assert compacted


async def test_a_preview_writes_nothing_and_calls_no_plugin() -> None:
    called: list[str] = []

    class Counting(Plugin):
        def on_before_request(self, ctx: RequestContext) -> None:
            called.append(ctx.turn)

        def on_system_prompt(self, ctx: RequestContext) -> None:
            called.append(ctx.turn)

    model = WindowModel(counting(1))
    app = App(model, tools=[look], plugins=[Counting()])
    chat = app.chat("s")
    await run(chat, "count to 1")
    called.clear()
    head, requests = await app.store.head("s"), len(model.requests)
    await chat.context()
    assert (await app.store.head("s"), len(model.requests), called) == (head, requests, [])
    setup = app.drive_setup(TurnOptions())
    assert setup is not None
    state = fold([TurnStarted(turn=PREVIEW, at=0.0)])
    preview = open_preview(setup, await app.store.info("s"), state)
    with pytest.raises(TurnClosed):
        await preview.commit([])
    with pytest.raises(TurnClosed):
        preview.stage([])


async def test_a_plugin_that_only_changes_requests_is_counted() -> None:
    class House(Plugin):
        has_pure_requests = True

        def on_system_prompt(self, ctx: RequestContext) -> None:
            ctx.system.append("Rules of the house. " * 100)

    plain = await Chat(WindowModel(counting(1))).context()
    report = await Chat(WindowModel(counting(1)), plugins=[House()]).context()
    assert plain.used == 0
    assert sizes(report) == {"instructions": 500}


async def test_a_session_without_messages_has_instructions_and_tools() -> None:
    model = WindowModel(counting(1))
    chat = Chat(model, tools=[look], system="You answer in one word. " * 20)
    report = await chat.context()
    assert report.estimated
    assert sizes(report).keys() == {"instructions", "tools"}
    assert report.share is not None
    assert 0.9 < await predicted(chat, model) < 1.1
    with pytest.raises(UnknownMessage):
        await chat.context(at="nothing")


async def test_an_unknown_window_has_no_percentage_until_an_overflow_shows_a_limit() -> None:
    model = WindowModel(counting(2), window=None, hidden_window=4_000)
    chat = App(model, tools=[look]).chat("s")
    await run(chat, "count to 2")
    report = await chat.context()
    assert (report.window, report.limit, report.share, report.free) == (0, 0, None, None)
    assert (report.clear_at, report.summarize_at) == (0, 0)
    assert report.used > 500
    while not report.compactions:
        await run(chat, "count to 2")
        report = await chat.context()
    assert model.refused
    assert 3_000 < report.limit <= 4_000
    assert report.share is not None
    assert 0 < report.share < 1


class Failing(WindowModel):
    """Fails, or never ends, for messages that say so."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        last = "" if is_summary_request(request) else request.messages[-1].text
        if last.startswith("fail late"):
            yield [TextChunk("some words of an answer " * 50)]
            raise ModelError("broken", kind="server")
        if last.startswith("fail"):
            raise ModelError("broken", kind="server")
        if last.startswith("hang"):
            yield [TextChunk("some words of an answer " * 50)]
            await asyncio.Event().wait()
        async for batch in super().stream(request):
            yield batch


@pytest.mark.parametrize("prompt", ["fail", "fail late"])
async def test_the_report_is_right_after_failed_turns(prompt: str) -> None:
    model = Failing(counting(1), window=50_000)
    chat = App(model, tools=[look]).chat("s")
    with pytest.raises(TurnError):
        await run(chat, f"{prompt} {'words ' * 100}")
    assert 0.8 < await predicted(chat, model) < 1.2  # nothing was counted yet
    with pytest.raises(TurnError):
        await run(chat, f"{prompt} {'words ' * 400}")
    report = await chat.context()
    assert report.used > 1_000
    assert 0.9 < await predicted(chat, model) < 1.1


async def test_the_report_is_right_during_and_after_a_turn_that_is_cancelled() -> None:
    model = Failing(counting(1), window=50_000)
    app = App(model, tools=[look])
    chat = app.chat("s")
    await run(chat, "hello")
    used = (await chat.context()).used
    turn = await chat.send(f"hang {'words ' * 400}")
    async for item in turn:
        if getattr(item, "text", ""):
            break
    during = await chat.context()
    assert during.used > used + 500
    await turn.cancel()
    await turn.result()
    assert (await chat.context()).used >= during.used
    assert 0.9 < await predicted(chat, model) < 1.1


async def test_the_report_is_right_after_a_compaction_and_after_its_undo() -> None:
    model = WindowModel(counting(4), window=40_000)
    chat = App(model, tools=[look]).chat("s")
    for _ in range(4):
        await run(chat, "count to 4 " + "words " * 50)
    before = await chat.context()
    await (await chat.compact()).result()
    after = await chat.context()
    assert (before.compactions, after.compactions) == (0, 1)
    assert after.used < before.used
    assert after.estimated
    assert sizes(after)["summary"] > 0
    assert 0.9 < await predicted(chat, model, max_steps=1) < 1.1
    notice = next(message for message in await chat.messages() if message.role == "notice")
    await chat.delete(notice)
    undone = await chat.context()
    assert (undone.used, undone.compactions, undone.estimated) == (before.used, 0, False)
    assert "summary" not in sizes(undone)


async def test_the_report_is_right_for_forks_and_for_a_message_that_is_named() -> None:
    model = WindowModel(counting(2), window=40_000)
    chat = App(model, tools=[look]).chat("s")
    reports = [await chat.context()]
    for _ in range(3):
        await run(chat, "count to 2 " + "words " * 50)
        reports.append(await chat.context())
    answers = [message for message in await chat.messages() if message.role == "assistant"]
    for answer, report in zip(answers, reports[1:], strict=True):
        assert await chat.context(at=answer) == report
    await chat.fork(answers[0])
    assert await chat.context() == reports[1]
    assert 0.9 < await predicted(chat, model) < 1.1
    await chat.fork(None)
    assert await chat.context() == reports[0]


async def test_another_model_has_its_own_window_and_an_estimate() -> None:
    small, large = WindowModel(counting(1), window=4_000, name="small"), WindowModel(counting(1), name="large")
    app = App(small, tools=[look])
    chat = app.chat("s")
    await run(chat, "hello")
    report, other = await chat.context(), await chat.context(model=large)
    assert (report.model, report.window, report.estimated) == ("small", 4_000, False)
    assert (other.model, other.window, other.estimated) == ("large", 8_000, True)
    assert report.used == other.used
    await run(chat, "hello", model=large)
    assert not (await chat.context(model="large")).estimated


async def test_other_policies_are_reported_without_thresholds() -> None:
    model = WindowModel(counting(2), window=40_000)
    for policy in ("off", last_turns(2)):
        chat = Chat(model, tools=[look], options=TurnOptions(context=policy))
        for _ in range(5):
            await run(chat, "count to 2 " + "words " * 50)
        report = await chat.context()
        assert report.policy == policy
        assert (report.clear_at, report.summarize_at) == (0, 0)
        assert 0.9 < await predicted(chat, model) < 1.1


async def test_summaries_that_fail_are_said_to_be_paused() -> None:
    model = WindowModel(counting(30), lambda prompt: "", window=5_000)
    chat = App(model, tools=[look]).chat("s")
    turn = await chat.send("count to 30 " + "words " * 800, max_steps=40)
    paused = False
    async for _ in turn:
        report = await chat.context()
        if report.paused:
            paused = True
            assert report.strikes >= 1
            break
    assert paused
    await turn.cancel()
    await turn.result()
    assert not (await chat.context()).paused
