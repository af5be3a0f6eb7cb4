"""`chat.import_messages`: one durable command, whose messages are data and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from everturn import App, Chat, tool
from everturn.chat.import_export import import_id
from everturn.core.commands import ImportMessages
from everturn.core.events import CallStarted, MessagesImported
from everturn.core.messages import Message
from everturn.core.parts import FilePart, NoticePart, ToolPart
from everturn.errors import ConfigError, KeyConflict, SessionBusy, UnknownMessage
from everturn.message_formats import read_messages
from everturn.message_formats.conversation import NO_RESULT_IMPORTED
from everturn.replay import Recording, differences, replay_offline
from everturn.stores.export import export_session, import_session
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from tests.message_formats.random_conversations import PNG

FUNCTION = {"name": "look", "arguments": '{"order": 7}'}
OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Where is order 7?"},
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "on its way"},
    {"role": "assistant", "content": "It is on its way."},
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where is order 7?"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
    {"type": "function_call", "call_id": "c1", **FUNCTION},
    {"type": "function_call_output", "call_id": "c1", "output": "on its way"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is on its way."}]},
]
ANTHROPIC: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "Where is order 7?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"order": 7}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "on its way"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is on its way."}]},
    ],
}
PYDANTIC_AI: list[dict[str, Any]] = [
    {
        "kind": "request",
        "instructions": "Be brief.",
        "parts": [{"part_kind": "user-prompt", "content": "Where is order 7?"}],
    },
    {
        "kind": "response",
        "model_name": "gpt-5.2",
        "parts": [
            {"part_kind": "text", "content": "Let me see."},
            {"part_kind": "tool-call", "tool_name": "look", "args": {"order": 7}, "tool_call_id": "c1"},
        ],
    },
    {
        "kind": "request",
        "parts": [{"part_kind": "tool-return", "tool_name": "look", "content": "on its way", "tool_call_id": "c1"}],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": "It is on its way."}]},
]
SHAPES: dict[str, Any] = {
    "openai": OPENAI,
    "responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "pydantic_ai": PYDANTIC_AI,
    "json": json.dumps(PYDANTIC_AI),
}


def new_chat(**options: Any) -> Chat:
    return Chat(ScriptedModel(*[say("Yes.")] * 9), session="s", **options)


def calls_of(message: Message) -> list[ToolPart]:
    return [part for part in message.parts if isinstance(part, ToolPart)]


@pytest.mark.parametrize("shape", SHAPES)
async def test_every_shape_becomes_the_same_conversation(shape: str) -> None:
    async with new_chat() as chat:
        imported = await chat.import_messages(SHAPES[shape])
        question, answer = await chat.messages()
        assert (question.role, question.text) == ("user", "Where is order 7?")
        assert answer.text == "Let me see.\n\nIt is on its way."
        (tool_call,) = calls_of(answer)
        assert (tool_call.name, json.loads(tool_call.arguments), tool_call.state) == ("look", {"order": 7}, "completed")
        assert tool_call.output is not None
        assert tool_call.output.text == "on its way"
        assert (imported.messages, imported.instructions) == ((question, answer), "Be brief.")
        assert (imported.warnings, imported.is_new) == ((), True)


async def test_an_import_is_marked_and_its_results_are_untrusted() -> None:
    async with new_chat() as chat:
        await chat.import_messages(PYDANTIC_AI)
        await (await chat.send("And order 8?"))
        messages = await chat.messages()
        assert [message.imported for message in messages] == [True, True, False, False]
        assert messages[1].by == "import:gpt-5.2"
        (tool_call,) = calls_of(messages[1])
        assert tool_call.output is not None
        assert tool_call.output.untrusted
        assert tool_call.output.origin == "import"
        (event,) = [
            entry.event for entry in await chat.app.store.events("s") if isinstance(entry.event, MessagesImported)
        ]
        assert event.messages == tuple(messages[:2])


async def test_imported_calls_never_run_and_an_open_one_gets_a_result() -> None:
    ran: list[int] = []

    @tool
    def look(order: int) -> str:
        """Look."""
        ran.append(order)
        return "here"

    async with new_chat(tools=[look]) as chat:
        await chat.import_messages(OPENAI[:3])
        await (await chat.send("Go on."))
        (tool_call,) = calls_of((await chat.messages())[1])
        assert (tool_call.state, tool_call.output and tool_call.output.text) == ("cancelled", NO_RESULT_IMPORTED)
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
        assert ran == []
        assert not [event for event in log if isinstance(event, CallStarted)]


async def test_instructions_of_the_import_are_not_sent() -> None:
    model = ScriptedModel(*[say("Yes.")] * 9)
    async with Chat(model, system="Answer in German.") as chat:
        imported = await chat.import_messages(OPENAI)
        await (await chat.send("And order 8?"))
        assert imported.instructions == "Be brief."
        (request,) = model.requests
        assert "Answer in German." in request.system
        assert "Be brief." not in request.system
        assert [message.text for message in request.messages if "brief" in message.text] == []


async def test_the_same_key_imports_once_and_another_list_under_it_is_a_conflict() -> None:
    async with new_chat() as chat:
        first = await chat.import_messages(OPENAI, key="old-7")
        again = await chat.import_messages(OPENAI, key="old-7")
        assert (first.is_new, again.is_new, again.messages) == (True, False, first.messages)
        assert len(await chat.messages()) == 2
        with pytest.raises(KeyConflict):
            await chat.import_messages(OPENAI[:2], key="old-7")


async def test_it_continues_the_selected_branch_or_begins_one_after_a_message() -> None:
    async with new_chat() as chat:
        await (await chat.send("Hello."))
        await chat.import_messages(OPENAI)
        hello = (await chat.messages())[0]
        assert [m.text for m in await chat.messages()][:3] == ["Hello.", "Yes.", "Where is order 7?"]
        await chat.import_messages([{"role": "user", "content": "Beside it."}], after=hello)
        assert [m.text for m in await chat.messages()] == ["Hello.", "Beside it."]
        with pytest.raises(UnknownMessage):
            await chat.import_messages(OPENAI, after="nobody")


async def test_a_session_whose_turn_waits_is_busy() -> None:
    @tool(approval="always")
    def pay() -> str:
        """Pay."""
        return "paid"

    async with Chat(ScriptedModel(calls(call("pay")), *[say("Done.")] * 9), tools=[pay], session="s") as chat:
        turn = await chat.send("Pay.")
        async for _ in turn:
            if await chat.gates():
                break
        with pytest.raises(SessionBusy):
            await chat.import_messages(OPENAI)
        await chat.answer((await chat.gates())[0], allow="once")
        await turn
        await chat.import_messages(OPENAI)


async def test_an_admitted_import_is_carried_out_by_whichever_process_comes_next(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    messages = read_messages(OPENAI).build(import_id("s", "k"))
    dead = App(ScriptedModel(say("Yes.")), store=url)
    await dead.store.admit(ImportMessages(key="k", session="s", messages=messages, at_leaf=True, at=1.0))
    await dead.aclose()
    async with new_chat(store=url) as chat:
        imported = await chat.import_messages(OPENAI, key="k")
        assert not imported.is_new
        assert [m.id for m in await chat.messages()] == [m.id for m in messages]
        log = [entry.event for entry in await chat.app.store.events("s")]
        assert [type(event) for event in log] == [MessagesImported]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_session_can_begin_with_an_import(kind: str, tmp_path: Path) -> None:
    store = None if kind == "memory" else f"sqlite:///{tmp_path}/s.db"
    async with new_chat(store=store) as chat:
        await chat.import_messages(OPENAI, by="ada")
        info = await chat.app.store.info("s")
        assert (info.title, info.by, info.leaf) == ("Where is order 7?", "ada", (await chat.messages())[-1].id)
        await (await chat.send("And order 8?"))
        after = await chat.app.store.info("s")
        assert (after.title, after.by) == (info.title, info.by)
        assert (await chat.app.store.tree("s")).path(after.leaf) == await chat.messages()
        for text in ("order 7", "way"):  # an imported answer is found as well
            assert {session for session, _ in await chat.app.store.search(text)} == {"s"}


async def test_files_are_kept_and_links_are_not_fetched() -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    link = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    async with new_chat() as chat:
        imported = await chat.import_messages([{"role": "user", "content": [image, link]}])
        file, notice = imported.messages[0].parts
        assert isinstance(file, FilePart)
        assert (await chat.read(file)).startswith(b"\x89PNG")
        assert isinstance(notice, NoticePart)
        assert "https://example.com/a.png" in notice.text
        assert imported.warnings == ("message 0: an image was not imported: https://example.com/a.png",)


async def test_what_says_that_it_is_an_image_and_is_none_is_not_sent_as_one() -> None:
    fake = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    builder = read_messages([{"role": "user", "content": [fake]}])
    (message,) = builder.build("m")
    (part,) = message.parts
    assert isinstance(part, FilePart)
    assert part.media_type == "application/octet-stream"
    assert len(builder.warnings) == 1


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (7, "list of messages"),
        ("{", "JSON"),
        ([], "no message to import"),
        ([{"role": "robot", "content": "x"}], "role 'robot'"),
        (["hello"], "message 0 is a str"),
        ([*PYDANTIC_AI, *OPENAI], "name the format"),
        ([{"kind": "thought", "parts": [], "role": "user"}, *PYDANTIC_AI], "kind 'thought'"),
    ],
)
async def test_what_is_no_message_list_is_refused_before_anything_is_written(messages: Any, says: str) -> None:
    async with new_chat() as chat:
        with pytest.raises(ConfigError, match=says):
            await chat.import_messages(messages)
        assert await chat.messages() == []


async def test_results_that_come_twice_or_belong_to_nobody_are_reported() -> None:
    result = OPENAI[3]
    builder = read_messages([*OPENAI[:4], result, {**result, "tool_call_id": "c9"}])
    (_, answer) = builder.build("m")
    (tool_call,) = calls_of(answer)
    assert tool_call.output is not None
    assert tool_call.output.text == "on its way"
    assert [text[:9] for text in builder.warnings] == ["message 4", "message 5"]


async def test_an_exported_session_with_an_import_can_be_imported(tmp_path: Path) -> None:
    async with new_chat() as chat:
        await chat.import_messages(OPENAI, by="ada")
        await (await chat.send("And order 8?"))
        await export_session(chat.app.store, "s", tmp_path / "s.zip")
        target = MemoryStore()
        await import_session(target, tmp_path / "s.zip", by="eve")
        first, *_ = [entry.event for entry in await target.events("s")]
        assert isinstance(first, MessagesImported)
        assert first.by == "import:ada"
        assert [m.text for m in (await target.tree("s")).messages.values()] == [m.text for m in await chat.messages()]


async def test_an_erased_message_does_not_come_back_with_its_key() -> None:
    async with new_chat() as chat:
        await chat.import_messages(OPENAI, key="k")
        await chat.delete((await chat.messages())[0])
        again = await chat.import_messages(OPENAI, key="k")
        assert not again.is_new
        assert await chat.messages() == []


async def test_a_session_with_an_import_can_be_replayed() -> None:
    async with new_chat() as chat:
        await chat.import_messages(OPENAI)
        await (await chat.send("And order 8?"))
        recording = await Recording.from_log(chat.app.store, "s")
    assert differences(recording, await replay_offline(recording)) == []
