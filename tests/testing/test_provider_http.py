"""The provider as a server of HTTP/1.1, and the small client that the other tests of it use."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec
import pytest

from everturn.testing.provider import Call, Hang, Pause, Provider, Say

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
VERSION = {"anthropic-version": "2023-06-01"}


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    chunks: list[bytes]
    is_whole: bool

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The data of a stream; what is no JSON (`[DONE]`) is left out."""
        lines = self.body.decode().split("\n")
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def wire(path: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] = VERSION) -> bytes:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(raw)}\r\n\r\n".encode() + raw


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    status = int(first.split(" ")[1])
    if "content-length" in headers:
        return Reply(status, headers, [await reader.readexactly(int(headers["content-length"]))], True)
    chunks: list[bytes] = []
    while True:
        try:
            size = int(await reader.readuntil(b"\r\n"), 16)
            data = (await reader.readexactly(size + 2))[:-2]
        except asyncio.IncompleteReadError as error:
            return Reply(status, headers, [*chunks, error.partial] if error.partial else chunks, False)
        if not size:
            return Reply(status, headers, chunks, True)
        chunks.append(data)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter], None]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def send(provider: Provider, *requests: bytes) -> list[Reply]:
    """Send requests in one write, over one connection, and read as many replies."""
    async with connect(provider.url) as (reader, writer):
        writer.write(b"".join(requests))
        return [await read_reply(reader) for _ in requests]


async def ask(provider: Provider, format: str, body: Mapping[str, Any], headers: Mapping[str, str] = VERSION) -> Reply:
    return (await send(provider, wire(PATHS[format], body, headers)))[0]


def chat(*messages: dict[str, Any], model: str = "m", **fields: Any) -> dict[str, Any]:
    return {"model": model, "stream": True, "messages": messages or [{"role": "user", "content": "hi"}], **fields}


def text_of(reply: Reply) -> str:
    """What a chat stream said."""
    deltas = [choice["delta"] for event in reply.events for choice in event["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


async def test_every_event_is_an_http_chunk_of_its_own():
    async with Provider() as provider:
        provider.script("m", [[Say("one two three")]])
        reply = await ask(provider, "chat", chat())
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["transfer-encoding"] == "chunked"
    assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in reply.chunks)
    assert len(reply.chunks) == 1 + 3 + 1 + 1
    assert reply.chunks[-1] == b"data: [DONE]\n\n"


async def test_a_connection_is_kept_and_requests_may_be_sent_ahead():
    async with Provider() as provider:
        provider.script("m", [[Say("one")]])
        provider.script("slow", [[Say("a"), Pause(0.001), Say("b")]])
        replies = await send(provider, *(wire(PATHS["chat"], chat(model=m)) for m in ("slow", "m", "slow", "m")))
        assert [text_of(reply) for reply in replies] == ["ab", "one", "ab", "one"]
        assert provider.stats()["open_max"] == 1


async def test_a_client_that_says_it_is_done_is_let_go():
    async with Provider() as provider, connect(provider.url) as (reader, writer):
        writer.write(wire(PATHS["chat"], chat(model="plain-n1"), {"Connection": "close"}))
        assert (await reader.read()).endswith(b"0\r\n\r\n")


async def test_a_request_may_arrive_byte_by_byte():
    async with Provider() as provider, connect(provider.url) as (reader, writer):
        for byte in wire(PATHS["chat"], chat(model="plain-n1")):
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert (await read_reply(reader)).is_whole


async def test_a_long_answer_reaches_a_client_that_reads_late():
    async with Provider() as provider:
        request = wire(PATHS["chat"], chat(model="plain-n9000"))
        replies = await send(provider, request, request)
        assert [len(text_of(reply)) for reply in replies] == [9000 * 20] * 2
        await provider.wait_idle()
        assert [seen.is_closed_early for seen in provider.seen] == [False, False]


async def test_a_client_that_asks_before_it_sends_is_told_to_go_on():
    async with Provider() as provider, connect(provider.url) as (reader, writer):
        request = wire(PATHS["chat"], chat(model="plain-n1"), {"Expect": "100-continue"})
        head, _, body = request.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await read_reply(reader)).status == 200


