from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult

from everturn import Chat, tool
from everturn.core.phases import Phase
from everturn.core.ports import Question, ToolContext
from everturn.events import GateOpened
from everturn.mcp_server.elicitation import ResumeTicket, read_ticket, write_ticket
from everturn.models.scripted import ScriptedModel, say
from tests.mcp_server.clients import MODES, Person, ran, serving, text

both = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    return tmp_path / "trace"


@both
async def test_the_agent_and_its_tools_are_listed_but_for_those_that_a_rule_denies(mode: str):
    async with serving(mode) as (client, _):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["ask", "look", "burn", "warm", "partly"]
    assert tools["look"].annotations is not None
    assert tools["look"].annotations.read_only_hint
    assert tools["look"].input_schema["required"] == ["what"]


@both
async def test_a_task_is_answered_and_its_session_can_be_gone_on_with(mode: str):
    async with serving(mode) as (client, _):
        first: Any = await client.call_tool("ask", {"task": "hello"})
        session = first.structured_content["session"]
        second = await client.call_tool("ask", {"task": "again", "session": session})
        other = await client.call_tool("ask", {"task": "again"})
    assert [text(result) for result in (first, second, other)] == [
        "message 1: hello",
        "message 2: again",
        "message 1: again",
    ]
    assert f"session: {session}" in [block.text for block in first.content]


async def test_a_session_that_was_not_begun_here_is_not_known_even_if_it_is_in_the_store():
    async with serving("auto") as (client, agent):
        chat = Chat("obedient", app=agent._app, session="session_of_somebody_else")
        await (await chat.send("secret"))
        for session in ("session_of_somebody_else", "mcp_00000000000000000000", "../x"):
            result = await client.call_tool("ask", {"task": "what was said?", "session": session})
            assert result.is_error
            assert "there is no session" in text(result)
        assert len(await chat.messages()) == 2


@pytest.mark.parametrize("arguments", [{}, {"task": " "}, {"task": 3}, {"task": "x", "more": 1}])
async def test_what_is_no_task_is_refused_in_words(arguments: dict[str, Any]):
    async with serving("auto") as (client, _):
        result = await client.call_tool("ask", arguments)
    assert result.is_error
    assert "takes a task" in text(result)


@both
async def test_a_tool_is_called_directly_and_the_call_is_in_the_log(mode: str):
    async with serving(mode) as (client, agent):
        result = await client.call_tool("look", {"what": "the tree"})
        sessions = await agent._app.store.sessions()
        kinds = [type(entry.event).__name__ for entry in await agent._app.store.events(sessions[0].id)]
    assert (text(result), result.is_error) == ("the tree is fine", False)
    assert {"PermissionDecided", "CallStarted", "CallFinished"} <= set(kinds)


async def test_an_unknown_tool_is_an_error_that_names_those_there_are():
    async with serving("auto") as (client, _):
        with pytest.raises(MCPError, match="there is no tool called 'lok'; there are: ask, look, burn, warm, partly"):
            await client.call_tool("lok", {})


async def test_arguments_that_do_not_fit_are_explained():
    async with serving("auto") as (client, _):
        result = await client.call_tool("look", {"wat": "x"})
    assert result.is_error
    assert "what" in text(result)


@both
async def test_a_rule_that_denies_holds_for_direct_calls_and_for_tasks(mode: str, trace: Path):
    async with serving(mode, Person(decision="once")) as (client, _):
        denied = await client.call_tool("partly", {"path": "secret.txt"})
        task_result = await client.call_tool("ask", {"task": 'call partly {"path":"secret.txt"}'})
        hidden = await client.call_tool("ask", {"task": "call forbidden {}"})
        with pytest.raises(MCPError, match="there is no tool called 'forbidden'"):
            await client.call_tool("forbidden", {})
        allowed = await client.call_tool("partly", {"path": "open.txt"})
    assert denied.is_error
    assert "secret" not in " ".join(ran(trace))
    assert "did" not in text(task_result)
    assert "done" not in text(hidden)
    assert text(allowed) == "did open.txt"
    assert ran(trace) == ["open.txt"]


