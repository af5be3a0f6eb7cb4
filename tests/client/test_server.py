"""The client against a server in a process of its own: everything it can ask, and every refusal as the error it is."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

from everturn import api
from everturn.client import Server
from everturn.core.deltas import TextDelta
from everturn.core.events import GateOpened, TurnCompleted
from everturn.core.messages import ForkPoint
from everturn.core.options import ClientTool
from everturn.core.parts import FilePart, StepPart
from everturn.errors import (
    AnsweredOtherwise,
    ClaimedOtherwise,
    CommandRefused,
    ConfigError,
    EverturnError,
    Forbidden,
    HashMismatch,
    KeyConflict,
    NotRecognised,
    ServerUnavailable,
    SessionBusy,
    UnknownAgent,
    UnknownFile,
    UnknownGate,
    UnknownMessage,
    UnknownSession,
    UnknownTurn,
)
from tests.helpers.server_process import Node


async def gate_of(server: Server, session: str) -> api.GateView:
    async with asyncio.timeout(10):
        while not (gates := await server.session(session).gates()):  # noqa: ASYNC110 - another process opens it
            await asyncio.sleep(0.02)
    return gates[0]


async def key_for(server: Server, user: str, role: str) -> tuple[str, str]:
    """The id and the secret of a new key."""
    import msgspec

    await server.node_client.ask("PUT", f"/api/users/{user}", body={"role": role})
    response = await server.node_client.ask("POST", "/api/keys", body={"user": user, "role": role}, may_repeat=False)
    key = msgspec.json.decode(response, type=api.NewKeyView)
    return key.id, key.secret


async def test_a_turn_is_sent_shown_and_collected(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("hello")
        shown = [item async for item in turn]
        text = "".join(item.text for item in shown if isinstance(item, TextDelta))
        assert isinstance(shown[-1], TurnCompleted)
        result = await turn
        assert (result.phase, result.text) == ("completed", text)
        assert "You said: “hello”" in text
        session = server.session(turn.session)
        again = await (await session.send("and this?"))
        assert "“and this?”" in again.text
        messages = await session.messages()
        assert [message.role for message in messages] == ["user", "assistant", "user", "assistant"]
        assert (await turn.state()).phase == "completed"
        assert (await session.info()).id in [session.id for session in (await server.sessions()).sessions]


async def test_who_what_and_whom_there_is(node: Node) -> None:
    async with node.client() as server:
        me = await server.me()
        assert (me.tenant, me.user, me.role) == ("local", "local", "operator")
        assert [agent.name for agent in await server.agents()] == ["assistant"]
        assert {"current_time", "take_note"} <= {tool.name for tool in await server.tools()}


async def test_pages_of_sessions_go_on_where_the_last_one_ended(node: Node) -> None:
    async with node.client() as server:
        turns = [await server.start_session(f"page {n}") for n in range(3)]
        for turn in turns:
            await turn  # while it runs its session moves to the front of the list, and past whoever is in the middle
        begun = {turn.session for turn in turns}
        seen: list[str] = []
        page = await server.sessions(limit=2)
        seen += [session.id for session in page.sessions]
        while page.next:
            page = await server.sessions(limit=2, before=page.next)
            seen += [session.id for session in page.sessions]
        assert begun <= set(seen)


async def test_a_tree_is_edited_rerun_selected_and_cut(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("first")
        await turn
        session = server.session(turn.session)
        question, answered = await session.messages()
        edited = await (await session.edit(question.id, "second"))
        assert "“second”" in edited.text
        await (await session.rerun((await session.messages())[-1].id))
        await session.select(answered.id)
        assert [message.id for message in await session.messages()] == [question.id, answered.id]
        assert len((await session.tree()).messages) == 5
        await session.delete(answered.id)
        assert answered.id not in [message.id for message in (await session.tree()).messages]


async def test_an_answer_is_forked_after_one_of_its_steps(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("What time is it?")
        await turn
        session = server.session(turn.session)
        question, answer = await session.messages()
        assert [part.step for part in answer.parts if isinstance(part, StepPart)] == [1, 2]
        copy = await session.fork(answer.id, 1, key="k")
        assert await session.fork(answer.id, 1, key="k") == copy
        _, copied = await session.messages()
        assert (copied.id, copied.parent, copied.fork) == (copy, question.id, ForkPoint(answer.id, 1))
        again = await (await session.rerun(answer.id, after_step=1))
        assert [part.step for part in again.messages[-1].parts if isinstance(part, StepPart)] == [1]
        assert [message.parent for message in await session.messages()][1] == question.id
        with pytest.raises(CommandRefused, match="after step 3; its finished steps are: 1, 2"):
            await session.rerun(answer.id, after_step=3)


async def test_a_gate_is_found_and_answered_and_a_late_no_is_refused(node: Node) -> None:
    async with node.client() as server:
        turn, view = await server.start_session("note that it rains"), None
        async for shown in turn:
            if isinstance(shown, GateOpened):
                (view,) = await turn.gates()
                assert view.gate == shown.gate
                assert view.gate.id in [gate.gate.id for gate in await server.gates()]
                await server.answer(view, allow="once")
        assert "noted: it rains" in (await turn).text
        assert view is not None
        with pytest.raises(AnsweredOtherwise):
            await server.answer(view, deny="no")


async def test_a_denied_call_is_reported_to_the_model(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("note that it snows")
        await server.answer(await gate_of(server, turn.session), deny="not today")
        assert "not today" in str((await turn).messages)


async def test_a_turn_that_waits_is_cancelled(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("note that it hails")
        await gate_of(server, turn.session)
        await turn.cancel()
        assert (await turn).phase == "cancelled"


async def test_a_call_is_claimed_by_one_client_and_answered_by_it(tmp_path: Path) -> None:
    tool = ClientTool("current_time", "The time where I am.", {"type": "object", "properties": {}})
    node = Node(tmp_path / "home", tools="none").start()
    try:
        async with node.client() as server, node.client() as other:
            turn = await server.start_session("What time is it?", clients=[tool])
            view = await gate_of(server, turn.session)
            assert view.gate.kind == "client"
            mine = secrets.token_hex(16)
            assert (await server.claim(view, mine)).until > 0
            with pytest.raises(ClaimedOtherwise):
                await other.claim(view, secrets.token_hex(16))
            with pytest.raises(EverturnError):
                await other.answer(view, result="noon", claim=secrets.token_hex(16))
            await server.answer(view, result="nine o'clock", claim=mine)
            assert "nine o'clock" in (await turn).text
    finally:
        node.kill9()


async def test_files_go_there_and_come_back(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"some bytes")
    async with node.client() as server:
        attachment = await server.attach(file, "text/plain")
        assert (attachment.part.name, attachment.part.media_type) == ("a.txt", "text/plain")
        turn = await server.start_session("look", files=[attachment])
        await turn
        session = server.session(turn.session)
        (part,) = [part for part in (await session.messages())[0].parts if isinstance(part, FilePart)]
        assert await session.read(part.blob) == b"some bytes"
        with pytest.raises(UnknownFile):
            await session.read("0" * 64)


async def test_what_was_said_is_found_counted_exported_and_brought_in(node: Node) -> None:
    async with node.client() as server:
        word = f"w{secrets.token_hex(6)}"
        turn = await server.start_session(f"hello {word}")
        await turn
        assert {hit.session for hit in await server.search(word)} == {turn.session}
        assert await server.search("nobodyeversaidthis") == []
        used = await server.usage()
        assert used.total.usage.output > 0
        assert [day.agent for day in used.days] == ["assistant"]
        session = server.session(turn.session)
        other = await server.import_session(await session.export())
        assert other.id != session.id
        assert [message.parts for message in await other.messages()] == [
            message.parts for message in await session.messages()
        ]
        with pytest.raises(EverturnError, match=r"\w"):
            await server.import_session(b"no zip")


async def test_what_was_erased_is_not_there(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("forget me")
        await turn
        session = server.session(turn.session)
        await session.erase()
        with pytest.raises(UnknownSession):
            await session.messages()


async def test_an_erased_session_ends_its_streams(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("forget me, too")
        await turn
        listening = server.session(turn.session).events()
        await anext(listening)
        await server.session(turn.session).erase()
        async with asyncio.timeout(10):
            with pytest.raises(UnknownSession, match="the session was erased"):
                async for _ in listening:
                    pass


async def test_a_session_is_followed_over_several_turns(node: Node) -> None:
    async with node.client() as server:
        first = await server.start_session("one")
        session = server.session(first.session)
        listening, ended, sent = session.events(), list[str](), [first.id]
        async with asyncio.timeout(20):
            async for item in listening:
                if isinstance(item.event, TurnCompleted):
                    ended.append(item.event.turn)
                    if len(ended) == len(sent) == 2:
                        break
                    sent.append((await session.send("two")).id)
        await listening.aclose()
        assert ended == sent


async def test_the_same_key_is_the_same_turn_and_another_text_is_a_conflict(node: Node) -> None:
    async with node.client() as server:
        key = secrets.token_hex(8)
        first, second = await server.start_session("once", key=key), await server.start_session("once", key=key)
        assert (first.session, first.id) == (second.session, second.id)
        with pytest.raises(KeyConflict):
            await server.start_session("twice", key=key)


async def test_refusals_are_the_errors_they_would_be_in_one_process(node: Node) -> None:
    async with node.client() as server:
        turn = await server.start_session("note that there are errors")
        session, view = server.session(turn.session), await gate_of(server, turn.session)
        with pytest.raises(SessionBusy):
            await session.send("now!", busy="reject")
        with pytest.raises(HashMismatch):
            await server.answer(_with(view, hash="0" * 64), allow="once")
        with pytest.raises(UnknownGate):
            await server.answer(_with(view, id="gate_none"), allow="once")
        with pytest.raises(UnknownTurn):
            await session.turn("turn_none").state()
        with pytest.raises(UnknownMessage):
            await session.edit("msg_none", "x")
        with pytest.raises(UnknownSession):
            await server.session("session_none").send("x")
        with pytest.raises(UnknownAgent):
            await server.start_session("x", agent="nobody")
        with pytest.raises(UnknownSession):
            await server.session("../me").info()  # an id is never a path
        with pytest.raises(ConfigError):
            await server.answer(view, allow="perhaps")  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeError, match="a message has no colour"):
            await server.start_session("x", colour="red")  # pyright: ignore[reportCallIssue]
        await turn.cancel()


def _with(view: api.GateView, **changed: str) -> api.GateView:
    from msgspec.structs import replace

    return replace(view, gate=replace(view.gate, **changed))


async def test_a_role_that_is_not_enough_is_forbidden(node: Node) -> None:
    async with node.client() as server:
        _, secret = await key_for(server, "watcher", "viewer")
        async with node.client(token=secret) as viewer:
            assert (await viewer.me()).role == "viewer"
            with pytest.raises(Forbidden):
                await viewer.start_session("may I?")


async def test_a_token_of_nobody_is_not_recognised(node: Node) -> None:
    async with node.client(token="evk_" + "x" * 43) as stranger:
        with pytest.raises(NotRecognised):
            await stranger.me()
        with pytest.raises(NotRecognised):
            await anext(stranger.session("session_none").events())


async def test_a_revoked_token_ends_its_streams_with_not_recognised(node: Node) -> None:
    async with node.client() as server:
        id, secret = await key_for(server, "leaver", "member")
        async with node.client(token=secret) as leaver:
            turn = await leaver.start_session("note that I leave")
            await gate_of(leaver, turn.session)
            reading = turn.events()
            await anext(reading)
            await server.node_client.ask("DELETE", f"/api/keys/{id}")
            async with asyncio.timeout(10):
                with pytest.raises(NotRecognised, match="ended the stream"):
                    async for _ in reading:
                        pass


async def test_nobody_at_an_address_is_said_with_the_address() -> None:
    async with Server("http://127.0.0.1:9", "evk_any") as server:
        with pytest.raises(ServerUnavailable, match=r"http://127\.0\.0\.1:9: no answer after 6 tries"):
            await server.me()
