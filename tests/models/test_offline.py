"""The model that needs no network: it says what it is, and shows what a turn can do."""

from __future__ import annotations

import socket

import pytest

from everturn.chat import Chat
from everturn.config.demo_tools import demo_tools
from everturn.core.events import CallFinished, GateOpened
from everturn.errors import ConfigError
from everturn.models.offline import OfflineModel
from everturn.models.registry import get_model
from everturn.tools.function import tool


@tool(approval="ask")
async def send_mail(to: str = "") -> str:
    """Send a mail."""
    return f"sent to {to}"


async def test_it_says_that_it_is_a_demo_and_how_to_name_a_real_model():
    chat = Chat(OfflineModel(pace=0))
    answer = (await (await chat.send("hello  there"))).text

    assert "offline demo" in answer
    assert "“hello there”" in answer
    assert "everturn auth login" in answer


async def test_it_says_the_same_every_time():
    texts = {(await (await Chat(OfflineModel(pace=0)).send("hello"))).text for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("What time is it?", ["current_time"]),
        ("please note that it rains", ["take_note"]),
        ("Take a note: buy milk", ["take_note"]),
        ("remember to call", ["take_note"]),
        ("hello", []),
        ("nothing notable, sometimes", []),
    ],
)
async def test_it_calls_the_tool_that_a_message_asks_for(text: str, calls: list[str]):
    chat = Chat(OfflineModel(pace=0), tools=demo_tools())
    turn, settled, gated_tools = await chat.send(text), list[str](), list[str]()
    async for shown in turn.events():
        if isinstance(shown, GateOpened):
            gated_tools.append(shown.gate.tool)
            await turn.answer(shown.gate, allow="once")
        if isinstance(shown, CallFinished):
            settled.append(shown.state)

    assert settled == ["completed"] * len(calls)
    assert gated_tools == [name for name in calls if name == "take_note"]
    messages = await chat.messages()
    assert all(f"{name} says: " in repr(messages[-1]) for name in calls)


async def test_what_a_person_denies_is_not_noted():
    chat = Chat(OfflineModel(pace=0), tools=demo_tools())
    turn = await chat.send("note that it rains")
    async for shown in turn.events():
        if isinstance(shown, GateOpened):
            assert shown.gate.arguments == '{"text":"it rains"}'
            await turn.answer(shown.gate, deny="no")
    assert "noted:" not in repr(await chat.messages())


async def test_without_tools_it_calls_none_and_opens_no_connection(monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object) -> None:
        raise AssertionError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    answer = await (await Chat(get_model("offline:demo")).send("note the time"))
    assert "no model was asked. You said: “note the time”" in answer.text


def test_there_is_only_one_of_it():
    assert get_model("offline:demo").name == "offline:demo"
    with pytest.raises(ConfigError, match="offline:demo"):
        get_model("offline:other")


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ('send_mail {"to": "Ada"}', '{"to":"Ada"}'),
        ('Call send_mail {"to": "Ada"}\n', '{"to":"Ada"}'),
        ("send_mail", "{}"),
        ('send_mail {"to": }', None),
        ('send_mail ["Ada"]', None),
        ('unknown_tool {"to": "Ada"}', None),
        ("please send_mail", None),
    ],
)
async def test_a_message_with_the_name_of_a_tool_and_its_arguments_calls_the_tool(message: str, arguments: str | None):
    chat = Chat(OfflineModel(pace=0), tools=[send_mail])
    result = await chat.run(message)
    assert [gate.arguments for gate in result.gates] == ([] if arguments is None else [arguments])


async def test_it_names_the_tools_that_a_message_can_call():
    @tool
    async def send_mail(to: str, text: str, copies: int = 1) -> str:
        """Send a mail."""
        return f"{copies} sent to {to}"

    answer = (await Chat(OfflineModel(pace=0), tools=[*demo_tools(), send_mail]).run("hello")).text
    assert "the tools of this agent (send_mail)" in answer
    assert '`send_mail {"text":"...","to":"..."}`' in answer