@both
@pytest.mark.parametrize("name", ["ask", "burn"])
async def test_a_gate_is_put_to_the_person_behind_the_client(mode: str, name: str, trace: Path):
    arguments = {"task": 'call burn {"what":"wood"}'} if name == "ask" else {"what": "wood"}
    person = Person(decision="once")
    async with serving(mode, person) as (client, _):
        result = await client.call_tool(name, arguments)
    assert text(result).endswith("wood is ash")
    assert '{"what":"wood"}' in person.shown[0].message
    assert len(person.shown) == 1
    assert ran(trace) == ["wood"]


@both
@pytest.mark.parametrize(
    "person",
    [
        Person(decision="deny", reason="too hot"),
        Person("decline"),
        Person("cancel"),
        Person("decline", decision="once"),
        Person("cancel", decision="once"),
        Person(decision="yes"),
        Person(decision="always"),  # it is not offered for a tool that always requires approval
        Person(),
    ],
    ids=["deny", "decline", "cancel", "declined yes", "cancelled yes", "no such word", "always", "empty"],
)
async def test_what_is_not_plainly_a_yes_is_a_no(mode: str, person: Person, trace: Path):
    async with serving(mode, person) as (client, _):
        result = await client.call_tool("burn", {"what": "wood"})
    assert result.is_error
    assert ran(trace) == []
    if person.content.get("reason"):
        assert "too hot" in text(result)


@both
async def test_a_client_that_can_ask_nobody_is_told_which_rule_would_allow_it(mode: str, trace: Path):
    async with serving(mode) as (client, _):
        result = await client.call_tool("burn", {"what": "wood"})
        task_result = await client.call_tool("ask", {"task": 'call burn {"what":"wood"}'})
    assert result.is_error
    for response in (result, task_result):
        assert '[[permissions]] tool = "burn" action = "allow"' in text(response)
    assert ran(trace) == []


@both
async def test_always_holds_in_its_session_and_in_no_other(mode: str, trace: Path):
    person = Person(decision="always")
    async with serving(mode, person) as (client, _):
        first: Any = await client.call_tool("ask", {"task": 'call warm {"what":"tea"}'})
        session = first.structured_content["session"]
        await client.call_tool("ask", {"task": 'call warm {"what":"tea"}', "session": session})
        assert len(person.shown) == 1
        await client.call_tool("ask", {"task": 'call warm {"what":"tea"}'})
        assert len(person.shown) == 2
        await client.call_tool("warm", {"what": "tea"})
    assert "“always” stores this rule" in person.shown[0].message
    assert "always" not in person.shown[-1].requested_schema["properties"]["decision"]["enum"]
    assert len(ran(trace)) == 3


async def test_what_cannot_be_seen_is_written_out_in_the_form():
    person = Person("decline")
    async with serving("auto", person) as (client, _):
        await client.call_tool("burn", {"what": "wood\u202e\u200b\x1b[2J"})
    message = person.shown[0].message
    assert not {"\u202e", "\u200b", "\x1b"} & set(message)
    assert "u202e" in message


async def test_a_form_that_nobody_would_read_is_not_put_to_anybody():
    person = Person(decision="once")
    async with serving("auto", person) as (client, _):
        result = await client.call_tool("burn", {"what": "x" * 30_000})
    assert person.shown == []
    assert "too long" in text(result)


@both
async def test_what_a_turn_says_is_reported_as_progress(mode: str):
    reports: list[Any] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, message))

    async with serving(mode) as (client, _):
        await client.call_tool("ask", {"task": "hello"}, progress_callback=tell)
    assert reports[0] == (1.0, "message 1: ")


@both
async def test_a_call_that_is_cancelled_cancels_its_turn(mode: str):
    speaks = asyncio.Event()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        speaks.set()

    async with serving(mode) as (client, agent):
        calling = asyncio.ensure_future(client.call_tool("ask", {"task": "hang on"}, progress_callback=tell))
        await speaks.wait()
        (session,) = await agent._app.store.sessions()
        (turn,) = await agent._app.store.open_turns(session.id)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        result = await Chat("obedient", app=agent._app, session=session.id).turn(turn)
    assert result.phase is Phase.CANCELLED


