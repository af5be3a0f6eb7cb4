"""The limit: a protocol on the socket, chunks of HTTP taken apart by hand, msgspec with only the fields that are needed.

It is no client: it believes what it reads, and knows just enough HTTP for this one provider. Messages that were sent
before are kept encoded, so that a long history is only copied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
from toolbox import TOOLS, specs

DISTRIBUTION = "msgspec"


class Function(msgspec.Struct, gc=False):
    name: str = ""
    arguments: str = ""


class Call(msgspec.Struct, gc=False):
    index: int
    function: Function
    id: str = ""


class Delta(msgspec.Struct, gc=False):
    content: str | None = None
    tool_calls: list[Call] | None = None


class Choice(msgspec.Struct, gc=False):
    delta: Delta
    finish_reason: str | None = None


class Chunk(msgspec.Struct, gc=False):
    choices: list[Choice]
    usage: dict[str, Any] | None = None


decode = msgspec.json.Decoder(Chunk).decode
encode = msgspec.json.Encoder().encode
decode_arguments = msgspec.json.Decoder(dict[str, str]).decode


class Connection(asyncio.Protocol):
    """One answer at a time: `on_chunk` for each event, and the future when it is over."""

    transport: asyncio.Transport
    done: asyncio.Future[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # pyright: ignore[reportAttributeAccessIssue] - a socket's is one

    def ask(self, request: bytes, on_chunk: Callable[[Chunk], None]) -> asyncio.Future[None]:
        self.on_chunk, self.rest, self.event, self.is_body = on_chunk, b"", b"", False
        self.done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.done

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the provider hung up"))

    def data_received(self, data: bytes) -> None:
        try:
            self._read(self.rest + data if self.rest else data)
        except Exception as error:
            self.done.set_exception(error)
            self.transport.abort()

    def _read(self, data: bytes) -> None:
        at, end = 0, len(data)
        if not self.is_body:
            at = data.find(b"\r\n\r\n") + 4
            if at == 3:
                self.rest = data
                return
            if not data.startswith(b"HTTP/1.1 200"):
                raise ConnectionError(data.decode())
            self.is_body = True
        on_chunk = self.on_chunk
        while (line := data.find(b"\r\n", at)) >= 0:
            start = line + 2
            stop = start + int(data[at:line], 16)
            if stop + 2 > end:
                break
            at = stop + 2
            if stop == start:
                self.done.set_result(None)
                break
            if not self.event and data.find(b"\n\n", start, stop) == stop - 2:
                if data.startswith(b"data: {", start):  # one event in one chunk, as it nearly always is
                    on_chunk(decode(data[start + 6 : stop]))
                continue
            *events, self.event = (self.event + data[start:stop]).split(b"\n\n")
            for event in events:
                if event.startswith(b"data: {"):
                    on_chunk(decode(event[6:]))
        self.rest = data[at:]


class Adapter:
    def __init__(self, base: str, model: str, tools: Sequence[str], history: list[dict[str, Any]]) -> None:
        url = urlsplit(base)
        self.host, self.port = str(url.hostname), url.port or 80
        self.idle: list[Connection] = []
        head = f"POST {url.path}/chat/completions HTTP/1.1\r\nhost: {url.netloc}\r\ncontent-type: application/json\r\n"
        self.head = head.encode() + b"content-length: %d\r\n\r\n"
        fixed: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
        if tools:
            fixed["tools"] = specs(tools)
        self.fixed = encode(fixed)[:-1] + b',"messages":['
        self.history = [encode(message) for message in history]

    async def new(self) -> list[bytes]:
        return list(self.history)

    async def turn(self, messages: list[bytes], on_text: Callable[[str], None]) -> None:
        messages.append(b'{"role":"user","content":"go"}')
        while True:
            text: list[str] = []
            calls: dict[int, tuple[str, str, list[str]]] = {}

            def on_chunk(chunk: Chunk, text: list[str] = text, calls: dict[int, Any] = calls) -> None:
                for choice in chunk.choices:
                    delta = choice.delta
                    if delta.content:
                        text.append(delta.content)
                        on_text(delta.content)
                    elif delta.tool_calls:
                        for call in delta.tool_calls:
                            if call.index not in calls:
                                calls[call.index] = (call.id, call.function.name, [])
                            calls[call.index][2].append(call.function.arguments)

            await self._ask(messages, on_chunk)
            answer: dict[str, Any] = {"role": "assistant", "content": "".join(text) or None}
            assembled = [(id, name, "".join(pieces)) for id, name, pieces in calls.values()]
            if assembled:
                answer["tool_calls"] = [
                    {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                    for id, name, arguments in assembled
                ]
            messages.append(encode(answer))
            if not assembled:
                return
            for id, name, arguments in assembled:  # the tools wait for nothing, so one after the other is the fastest
                result = await TOOLS[name](**decode_arguments(arguments))
                messages.append(encode({"role": "tool", "tool_call_id": id, "content": result}))

    async def _ask(self, messages: list[bytes], on_chunk: Callable[[Chunk], None]) -> None:
        body = self.fixed + b",".join(messages) + b"]}"
        if self.idle:
            connection = self.idle.pop()
        else:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(Connection, self.host, self.port)
        await connection.ask(self.head % len(body) + body, on_chunk)
        self.idle.append(connection)
