"""A model that always wants more, and tools for it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

from everturn import ToolContext, tool
from everturn.core.chunks import Chunk
from everturn.core.options import Budget
from everturn.core.ports import SubagentRequest
from everturn.core.requests import ModelRequest
from everturn.running.drive_setup import TurnSettings
from everturn.testing import MortalStore, call, calls, say
from tests.helpers.conversations import Talk, costs, end, notice_of


class Endless:
    """A model that always wants more, and closes with what it was told; it counts what it was paid."""

    name = "endless"

    def __init__(self, usd: float = 0.0, tokens: int = 0, each: int = 1, pace: int = 3, name: str = "work") -> None:
        self._usd, self._tokens, self._each, self._pace, self._call = usd, tokens, each, pace, name
        self._number = itertools.count(1)
        self.requests: list[ModelRequest] = []
        self.flying = self.most = self.ordinary = self.closing = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        self.requests.append(request)
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            for _ in range(self._pace):
                await asyncio.sleep(0)
            yield costs(self._usd, self._tokens)[0]
            if request.tools:
                self.ordinary += 1
                batches = calls(*(call(self._call, number=next(self._number)) for _ in range(self._each)))
            else:
                self.closing += 1
                batches = [*say(f"I stopped. {notice_of(request)}"), *end()]
            for batch in batches:
                yield batch
        finally:
            self.flying -= 1

    @property
    def paid(self) -> float:
        return (self.ordinary + self.closing) * self._usd


@tool(read_only=True, repeatable=True)
async def work(number: int) -> str:
    return f"did {number}"


@tool(read_only=True, approval="always")
async def ask(number: int) -> str:
    return f"did {number}"


@tool(idempotent=True, repeatable=True)
async def delegate(number: int, ctx: ToolContext) -> str:
    return (await ctx.run_subagent(SubagentRequest(f"task {number}", tools=("work",), max_steps=1000))).text


def settings_of(where: str, budget: Budget) -> TurnSettings:
    """A budget of a session or a tenant; that of a turn stands in its options."""
    kinds = {"session": TurnSettings(session_budget=budget), "tenant": TurnSettings(tenant_budget=budget)}
    return kinds.get(where, TurnSettings())


async def mortal(talk: Talk, lives: int, before_next: bool, model: Any, prompts: Sequence[str] = ("go",)) -> bool:
    """A process that dies; whether it did."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    store = MortalStore(talk.store, lives, before_next=before_next)
    async with talk.process(model=model, store=store) as chat:
        died = asyncio.ensure_future(store.died.wait())

        async def play() -> None:
            for prompt in prompts:
                await (await chat.send(prompt, key=prompt))

        playing = asyncio.ensure_future(play())
        await asyncio.wait({playing, died}, return_when="FIRST_COMPLETED")
        is_dead = store.died.is_set()
        store.kill()
        playing.cancel()
        died.cancel()
        await asyncio.gather(playing, died, return_exceptions=True)
    return is_dead
