"""Traces and sent requests: the whole for approvers, without the operator's texts and reviewed results for others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from everturn import App, api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec
from everturn.access.context.server_context import ServerContext
from everturn.core.options import TurnOptions
from everturn.core.requests import ModelRequest
from everturn.errors import UnknownSession, UnknownTurn
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.stores.memory import MemoryStore
from everturn.tools.function import tool
from tests.helpers.tenants import AGENTS, PRIVATE, SECRET, a_house, access_of, gate_in, over, somebody, start_session
from tests.helpers.waiting import wait_until

SYSTEM = "The discount code is OPAL."


def kinds(trace: api.TraceView) -> list[str]:
    return [f"{span.kind} {span.name}" for span in trace.spans]


def texts(request: ModelRequest | api.SentRequestView) -> list[tuple[str, list[str]]]:
    """The messages of a request: roles, and the text of each part."""
    found: list[tuple[str, list[str]]] = []
    for message in request.messages:
        parts: list[Any] = list(message.parts)
        found.append((message.role, [getattr(part, "text", "") or getattr(part, "arguments", "") for part in parts]))
    return found


async def test_the_request_of_every_step_is_the_one_that_the_model_got() -> None:
    @tool(read_only=True)
    def look(path: str) -> str:
        """Look."""
        return f"content of {path}"

    script = [calls(call("look", path="a"), call("look", path="b")), calls(call("look", path="c")), say("Seen.")]
    model = ScriptedModel(*script, *script)
    store = MemoryStore()
    options = TurnOptions(system=SYSTEM, params={"temperature": 0.5}, timezone="UTC")
    app = App(model, tools=[look], store=store)
    house = ServerContext(app, store.accounts, Agents([AgentSpec("desk", options)]))
    await app.start()
    try:
        access = access_of(house, "approver")
        first = await start_session(access, "look at these")
        await over(access, first)
        second = await access.sessions.send(first.session, api.NewMessage(text="and again"))
        await over(access, second)
        number = 0
        for turn in (first.turn, second.turn):
            for step in (1, 2, 3):
                shown, request = await access.traces.request(first.session, turn, step), model.requests[number]
                assert (shown.model, shown.system, shown.params) == (request.model, request.system, request.params)
                assert SYSTEM in (shown.system or "")
                assert texts(shown) == texts(request)
                assert [(tool.name, tool.schema) for tool in shown.tools] == [
                    (tool.name, tool.schema) for tool in request.tools
                ]
                number += 1
        assert number == len(model.requests)
    finally:
        await app.aclose()


async def test_a_running_turn_has_open_spans_and_an_ended_one_none() -> None:
    async with a_house() as house:
        access = access_of(house, "approver")
        sent = await start_session(access, "pay now")
        gate = await gate_in(access, sent.session)
        trace = await access.traces.get(sent.session, sent.turn)
        assert kinds(trace) == ["step scripted", "call pay", "gate call"]
        assert [span.kind for span in trace.spans if not span.end] == ["call", "gate"]
        assert (trace.end, trace.phase.is_terminal) == (0.0, False)
        await access.gates.resolve(sent.session, gate.gate.id, api.AnswerGate(hash=gate.gate.hash, allow="once"))
        await over(access, sent)
        trace = await access.traces.get(sent.session, sent.turn)
        assert kinds(trace) == ["step scripted", "call pay", "gate call", "step scripted"]
        assert not [span for span in trace.spans if not span.end]
        assert trace.spans[2].by == "approver-ada"
        assert trace.end >= trace.spans[-1].end > 0
        assert len(trace.trace_id) == 32


async def test_a_sub_agent_run_is_linked_by_its_session_and_turn() -> None:
    async with a_house() as house:
        access = access_of(house, "approver")
        sent = await start_session(access, "clerk")

        async def look() -> list[Any]:
            trace = await access.traces.get(sent.session, sent.turn)
            return [span for span in trace.spans if span.kind == "subagent"]

        [run] = await wait_until(look)
        child = await wait_until(lambda: _trace_or_none(access, run.session, run.turn))
        assert child.spans[0].kind == "step"


async def _trace_or_none(access: Access, session: str, turn: str) -> api.TraceView | None:
    try:
        trace = await access.traces.get(session, turn)
    except (UnknownSession, UnknownTurn):
        return None
    return trace if trace.spans else None


async def test_system_prompt_and_parameters_are_for_approvers() -> None:
    agents = [replace(AGENTS[0], options=replace(AGENTS[0].options, system=SYSTEM, params={"temperature": 0.25}))]
    async with a_house(agents=agents) as house:
        sent = await start_session(access_of(house, "member"), "look")
        await over(access_of(house, "member"), sent)
        for role in ("viewer", "member"):
            access = access_of(house, role)
            shown = await access.traces.request(sent.session, sent.turn)
            assert (shown.system, shown.params) == (None, None)
            assert shown.messages
            assert shown.tools
            trace = await access.traces.get(sent.session, sent.turn)
            assert trace.trace_id == ""
            log = await access.log.page(sent.session)
            for view in (shown, trace, log):
                assert b"OPAL" not in msgspec.json.encode(view)
                assert b"0.25" not in msgspec.json.encode(view)
        shown = await access_of(house, "approver").traces.request(sent.session, sent.turn)
        assert SYSTEM in (shown.system or "")
        assert shown.params == {"temperature": 0.25}


async def test_a_result_under_review_and_a_private_value_are_in_no_trace_and_no_request() -> None:
    async with a_house() as house:
        member, approver = access_of(house, "member"), access_of(house, "approver")
        peeked = await start_session(member, "peek")
        gate = await gate_in(approver, peeked.session)
        withheld = api.AnswerGate(hash=gate.gate.hash, deny="no")
        assert SECRET.encode() not in msgspec.json.encode(await member.traces.get(peeked.session, peeked.turn))
        await approver.gates.resolve(peeked.session, gate.gate.id, withheld)
        receipt = await start_session(member, "whois")
        for sent in (peeked, receipt):
            await over(member, sent)
            views = [await member.traces.get(sent.session, sent.turn)]
            views += [await member.traces.request(sent.session, sent.turn, step) for step in (1, 2)]
            for view in views:
                assert SECRET.encode() not in msgspec.json.encode(view)
                assert PRIVATE.encode() not in msgspec.json.encode(view)


async def test_a_step_that_has_not_begun_and_a_turn_of_somebody_else_are_unknown() -> None:
    async with a_house() as house:
        access = access_of(house, "approver")
        sent = await start_session(access, "look")
        await over(access, sent)
        for step in (0, 3, -1, 10**30):
            with pytest.raises(UnknownTurn):
                await access.traces.request(sent.session, sent.turn, step)
        with pytest.raises(UnknownTurn):
            await access.traces.get(sent.session, "turn_absent")
        private = await access.sessions.start(api.NewSession(text="look"))
        stranger = Access(house, somebody(role="owner"))
        for ask in (
            stranger.traces.get(private.session, private.turn),
            stranger.traces.request(private.session, private.turn),
        ):
            with pytest.raises(UnknownSession):
                await ask
