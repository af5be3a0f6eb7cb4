"""What breaks off goes on: servers that are killed, addresses that nobody answers at, answers that get lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from everturn.chat.turn import RunResult
from everturn.client import RemoteTurn, Server, event_stream
from everturn.core.deltas import TextDelta
from everturn.core.events import StepRestarted, StepStarted, TurnCompleted, TurnEvent
from everturn.core.parts import TextPart, ToolPart
from everturn.core.state import fold
from everturn.errors import ConfigError, ServerUnavailable, UnknownSession
from tests.client.test_server import gate_of
from tests.helpers.server_process import Node, losing


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "home", pace=0.05).start()
    yield node
    node.kill9()


async def speaking(turn: RemoteTurn, whenever: int, then: object) -> list[object]:
    """Everything a turn shows; after so many pieces of text `then` is called, once."""
    shown, pieces = list[object](), 0
    async with asyncio.timeout(50):
        async for item in turn:
            shown.append(item)
            pieces += isinstance(item, TextDelta)
            if pieces == whenever and callable(then):
                await asyncio.to_thread(then)
                pieces += 1
    return shown


def check_whole(shown: list[object]) -> None:
    """Every event once, in order, to the end; and the text that was shown last is the one that was kept."""
    events = [item for item in shown if isinstance(item, TurnEvent)]
    assert len({repr(event) for event in events}) == len(events)
    assert isinstance(events[-1], TurnCompleted)
    (answer,) = [message for message in fold(events).messages.values() if message.role == "assistant"]
    stored_text = "".join(part.text for part in answer.parts if isinstance(part, TextPart))
    began = max(n for n, item in enumerate(shown) if isinstance(item, StepStarted | StepRestarted))
    shown_text = "".join(item.text for item in shown[began:] if isinstance(item, TextDelta))
    assert shown_text == stored_text
    assert "offline demo" in shown_text


def _restarted(shown: list[object]) -> bool:
    return any(isinstance(item, StepRestarted) for item in shown)


async def test_killed_in_the_middle_of_a_text_and_started_again_the_stream_goes_on(slow: Node) -> None:
    def kill() -> None:
        port = slow.port
        slow.kill9()
        slow.start(port)

    async with slow.client() as server:
        shown = await speaking(await server.start_session("hello"), 3, kill)
    assert _restarted(shown)
    check_whole(shown)


async def test_when_one_address_is_silent_the_next_takes_over_in_the_middle_of_a_text(slow: Node) -> None:
    gone = slow.address

    def move() -> None:
        slow.kill9()
        slow.start()

    async with slow.client() as server:
        turn = await server.start_session("hello")
        reading, text = turn.events(), ""
        async with asyncio.timeout(50):
            async for item in reading:
                text += item.delta.text if isinstance(item.delta, TextDelta) else ""
                if len(text) > 30:
                    break
        cursor = reading.cursor
        await reading.aclose()
    await asyncio.to_thread(move)
    assert slow.address != gone
    async with slow.client(gone, slow.address) as server:
        again = server.session(turn.session).turn(turn.id)
        async with asyncio.timeout(50):
            rest = [item async for item in again.events(after=cursor)]
        assert isinstance(rest[-1].event, TurnCompleted)
        assert isinstance(rest[0].event, StepRestarted)  # what was shown before is not shown again
        assert (await server.me()).user == "local"


async def test_a_client_that_waits_at_a_gate_does_not_notice_a_restart(slow: Node) -> None:
    async with slow.client() as server:
        turn = await server.start_session("note that I was here")
        waiting = asyncio.ensure_future(_collected(turn))
        gate = await gate_of(server, turn.session)
        port = slow.port
        await asyncio.to_thread(slow.kill9)
        await asyncio.to_thread(slow.start, port)
        await server.answer(gate, allow="once")
        async with asyncio.timeout(50):
            assert "noted: I was here" in (await waiting).text


async def _collected(turn: RemoteTurn) -> RunResult:
    return await turn


async def test_a_send_whose_answer_is_lost_is_done_once(node: Node) -> None:
    async with losing(node.address) as proxy, Server(proxy.address, node.token) as server:
        proxy.lose("POST /api/sessions ", 2)
        turn = await server.start_session("once, please")
        assert len(proxy.lost) == 2
        await turn
        found = await server.search("once please")
        assert len({hit.session for hit in found if hit.message.role == "user"}) == 1
        session = server.session(turn.session)
        proxy.lose(f"POST /api/sessions/{turn.session}/messages", 2)
        await (await session.send("and again"))
        assert len(proxy.lost) == 4
        assert [message.role for message in await session.messages()] == ["user", "assistant"] * 2
        (question, *_) = await session.messages()
        proxy.lose(f"POST /api/sessions/{turn.session}/messages/{question.id}/edit", 1)
        await (await session.edit(question.id, "otherwise"))
        proxy.lose(f"POST /api/sessions/{turn.session}/messages/", 1)
        await (await session.rerun((await session.messages())[-1].id))
        assert len(proxy.lost) == 6
        assert len((await session.tree()).messages) == 7


async def test_an_answer_to_a_gate_that_is_lost_on_its_way_counts_once(node: Node) -> None:
    async with losing(node.address) as proxy, Server(proxy.address, node.token) as server:
        turn = await server.start_session("note that this is said once")
        gate = await gate_of(server, turn.session)
        proxy.lose("POST ", 2)
        await server.answer(gate, allow="once")
        assert len(proxy.lost) == 2
        (call,) = [part for message in (await turn).messages for part in message.parts if isinstance(part, ToolPart)]
        assert "noted: this is said once" in str(call)


async def test_what_takes_away_is_taken_away_when_the_word_of_it_is_lost(node: Node) -> None:
    async with losing(node.address) as proxy, Server(proxy.address, node.token) as server:
        turn = await server.start_session("take me away")
        await turn
        session = server.session(turn.session)
        (_, answered) = await session.messages()
        proxy.lose("DELETE ", 1)
        await session.delete(answered.id)
        proxy.lose("DELETE ", 1)
        await session.erase()
        assert len(proxy.lost) == 2
        with pytest.raises(UnknownSession):
            await session.info()
        with pytest.raises(UnknownSession):
            await session.erase()


async def test_what_may_not_be_repeated_is_not(node: Node) -> None:
    async with losing(node.address) as proxy, Server(proxy.address, node.token) as server:
        turn = await server.start_session("bring me in")
        await turn
        file = await server.session(turn.session).export()
        before = len((await server.sessions(limit=100)).sessions)
        proxy.lose("POST /api/import", 1)
        with pytest.raises(ServerUnavailable, match="it is not known whether the request took effect"):
            await server.import_session(file)
        assert len((await server.sessions(limit=100)).sessions) == before + 1


async def test_a_stream_that_is_cut_again_and_again_shows_everything_once(node: Node) -> None:
    async with losing(node.address) as proxy, Server(proxy.address, node.token) as server:
        turn = await server.start_session("hello")
        proxy.lose("GET ", 3)
        check_whole(await speaking(turn, -1, None))
        assert len(proxy.lost) == 3


@asynccontextmanager
async def a_stranger(answer: bytes) -> AsyncGenerator[tuple[str, list[str]], None]:
    """Somebody who says the same to whoever comes; where they are, and what they were asked."""
    requests: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].decode())
        writer.write(answer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests
    finally:
        server.close()
        await server.wait_closed()


PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\n<h1>Hello</h1>"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("answer", [PAGE, MOVED, PAGE.replace(b"<h1>", b"\xff\xfe\xfd\xfc")])
async def test_a_server_that_is_not_ours_is_recognised_and_gets_no_further_token(answer: bytes) -> None:
    async with a_stranger(answer) as (address, requests), Server(address, "evk_any") as server:
        with pytest.raises(ServerUnavailable, match="not from an Everturn server"):
            await server.me()
        assert requests == ["GET /api/me HTTP/1.1"]


async def test_a_stream_of_nothing_is_given_up_when_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "RECONNECT_TIMEOUT", 0.5)
    empty = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with a_stranger(empty) as (address, requests), Server(address, "evk_any") as server:
        async with asyncio.timeout(20):
            with pytest.raises(ServerUnavailable, match="cannot be continued"):
                await anext(server.session("session_any").events())
        assert len(requests) > 1


@pytest.mark.parametrize(
    ("urls", "says"),
    [
        ("127.0.0.1:8000", "is not the URL of a server; it looks like http://127.0.0.1:8000"),
        ("ftp://127.0.0.1", "is not the URL of a server"),
        ("http://", "is not the URL of a server"),
        ("http://127.0.0.1:8000/?a=b", "is not the URL of a server"),
        ("http://127.0.0.1:port", "is not the URL of a server"),
        ([], "the URL of the server is missing"),
    ],
)
def test_an_address_that_is_none_is_said_before_anybody_is_asked(urls: str | list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("?", r"\?")):
        Server(urls, "evk_any")


@pytest.mark.parametrize("token", ["", "two words", "evk_\n", "evk_ü"])
def test_a_token_that_is_none_is_said_with_where_one_is_had(token: str) -> None:
    with pytest.raises(ConfigError, match="everturn keys add"):
        Server("http://127.0.0.1:8000", token)
