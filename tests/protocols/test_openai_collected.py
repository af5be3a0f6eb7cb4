"""Answers that are collected before they are sent: they are streams that nobody sees, and end as those do."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import openai
import pytest

from everturn.core.events import StepStarted
from everturn.errors import ModelError
from everturn.models.scripted import ScriptedFailure
from everturn.server.streams import registry
from everturn.testing import say
from tests.helpers.server_app import word
from tests.helpers.server_streams import so
from tests.protocols.openai_server import MAILING, Served, served

WAIT = {"x-everturn-wait": "3600"}
CHAT: dict[str, Any] = {"model": "assistant", "messages": [{"role": "user", "content": "Write to Ada."}]}
RESPONSE: dict[str, Any] = {"model": "assistant", "input": "Write to Ada."}


async def post(server: Served, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any, Any]:
    named = {"authorization": f"Bearer {word('member')}", **WAIT, **(headers or {})}
    async with aiohttp.ClientSession() as http, http.post(server.address + path, json=body, headers=named) as answer:
        return answer.status, await answer.json(), answer.headers


async def waiting(server: Served, number: int = 1) -> None:
    """Wait until so many turns ask a person."""
    async with asyncio.timeout(20):
        while len(await server.house.app.store.gates()) < number:  # noqa: ASYNC110 - it has no bell for tests
            await asyncio.sleep(0.01)


async def sessions(server: Served) -> int:
    return len(await server.house.app.store.session_page("ours"))


async def test_an_answer_that_waits_counts_as_a_stream_and_one_too_many_sends_nothing() -> None:
    async with served(*MAILING, *MAILING, streams=1) as server:
        first = asyncio.create_task(post(server, "/v1/chat/completions", CHAT))
        await waiting(server)
        for path, body in (
            ("/v1/chat/completions", CHAT),
            ("/v1/chat/completions", {**CHAT, "stream": True}),
            ("/v1/responses", RESPONSE),
            ("/v1/responses", {**RESPONSE, "stream": True}),
            ("/ai-sdk/chat", {"id": "a", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}]}),
            ("/ag-ui", {"threadId": "a", "runId": "b", "messages": [{"id": "1", "role": "user", "content": "Hi"}]}),
        ):
            status, reply, _ = await post(server, path, body)
            assert (status, reply["error"]["code"]) == (429, "too_much"), path
        assert await sessions(server) == 1, "whoever is refused has said nothing"
        await server.streams.aclose()
        assert (await first)[0] == 200


async def test_a_place_is_given_back_whatever_becomes_of_the_request() -> None:
    async with served([say("Hello.")], streams=1) as server:
        for _ in range(3):
            status, _, _ = await post(server, "/v1/chat/completions", {**CHAT, "model": "nobody"})
            assert status in (404, 422)
        assert (await post(server, "/v1/chat/completions", CHAT))[0] == 200
        assert server.streams.open == 0


@pytest.mark.parametrize(("path", "body"), [("/v1/chat/completions", CHAT)])
async def test_what_is_asked_with_a_key_that_is_revoked_is_not_answered(
    path: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "CHECK_INTERVAL", 0.05)
    async with served(*MAILING) as server:
        request = asyncio.create_task(post(server, path, body))
        await waiting(server)
        assert server.streams.open == 1
        server.gone.add(word("member"))
        async with asyncio.timeout(10):
            status, reply, _ = await request
        assert (status, reply["error"]["code"]) == (401, "not_recognised")
        await so(lambda: server.streams.open == 0)


async def test_a_node_that_leaves_ends_what_waits_for_a_person_as_if_its_time_were_over() -> None:
    async with served(*MAILING) as server:
        request = asyncio.create_task(post(server, "/v1/chat/completions", CHAT))
        await waiting(server)
        async with asyncio.timeout(5):
            await server.streams.aclose(30.0)
            status, reply, _ = await request
        assert status == 200
        assert reply["choices"][0]["finish_reason"] == "stop"
        assert len(reply["everturn"]["gates"]) == 1


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_node_that_leaves_lets_an_answer_that_is_on_its_way_be_finished(path: str) -> None:
    body = CHAT if "chat" in path else RESPONSE
    async with served([say("Hello, this takes "), say("a moment or two.")], pace=0.1) as server:
        request = asyncio.create_task(post(server, path, body))
        await so(lambda: server.streams.open == 1)
        async with asyncio.timeout(20):
            await server.streams.aclose(15.0)
            status, reply, _ = await request
        assert status == 200
        assert "two." in str(reply)


@pytest.mark.parametrize("key", ["", "once"])
async def test_a_node_that_must_leave_says_so_and_whether_it_may_be_sent_again(key: str) -> None:
    async with served([say("Hello, this takes "), say("a long while.")], pace=5.0) as server:
        headers = {"idempotency-key": key} if key else {}
        request = asyncio.create_task(post(server, "/v1/chat/completions", CHAT, headers))
        await so(lambda: server.streams.open == 1)
        await server.streams.aclose(0.1)
        status, reply, reply_headers = await request
        assert (status, reply["error"]["code"]) == (503, "leaving")
        assert reply_headers["x-should-retry"] == ("true" if key else "false")
        assert reply_headers["retry-after"]


async def test_whoever_hangs_up_gives_their_place_back_and_the_turn_goes_on() -> None:
    async with served(*MAILING) as server:
        request = asyncio.create_task(post(server, "/v1/chat/completions", CHAT))
        await waiting(server)
        request.cancel()
        await so(lambda: server.streams.open == 0)
        assert len(await server.house.app.store.gates()) == 1


async def test_a_model_that_is_not_there_is_what_their_client_knows_as_that() -> None:
    async with served([say("Hello.")]) as server:
        client = server.client()
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(**{**CHAT, "model": "nobody"})
        assert caught.value.code == "model_not_found"
        with pytest.raises(openai.NotFoundError):
            await client.responses.create(**{**RESPONSE, "model": "nobody"})
        assert await sessions(server) == 0


@pytest.mark.parametrize("key", ["last-event-id", "after"])
async def test_a_cursor_of_many_parts_comes_back_whole(key: str) -> None:
    async with served([say("Hello.")]) as server:
        _, reply, _ = await post(server, "/v1/chat/completions", CHAT)
        session = reply["everturn"]["session"]
        entries = await server.house.app.store.events(session)
        [start] = [entry.seq for entry in entries if isinstance(entry.event, StepStarted)]
        # It has seen all of the text; what is left of this when it is cut does not say so.
        cursor = f"{start}:1={','.join(['100000'] * 200)};{start}=100000"
        headers, query = {"authorization": f"Bearer {word('member')}"}, dict[str, str]()
        (query if key == "after" else headers)[key] = cursor
        url = f"{server.address}/api/sessions/{session}/events"
        async with aiohttp.ClientSession() as http, http.get(url, params=query, headers=headers) as answer:
            assert answer.status == 200
            lines = b""
            while b'"TurnCompleted"' not in lines:
                lines += await answer.content.readline()
        assert b"TextDelta" not in lines


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant") * len(texts)
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    return {"model": "assistant", "messages": messages, **more}


async def test_two_conversations_that_said_the_same_so_far_do_not_go_on_in_one_session() -> None:
    async with served(*[[say("Hello.")]] * 20) as server:
        begun = [(await post(server, "/v1/chat/completions", chat("Hi")))[1]["everturn"]["session"] for _ in range(2)]
        assert len(set(begun)) == 2
        replies = [
            await post(server, "/v1/chat/completions", chat("Hi", "Hello.", text)) for text in ("I am A", "I am B")
        ]
        assert [status for status, _, _ in replies] == [200, 200]
        first, other = (reply["everturn"]["session"] for _, reply, _ in replies)
        assert first != other
        for session, text in ((first, "I am A"), (other, "I am B")):
            tree = (await server.house.app.store.tree(session)).messages.values()
            assert [message.text for message in tree] == ["Hi", "Hello.", text, "Hello."]
        # and from there on each is known by what was said in it
        more = await post(server, "/v1/chat/completions", chat("Hi", "Hello.", "I am A", "Hello.", "Still A"))
        assert more[1]["everturn"]["session"] == first


async def test_with_a_key_the_copy_is_made_once() -> None:
    async with served(*[[say("Hello.")]] * 20) as server:
        for _ in range(2):
            await post(server, "/v1/chat/completions", chat("Hi"))
        key, body = {"idempotency-key": "once"}, chat("Hi", "Hello.", "I am A")
        replies = [await post(server, "/v1/chat/completions", body, key) for _ in range(2)]
        assert replies[0][1]["everturn"] == replies[1][1]["everturn"]
        assert await sessions(server) == 3


async def test_people_whom_a_client_tells_apart_are_not_known_as_one_another() -> None:
    async with served(*[[say("Hello.")]] * 20) as server:
        first = await post(server, "/v1/chat/completions", chat("Hi", user="a"))
        status, _, _ = await post(server, "/v1/chat/completions", chat("Hi", "Hello.", "And?", user="b"))
        assert status == 400
        again = await post(server, "/v1/chat/completions", chat("Hi", "Hello.", "And?", user="a"))
        assert again[1]["everturn"]["session"] == first[1]["everturn"]["session"]


@pytest.mark.parametrize("is_stream", [False, True])
async def test_what_is_wrong_behind_us_is_told_in_full_to_approvers_only(is_stream: bool) -> None:
    secret = "nobody answers at http://10.1.2.3:9"
    async with served(*[[ScriptedFailure(ModelError(secret, kind="key"))]] * 2) as server:
        for role, is_told in (("member", False), ("approver", True)):
            headers = {"authorization": f"Bearer {word(role)}"}
            async with (
                aiohttp.ClientSession() as http,
                http.post(
                    f"{server.address}/v1/chat/completions", json={**CHAT, "stream": is_stream}, headers=headers
                ) as answer,
            ):
                assert (secret in await answer.text()) is is_told
            session, turn = answer.headers["x-everturn-session"], answer.headers["x-everturn-turn"]
            for path in (f"turns/{turn}", f"turns/{turn}/events", "messages"):
                async with (
                    aiohttp.ClientSession() as http,
                    http.get(f"{server.address}/api/sessions/{session}/{path}", headers=headers) as answer,
                ):
                    text = await answer.text()
                    assert answer.status == 200
                    assert is_told or secret not in text, path
