"""What a hook may append, and what it may not assign."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Chat, TextPart
from everturn.core.hooks import StepContext, TurnContext
from everturn.core.messages import Message
from everturn.errors import HookError
from everturn.testing import ScriptedModel, say


class Appending:
    """Appends something after the first step."""

    name = "appending"

    def __init__(self, content: Any, **how: Any) -> None:
        self.given, self.how = content, how

    async def on_after_request(self, ctx: StepContext) -> None:
        if ctx.step == 1:
            await ctx.append_message(self.given, **self.how)


NOTICE = Message("mine", None, "notice", (TextPart("b"),))


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("a", [("user", "a")]),
        (["a", "b"], [("user", "a"), ("user", "b")]),
        ([TextPart("a"), TextPart("b")], [("user", "ab")]),
        (NOTICE, [("notice", "b")]),
        ([Message("one", None, "user", (TextPart("a"),)), NOTICE], [("user", "a"), ("notice", "b")]),
    ],
)
async def test_a_list_of_texts_or_messages_is_several_and_a_list_of_parts_is_one(
    content: Any, texts: list[tuple[str, str]], deferred: bool
) -> None:
    async with Chat(ScriptedModel(say("hello")), plugins=[Appending(content, deferred=deferred)]) as chat:
        await (await chat.send("go"))
        messages = (await chat.messages())[2:]
    assert [(message.role, message.text) for message in messages] == texts
    assert [message.id.rsplit(".", 1)[1] for message in messages] == [str(at) for at in range(len(texts))]
    assert {message.by for message in messages} == {"appending"}


async def test_several_messages_ask_for_one_more_step() -> None:
    model = ScriptedModel(say("hello"), say("again"))
    async with Chat(model, plugins=[Appending(["a", "b"], request=True)]) as chat:
        assert (await (await chat.send("go"))).text == "again"
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [(["a", TextPart("b")], "this list has str, TextPart"), ([1], "has int"), (7, "this is a int")],
)
async def test_a_mixture_is_refused_with_what_can_be_appended(content: Any, reason: str) -> None:
    async with Chat(ScriptedModel(say("hello")), plugins=[Appending(content)]) as chat:
        with pytest.raises(HookError, match="append_message takes a text") as raised:
            await (await chat.send("go"))
        assert reason in str(raised.value)
        assert len(await chat.messages()) == 2


@pytest.mark.parametrize("name", ["text", "parts", "usage", "colour"])
async def test_the_answer_that_is_streamed_can_be_read_and_refuses_assignment(name: str) -> None:
    seen: list[str] = []

    class Assigning:
        name = "assigning"

        def on_stream_chunk(self, ctx: TurnContext, chunk: Any, message: Any) -> None:
            seen.append(message.text)
            setattr(message, name, "another")

    async with Chat(ScriptedModel(say("hello")), plugins=[Assigning()]) as chat:
        with pytest.raises(HookError, match=f"message.{name} cannot be assigned in on_stream_chunk"):
            await (await chat.send("go"))
        assert (await chat.messages())[-1].text == "hello"
    assert seen == ["hello"]