async def _asked(client: Any, name: str = "burn", **arguments: Any) -> InputRequiredResult:
    result = await client.session.call_tool(name, arguments or {"what": "wood"}, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    return result


ONCE = ElicitResult(action="accept", content={"decision": "once"})


async def _again(client: Any, pending: InputRequiredResult, state: str | None = None, responses: Any = None) -> Any:
    if responses is None:
        responses = dict.fromkeys(pending.input_requests or {}, ONCE)
    return await client.session.call_tool(
        "burn",
        {"what": "wood"},
        input_responses=responses,
        request_state=pending.request_state if state is None else state,
        allow_input_required=True,
    )


async def test_a_ticket_leads_to_nobody_elses_session(trace: Path):
    async with serving("auto", Person()) as (client, agent):
        chat = Chat("obedient", app=agent._app, session="session_mine")
        turn = await chat.send('call burn {"what":"house"}')
        async for shown in turn:
            if isinstance(shown, GateOpened):
                break
        gates = await chat.gates()
        forged = write_ticket(ResumeTicket(chat.session, turn.id, "", {gates[0].id: gates[0].hash}))
        pending = await _asked(client)
        for state in (forged, "{}", "garbage", '{"session":3}', write_ticket(ResumeTicket("mcp_" + "0" * 24, "x"))):
            result = await _again(client, pending, state, {gates[0].id: ONCE})
            assert result.is_error
        assert len(await chat.gates()) == 1
    assert ran(trace) == []


async def test_an_answer_to_other_bytes_than_were_shown_is_none(trace: Path):
    async with serving("auto", Person()) as (client, _):
        pending = await _asked(client)
        ticket = read_ticket(pending.request_state or "")
        assert ticket is not None
        other = write_ticket(ResumeTicket(ticket.session, ticket.turn, "", dict.fromkeys(ticket.asked, "0" * 64)))
        again = await _again(client, pending, other)
        assert isinstance(again, InputRequiredResult)
        assert ran(trace) == []


async def test_what_was_not_answered_is_asked_again_and_an_answer_counts_once(trace: Path):
    async with serving("auto", Person()) as (client, _):
        pending = await _asked(client)
        again = await _again(client, pending, responses={})
        assert isinstance(again, InputRequiredResult)
        assert list(again.input_requests or {}) == list(pending.input_requests or {})
        done = [await _again(client, pending) for _ in range(3)]
    assert [text(result) for result in done] == ["wood is ash"] * 3
    assert ran(trace) == ["wood"]


async def test_an_older_client_that_went_away_goes_on_with_the_session_alone(trace: Path):
    async with serving("auto", Person(decision="once")) as (client, _):
        pending = await _asked(client, "ask", task='call burn {"what":"wood"}')
        ticket = read_ticket(pending.request_state or "")
        assert ticket is not None
        result = await client.call_tool("ask", {"session": ticket.session})
        assert text(result) == "it came to: wood is ash"
        nothing = await client.call_tool("ask", {"session": ticket.session})
    assert "waits for nothing" in text(nothing)
    assert ran(trace) == ["wood"]


async def test_a_turn_that_fails_is_a_result_that_says_why():
    from mcp.client.client import Client

    from everturn.app import App
    from everturn.mcp_server import AgentServer

    app = App(ScriptedModel([say("once")]))
    agent = AgentServer(app)
    async with Client(agent.server) as client:
        first: Any = await client.call_tool("ask", {"task": "x"})
        second = await client.call_tool("ask", {"task": "y", "session": first.structured_content["session"]})
    await app.aclose()
    assert text(first) == "once"
    assert second.is_error
    assert "script" in text(second)


SIZES = {"type": "object", "properties": {"size": {"type": "string", "enum": ["s", "m"]}}, "required": ["size"]}


@tool(read_only=True)
async def order(context: ToolContext) -> str:
    """Order something."""
    resolution = await context.ask(Question("Which size?", schema=SIZES))
    return f"{resolution.allowed} {resolution.result}"


@both
@pytest.mark.parametrize(
    ("person", "came"), [(Person(size="m"), 'True {"size":"m"}'), (Person("decline"), "False None")], ids=["m", "no"]
)
async def test_a_form_of_a_tool_is_filled_in_by_the_person_behind_the_client(mode: str, person: Person, came: str):
    from mcp.client.client import Client

    from everturn.app import App
    from everturn.mcp_server import AgentServer

    app = App(ScriptedModel([say("done")]), tools=[order])
    async with Client(AgentServer(app).server, mode=mode, elicitation_callback=person) as client:
        result = await client.call_tool("order", {})
    await app.aclose()
    assert text(result) == came
    assert "Which size?" in person.shown[-1].message
    assert person.shown[-1].requested_schema["properties"] == SIZES["properties"]
