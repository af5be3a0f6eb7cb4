"""Ways that were found to run what nobody had allowed, or more than was allowed; each of them is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import Chat, tool
from everturn.core.canonical_json import JsonObject
from everturn.core.events import CallFinished, GateResolved
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ModelRequest, RequestResult, ToolSpec
from everturn.core.rules.globs import escape_glob
from everturn.core.rules.policy import Policy, Rule, Subject
from everturn.core.store_ports import Store
from everturn.errors import AnswerUnfit, ConfigError
from everturn.models.scripted import ScriptedCall
from everturn.running.permissions import offer_grants
from everturn.testing import MortalStore, call, calls, say
from everturn.tools import ToolRegistry
from tests.helpers.conversations import Scenes, Talk, never
from tests.helpers.waiting import wait_until


class Foreign:
    """A tool of a server somewhere else, which calls and describes it as it likes."""

    def __init__(self, name: str, description: str, ran: list[str]) -> None:
        self.spec = ToolSpec(name, description, {"type": "object"}, approval="ask", origin="mcp:web")
        self._ran = ran

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        return None

    async def run(self, arguments: JsonObject, context: ToolContext) -> str:
        self._ran.append(self.spec.description)
        return "done"


def asking(name: str, ran: list[str], **choices: Any) -> Tool:
    """A tool that takes one text and remembers it."""

    @tool(name=name, **choices)
    async def run(text: str) -> str:
        ran.append(text)
        return "done"

    return run


# What `always` covers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("approval", "is_covered"), [("always", False), ("auto", True)])
async def test_always_to_a_loop_runs_no_other_call_of_a_tool_that_asks_every_time(
    approval: Any, is_covered: bool
) -> None:
    ran: list[str] = []
    talk = Talk(asking("transfer", ran, approval=approval))

    def thrice(text: str) -> list[Any]:
        return [*(calls(call("transfer", text=text)) for _ in range(3)), say("Done.")]

    scenes = Scenes(go=thrice("alice"), too=thrice("mallory"))
    async with talk.process(model=scenes) as chat:
        other = Chat(scenes, app=chat.app, session="other")
        turns = [await chat.send("go"), await other.send("too")]
        first, second = [await until_loop(talk, conversation) for conversation in (chat, other)]
        assert sorted(ran) == ["alice", "alice", "mallory", "mallory"]
        await chat.answer(first, allow="always", everywhere=True)
        assert (await turns[0]).text == "Done."
        assert (second in await other.gates()) is not is_covered
        if not is_covered:
            await other.answer(second, deny="no")
        await turns[1]
    assert ran.count("mallory") == (3 if is_covered else 2)


async def until_loop(talk: Talk, chat: Chat) -> Any:
    """Allow one call after the other, until somebody asks whether it is a loop."""
    while True:
        [gate] = await talk.waiting(chat)
        if gate.kind == "loop":
            return gate
        await chat.answer(gate, allow="once")


@pytest.mark.parametrize("name", ["*", "w?pe", "wip*", "wi\\pe", "wi\u200bpe", "wipe "])
def test_no_tool_has_a_name_that_is_a_pattern_or_cannot_be_seen(name: str) -> None:
    with pytest.raises(ConfigError, match="not a name for a tool"):
        ToolRegistry([Foreign(name, "Wipe.", [])])


@pytest.mark.parametrize("name", ["*", "w?pe", "wip*"])
@pytest.mark.parametrize("subjects", [{}, {"path": "path"}], ids=["a tool", "a tool and a path"])
def test_what_always_offers_is_for_the_name_as_it_is_spelled(name: str, subjects: Any) -> None:
    spec = ToolSpec(name, "Wipe.", {"type": "object"}, approval="ask", subjects=subjects)
    case = {"path": Subject("path", "a/b")} if subjects else {}
    offers = offer_grants(spec, [case], lambda case: True)
    assert [rule.tool for rule in offers] == [escape_glob(name)] * len(offers) != []
    assert Policy(offers).decide(name, [case]).action == "allow"
    assert Policy(offers).decide("wipe", [case]).action == "ask"


async def test_a_grant_is_for_the_tool_it_was_given_to_and_for_no_other_of_its_name() -> None:
    ran: list[str] = []
    talk = Talk(Foreign("search", "Search the web.", ran))
    search = calls(call("search"))
    async with talk.process(search, say("One."), search, say("Two."), search, say("Three.")) as chat:
        await talk.play(chat, await chat.send("go"), lambda gate: {"allow": "always"})
        await talk.play(chat, await chat.send("again"))
        assert (len(talk.asked), ran) == (1, ["Search the web."] * 2)
        chat.app.registry.replace("mcp:web", [Foreign("search", "Upload a file.", ran)])
        await talk.play(chat, await chat.send("once more"), never)
    assert (len(talk.asked), ran) == (2, ["Search the web."] * 2)


async def test_another_tool_of_the_same_name_is_not_answered_beside_either() -> None:
    ran: list[str] = []
    talk = Talk(Foreign("search", "Search the web.", ran))
    async with talk.process(calls(call("search"), call("search", page=2)), say("Done.")) as chat:
        turn = await chat.send("go")
        first, second = await talk.waiting(chat, 2)
        chat.app.registry.replace("mcp:web", [Foreign("search", "Upload a file.", ran)])
        await chat.answer(first, allow="always")
        await talk.until(GateResolved)
        assert second in await chat.gates()
        await chat.answer(second, deny="no")
        await turn
    assert ran == []


async def test_what_a_person_has_edited_cannot_be_allowed_for_ever() -> None:
    ran: list[str] = []
    talk = Talk(asking("remove", ran, approval="ask", subjects={"text": "path"}))
    async with talk.process(calls(call("remove", text="/home/ann")), say("Done.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        with pytest.raises(AnswerUnfit, match="this answer edits the call"):
            await chat.answer(gate, allow="always", arguments={"text": "/tmp/scratch"})
        assert await chat.gates() == [gate]
        await chat.answer(gate, allow="once", arguments={"text": "/tmp/scratch"})
        await turn
        assert (ran, await chat.grants()) == (["/tmp/scratch"], [])


@pytest.mark.parametrize("rules", [[], [Rule("mail", "ask", {"text": "*SECRET*"})]], ids=["", "a rule asks"])
async def test_always_to_one_call_does_not_send_what_another_refers_to(rules: list[Rule]) -> None:
    ran: list[str] = []

    @tool(read_only=True)
    async def read() -> str:
        return "TOP SECRET plans"

    def mails(request: ModelRequest) -> list[Any]:
        results = [part for message in request.messages for part in message.parts if isinstance(part, RequestResult)]
        return calls(call("mail", text=f"$ref{{{results[0].call}}}"), call("mail", text="hello"))

    talk = Talk(read, asking("mail", ran, approval="ask"), rules=rules)
    async with talk.process(calls(call("read")), mails, say("Done.")) as chat:
        turn = await chat.send("go")
        secret, plain = await talk.waiting(chat, 2)
        await chat.answer(plain, allow="always")
        await talk.until(CallFinished, count=2)
        assert (ran, await chat.gates()) == (["hello"], [secret])
        await chat.answer(secret, deny="no")
        await turn
    assert ran == ["hello"]


# What rules are held against ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "texts"),
    [
        ({"force": "true"}, ['{"force":true}', "{}", '{"force":"yes"}', '{"force":1}', '{"force":"on"}']),
        ({"amount": "100"}, ['{"amount":100.0}', '{"amount":" 100"}', '{"amount":"0100"}', '{"amount":"1_00"}', "{}"]),
        ({"path": "/etc/**"}, ['{"path":"/etc/../etc/shadow"}', "{}"]),
    ],
    ids=["force", "amount", "path"],
)
async def test_a_rule_is_held_against_what_the_tool_is_given_however_it_was_written(
    match: dict[str, str], texts: list[str]
) -> None:
    ran: list[object] = []

    @tool(subjects={"path": "path"}, repeatable=True)
    async def remove(path: str = "/etc/shadow", force: bool = True, amount: int = 100) -> str:
        ran.append((path, force, amount))
        return "gone"

    talk = Talk(remove, rules=[Rule("remove", "deny", match)])
    other = '{"path":"a/b","force":false,"amount":1}'
    await talk.tell(calls(*(ScriptedCall("remove", text) for text in (*texts, other))), say("Done."))
    assert [event.state for event in await talk.settled()] == ["denied"] * len(texts) + ["completed"]
    assert ran == [("a/b", False, 1)]


async def test_the_same_call_with_its_default_or_its_number_written_otherwise_is_the_same_call() -> None:
    ran: list[int] = []

    @tool(read_only=True)
    async def look(page: int, side: str = "front") -> str:
        ran.append(page)
        return "nothing new"

    texts = ('{"page":1}', '{"page":"1","side":"front"}', '{"page":1.0}')
    talk = Talk(look)
    await talk.tell(*(calls(ScriptedCall("look", text)) for text in texts), say("Done."))
    assert ([gate.kind for gate in talk.asked], ran) == (["loop"], [1, 1])


async def test_a_rule_that_came_with_a_restart_is_asked_before_a_call_is_run_again(store: Store) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    ran: list[str] = []

    @tool(read_only=True, subjects={"path": "path"})
    async def read(path: str) -> str:
        ran.append(path)
        if len(ran) <= 2:
            await asyncio.Event().wait()
        return "read"

    tool_calls = calls(call("read", path="/etc/shadow"), call("read", path="notes"))
    talk, mortal = Talk(read, store=store), MortalStore(store)
    async with talk.process(tool_calls, say("Done."), store=mortal) as chat:
        turn = await chat.send("go")
        await wait_until(lambda: len(ran) == 2)
        mortal.kill()
    talk.rules = [Rule("read", "deny", {"path": "/etc/**"})]
    async with talk.process(tool_calls, say("Done.")) as chat:
        assert (await chat.turn(turn.id)).text == "Done."
    assert ran[2:] == ["notes"]
    assert {event.state for event in await talk.settled()} == {"outcome_unknown", "completed"}
