"""Tool client: a program that runs tools for a session. It claims a call, so that no other client runs it, and answers.

A browser, an editor or a device follows the same protocol.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from everturn.chat.session import Chat
from everturn.core.canonical_json import encode_canonical, parse_object, replace_surrogates, replace_surrogates_in
from everturn.core.gate_rows import MAX_LEASE
from everturn.core.gates import Gate
from everturn.errors import (
    AnswerUnfit,
    ClaimedOtherwise,
    ConfigError,
    EngineUnavailable,
    EverturnError,
    GateClosed,
    NotClaimed,
    StoreUnavailable,
    UnknownGate,
)

log = logging.getLogger(__name__)

ToolFunction = Callable[..., Any]
POLL_PAUSE = 0.2  # seconds between two polls
FIRST_REST, LONGEST_REST = 1.0, 60.0  # seconds before a retry; doubled each time


class ToolClient:
    """Runs the client tools of a session with Python functions, by name."""

    def __init__(self, chat: Chat, tools: Mapping[str, ToolFunction], *, name: str = "", lease: float = 0.0) -> None:
        if not tools:
            raise ConfigError('a client needs a dict of tools: ToolClient(chat, {"ring_bell": ring_bell})')
        if isinstance(lease, bool) or not isinstance(lease, int | float) or not 0 <= lease <= MAX_LEASE:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"lease={lease!r}: seconds for which a call is claimed, at most {MAX_LEASE:g}; it is renewed while the "
                "tool runs. 0 is what the tool says"
            )
        self._chat, self._tools, self._lease = chat, dict(tools), lease
        self.name = name or "client"
        # Two clients with the same name, such as two tabs, have separate claims.
        self._claims_as = f"{self.name}:{chat.app.ids.new('claim')}"
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._rests: dict[str, tuple[float, float]] = {}  # gate -> when to retry, and the delay

    async def serve(self) -> None:
        """Run calls until cancelled. Failures are logged and retried later."""
        delay = FIRST_REST
        try:
            while True:
                try:
                    await self.start_waiting_calls()
                except ConfigError:
                    raise
                except EverturnError as error:
                    log.warning("client %s cannot look for calls, next attempt in %g s: %s", self.name, delay, error)
                    await asyncio.sleep(delay)
                    delay = min(2 * delay, LONGEST_REST)
                else:
                    delay = FIRST_REST
                    await asyncio.sleep(POLL_PAUSE)
        finally:
            for task in self._under_way.values():
                task.cancel()
            await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def start_waiting_calls(self) -> None:
        """Start the client calls that wait and do not run here yet."""
        gates, loop = await self._chat.gates(), asyncio.get_running_loop()
        open_ids = {gate.id for gate in gates}
        self._rests = {gate: rest for gate, rest in self._rests.items() if gate in open_ids}
        for gate in gates:
            is_resting = gate.id in self._rests and self._rests[gate.id][0] > self._chat.app.clock.now()
            if gate.kind == "client" and gate.tool in self._tools and gate.id not in self._under_way and not is_resting:
                task = loop.create_task(self._try(gate))
                self._under_way[gate.id] = task
                task.add_done_callback(lambda _, gate=gate: self._under_way.pop(gate.id, None))

    async def _try(self, gate: Gate) -> None:
        try:
            await self.run_call(gate)
        except Exception as error:
            _, last = self._rests.get(gate.id, (0.0, FIRST_REST / 2))
            delay = min(2 * last, LONGEST_REST)
            self._rests[gate.id] = (self._chat.app.clock.now() + delay, delay)
            text = "client %s could not do %s (%s), and tries again in %g s: %s: %s"
            log.warning(text, self.name, gate.tool, gate.id, delay, type(error).__name__, error)

    async def run_call(self, gate: Gate) -> None:
        """Claim a call, run it and answer. A call that another client has claimed is skipped.

        Raises:
            AnswerUnfit: the claim is invalid.
            StoreUnavailable: the store does not answer. `serve` logs both.
        """
        try:
            await self._chat.claim(gate, self._claims_as, self._lease or gate.lease)
        except (ClaimedOtherwise, GateClosed, UnknownGate):
            return
        renewing = asyncio.get_running_loop().create_task(self._renew(gate))
        try:
            result, failed = await self._run(gate)
            with suppress(
                GateClosed, UnknownGate, NotClaimed, EngineUnavailable
            ):  # the gate is closed, or the answer is durable
                await self._answer(gate, result, failed)
        finally:
            renewing.cancel()

    async def _answer(self, gate: Gate, result: str, failed: bool) -> None:
        delay = FIRST_REST
        while True:  # the call has run, and must not run again because the answer could not be stored
            try:
                return await self._submit(gate, result, failed)
            except StoreUnavailable as error:
                log.warning(
                    "the result of %s (%s) could not be sent, next attempt in %g s: %s",
                    gate.tool,
                    gate.id,
                    delay,
                    error,
                )
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_REST)

    async def _submit(self, gate: Gate, result: str, failed: bool) -> None:
        try:
            await self._chat.answer(gate, result=result, failed=failed, claim=self._claims_as, by=self.name)
        except AnswerUnfit as error:
            await self._chat.answer(
                gate, result=replace_surrogates(str(error)), failed=True, claim=self._claims_as, by=self.name
            )

    async def _run(self, gate: Gate) -> tuple[str, bool]:
        arguments = parse_object(gate.arguments) or {}
        try:
            function = self._tools[gate.tool]
            if inspect.iscoroutinefunction(function):
                value = await function(**arguments)
            else:
                value = await asyncio.to_thread(function, **arguments)
            return (
                encode_canonical(replace_surrogates_in(value))
                if gate.form or not isinstance(value, str)
                else replace_surrogates(value)
            ), False
        except Exception as error:
            log.info("the client tool %s failed", gate.tool, exc_info=error)
            return replace_surrogates(f"{type(error).__name__}: {error}"), True

    async def _renew(self, gate: Gate) -> None:
        """Renew the claim while the tool runs."""
        while True:
            await asyncio.sleep((self._lease or gate.lease) / 3)
            try:
                await self._chat.claim(gate, self._claims_as, self._lease or gate.lease)
            except StoreUnavailable as error:
                log.warning("the claim of %s was not renewed, next attempt soon: %s", gate.id, error)
            except EverturnError as error:
                log.info("the claim of %s is not renewed: %s", gate.id, error)
                return
