"""Export and import again: roles, texts, calls and results stay. Exports are valid for the packages they are meant for."""

import json
from typing import Any

import pytest

from everturn import App, Chat, tool
from everturn.core.canonical_json import parse_object
from everturn.core.messages import Message
from everturn.core.parts import FilePart, StepPart, TextPart, ToolPart
from everturn.errors import ConfigError
from everturn.message_formats import MessageFormat
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from tests.message_formats.random_conversations import SHAPES
from tests.message_formats.test_import_messages import OPENAI

SHORT = 60


def facts(messages: list[Message], format: MessageFormat) -> list[Any]:
    """What a round trip keeps. Chat Completions cannot say which calls failed, and a file may be described instead."""
    entries: list[Any] = []
    for message in messages:
        is_answer = message.role == "assistant"
        texts = "".join(part.text for part in message.parts if isinstance(part, TextPart))
        tool_calls = [
            (part.name, parse_object(part.arguments), part.output and part.output.text)
            + ((part.state == "completed",) if format != "openai" else ())
            for part in message.parts
            if isinstance(part, ToolPart)
        ]
        files = [part.blob for part in message.parts if isinstance(part, FilePart) and part.media_type == "image/png"]
        entries.append(("assistant" if is_answer else "user", texts, tool_calls, [] if is_answer else files))
    return entries


def is_describable(messages: list[Message]) -> bool:
    """Whether nothing in it is exported as a description, or not at all: a notice, reasoning, most files."""
    odd = [
        part
        for message in messages
        for part in message.parts
        if not isinstance(part, TextPart | ToolPart | FilePart)
        or (isinstance(part, FilePart) and (message.role == "assistant" or part.media_type != "image/png"))
        or (isinstance(part, ToolPart) and parse_object(part.arguments) is None)
        or (isinstance(part, ToolPart) and (part.output is None or part.output.attachments or not part.output.text))
    ]
    return all(isinstance(part, StepPart) for part in odd)


@pytest.mark.parametrize("target", SHAPES)
@pytest.mark.parametrize("shape", SHAPES)
async def test_an_export_can_be_imported_again(shape: MessageFormat, target: MessageFormat) -> None:
    model = ScriptedModel(say("Yes."))
    app, compared = App(model, store=MemoryStore()), 0
    try:
        for seed in range(SHORT):
            first = Chat(model, app=app, session=f"first-{seed}")
            try:
                await first.import_messages(SHAPES[shape](seed), format=shape)
            except ConfigError:
                continue
            exported = await first.export_messages(format=target)
            assert json.loads(json.dumps(exported)) == exported
            if not is_describable(await first.messages()):
                continue
            again = Chat(model, app=app, session=f"again-{seed}")
            await again.import_messages(exported, format=target)
            assert facts(await again.messages(), target) == facts(await first.messages(), target)
            compared += 1
    finally:
        await app.aclose()
    assert compared >= SHORT // 10


@tool(read_only=True)
def look(order: int) -> str:
    """Look."""
    if order == 8:
        raise ValueError("there is none")
    return "on its way"


async def exported(format: MessageFormat) -> list[dict[str, Any]]:
    """A conversation that was held here, with a picture, a call, and a call that failed."""
    from everturn.testing.provider.media.png import draw_png

    model = ScriptedModel(calls(call("look", order=7), call("look", order=8)), *[say("It is on its way.")] * 9)
    async with Chat(model, tools=[look], system="Be brief.") as chat:
        await (await chat.send([TextPart("Where is it?"), await chat.attach(draw_png(b"a"), "image/png")]))
        return await chat.export_messages(format=format)


async def test_a_conversation_that_was_held_here_can_be_exported_to_openai() -> None:
    chat_types = pytest.importorskip("openai.types.chat")
    from pydantic import TypeAdapter

    messages = await exported("openai")
    validator = TypeAdapter[Any](chat_types.ChatCompletionMessageParam)
    assert [validator.validate_python(message) for message in messages]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert messages[2]["content"] == "on its way"
    assert messages[0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")


async def test_a_conversation_that_was_held_here_can_be_exported_to_anthropic() -> None:
    messages = await exported("anthropic")
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    uses, results = messages[1]["content"], messages[2]["content"]
    assert [block["id"] for block in uses] == [block["tool_use_id"] for block in results]
    assert [block["input"] for block in uses] == [{"order": 7}, {"order": 8}]
    assert [block.get("is_error", False) for block in results] == [False, True]
    anthropic_types = pytest.importorskip("anthropic.types")
    from pydantic import TypeAdapter

    validator = TypeAdapter[Any](anthropic_types.MessageParam)
    assert [validator.validate_python(message) for message in messages]


async def test_a_conversation_that_was_held_here_can_be_exported_to_pydantic_ai() -> None:
    messages = await exported("pydantic_ai")
    assert [message["kind"] for message in messages] == ["request", "response", "request", "response"]
    assert [part["outcome"] for part in messages[2]["parts"]] == ["success", "failed"]
    adapter = pytest.importorskip("pydantic_ai.messages").ModelMessagesTypeAdapter
    objects = adapter.validate_python(messages)
    async with Chat(ScriptedModel(say("Yes."))) as chat:
        imported = await chat.import_messages(objects)
        again = await Chat(ScriptedModel(say("Yes."))).import_messages(adapter.dump_json(objects))
        assert facts(list(imported.messages), "pydantic_ai") == facts(list(again.messages), "pydantic_ai")


async def test_objects_of_the_openai_sdk_can_be_imported() -> None:
    chat_types = pytest.importorskip("openai.types.chat")
    answer = chat_types.ChatCompletionMessage.model_validate(OPENAI[2])
    async with Chat(ScriptedModel(say("Yes."))) as chat:
        await chat.import_messages([OPENAI[1], answer, OPENAI[3]])
        (_, message) = await chat.messages()
        (tool_call,) = [part for part in message.parts if isinstance(part, ToolPart)]
        assert (tool_call.name, tool_call.state, tool_call.provider_id) == ("look", "completed", "c1")
