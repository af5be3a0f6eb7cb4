"""A gate that somebody else answers, or closes, while a person is asked about it here."""

import asyncio
import io
import os
import pty
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import pytest

from everturn import Chat, Gate, Turn, tool
from everturn.core.commands import ResolveGate as Answered
from everturn.core.gates import GateResolution
from everturn.core.options import TurnOptions
from everturn.core.requests import ModelRequest
from everturn.models.scripted import Answer as Answering
from everturn.terminal.lines.gate_prompt import GatePrompt
from everturn.terminal.lines.turn_view import TurnPrinter
from everturn.terminal.lines.turn_watch import TurnWatch
from everturn.terminal.text.screen import LineScreen
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.subagent import SubagentTool

ran: list[str] = []


@tool(approval="always")
def shout(text: str) -> str:
    """Shout."""
    ran.append(text)
    return text.upper()


class Person:
    """A screen that can be looked at, and a keyboard that can be typed on, in this process."""

    def __init__(self, master: int) -> None:
        self.out = io.StringIO()
        self._master, self._seen = master, 0

    async def until(self, text: str) -> None:
        async with asyncio.timeout(10):
            while text not in self.out.getvalue()[self._seen :]:  # noqa: ASYNC110  # a StringIO rings no bell
                await asyncio.sleep(0.01)
        self._seen = self.out.getvalue().index(text, self._seen) + len(text)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    ran.clear()
    master, slave = pty.openpty()
    with os.fdopen(slave) as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.delenv("EDITOR", raising=False)
        monkeypatch.delenv("VISUAL", raising=False)
        yield Person(master)
    os.close(master)


@asynccontextmanager
async def watched(person: Person, chat: Chat) -> AsyncGenerator[Turn]:
    screen = LineScreen(person.out, gutter=0, width=80)
    async with chat:
        turn = await chat.send("Go")
        watch = TurnWatch(chat, turn, TurnPrinter(screen, turn.id, screen.line), GatePrompt(screen, chat))
        watching = asyncio.ensure_future(watch.until_over(asyncio.Event(), lambda: None))
        yield turn
        async with asyncio.timeout(10):
            await watching


async def wait_for_gate(person: Person, chat: Chat) -> Gate:
    await person.until("[?] help\n> ")
    (gate, *_) = await chat.gates()
    return gate


async def test_a_gate_that_is_answered_elsewhere_says_so_and_the_turn_goes_on(person: Person):
    chat = Chat(ScriptedModel(calls(call("shout", text="hey")), say("bye")), tools=[shout])
    async with watched(person, chat):
        gate = await wait_for_gate(person, chat)
        await chat.answer(gate, allow="once", by="grace")
        await person.until("grace has answered it: allowed")
        await person.until("bye")

    assert ran == ["hey"]


async def test_an_answer_that_comes_second_is_told_that_it_was_not_taken(person: Person):
    chat = Chat(ScriptedModel(calls(call("shout", text="hey")), say("bye")), tools=[shout])
    async with watched(person, chat):
        gate = await wait_for_gate(person, chat)
        person.type("n\n")
        await person.until("Enter: no reason\n> ")
        # The other answer is admitted, and nobody has acted on it yet.
        first = Answered(
            key="first", session=gate.session, gate=gate.id, hash=gate.hash, resolution=GateResolution(allowed=True)
        )
        await chat.app.store.admit(first)
        person.type("too late\n")
        await person.until("another person answered first, with another answer; yours was not used")
        await chat.app.engine.wake(chat.session)

    assert ran == ["hey"]


async def test_a_line_typed_after_the_gate_was_answered_elsewhere_is_nobodys_answer(person: Person):
    script = (calls(call("shout", text="one"), call("shout", text="two")), say("bye"))
    chat = Chat(ScriptedModel(*script), tools=[shout])
    async with watched(person, chat):
        gate = await wait_for_gate(person, chat)
        await chat.answer(gate, deny=True, by="grace")
        await person.until("[?] help\n> ")
        assert len(await chat.gates()) == 1
        person.type("n\n")
        await person.until("Enter: no reason\n> ")
        person.type("\n")

    assert ran == []


async def test_a_gate_whose_turn_is_cancelled_elsewhere_is_not_asked_any_more(person: Person):
    chat = Chat(ScriptedModel(calls(call("shout", text="hey")), say("bye")), tools=[shout])
    async with watched(person, chat) as turn:
        await wait_for_gate(person, chat)
        await turn.cancel()

    assert "cancelled" in person.out.getvalue()
    assert ran == []


async def test_while_a_person_is_asked_nothing_else_is_drawn_and_afterwards_all_of_it(person: Person):
    release = asyncio.Event()

    @tool(read_only=True)
    async def dig() -> str:
        """Dig."""
        await release.wait()
        return "gold"

    chat = Chat(ScriptedModel(calls(call("dig"), call("shout", text="hey")), say("bye")), tools=[shout, dig])
    async with watched(person, chat) as turn:
        await wait_for_gate(person, chat)
        release.set()
        async with asyncio.timeout(10):
            while next(iter((await turn.state()).calls.values())).state != "completed":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert "gold" not in person.out.getvalue()
        person.type("y\n")
        await person.until("✓ shout  HEY")

    assert "✓ dig  gold" in person.out.getvalue()


def delegate(request: ModelRequest) -> Answering:
    if request.messages[-1].role == "tool":
        return say("bye")
    is_top = request.messages[-1].text == "Go"
    return calls(call("helper", task="Shout") if is_top else call("shout", text="below"))


async def test_a_gate_of_a_sub_turn_is_asked_and_answered_there(person: Person):
    chat = Chat(ScriptedModel(*[delegate] * 4), tools=[shout, SubagentTool("helper", "Helps.")])
    async with watched(person, chat):
        gate = await wait_for_gate(person, chat)
        assert gate.session != chat.session
        assert "  asked in a sub-agent:" in person.out.getvalue()
        person.type("y\n")
        await person.until("bye")

    assert ran == ["below"]


async def test_a_gate_of_a_sub_turn_that_is_answered_elsewhere_says_so(person: Person):
    chat = Chat(ScriptedModel(*[delegate] * 4), tools=[shout, SubagentTool("helper", "Helps.")])
    async with watched(person, chat):
        await chat.answer(await wait_for_gate(person, chat), deny=True, by="grace")
        await person.until("it was answered in another client")

    assert ran == []


async def test_a_line_that_is_too_long_for_a_terminal_is_not_taken_for_the_whole(person: Person):
    chat = Chat(ScriptedModel(calls(call("shout", text="hey")), say("bye")), tools=[shout])
    async with watched(person, chat):
        await wait_for_gate(person, chat)
        person.type("e\n")
        await person.until("Enter: back\n> ")
        person.type('{"text": "' + "x" * 5000 + '"}\n')
        await person.until("the end of this one is lost")
        await person.until("[?] help\n> ")
        person.type("n\n")
        await person.until("Enter: no reason\n> ")
        person.type("\n")

    assert ran == []


async def test_without_an_end_a_gate_says_nothing_of_time_and_with_one_how_long_it_stands(person: Person):
    chat = Chat(
        ScriptedModel(calls(call("shout", text="hey")), say("bye")),
        tools=[shout],
        options=TurnOptions(gate_timeout=7200),
    )
    async with watched(person, chat) as turn:
        await wait_for_gate(person, chat)
        assert "it can be answered for 2 hours" in person.out.getvalue()
        await turn.cancel()
