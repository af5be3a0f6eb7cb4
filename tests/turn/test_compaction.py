"""Long conversations: what is cleared and summarised, and that it never loops, breaks a pair or leaks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from everturn import Agent, App, Chat, TurnError, TurnOptions, last_turns, tool
from everturn.core.chunks import CallChunk, Chunk, TextChunk
from everturn.core.context.compaction import SUMMARY_NOTICE
from everturn.core.events import CompactionFailed, CompactionFinished, CompactionStarted, MessageAdded
from everturn.core.hooks import CompactContext, Plugin
from everturn.core.parts import ClearedPart, NoticePart, SummaryPart
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError
from tests.helpers.window_model import (
    WindowModel,
    counting,
    events_of,
    is_summary_request,
    rendered,
    text_of,
)

FACTS = {
    "goal": "GOAL ship release 7.2",
    "constraint": "RULE never touch main.cfg",
    "quote": "QUOTE measure twice",
    "path": "PATH src/deep/engine.py",
    "question": "OPEN which colour?",
    "correction": "CORRECTION port 8081 not 8080",
    "failure": "FAILED make -j broke",
    "skill": "SKILL always sign commits",
}


def keep_facts(prompt: str) -> str:
    """A summariser that keeps what it is told to keep, and nothing else."""
    found = [fact for fact in FACTS.values() if fact in prompt]
    return "Goal: " + "\n".join(found or ["nothing"])


@tool(read_only=True)
def look(n: int) -> str:
    """Look at something."""
    return f"result {n} " + "lorem ipsum dolor sit amet " * 40


def app_with(model: WindowModel, **more: Any) -> App:
    return App(model, tools=[look], **more)


async def run(chat: Chat, text: str, **how: Any) -> None:
    await (await chat.send(text, **how)).result()


async def test_eight_facts_survive_five_compactions_in_every_wire_format() -> None:
    model = WindowModel(counting(60), keep_facts, window=6_000)
    app = app_with(model)
    chat = app.chat("s")
    for name, fact in FACTS.items():
        await run(chat, f"{name}: {fact}. Please count to it. " + "words of the person " * 30, max_steps=70)
    log = await app.store.events("s")
    summaries = [
        part for event in events_of(log, MessageAdded) for part in event.message.parts if isinstance(part, SummaryPart)
    ]
    assert len(summaries) >= 5
    assert {part.why for part in summaries} == {"limit"}
    assert len(events_of(log, CompactionFinished)) == len(summaries)
    assert model.refused == 0
    assert max(model.sizes) <= 6_000
    # The summariser does not return its input.
    for request, part in zip(model.summaries[-3:], summaries[-3:], strict=False):
        assert len(part.text) < len(request.messages[0].text) / 4
    last = model.requests[-1]
    for format_name, body in rendered(last).items():
        missing = [name for name, fact in FACTS.items() if fact not in body.decode()]
        assert not missing, (format_name, missing)


async def test_a_conversation_that_fits_is_sent_as_if_there_were_no_compaction() -> None:
    requests: list[list[str]] = []
    for policy in ("auto", "off"):
        model = WindowModel(counting(3), window=100_000)
        app = app_with(model)
        chat = app.chat("s")
        for number in range(4):
            await run(chat, f"count to {number}", context=policy)
        requests.append([text_of(request) for request in model.requests])
        assert not events_of(await app.store.events("s"), CompactionStarted, MessageAdded)
        assert not model.summaries
    assert [re.sub(r"turn_\w+", "turn", text) for text in requests[0]] == [
        re.sub(r"turn_\w+", "turn", text) for text in requests[1]
    ]


async def test_cleared_results_can_be_read_again_and_no_call_is_repeated() -> None:
    read: list[str] = []

    def answer(request: ModelRequest) -> list[Chunk]:
        stubs = re.findall(r'read_result\(\\?"([^"\\]+)', text_of(request))
        if stubs and not read:
            read.append(stubs[0])
            return [CallChunk(0, f'{{"call": "{stubs[0]}"}}', "read_result", "r")]
        return counting(12)(request)

    model = WindowModel(answer, window=6_000)
    app = app_with(model)
    await run(app.chat("s"), "count to 12", max_steps=40)
    assert read
    cleared = [
        call
        for event in events_of(await app.store.events("s"), MessageAdded)
        for part in event.message.parts
        if isinstance(part, ClearedPart)
        for call in part.calls
    ]
    assert read[0] in cleared
    whole = "result 1 " + "lorem ipsum dolor sit amet " * 40
    answers = [str(request.messages[-1].parts) for request in model.requests if "characters 0 to" in text_of(request)]
    assert whole in answers[0]
    numbers = re.findall(r'"n":(\d+)', "".join(text_of(request) for request in model.requests[-1:]))
    assert len(numbers) == len(set(numbers))


async def test_what_was_cleared_or_summarised_is_listed_and_what_is_shown_is_not() -> None:
    listed: list[str] = []

    def answer(request: ModelRequest) -> list[Chunk]:
        if "list them" in [message.text for message in request.messages if message.role == "user"][-1]:
            if request.messages[-1].role == "tool":
                listed.append(str(getattr(request.messages[-1].parts[0], "text", "")))
                return [TextChunk("listed")]
            return [CallChunk(0, '{"start": 1}' if len(listed) else "{}", "list_results", "l")]
        return counting(12)(request)

    model = WindowModel(answer, window=6_000)
    app = app_with(model)
    chat = app.chat("s")
    await run(chat, "count to 12", max_steps=40)
    await run(chat, "list them")
    await run(chat, "list them")
    assert "list_results" not in [spec.name for spec in model.requests[0].tools]
    assert [spec.name for spec in model.requests[-1].tools][-2:] == ["read_result", "list_results"]
    head, *lines = listed[0].splitlines()
    assert re.fullmatch(rf"\[0 to {len(lines)} of {len(lines)}; read_result\(call\) reads one\]", head)
    numbers = [int(re.findall(r"result (\d+) ", line)[0]) for line in lines]
    assert numbers == sorted(numbers, reverse=True)
    shown = {int(number) for number in re.findall(r"result (\d+) lorem", text_of(model.requests[-4]))}
    assert shown.isdisjoint(numbers)
    assert shown | set(numbers) == set(range(1, 13))
    assert all(re.match(r"\S+ look \(\d+ characters\): result \d+ lorem", line) for line in lines[-5:])
    assert listed[1].splitlines()[1:] == lines[1:]


async def test_where_the_instructions_alone_are_too_long_the_error_names_what_fills_the_window() -> None:
    model = WindowModel(counting(2), window=None, hidden_window=3_000)
    app = App(model, tools=[look], agents=[])
    chat = Chat(model, app=app, options=TurnOptions(system="x" * 40_000))
    with pytest.raises(TurnError) as caught:
        await run(chat, "count to 2")
    assert caught.value.kind == "context"
    assert "instructions 10,000" in str(caught.value)
    assert len(re.findall(r"\w [\d,]+[,.]", str(caught.value).split("largest parts")[1])) >= 2
    assert len(model.summaries) == 0
    assert model.requests == []


async def test_where_the_floor_is_above_the_limit_there_are_at_most_two_summary_requests() -> None:
    system = "x" * 4 * 4_300
    model = WindowModel(counting(3), window=None, hidden_window=60_000)
    app = app_with(model)
    chat = Chat(model, app=app, options=TurnOptions(system=system))
    for _ in range(6):
        await run(chat, "count to 3 " + "words " * 100)
    narrow = WindowModel(counting(3), window=4_400, name="narrow")
    app.add_model(narrow)
    with pytest.raises(TurnError) as caught:
        await run(chat, "count to 3", model="narrow")
    assert caught.value.kind == "context"
    assert "instructions" in str(caught.value)
    assert len(narrow.summaries) <= 2
    assert narrow.requests == []


async def test_a_summariser_that_saves_nothing_is_asked_at_most_twice_in_a_turn() -> None:
    model = WindowModel(counting(30), lambda prompt: prompt[: int(len(prompt) * 0.99)], window=6_000)
    app = app_with(model)
    await run(app.chat("s"), "count to 30 " + "words " * 500, max_steps=60)
    log = await app.store.events("s")
    assert len(events_of(log, CompactionStarted)) <= 2
    assert model.refused == 0


@pytest.mark.parametrize("summary", ["", "   \n"])
async def test_an_empty_summary_is_refused_and_the_oldest_messages_are_left_out(summary: str) -> None:
    model = WindowModel(lambda request: [TextChunk("answer " * 200)], lambda prompt: summary, window=3_000)
    app = app_with(model)
    chat = app.chat("s")
    for number in range(12):
        await run(chat, f"message {number} " + "words " * 100)
    log = await app.store.events("s")
    assert events_of(log, CompactionFailed)
    truncated = [
        part for event in events_of(log, MessageAdded) for part in event.message.parts if isinstance(part, SummaryPart)
    ]
    assert truncated
    assert all(part.text == "" for part in truncated)
    assert model.refused == 0
    assert "message 11" in text_of(model.requests[-1])


async def test_an_overflow_is_recovered_once_and_teaches_the_limit() -> None:
    model = WindowModel(counting(3), window=None, hidden_window=4_000)
    app = app_with(model)
    chat = app.chat("s")
    for number in range(8):
        await run(chat, f"count to 3, message {number} " + "words " * 100)
    log = await app.store.events("s")
    started = events_of(log, CompactionStarted)
    assert started[0].why == "overflow"
    assert "limit" in {event.why for event in started[1:]} or model.refused == 1
    assert model.refused <= len(started)
    assert len(model.requests) == 32


async def test_untrusted_and_private_marks_survive_a_summary() -> None:
    @tool(read_only=True, untrusted=True, private=("secret",))
    def fetch() -> dict[str, str]:
        """Fetch."""
        return {"text": "from the web " * 100, "secret": "hunter2-hunter2"}

    sent: list[str] = []

    @tool(egress=True)
    def mail(text: str) -> str:
        """Send mail."""
        sent.append(text)
        return "sent"

    def answer(request: ModelRequest) -> list[Chunk]:
        prompt = [message.text for message in request.messages if message.role == "user"][-1]
        has_result = request.messages[-1].role == "tool"
        if "fetch" in prompt and not has_result:
            return [CallChunk(0, "{}", "fetch", "f")]
        if "mail" in prompt and not has_result:
            return [CallChunk(0, '{"text": "hi"}', "mail", "m")]
        return [TextChunk("ok " * 300)]

    model = WindowModel(answer, window=3_000)
    app = App(model, tools=[fetch, mail])
    chat = app.chat("s")
    await run(chat, "fetch it " + "words " * 50)
    for _ in range(6):
        await run(chat, "go on " + "words " * 100)
    [part, *_] = [
        part
        for event in events_of(await app.store.events("s"), MessageAdded)
        for part in event.message.parts
        if isinstance(part, SummaryPart)
    ]
    assert part.untrusted
    assert part.private
    assert "from the web" not in text_of(model.requests[-1])
    notices = [p for m in model.requests[-1].messages for p in m.parts if isinstance(p, NoticePart)]
    assert [notice.untrusted for notice in notices if notice.kind == SUMMARY_NOTICE] == [True]
    assert all("hunter2" not in text_of(request) for request in (*model.summaries, *model.requests))
    turn = await chat.send("mail it")
    result = await turn.result()
    assert result.status == "waiting"
    assert sent == []


class Rules(Plugin):
    def __init__(self, action: str) -> None:
        self.action = action
        self.seen: list[str] = []

    def on_compact(self, ctx: CompactContext) -> None:
        self.seen.append(ctx.why)
        if self.action == "add":
            ctx.add("the magic word is xyzzy")
        elif self.action == "use":
            ctx.use("Goal: by the plugin")
        elif self.action == "refuse":
            ctx.refuse("not now")
        else:
            ctx.instructions += "\nRhyme."


@pytest.mark.parametrize("action", ["add", "use", "refuse"])
async def test_a_plugin_adds_to_a_summary_writes_it_or_refuses_it(action: str) -> None:
    plugin = Rules(action)
    model = WindowModel(lambda request: [TextChunk("answer " * 100)], window=50_000)
    app = app_with(model, plugins=[plugin])
    chat = app.chat("s")
    for _ in range(4):
        await run(chat, "words " * 100)
    turn = await chat.compact(focus="the words")
    if action == "refuse":
        with pytest.raises(TurnError, match="not now"):
            await turn.result()
    else:
        await turn.result()
    assert plugin.seen == ["command"]
    log = await app.store.events("s")
    texts = [p.text for e in events_of(log, MessageAdded) for p in e.message.parts if isinstance(p, SummaryPart)]
    assert texts == {"add": ["Goal: go on."], "use": ["Goal: by the plugin"], "refuse": []}[action]
    prompts = [request.messages[0].text for request in model.summaries]
    assert [("xyzzy" in text, "the words" in text) for text in prompts] == ([(True, True)] if action == "add" else [])


async def test_a_person_compacts_and_undoes_it_by_deleting_the_summary() -> None:
    model = WindowModel(lambda request: [TextChunk("answer " * 100)], window=50_000)
    app = app_with(model)
    chat = app.chat("s")
    for number in range(4):
        await run(chat, f"message {number} " + "words " * 100)
    before = text_of(model.requests[-1])
    await (await chat.compact()).result()
    [summary] = [message for message in await chat.messages() if message.role == "notice"]
    await run(chat, "after")
    assert "message 0" not in "".join(m.text for m in model.requests[-1].messages[1:])
    assert len(text_of(model.requests[-1])) < len(before)
    await chat.delete(summary)
    await run(chat, "after")
    assert "message 0" in model.requests[-1].messages[0].text
    assert not any(is_summary_request(request) for request in model.requests)
    assert text_of(model.requests[-1]).startswith(before[:-3])


async def test_forks_above_a_summary_have_the_whole_history_and_forks_below_inherit_it() -> None:
    model = WindowModel(lambda request: [TextChunk("answer " * 100)], window=50_000)
    app = app_with(model)
    chat = app.chat("s")
    for number in range(4):
        await run(chat, f"message {number} " + "words " * 100)
    above = (await chat.messages())[-1]
    await (await chat.compact()).result()
    notice = (await chat.messages())[-1]
    await run(chat, "below")
    below = text_of(model.requests[-1])
    await run(chat, "above", after=above)
    never = WindowModel(lambda request: [TextChunk("answer " * 100)], window=50_000)
    other = app_with(never).chat("s")
    for number in range(4):
        await run(other, f"message {number} " + "words " * 100)
    await run(other, "above")
    assert text_of(model.requests[-1]) == text_of(never.requests[-1])
    await run(chat, "below", after=notice)
    assert text_of(model.requests[-1]) == below
    await (await chat.rerun(above)).result()
    assert "message 0" in model.requests[-1].messages[0].text


async def test_with_last_turns_a_model_reads_only_these() -> None:
    model = WindowModel(lambda request: [TextChunk("ok")], window=None)
    agent = Agent(model, name="short", context=last_turns(2))
    app = App(agents=[agent])
    chat = app.chat("s", agent="short")
    for number in range(4):
        await run(chat, f"message {number}")
    texts = [message.text for message in model.requests[-1].messages]
    assert texts == ["message 2", "ok", "message 3"]


def test_an_unknown_context_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="last_turns"):
        Agent("openai:gpt-5", context="some")
    with pytest.raises(ConfigError, match="at least 1"):
        last_turns(0)
