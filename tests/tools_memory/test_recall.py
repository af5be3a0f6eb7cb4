"""Recall: what a compaction has left out is found again, with its marks; other sessions of the user only with leave."""

from __future__ import annotations

from typing import Any

import msgspec

from everturn import Chat, Gate, Output, Turn, TurnOptions, tool
from everturn.app import App
from everturn.core.chunks import CallChunk, Chunk, TextChunk
from everturn.core.memory.recall import EXCERPT_LENGTH, RecalledMessage, search_recalled
from everturn.core.parts import SummaryPart, ToolPart
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.events import GateOpened, MessageAdded
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools import recall
from everturn.tools.recall_tools import MAX_HITS, MAX_RECALL_LENGTH
from tests.helpers.window_model import WindowModel, text_of

ON = recall().enabled()
SESSIONS = recall(sessions=True).enabled()
ALLOWED = [Rule("recall_sessions", "allow")]


async def results(turn: Turn) -> list[Output]:
    parts = [part for message in (await turn).messages for part in message.parts]
    return [part.output for part in parts if isinstance(part, ToolPart) and part.output is not None]


def found(output: Output) -> list[dict[str, Any]]:
    return msgspec.json.decode(output.text)["messages"]


async def say_in(store: Store, session: str, *texts: str, by: str = "ada", tenant: str = "local") -> None:
    """A session with these messages, each answered."""
    model = ScriptedModel(*(say(f"Answer to {text}") for text in texts))
    app = App(model, store=store)
    try:
        chat = Chat(model, app=app, session=session, options=TurnOptions(by=by), tenant=tenant)
        for text in texts:
            await (await chat.send(text))
    finally:
        await app.aclose()


class NextAnswer(ScriptedModel):
    """Answers the first request with the first answer, however long the conversation is."""

    def __init__(self, *script: Any) -> None:
        super().__init__(*[lambda _: next(self._answers)] * 100)
        self._answers = iter(script)


async def ask(store: Store, *tool_calls: Any, session: str = "now", by: str = "ada", **more: Any) -> list[Output]:
    model = NextAnswer(*(calls(tool_call) for tool_call in tool_calls), say("Done."))
    app = App(model, tools=[SESSIONS, *more.pop("tools", [])], store=store, rules=more.pop("rules", ALLOWED))
    try:
        chat = Chat(model, app=app, session=session, options=TurnOptions(by=by, max_steps=20), **more)
        return await results(await chat.send("find it"))
    finally:
        await app.aclose()


async def test_messages_of_the_branch_are_found_and_read() -> None:
    store = MemoryStore()
    await say_in(store, "now", "my cat is Mia", "my dog is Bo", "the weather is fine")
    hits = found((await ask(store, call("recall", query="cat MI")))[0])
    assert [(hit["role"], "Mia" in hit["text"]) for hit in hits] == [("assistant", True), ("user", True)]
    assert all("session" not in hit for hit in hits)
    [output] = await ask(store, call("recall", message=hits[1]["message"], around=1))
    assert [message["text"] for message in found(output)] == ["my cat is Mia", "Answer to my cat is Mia"]
    assert found((await ask(store, call("recall", query="zebra")))[0]) == []


async def test_a_message_of_another_branch_or_deleted_is_not_found() -> None:
    store = MemoryStore()
    model = NextAnswer(say("One."), say("Two."), calls(call("recall", query="zebra")), say("Done."))
    async with Chat(model, tools=[ON], store=store, session="s") as chat:
        first = await (await chat.send("hello"))
        assert first.message is not None
        await (await chat.send("a zebra"))
        [output] = await results(await chat.send("go on", after=first.message))
    assert found(output) == []


