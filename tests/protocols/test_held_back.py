"""An output guardrail with a buffer, over HTTP: until it has passed, nobody and nothing sees a byte of what it checks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from everturn import App, output_guardrail
from everturn.bus.memory import MemoryBus
from everturn.core.deltas import Frame
from everturn.core.events import Event
from everturn.stores.memory import MemoryStore
from everturn.telemetry.store_observer import observe_store
from everturn.telemetry.tracer import Tracer
from everturn.testing import call, calls, say, think
from tests.protocols.ui_server import Served, served

CANARIES = ("canary-in-reasoning", "canary-in-text", "canary-in-arguments")
SCRIPT: Sequence[Any] = (
    [
        think(f"Well. I know the {CANARIES[0]}. So I say it."),
        say(f"Listen. It is the {CANARIES[1]}. You see."),
        calls(call("look", path=f"{CANARIES[2]} {'x' * 60}")),  # in the first of the two pieces
    ],
    say("Done."),
)

USER = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
RUN: dict[str, Any] = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat completions": (
        "/v1/chat/completions",
        {"model": "assistant", "stream": True, "messages": [{"role": "user", "content": "go"}]},
    ),
    "responses": ("/v1/responses", {"model": "assistant", "stream": True, "input": "go"}),
    "ai sdk": ("/ai-sdk/chat", {"id": "c1", "messages": [USER], "trigger": "submit-message"}),
    "ag-ui": (
        "/ag-ui",
        {"threadId": "t1", "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": "go"}], **RUN},
    ),
    "a2a": (
        "/a2a/assistant",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendStreamingMessage",
            "params": {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "go"}]}},
        },
    ),
}


class Watch(logging.Handler):
    """Everything that leaves the turn: frames, appends, blobs, spans, logs, what other plugins and clients read."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.seen: dict[str, str] = {}
        self.early: set[tuple[str, str]] = set()  # (where, canary), before it had passed

    def see(self, where: str, value: object) -> None:
        self.seen[where] = self.seen.get(where, "") + str(value)

    def emit(self, record: logging.LogRecord) -> None:
        self.see("logs", self.format(record))

    def places_of(self, canary: str) -> set[str]:
        return {where for where, text in self.seen.items() if canary in text}

    async def may_reach_a_client(self, canary: str, seconds: float) -> None:
        """Give a byte that has left the time to arrive."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while "client" not in self.places_of(canary):  # noqa: ASYNC110 - a socket rings no bell here
                    await asyncio.sleep(0.005)

    # As an exporter, and as a plugin.
    def export(self, spans: Sequence[object]) -> None:
        self.see("spans", spans)

    def on_stream_chunk(self, ctx: Any, chunk: object, message: Any) -> None:
        self.see("another plugin", f"{chunk}{message.text}")

    def on_call_start(self, ctx: Any) -> None:
        self.see("another plugin", ctx.arguments)


class WatchedBus(MemoryBus):
    watch: Watch

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        self.watch.see("bus", frames)
        super().publish(turn, frames)


class WatchedStore(MemoryStore):
    watch: Watch

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        self.watch.see("log", events)
        return await super().append(session, after, events, epoch)

    async def put_blob(self, data: bytes) -> str:
        self.watch.see("blobs", data)
        return await super().put_blob(data)


def passing(watch: Watch, buffer: Any) -> Any:
    """A guardrail that takes its time, notes what was seen meanwhile, and then lets everything pass."""

    @output_guardrail(buffer=buffer)
    async def slow(ctx: Any, text: str) -> None:
        for canary in CANARIES:
            if canary in text:
                await watch.may_reach_a_client(canary, 5.0 if buffer == "none" and ctx.kind == "text" else 0.1)
                watch.early.update((where, canary) for where in watch.places_of(canary))

    return slow


async def read_all(server: Served, watch: Watch, path: str, body: dict[str, Any]) -> None:
    face = server.face()
    headers = {"authorization": f"Bearer {face.key}"}
    async with face.http.request("POST", face.address + path, json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        async for chunk in response.content.iter_any():
            watch.see("client", chunk.decode())


async def follow_page(server: Served, watch: Watch) -> None:
    """What the web page and the terminal read: the session's own stream."""
    face = server.face()
    headers = {"authorization": f"Bearer {face.key}"}
    async with face.http.post(face.address + "/api/sessions", json={"text": "go"}, headers=headers) as created:
        assert created.status == 201, await created.text()
        session = (await created.json())["session"]
    async with face.http.get(f"{face.address}/api/sessions/{session}/events", headers=headers) as response:
        assert response.status == 200, await response.text()
        async for chunk in response.content.iter_any():
            watch.see("client", chunk.decode())
            if "TurnCompleted" in watch.seen["client"]:
                return


async def watched(protocol: str, buffer: str) -> Watch:
    watch = Watch()
    bus, store, tracer = WatchedBus(), WatchedStore(), Tracer(watch, content=True)
    bus.watch = store.watch = watch
    plugins = [watch, passing(watch, buffer)]
    root = logging.getLogger()
    level = root.level
    root.addHandler(watch)
    root.setLevel(logging.DEBUG)
    try:
        async with served(*SCRIPT, bus=bus, store=observe_store(store, tracer), plugins=plugins) as server:
            assert isinstance(server.house.app, App)
            if protocol == "page":
                await follow_page(server, watch)
            else:
                await read_all(server, watch, *REQUESTS[protocol])
    finally:
        root.removeHandler(watch)
        root.setLevel(level)
    return watch


@pytest.mark.parametrize("buffer", ["step", "sentence"])
@pytest.mark.parametrize("protocol", [*REQUESTS, "page"])
async def test_not_one_byte_is_seen_before_it_has_passed(protocol: str, buffer: str) -> None:
    watch = await watched(protocol, buffer)
    assert watch.early == set()
    # It was looked for in the right places: what has passed is in all of them.
    assert watch.places_of(CANARIES[1]) >= {"bus", "log", "spans", "another plugin", "client"}
    assert watch.places_of(CANARIES[2]) >= {"bus", "log", "spans", "another plugin"}


async def test_without_a_buffer_it_is_seen_at_once() -> None:
    watch = await watched("ag-ui", "none")
    assert {where for where, canary in watch.early if canary == CANARIES[1]} >= {"bus", "another plugin", "client"}
    assert not {where for where, _ in watch.early} & {"log", "spans"}