async def test_what_is_no_request_is_rejected_and_the_connection_closed():
    async with Provider() as provider:
        for request, status in (
            (b"what?\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n", 400),
            (b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411),
            (b"x" * 70_000, 431),
        ):
            async with connect(provider.url) as (reader, writer):
                writer.write(request)
                reply = await read_reply(reader)
                assert (reply.status, reply.headers["connection"]) == (status, "close")


async def test_another_path_is_not_found():
    async with Provider() as provider:
        for request in (wire("/v1/embeddings", {}), b"GET /v1/messages HTTP/1.1\r\n\r\n"):
            [reply] = await send(provider, request)
            assert reply.status == 404
            assert reply.json["error"]["message"].startswith("Invalid URL (")
            assert reply.json["error"]["type"] == "invalid_request_error"
        assert provider.seen == []


async def test_a_key_is_checked_if_one_was_given():
    async with Provider(key="secret") as provider:
        bearer, own = {"Authorization": "Bearer secret"}, {"X-Api-Key": "secret"}
        body = chat(model="plain-n1")
        assert (await ask(provider, "chat", body, bearer)).status == 200
        assert (await ask(provider, "chat", body, own)).status == 200
        wrong = await ask(provider, "chat", body, {"authorization": "Bearer other"})
        assert (wrong.status, wrong.json["error"]["code"]) == (401, "invalid_api_key")
        none = await ask(provider, "responses", body, {})
        assert (none.status, none.json["error"]["message"]) == (401, "You didn't provide an API key.")
        anthropic = await ask(provider, "messages", body)
        assert (anthropic.status, anthropic.json["error"]["type"]) == (401, "authentication_error")
        assert provider.refusals == []


async def test_stats_count_requests_refusals_and_connections():
    async with Provider() as provider:
        await ask(provider, "chat", chat(model="plain-n1"))
        await ask(provider, "chat", chat(model="plain-n1", messages=[]))
        [reply] = await send(provider, b"GET /stats HTTP/1.1\r\n\r\n")
        assert {**reply.json, "cpu": 0} == {"requests": 2, "refusals": 1, "open": 1, "open_max": 1, "cpu": 0}


async def test_a_client_that_goes_away_is_noticed():
    async with Provider() as provider:
        provider.script("m", [[Say("well"), Hang()]])
        async with connect(provider.url) as (reader, writer):
            writer.write(wire(PATHS["chat"], chat()))
            await reader.readuntil(b"well")
            [seen] = provider.seen
            assert (seen.closed, seen.is_closed_early) == (None, False)
        await provider.wait_idle()
        assert seen.is_closed_early
        assert seen.closed is not None
        assert seen.closed >= seen.opened


async def test_a_provider_that_closes_lets_nobody_hang():
    async with Provider() as provider, AsyncExitStack() as stack:
        provider.script("m", [[Call("read"), Hang()]])
        reader, writer = await stack.enter_async_context(connect(provider.url))
        writer.write(wire(PATHS["chat"], chat()))
        await reader.readuntil(b"read")
        later = stack.pop_all()
    async with later:
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(10_000)
        assert provider.seen[0].is_closed_early


async def test_without_a_record_nothing_is_kept():
    async with Provider(record=False) as provider:
        assert (await ask(provider, "chat", chat(model="plain-n1"))).status == 200
        assert (await ask(provider, "chat", chat(model="plain-n1", messages=[]))).status == 400
        assert (provider.seen, provider.refusals) == ([], [])
        assert (provider.stats()["requests"], provider.stats()["refusals"]) == (2, 1)


async def test_the_command_serves_until_it_is_told_to_stop():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everturn.testing.provider", "--lax", "--no-record"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    word, url = (await process.stdout.readline()).decode().split()
    assert word == "ready"
    async with connect(url) as (reader, writer):
        writer.write(wire(PATHS["chat"], {"model": "plain-n2", "whatever": 1}))
        assert len(text_of(await read_reply(reader))) == 40
    process.terminate()
    assert await process.wait() == 0
