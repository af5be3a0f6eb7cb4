"""JSON-RPC 2.0 over lines: requests, notifications and responses in both directions.

What the other side sends is untrusted: a line that is not JSON, an unknown method, wrong parameters and a response to
nothing are answered or dropped, and never end the connection. A method runs in a task of its own, so a prompt that
takes an hour does not hold up its cancellation.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, cast

from msgspec import Struct

from everturn.errors import EverturnError, UnknownSession

log = logging.getLogger(__name__)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
NOT_FOUND: Final = -32002  # of ACP: there is no such session
JsonObject = dict[str, Any]
Method = Callable[[JsonObject], Awaitable[Any]]
WriteLine = Callable[[bytes], Awaitable[None]]


class RpcError(Exception):
    """An error that is sent as the response to a request."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def encode(self) -> JsonObject:
        """The `error` of a response."""
        error: JsonObject = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class Reply(Struct, frozen=True):
    """A result, and what is to be done after it was sent."""

    result: JsonObject
    after: Callable[[], Coroutine[Any, Any, None]]


class RpcConnection:
    """One peer: `methods` are what it may call here; a method without a response is a notification."""

    def __init__(self, write: WriteLine, methods: dict[str, Method]) -> None:
        self._write, self._methods = write, methods
        self._requests: dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()

    async def serve(self, lines: AsyncIterator[bytes]) -> None:
        """Handle the lines of the peer until it closes the connection."""
        try:
            async for line in lines:
                if line.strip():
                    await self._receive(line)
        finally:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for request in self._requests.values():
                request.cancel()

    async def request(self, method: str, params: JsonObject) -> Any:
        """Call a method of the peer, and return its result.

        Raises:
            RpcError: the peer answered with an error.
        """
        self._last_id += 1
        number, answer = self._last_id, asyncio.get_running_loop().create_future()
        self._requests[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await answer
        finally:
            self._requests.pop(number, None)

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification to the peer."""
        await self._send({"method": method, "params": params})

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something until it ends or the connection does."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)
        return task

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the connection failed", exc_info=error)

    async def _receive(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            await self._respond(None, RpcError(PARSE_ERROR, "this line is not JSON"))
            return
        if not isinstance(message, dict):
            await self._respond(None, RpcError(INVALID_REQUEST, "a message must be one JSON object on one line"))
            return
        request = cast("JsonObject", message)
        number, method, params = request.get("id"), request.get("method"), request.get("params", {})
        if method is None and ("result" in request or "error" in request):
            self._settle(number, request)
            return
        is_request = "id" in request
        if isinstance(number, bool) or not isinstance(number, str | int | float | None):
            await self._respond(None, RpcError(INVALID_REQUEST, "id must be a number, a string or null"))
        elif not isinstance(method, str) or request.get("jsonrpc", "2.0") != "2.0":
            await self._respond(number, RpcError(INVALID_REQUEST, 'a request needs "jsonrpc": "2.0" and a method'))
        elif method not in self._methods:
            if is_request:
                await self._respond(number, RpcError(METHOD_NOT_FOUND, f"there is no method {method[:200]!r}"))
        elif not isinstance(params, dict):
            if is_request:
                await self._respond(number, RpcError(INVALID_PARAMS, "params must be an object"))
        else:
            self.start(self._call(method, cast("JsonObject", params), number, is_request))

    async def _call(self, method: str, params: JsonObject, number: Any, is_request: bool) -> None:
        try:
            result: Any = await self._methods[method](params)
        except Exception as error:
            if not isinstance(error, RpcError | EverturnError):
                log.exception("%s failed", method)
            if is_request:
                await self._respond(number, as_rpc_error(error))
            return
        after = None
        if isinstance(result, Reply):
            result, after = result.result, result.after
        if is_request:
            await self._respond(number, result)
        if after is not None:
            self.start(after())

    def _settle(self, number: Any, response: JsonObject) -> None:
        waiting = self._requests.get(number) if isinstance(number, int) else None
        if waiting is None or waiting.done():
            return  # nothing was asked under this id, or it was answered before
        error = response.get("error")
        if error is not None:
            text = cast("JsonObject", error).get("message") if isinstance(error, dict) else error
            waiting.set_exception(RpcError(INTERNAL_ERROR, str(text)))
        else:
            waiting.set_result(response.get("result"))

    async def _respond(self, number: Any, result: Any) -> None:
        answer = {"error": result.encode()} if isinstance(result, RpcError) else {"result": result}
        await self._send({"id": number, **answer})

    async def _send(self, message: JsonObject) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
        async with self._writing:
            await self._write(line)


def as_rpc_error(error: Exception) -> RpcError:
    """The error of a response for an exception: errors of ours with their text, others without details."""
    if isinstance(error, RpcError):
        return error
    if isinstance(error, UnknownSession):
        return RpcError(NOT_FOUND, str(error))
    if isinstance(error, EverturnError):
        return RpcError(INTERNAL_ERROR, str(error), {"kind": type(error).__name__})
    return RpcError(INTERNAL_ERROR, f"internal error ({type(error).__name__}); see stderr for details")
