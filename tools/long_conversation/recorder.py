"""Recorder: an HTTP proxy between the terminal and the model that keeps the bytes of every request and its answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from everturn.turn.summarizer import INSTRUCTIONS

PIECE = 65_536


class Exchange:
    """A request to the model, and what has come of its answer."""

    def __init__(self, target: str, body: bytes) -> None:
        self.target, self.body, self.at = target, body, time.time()
        self.answer = b""
        self.is_cut = False  # the client went away before the answer was whole
        self.seconds = 0.0
        parsed: Any = json.loads(body) if body.startswith(b"{") else {}
        self.messages: list[dict[str, Any]] = parsed.get("messages", [])
        system = str(self.messages[0].get("content", "")) if self.messages else ""
        self.is_summary = system.startswith(INSTRUCTIONS[:60])

    @property
    def status(self) -> int:
        """The status of the answer; 0: there is none."""
        words = self.answer[:32].split(b" ")
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0

    @property
    def prompt_tokens(self) -> int:
        """The tokens of the request as the model counted them; 0: it did not say."""
        found = re.findall(rb'"prompt_tokens":(\d+)', self.answer)
        return int(found[-1]) if found else 0

    @property
    def text(self) -> str:
        """The body of the request as text."""
        return "\n".join(json.dumps(message, ensure_ascii=False) for message in self.messages)


class Recorder:
    """Forwards each connection to the model. `on_piece` is called whenever a piece of an answer was forwarded."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.exchanges: list[Exchange] = []
        self.on_piece: Callable[[Exchange], None] = lambda _: None
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward the requests of a connection, one after another."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await self._forward(reader, writer):
                pass
        writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        length = next((int(value) for name, value in headers.items() if name.lower() == "content-length"), 0)
        body = await reader.readexactly(length)
        exchange = Exchange(lines[0], body)
        self.exchanges.append(exchange)
        head_lines = [line for line in lines if line and not line.lower().startswith("connection:")]
        upstream, to_model = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            to_model.write("\r\n".join([*head_lines, "Connection: close", "", ""]).encode("latin-1") + body)
            await to_model.drain()
            while piece := await upstream.read(PIECE):
                exchange.answer += piece
                writer.write(piece)
                await writer.drain()
                self.on_piece(exchange)
        except OSError:
            exchange.is_cut = True
        finally:
            exchange.seconds = time.time() - exchange.at
            to_model.close()  # the model stops writing
        return False


@asynccontextmanager
async def recording(port: int) -> AsyncGenerator[Recorder]:
    """A recorder in front of the model at this port."""
    recorder = Recorder(port)
    server = await asyncio.start_server(recorder.serve, "127.0.0.1", 0, limit=1 << 22)
    recorder.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield recorder
    finally:
        server.close()
