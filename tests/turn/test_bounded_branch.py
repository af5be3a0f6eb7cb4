"""A turn reads its branch from the last summary on, and nobody can tell: requests, marks, results, late results."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import App, Chat, tool
from everturn.core.chunks import CallChunk, Chunk, TextChunk
from everturn.core.context.compaction import compact_path, select_turns
from everturn.core.context.compaction_plan import choose_cut
from everturn.core.context.context_size import ContextLimits, learn_sizes, learned_limit
from everturn.core.events import MessageAdded, TurnFailed
from everturn.core.history import render_compacted, without_refused
from everturn.core.hooks import RequestContext
from everturn.core.messages import Message
from everturn.core.parts import NoticePart, Part, SummaryPart, ToolPart
from everturn.core.requests import ModelRequest
from everturn.errors import HookError
from everturn.running.active_turn import ActiveTurn
from everturn.running.older_calls import OlderCalls
from everturn.stores.memory import MemoryStore
from everturn.turn.compaction import Branch
from tests.helpers.window_model import WindowModel, counting, events_of, is_summary_request, text_of
from tests.turn.test_compaction_schedules import BATCH, COUNT, Schedule


def marks(parts: list[Part]) -> tuple[bool, bool]:
    """The marks of a whole branch, from its results and notices alone."""
    outputs = [output for part in parts if isinstance(part, ToolPart) for output in (part.output, part.late) if output]
    quotes = any(isinstance(part, NoticePart) and part.untrusted for part in parts)
    return quotes or any(o.untrusted for o in outputs), any(o.private or o.sensitive for o in outputs)


class SameAsWhole:
    """Compares what a turn makes of the messages that it has read with what it would make of the whole branch."""

    def __init__(self) -> None:
        self.bounded = self.looked_up = 0

    async def on_before_request(self, ctx: RequestContext) -> None:
        if is_summary_request(ctx.body):
            return
        run: ActiveTurn = ctx.run  # type: ignore[attr-defined]
        whole = without_refused(await run.setup.store.path(run.session, run.state.parent))
        history, own = await run.read_history(), list(run.state.messages.values())
        expected = render_compacted(whole, own, "full", run.state.rejected)
        assert ctx.body.messages[: len(expected)] == expected
        for policy in ("full", "results", "digest", "none"):
            assert render_compacted(history, own, policy) == render_compacted(whole, own, policy)
        for count in (1, 2, 3, 9):
            few, all_turns = (select_turns(compact_path(path), count, run.turn) for path in (history, whole))
            assert few == all_turns
        self.compare_plans(run, Branch(run, history), Branch(run, whole))
        assert await run.taint() == marks([part for message in (*whole, *own) for part in message.parts])
        self.bounded += len(history) < len(whole)
        await self.compare_calls(run, history, whole)

    def compare_plans(self, run: ActiveTurn, read: Branch, whole: Branch) -> None:
        assert (read.view, read.weight, read.used, read.summary) == (
            whole.view,
            whole.weight,
            whole.used,
            whole.summary,
        )
        for window in (1_000, 4_000):
            limits = ContextLimits.of_window(window)
            cuts = [choose_cut(branch.path, branch.view, limits, branch.task) for branch in (read, whole)]
            assert cuts[0] == cuts[1]
        for model in ("one", "two"):
            assert learned_limit(read.path, model) == learned_limit(whole.path, model)
            assert learn_sizes(read.path, model) == learn_sizes(whole.path, model)

    async def compare_calls(self, run: ActiveTurn, history: list[Message], whole: list[Message]) -> None:
        read = {message.id for message in history}
        above = [
            part for message in whole if message.id not in read for part in message.parts if isinstance(part, ToolPart)
        ]
        if run.older is not None:
            assert list((await run.older.find_all({part.call for part in above})).values()) == above
            assert [call.call async for call in run.older.calls()] == [part.call for part in reversed(above)]
            assert await run.older.find("nobody") is None
            self.looked_up += len(above)
        else:
            assert above == []


class Compared(Schedule):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.same: Any = SameAsWhole()


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
async def test_in_every_schedule_a_turn_does_the_same_as_with_the_whole_branch(first: int) -> None:
    bounded = looked_up = 0
    for seed in range(first, min(first + BATCH, COUNT)):
        schedule = Compared(1_000 + seed)
        try:
            await asyncio.wait_for(schedule.run(), 120)
        except BaseException as error:
            error.add_note(f"seed {seed}: {schedule.trace}")
            raise
        failed = [event.problem for event in events_of(await schedule.store.events("s"), TurnFailed)]
        assert failed == [], f"seed {seed}: {schedule.trace}"
        bounded, looked_up = bounded + schedule.same.bounded, looked_up + schedule.same.looked_up
    assert bounded > BATCH
    assert looked_up > BATCH


class CountsMessages(MemoryStore):
    """A store that counts the messages that it returns."""

    read = 0

    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        messages = await super().path(session, leaf, limit)
        self.read += len(messages)
        return messages


@tool(read_only=True)
def look(n: int) -> str:
    """Look at something."""
    return f"result {n} " + "lorem ipsum dolor sit amet " * 20


async def say(chat: Chat, text: str = "count to it " + "words " * 60) -> None:
    await (await chat.send(text)).result()


async def summaries_of(store: MemoryStore) -> list[SummaryPart]:
    messages = [event.message for event in events_of(await store.events("s"), MessageAdded)]
    return [part for message in messages for part in message.parts if isinstance(part, SummaryPart)]


async def test_what_a_turn_reads_does_not_grow_with_the_conversation() -> None:
    store = CountsMessages()
    model = WindowModel(counting(1), window=3_000)
    chat = App(model, tools=[look], store=store).chat("s")
    reads: list[int] = []
    for _ in range(120):
        before = store.read
        await say(chat)
        reads.append(store.read - before)
    assert len(await summaries_of(store)) > 5
    assert max(reads[-40:]) <= max(reads[:60])


def reading(wanted: list[str]) -> Any:
    """Calls what it is told to, once for each message."""

    def answer(request: ModelRequest) -> list[Chunk]:
        prompt = [message.text for message in request.messages if message.role == "user"][-1]
        if request.messages[-1].role == "tool" or not request.tools:
            return [TextChunk("done " * 60)]
        if "read" in prompt:
            return [CallChunk(0, f'{{"call": "{wanted[0]}", "length": 40}}', "read_result", "r")]
        if "pass" in prompt:
            return [CallChunk(0, f'{{"text": "$ref{{{wanted[0]}}}"}}', "keep", "k")]
        return [CallChunk(0, '{"n": 1}', "look", "l")]

    return answer


@pytest.mark.parametrize("index", ["whole", "missing", "broken"])
async def test_a_result_above_several_summaries_can_be_read_and_passed_on(index: str) -> None:
    texts: list[str] = []

    @tool
    def keep(text: str) -> str:
        """Keep a text."""
        texts.append(text)
        return "kept"

    store, wanted = CountsMessages(), ["nobody"]
    model = WindowModel(reading(wanted), window=3_000)
    chat = App(model, tools=[look, keep], store=store).chat("s")
    for _ in range(40):
        await say(chat)
    summaries = await summaries_of(store)
    assert len(summaries) > 2
    first = next(part for part in (await chat.messages())[1].parts if isinstance(part, ToolPart))
    if index == "missing":
        for name in {part.calls for part in summaries}:
            del store._blobs[name]
    elif index == "broken":
        for name in {part.calls for part in summaries}:
            store._blobs[name] = b'{"calls": 7}'
    if index != "whole":
        from everturn.running import older_calls

        older_calls._PAGES.clear()
    before = store.read
    await say(chat)
    usual, before = store.read - before, store.read
    wanted[0] = first.call
    await say(chat, "read it")
    assert "result 1 lorem" in text_of(model.requests[-1])
    assert (store.read - before <= usual + 1) == (index == "whole")
    await say(chat, "pass it on")
    assert texts == [first.output.text if first.output is not None else ""]
    wanted[0] = "nobody"
    await say(chat, "read it")
    assert f"and {len(await calls_of(chat)) - 11} older" in text_of(model.requests[-1])


async def calls_of(chat: Chat) -> list[ToolPart]:
    return [part for message in await chat.messages() for part in message.parts if isinstance(part, ToolPart)]


async def test_calls_of_another_branch_are_not_found() -> None:
    store = MemoryStore()
    chat = App(WindowModel(counting(1), window=3_000), tools=[look], store=store).chat("s")
    for _ in range(12):
        await say(chat)
    trunk = await chat.messages()
    await (await chat.send("count to it " + "words " * 60, after=trunk[3])).result()
    for _ in range(12):
        await say(chat)
    fork = await chat.messages()
    on_trunk, on_fork = (
        [part.call for message in path for part in message.parts if isinstance(part, ToolPart)]
        for path in (trunk, fork)
    )
    summary = next(part for message in reversed(fork) for part in message.parts if isinstance(part, SummaryPart))
    at = next(at for at, message in enumerate(fork) if message.id == (summary.task or summary.kept))
    older = OlderCalls(store, "s", fork[at - 1].id, summary.calls)
    assert [call.call async for call in older.calls()] == [
        part.call for message in reversed(fork[:at]) for part in message.parts if isinstance(part, ToolPart)
    ]
    assert await older.find_all(set(on_trunk) - set(on_fork)) == {}


async def test_a_late_result_above_a_summary_is_reported_once_on_each_branch() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @tool(untrusted=True)
    async def slow() -> str:
        """Take long."""
        started.set()
        await release.wait()
        return "the late news"

    def answer(request: ModelRequest) -> list[Chunk]:
        prompt = [message.text for message in request.messages if message.role == "user"][-1]
        if "slow" in prompt and request.messages[-1].role != "tool" and request.tools:
            return [CallChunk(0, "{}", "slow", "s")]
        return [TextChunk("done " * 60)]

    store = MemoryStore()
    taints: list[tuple[bool, bool]] = []

    class Watch:
        async def on_before_request(self, ctx: RequestContext) -> None:
            taints.append(await ctx.run.taint())  # type: ignore[attr-defined]

    chat = App(WindowModel(answer, window=2_000), tools=[slow], store=store, plugins=[Watch()]).chat("s")
    turn = await chat.send("slow")
    await started.wait()
    await turn.cancel()
    await turn
    for _ in range(12):
        await say(chat)
    assert len(await summaries_of(store)) > 1
    fork = (await chat.messages())[-1]
    assert taints[-1] == (False, False)
    release.set()
    async with asyncio.timeout(20):
        await chat.app.tool_tasks.wait_idle()
    assert await store.indexed_events("s", "late")
    await say(chat)
    assert await late_notices(chat) == 1
    assert taints[-1] == (True, False)
    for _ in range(12):
        await say(chat)
    assert await late_notices(chat) == 1
    assert taints[-1] == (True, False)
    await (await chat.send("and here?", after=fork)).result()
    assert await late_notices(chat) == 1
    assert taints[-1] == (True, False)


async def late_notices(chat: Chat) -> int:
    """The reports of late results on the selected branch."""
    parts = [part for message in await chat.messages() for part in message.parts]
    return sum(isinstance(part, NoticePart) and "the late news" in part.text for part in parts)


@pytest.mark.parametrize("summaries", [1, 4])
async def test_marks_of_what_is_not_read_any_more_still_hold(summaries: int) -> None:
    @tool(read_only=True, untrusted=True, private=("secret",))
    def fetch() -> dict[str, str]:
        """Fetch."""
        return {"text": "from the web", "secret": "hunter2-hunter2"}

    @tool(read_only=True)
    def repeat() -> str:
        """Repeat what was fetched."""
        return "it was hunter2-hunter2"

    sent: list[str] = []

    @tool(egress=True)
    def mail() -> str:
        """Send mail."""
        sent.append("mail")
        return "sent"

    def answer(request: ModelRequest) -> list[Chunk]:
        prompt = [message.text for message in request.messages if message.role == "user"][-1]
        name = prompt.partition(" ")[0]
        if name in ("fetch", "repeat", "mail") and request.messages[-1].role != "tool":
            return [CallChunk(0, "{}", name, "c")]
        return [TextChunk("done " * 60)]

    store, model = MemoryStore(), WindowModel(answer, window=2_000)
    chat = App(model, tools=[fetch, repeat, mail], store=store).chat("s")
    await say(chat, "fetch it")
    while len(await summaries_of(store)) < summaries:
        await say(chat)
    await say(chat, "repeat it")
    assert "it was $private{" in text_of(model.requests[-1])
    assert "hunter2" not in text_of(model.requests[-1])
    result = await (await chat.send("mail it")).result()
    assert len(await summaries_of(store)) == summaries  # neither turn has a summary of its own
    assert result.status == "waiting"
    assert sent == []


async def test_a_summary_of_a_blocked_turn_has_replaced_nothing() -> None:
    class Breaks:
        is_on = False

        def on_before_request(self, ctx: RequestContext) -> None:
            if self.is_on and not is_summary_request(ctx.body):
                raise RuntimeError("no")

    plugin, store = Breaks(), MemoryStore()
    model = WindowModel(counting(1), window=3_000)
    chat = App(model, tools=[look], store=store, plugins=[plugin]).chat("s")
    for _ in range(3):
        await say(chat)
    assert await summaries_of(store) == []
    plugin.is_on = True
    with pytest.raises(HookError):
        await say(chat, "count to it " + "words " * 1_400)
    assert await summaries_of(store)
    plugin.is_on = False
    model.requests.clear()
    await say(chat, "and now?")
    text = text_of(model.requests[0])
    assert "summary" not in text
    assert text.count("count to it") == 3
