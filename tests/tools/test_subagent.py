"""An agent: a tool whose calls are turns of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, ToolContext, tool
from everturn.core.events import CallFinished, Event, TurnStarted
from everturn.core.options import Budget
from everturn.core.parts import ToolPart
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.errors import BadArguments, ConfigError
from everturn.stores.registry import get_store
from everturn.testing import Crash, MortalStore, ScriptedModel, call, calls, say
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolRegistry
from everturn.tools.subagent import SubagentTool


@tool(read_only=True)
async def look(place: str) -> str:
    return f"seen {place}"


def talk(**by_prompt: Any) -> ScriptedModel:
    """A model that answers by the first word of the conversation: one script for each."""

    def step(number: int) -> Callable[[ModelRequest], Any]:
        return lambda request: by_prompt[request.messages[0].text.split()[0]][number]

    return ScriptedModel(*(step(number) for number in range(max(map(len, by_prompt.values())))))


def delegating(task: str = "find the keys") -> ScriptedModel:
    """One asks the finder, the other looks in the hall."""
    return talk(
        where=[calls(call("finder", task=task)), say("In the hall.")],
        find=[calls(call("look", place="hall")), say("They are in the hall.")],
    )


def parts_of(result: Any) -> list[ToolPart]:
    return [part for part in result.message.parts if isinstance(part, ToolPart)]


def by_task(model: ScriptedModel, word: str) -> list[ModelRequest]:
    return [request for request in model.requests if request.messages[0].text.startswith(word)]


async def test_a_task_is_done_in_a_turn_of_its_own_and_answered_with_its_text() -> None:
    model = delegating()
    finder = SubagentTool("finder", "Finds things.", system="You find things.", tools=["look"])
    async with Chat(model, tools=[finder, look], system="You are kind.") as chat:
        result = await (await chat.send("where are they?"))
        [part] = parts_of(result)
        assert part.output is not None
        metadata = part.output.metadata or {}
        below = await chat.app.store.events(str(metadata["session"]), turn=str(metadata["turn"]))
    assert result.text == "In the hall."
    assert (part.output.text, part.output.title, part.output.origin) == (
        "They are in the hall.",
        "find the keys",
        "agent",
    )
    assert [entry.event.output.text for entry in below if isinstance(entry.event, CallFinished)] == ["seen hall"]
    first = by_task(model, "find")[0]
    assert [message.text for message in first.messages] == ["find the keys"]
    assert "You find things." in first.system
    assert [spec.name for spec in first.tools] == ["look"]
    assert [spec.name for spec in by_task(model, "where")[0].tools] == ["finder", "look"]


@pytest.mark.parametrize("is_on", [True, False])
async def test_an_agent_has_a_group_if_its_caller_has_it(is_on: bool) -> None:
    model = delegating()
    finder = SubagentTool("finder", "Finds things.", tools=["@eyes"])
    async with Chat(model, tools=[finder, ToolGroup("eyes", [look], on=is_on)]) as chat:
        await (await chat.send("where are they?"))
    # Left with none of its tools it is not asked at all: `tests/plugins/test_empty_offer.py` has what is said instead.
    assert [[spec.name for spec in request.tools] for request in by_task(model, "find")[:1]] == (
        [["look"]] if is_on else []
    )


async def test_an_agent_has_no_tool_that_its_caller_was_not_given() -> None:
    model = delegating()
    finder = SubagentTool("finder", "Finds things.", tools=["look"])
    async with Chat(model, tools=[finder, look]) as chat:
        await (await chat.send("where are they?", tools=["finder"]))
    assert by_task(model, "find") == []


async def test_the_rules_of_an_agent_are_of_its_turn_only() -> None:
    model = delegating()
    finder = SubagentTool("finder", "Finds things.", rules=[Rule("look", "ask")])
    async with Chat(model, tools=[finder, look]) as chat:
        opened = asyncio.Event()
        chat.app.listeners.append(lambda shot: opened.set() if shot.gates else None)
        turn = await chat.send("where are they?")
        await opened.wait()
        [gate] = [row.gate for row in await chat.app.store.gates()]
        await chat.answer(gate, deny="not there")
        result = await turn
    assert gate.tool == "look"
    assert "agent" in gate.why
    assert result.text == "In the hall."


async def test_another_model_is_asked_by_its_name() -> None:
    child = ScriptedModel(say("Here."), name="small")
    model = talk(where=[calls(call("finder", task="find")), say("There.")])
    async with Chat(model, tools=[SubagentTool("finder", "Finds.", model="small")]) as chat:
        chat.app.add_model(child)
        result = await (await chat.send("where is it?"))
    assert len(child.requests) == 1
    assert result.text == "There."


async def test_what_an_agent_may_use_is_held_to_its_budget() -> None:
    model = talk(
        where=[calls(call("finder", task="find them")), say("No idea.")],
        find=[calls(call("look", place="a"), call("look", place="b")), say("Only looked once.")],
    )
    async with Chat(model, tools=[SubagentTool("finder", "Finds.", budget=Budget(calls=1)), look]) as chat:
        [part] = parts_of(await (await chat.send("where is it?")))
        assert part.output is not None
        session = str((part.output.metadata or {})["session"])
        settled = [
            entry.event for entry in await chat.app.store.events(session) if isinstance(entry.event, CallFinished)
        ]
    assert sorted(event.state for event in settled) == ["completed", "failed"]
    assert part.output.text == "Only looked once."


@pytest.mark.parametrize("arguments", [{}, {"task": " "}, {"task": 3}, {"task": "a", "more": 1}])
async def test_a_call_without_a_task_fails_in_words(arguments: dict[str, Any]) -> None:
    model = ScriptedModel(calls(call("finder", **arguments)), say("Oh."))
    async with Chat(model, tools=[SubagentTool("finder", "Finds.")]) as chat:
        [part] = parts_of(await (await chat.send("where is it?")))
    assert part.state == "failed"
    assert part.output is not None
    assert "takes `task`" in part.output.text


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"model": ScriptedModel()}, "the name of a model of the app"),
        ({"tools": "look"}, "tools must be names"),
        ({"tools": [look]}, "tools must be names"),
        ({"tools": look}, "tools must be names"),
        ({"max_steps": 0}, "at least 1"),
        ({"budget": 3}, "a Budget"),
    ],
)
def test_a_slip_in_an_agent_is_refused(how: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        SubagentTool("finder", "Finds.", **how)


# A restart ------------------------------------------------------------------------------------------------------------


class Mortal(MortalStore):
    """A database whose process dies at the append that reaches `lives` events: all of it is written, or nothing."""

    def __init__(self, inner: Store, lives: int | None, is_written: bool) -> None:
        super().__init__(inner)
        self._until, self._is_written = lives, is_written

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        if self._until is None or after + len(events) < self._until:
            return await super().append(session, after, events, epoch)
        if self._is_written:
            await super().append(session, after, events, epoch)
        self.kill()
        raise Crash


class House:
    """What outlives a process: a file, and the ledger of what was done."""

    def __init__(self, file: Path) -> None:
        self._file = str(file)
        self.done: list[str] = []
        self.texts: list[str] = []

    def registry(self) -> ToolRegistry:
        @tool(idempotent=True)
        async def look(place: str, ctx: ToolContext) -> str:
            self.done.append(ctx.call)
            return f"seen {place}"

        return ToolRegistry([SubagentTool("finder", "Finds things.", tools=["look"]), look])

    async def live(self, lives: int | None = None, is_written: bool = False) -> bool:
        """Be a process until the turn is over, or it dies: then it says False."""
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        inner: Store = get_store(self._file)
        store = Mortal(inner, lives, is_written)
        chat = Chat(delegating(), tools=self.registry(), store=store, session="s")

        async def play() -> None:
            result = await (await chat.send("where are they?", key="k"))
            self.texts += [part.output.text for part in parts_of(result) if part.output] + [result.text]

        playing, died = asyncio.ensure_future(play()), asyncio.ensure_future(store.died.wait())
        await asyncio.wait({playing, died}, return_when="FIRST_COMPLETED")
        is_dead = store.died.is_set()
        store.kill()
        for task in (playing, died):
            task.cancel()
        await asyncio.gather(playing, died, return_exceptions=True)
        await chat.aclose()
        await inner.aclose()
        return not is_dead

    async def turns(self) -> dict[str, int]:
        """How many turns each session has had."""
        store = get_store(self._file)
        found: dict[str, int] = {}
        for session in await store.sessions():
            log = await store.events(session.id)
            found[session.id] = sum(isinstance(entry.event, TurnStarted) for entry in log)
        await store.aclose()
        return found


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
async def test_wherever_the_process_dies_the_task_is_given_once(tmp_path: Path, is_written: bool) -> None:
    deaths = 0
    for lives in range(1, 40):
        house = House(tmp_path / f"{lives}.db")
        if await house.live(lives, is_written):
            break
        deaths += 1
        assert await house.live(), lives
        assert house.texts == ["They are in the hall.", "In the hall."], lives
        assert sorted((await house.turns()).values()) == [1, 1], lives
        assert len(set(house.done)) == 1, lives  # the same call, though it may be tried twice
    assert deaths >= 10


def test_only_one_that_is_resumable_takes_the_name_of_a_session() -> None:
    plain, resumable = SubagentTool("plain", "Does it."), SubagentTool("again", "Does it.", resumable=True)
    assert "session" not in plain.spec.schema["properties"]
    assert "session" in resumable.spec.schema["properties"]
    resumable.validate({"task": "more", "session": "s-1"})
    resumable.validate({"task": "more"})
    with pytest.raises(BadArguments, match="takes `task`"):
        plain.validate({"task": "more", "session": "s-1"})
    with pytest.raises(BadArguments, match="one that an earlier answer named"):
        resumable.validate({"task": "more", "session": 1})


@pytest.mark.parametrize("switch", ["resumable", "detached"])
def test_a_switch_of_an_agent_is_true_or_false(switch: str) -> None:
    wrong: Any = {switch: "no"}
    with pytest.raises(ConfigError, match=f"{switch} must be True or False"):
        SubagentTool("helper", "Helps.", **wrong)