async def test_what_was_compacted_away_is_recalled_by_words_and_by_the_ids_of_the_summary() -> None:
    answered: set[str] = set()

    def answer(request: ModelRequest) -> list[Chunk]:
        prompts = [message.text for message in request.messages if message.role == "user"]
        prompt = next((text for text in prompts[::-1] if text.startswith("recall it")), "")
        if prompt and prompt not in answered and request.messages[-1].role != "tool":
            answered.add(prompt)
            by_words = {"query": "albatross"}
            arguments = by_words if "by words" in prompt else {"message": prompt.split()[-1], "around": 1}
            return [CallChunk(0, msgspec.json.encode(arguments).decode(), "recall", "r")]
        return [TextChunk("ok " * 300)]

    model = WindowModel(answer, window=3_000)
    app = App(model, tools=[ON])
    chat = app.chat("s")
    await (await chat.send("hello"))  # the first message of a conversation stays in every request
    await (await chat.send("the password hint is albatross " + "words " * 50))
    for _ in range(8):
        await (await chat.send("go on " + "words " * 100))
    events = [entry.event for entry in await app.store.events("s")]
    summaries = [
        p for e in events if isinstance(e, MessageAdded) for p in e.message.parts if isinstance(p, SummaryPart)
    ]
    assert summaries
    assert "albatross" not in text_of(model.requests[-1])
    [output] = await results(await chat.send("recall it by words"))
    hits = {hit["message"]: hit["text"] for hit in found(output)}
    [message] = [id for id, text in hits.items() if text.startswith("the password hint is albatross")]
    [output] = await results(await chat.send(f"recall it {message}"))
    assert [len(row["text"]) > 300 for row in found(output)] == [True, True, True]
    quote = summaries[-1].quotes[0]  # a summary names the messages of the person
    [output] = await results(await chat.send(f"recall it {quote.message}"))
    assert quote.text in [row["text"] for row in found(output)]
    await app.aclose()


@tool(read_only=True, untrusted=True, private=("secret",))
def fetch() -> dict[str, str]:
    """Fetch."""
    return {"text": "a flamingo from the web", "secret": "hunter2-hunter2"}


async def test_marks_survive_and_a_private_value_never_comes_back() -> None:
    store = MemoryStore()
    model = ScriptedModel(calls(call("fetch")), say("I saw a flamingo."))
    async with Chat(model, tools=[fetch], store=store, session="old", options=TurnOptions(by="ada")) as chat:
        await (await chat.send("fetch it"))
    for tool_call in (call("recall_sessions", query="flamingo"), call("recall_sessions", query="hunter2")):
        [output] = await ask(store, tool_call)
        assert "hunter2" not in output.text.replace('"query":"hunter2"', "")
    [output] = await ask(store, call("recall_sessions", query="flamingo"))
    assert (output.untrusted, output.sensitive) == (True, True)
    [hit] = found(output)
    [whole] = await ask(store, call("recall_sessions", message=hit["message"], session="old", around=3))
    assert (whole.untrusted, whole.sensitive) == (True, True)
    assert "$private{" in whole.text
    assert "hunter2" not in whole.text
    outputs = await ask(store, call("fetch"), call("recall", query="flamingo"), session="same", tools=[fetch])
    assert (outputs[1].untrusted, outputs[1].sensitive) == (True, True)
    assert "hunter2" not in outputs[1].text


async def test_a_message_before_untrusted_text_is_clean() -> None:
    store = MemoryStore()
    await say_in(store, "now", "my cat is Mia")
    outputs = await ask(store, call("fetch"), call("recall", query="cat"), tools=[fetch])
    assert not outputs[1].untrusted


async def test_a_withheld_result_is_not_recalled() -> None:
    store = MemoryStore()

    @tool(read_only=True, review="always")
    def look() -> str:
        """Look."""
        return "a walrus"

    model = ScriptedModel(calls(call("look")), say("Hm."), calls(call("recall", query="walrus")), say("Done."))
    async with Chat(model, tools=[look, ON], store=store) as chat:
        turn = await chat.send("look")
        async for event in turn:
            if isinstance(event, GateOpened):
                await turn.answer(event.gate, deny="not for you")
        await turn
        [output] = await results(await chat.send("what was it?"))
    assert "a walrus" not in output.text


