"""A client that runs tools for a session: it claims a call, does it, and answers; nobody else does it meanwhile.

This is the contract that a page, an editor or a device keeps, as a headless program.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from everturn.chat.session import Chat
from everturn.core.asking import Gate
from everturn.core.canonical import canonical, clean, clean_all, parse_object
from everturn.core.gates import LONGEST_LEASE
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

Handler = Callable[..., Any]
PAUSE = 0.2  # seconds between two looks, should a signal be lost
FIRST_REST, LONGEST_REST = 1.0, 60.0  # seconds until what went wrong is tried again; twice as long each time


class Client:
    """Runs tools of a session by their names, with what a function returns as the result."""

    def __init__(self, chat: Chat, tools: Mapping[str, Handler], *, name: str = "", lease: float = 0.0) -> None:
        if not tools:
            raise ConfigError('a client runs tools: Client(chat, {"ring_bell": ring_bell})')
        if isinstance(lease, bool) or not isinstance(lease, int | float) or not 0 <= lease <= LONGEST_LEASE:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"lease={lease!r}: seconds for which a call is claimed, at most {LONGEST_LEASE:g}; it is renewed while the "
                "tool runs. 0 is what the tool says"
            )
        self._chat, self._tools, self._lease = chat, dict(tools), lease
        self.name = name or "client"
        # Two of one name, such as two tabs, are two: what one of them has claimed is not the other's.
        self._claims_as = f"{self.name}:{chat.runtime.ids.new('claim')}"
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._rests: dict[str, tuple[float, float]] = {}  # by gate: until when, and for how long

    async def serve(self) -> None:
        """Do what there is to do, until this is cancelled. What cannot be done is logged, and tried again later."""
        rest = FIRST_REST
        try:
            while True:
                try:
                    await self.look()
                except ConfigError:
                    raise
                except EverturnError as error:
                    log.warning("client %s cannot look for calls, and does again in %g s: %s", self.name, rest, error)
                    await asyncio.sleep(rest)
                    rest = min(2 * rest, LONGEST_REST)
                else:
                    rest = FIRST_REST
                    await asyncio.sleep(PAUSE)
        finally:
            for task in self._under_way.values():
                task.cancel()
            await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def look(self) -> None:
        """Begin what waits for a client and is not under way here."""
        gates, loop = await self._chat.gates(), asyncio.get_running_loop()
        open_still = {gate.id for gate in gates}
        self._rests = {gate: rest for gate, rest in self._rests.items() if gate in open_still}
        for gate in gates:
            is_resting = gate.id in self._rests and self._rests[gate.id][0] > self._chat.runtime.clock.now()
            if gate.kind == "client" and gate.tool in self._tools and gate.id not in self._under_way and not is_resting:
                task = loop.create_task(self._try(gate))
                self._under_way[gate.id] = task
                task.add_done_callback(lambda _, gate=gate: self._under_way.pop(gate.id, None))

    async def _try(self, gate: Gate) -> None:
        try:
            await self.do(gate)
        except Exception as error:
            _, last = self._rests.get(gate.id, (0.0, FIRST_REST / 2))
            rest = min(2 * last, LONGEST_REST)
            self._rests[gate.id] = (self._chat.runtime.clock.now() + rest, rest)
            text = "client %s could not do %s (%s), and tries again in %g s: %s: %s"
            log.warning(text, self.name, gate.tool, gate.id, rest, type(error).__name__, error)

    async def do(self, gate: Gate) -> None:
        """Claim a call, do it and answer. A call that another client has is not done.

        Raises:
            AnswerUnfit: it cannot be claimed so; StoreUnavailable: nor now. `serve` logs these.
        """
        try:
            await self._chat.claim(gate, self._claims_as, self._lease or gate.lease)
        except (ClaimedOtherwise, GateClosed, UnknownGate):
            return
        renewing = asyncio.get_running_loop().create_task(self._renew(gate))
        try:
            result, failed = await self._run(gate)
            with suppress(GateClosed, UnknownGate, NotClaimed, EngineUnavailable):  # nobody waits for it; or it is safe
                await self._answer(gate, result, failed)
        finally:
            renewing.cancel()

    async def _answer(self, gate: Gate, result: str, failed: bool) -> None:
        rest = FIRST_REST
        while True:  # it is done, and not to be done again because nobody could be told
            try:
                return await self._told(gate, result, failed)
            except StoreUnavailable as error:
                log.warning("what %s (%s) came to is told again in %g s: %s", gate.tool, gate.id, rest, error)
            await asyncio.sleep(rest)
            rest = min(2 * rest, LONGEST_REST)

    async def _told(self, gate: Gate, result: str, failed: bool) -> None:
        try:
            await self._chat.answer(gate, result=result, failed=failed, claim=self._claims_as, by=self.name)
        except AnswerUnfit as error:
            await self._chat.answer(gate, result=clean(str(error)), failed=True, claim=self._claims_as, by=self.name)

    async def _run(self, gate: Gate) -> tuple[str, bool]:
        arguments = parse_object(gate.arguments) or {}
        try:
            function = self._tools[gate.tool]
            if inspect.iscoroutinefunction(function):
                value = await function(**arguments)
            else:
                value = await asyncio.to_thread(function, **arguments)
            return (canonical(clean_all(value)) if gate.form or not isinstance(value, str) else clean(value)), False
        except Exception as error:
            log.info("the client tool %s failed", gate.tool, exc_info=error)
            return clean(f"{type(error).__name__}: {error}"), True

    async def _renew(self, gate: Gate) -> None:
        """Keep the claim for as long as the tool runs."""
        while True:
            await asyncio.sleep((self._lease or gate.lease) / 3)
            try:
                await self._chat.claim(gate, self._claims_as, self._lease or gate.lease)
            except StoreUnavailable as error:
                log.warning("the claim of %s could not be renewed yet: %s", gate.id, error)
            except EverturnError as error:
                log.info("the claim of %s is not renewed: %s", gate.id, error)
                return