async def test_other_sessions_are_the_users_own_and_never_another_users_or_tenants() -> None:
    store = MemoryStore()
    await say_in(store, "mine", "the ibis is mine")
    await say_in(store, "bobs", "the ibis is bobs", by="bob")
    await say_in(store, "nobodys", "the ibis is nobodys", by="")
    await say_in(store, "evil", "the ibis is evil", tenant="evil")
    [output] = await ask(store, call("recall_sessions", query="ibis"))
    assert {hit["session"] for hit in found(output)} == {"mine"}
    [output] = await ask(store, call("recall", query="ibis"))
    assert found(output) == []
    for session in ("bobs", "nobodys", "evil", "missing"):
        path = (await store.tree(session)).messages if session != "missing" else {"m": None}
        [output] = await ask(store, call("recall_sessions", session=session, message=next(iter(path))))
        assert "there is no message" in output.text
        assert "ibis" not in output.text
    [output] = await ask(store, call("recall_sessions", query="ibis"), tenant="acme", by="", session="acme")
    assert "this turn has no user" in output.text


async def test_a_person_is_asked_before_other_sessions_are_read() -> None:
    store, gates = MemoryStore(), list[Gate]()
    await say_in(store, "old", "the ibis is red", by="")
    tool_calls = [
        call("recall_sessions", query="ibis"),
        call("recall", query="ibis"),
        call("recall_sessions", query="red"),
    ]
    model = ScriptedModel(*(calls(tool_call) for tool_call in tool_calls), say("Done."))
    async with Chat(model, tools=[SESSIONS], store=store) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, GateOpened):
                gates.append(event.gate)
                await turn.answer(event.gate, allow="always")
        outputs = await results(turn)
    assert [gate.tool for gate in gates] == ["recall_sessions"]  # the first time
    assert [bool(found(output)) for output in outputs] == [True, False, True]


async def test_arguments_are_a_query_or_a_message() -> None:
    store = MemoryStore()
    for arguments in ({}, {"query": " "}, {"query": "a", "message": "b"}, {"message": "b", "around": 99}, {"when": 1}):
        [output] = await ask(store, call("recall", **arguments))
        assert output.code == "bad_arguments", arguments
    [output] = await ask(store, call("recall_sessions", message="m"))
    assert "give both" in output.text
    [output] = await ask(store, call("recall", message="msg_unknown"))
    assert "there is no message" in output.text


def test_excerpts_are_bounded_and_show_what_was_found() -> None:
    long = RecalledMessage("m", "user", "x " * 10_000 + "needle " + "y " * 10_000)
    [hit] = search_recalled([long], "needle", 5)
    assert "needle" in hit.text
    assert len(hit.text) <= EXCERPT_LENGTH + 2
    many = [RecalledMessage(f"m{at}", "user", f"needle {at}") for at in range(50)]
    assert [hit.message for hit in search_recalled(many, "needle", MAX_HITS)] == [
        f"m{49 - at}" for at in range(MAX_HITS)
    ]
    both = [RecalledMessage("a", "user", "red needle"), RecalledMessage("b", "user", "needle")]
    assert [hit.message for hit in search_recalled(both, "needle red", 5)] == ["a", "b"]


async def test_a_result_is_bounded() -> None:
    store = MemoryStore()
    await say_in(store, "now", *("word " * 4_000 for _ in range(6)))
    model = NextAnswer(calls(call("recall", query="word")), say("Done."))
    async with Chat(model, tools=[ON], store=store, session="now", options=TurnOptions(by="ada")) as chat:
        [output] = await results(await chat.send("go"))
        [_, message, *_] = [hit["message"] for hit in found(output)]
    [output] = await ask(store, call("recall", message=message, around=10))
    assert len(output.text) < MAX_RECALL_LENGTH + 5_000
    assert any("left_out" in row for row in found(output))


async def test_a_request_without_recall_is_what_it_was() -> None:
    model = ScriptedModel(say("Yes."))
    async with Chat(model, tools=[recall()]) as chat:
        await (await chat.send("go"))
    assert "recall" not in text_of(model.requests[0])
