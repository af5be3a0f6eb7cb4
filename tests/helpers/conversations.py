"""Conversations on one store, in one process after another, and a person who answers what is asked in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from everturn import Chat, RunResult, Turn, TurnOptions
from everturn.app import App
from everturn.calls.output import OutputLimits
from everturn.core.chunks import Chunk, FinishChunk, UsageChunk
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Event,
    PermissionDecided,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
)
from everturn.core.gates import Gate
from everturn.core.parts import NoticePart, TextPart, Usage
from everturn.core.ports import Model, Tool
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.errors import AnsweredOtherwise, GateClosed, UnknownSession
from everturn.running.drive_setup import TurnSettings
from everturn.testing import CountingIds, FakeClock, MemoryStore, ScriptedModel

Reply = Callable[[Gate], dict[str, Any] | None]
SOON = 10_000  # looks, a millisecond apart


def once(gate: Gate) -> dict[str, Any]:
    """Somebody who allows whatever is asked."""
    return {"allow": "once"}


def never(gate: Gate) -> dict[str, Any]:
    """Somebody who denies it."""
    return {"deny": "no"}


def prompt_of(request: ModelRequest) -> str:
    """What the person said first."""
    return next(part.text for part in request.messages[0].parts if isinstance(part, TextPart))


def notice_of(request: ModelRequest) -> str:
    """What the runtime says at the end of a request, if it does."""
    return next((part.text for part in request.messages[-1].parts if isinstance(part, NoticePart)), "")


def costs(usd: float | None = None, tokens: int = 0) -> list[Sequence[Chunk]]:
    """A piece of a script, in front of calls or of an end: what the provider counted."""
    return [[UsageChunk(Usage(input=tokens, cost=usd))]]


def end() -> list[Sequence[Chunk]]:
    """A piece of a script: its end, where the counting is not left to the script."""
    return [[FinishChunk("stop")]]


class Scenes:
    """A model with a script for each first message, so that a turn and its sub-agent runs can say different things."""

    name = "scenes"

    def __init__(self, **scripts: Iterable[Any]) -> None:
        self._models = {prompt: ScriptedModel(*script) for prompt, script in scripts.items()}
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Answer as the script of this conversation has it."""
        self.requests.append(request)
        async for batch in self._models[prompt_of(request)].stream(request):
            yield batch


class Talk:
    """A session, and what every process that drives it is made of."""

    def __init__(
        self,
        *tools: Tool,
        store: Store | None = None,
        rules: Iterable[Rule] = (),
        settings: TurnSettings | None = None,
        limits: OutputLimits | None = None,
        **options: Any,
    ) -> None:
        self.store, self.clock = store or MemoryStore(), FakeClock()
        self.tools, self.rules, self.settings, self.limits = tools, list(rules), settings, limits
        self.options: dict[str, Any] = {"max_steps": 40, **options}
        self.asked: list[Gate] = []  # all that anybody was asked
        self.requests: list[ModelRequest] = []
        self.session = "s"
        self._processes = 0

    @asynccontextmanager
    async def process(
        self, *script: Any, model: Model | None = None, store: Store | None = None
    ) -> AsyncGenerator[Chat]:
        """A process of its own on the store."""
        self._processes += 1
        chosen: Any = model or ScriptedModel(*script)
        app = App(
            chosen,
            tools=self.tools,
            store=store or self.store,
            clock=self.clock,
            ids=CountingIds(f"{self.session}{self._processes}x"),
            settings=self.settings,
            limits=self.limits,
            rules=self.rules,
        )
        async with Chat(chosen, app=app, session=self.session, options=TurnOptions(**self.options)) as chat:
            try:
                yield chat
            finally:
                self.requests += getattr(chosen, "requests", [])

    async def tell(self, *script: Any, reply: Reply = never, model: Model | None = None, text: str = "go") -> RunResult:
        """One turn in one process, with somebody who answers."""
        async with self.process(*script, model=model) as chat:
            return await self.play(chat, await chat.send(text), reply)

    async def play(self, chat: Chat, turn: Turn, reply: Reply = never) -> RunResult:
        """Answer what is asked in a turn and below it, until it is over. Who says None to a gate lets it wait."""
        for _ in range(SOON):
            gates = await self.look(chat)
            for gate in gates:
                if (answer := reply(gate)) is not None:
                    with suppress(AnsweredOtherwise, GateClosed):  # by what was said to another
                        await chat.answer(gate, **answer)
            if not gates and await self.is_over(turn):
                return await turn
            await asyncio.sleep(0.001 if not gates else 0)
        raise AssertionError("it did not end")

    async def is_over(self, turn: Turn) -> bool:
        """Whether a turn has ended."""
        log = await self.store.events(turn.session, turn=turn.id)
        return any(isinstance(entry.event, TurnCompleted | TurnFailed | TurnCancelled) for entry in log)

    async def look(self, chat: Chat) -> list[Gate]:
        """What is asked and nobody has looked at yet."""
        known = {gate.id for gate in self.asked}
        fresh = [gate for gate in await chat.gates() if gate.id not in known]
        self.asked += fresh
        return fresh

    async def waiting(self, chat: Chat, count: int = 1) -> list[Gate]:
        """The gates, once so many stand open."""
        for _ in range(SOON):
            if len(gates := await chat.gates()) >= count:
                return gates
            await asyncio.sleep(0.001)
        raise AssertionError(f"nobody was asked {count} times")

    async def until(self, kind: type[Any], session: str = "", count: int = 1) -> Any:
        """The last of some events, once it is there."""
        for _ in range(SOON):
            with suppress(UnknownSession):  # a sub-agent run is told of before it begins
                if len(found := await self.events(kind, session=session)) >= count:
                    return found[-1]
            await asyncio.sleep(0.001)
        raise AssertionError(f"there was no {kind.__name__}")

    async def events(self, *kinds: type[Any], session: str = "") -> list[Any]:
        """What has happened, of some kinds: here or in another session."""
        log = await self.store.events(session or self.session)
        return [entry.event for entry in log if not kinds or isinstance(entry.event, kinds)]

    async def sessions(self) -> list[str]:
        """All sessions, those of sub-agent runs included."""
        return [info.id for info in await self.store.sessions()]

    async def started(self) -> list[str]:
        """The arguments of everything that was started, anywhere."""
        return [e.arguments for name in await self.sessions() for e in await self.events(CallStarted, session=name)]

    async def settled(self, session: str = "") -> list[CallFinished]:
        """What the calls came to."""
        return await self.events(CallFinished, session=session)

    async def check(self) -> int:
        """Every start was judged directly before it; returns how many there were."""
        found = 0
        for name in await self.sessions():
            found += check_judged(await self.events(session=name))
        return found


def check_judged(log: Sequence[Event]) -> int:
    """Directly before every start stands its one judgement, for the same bytes."""
    judged = [event for event in log if isinstance(event, PermissionDecided)]
    assert len({event.call for event in judged}) == len(judged), "a call was judged twice"
    starts = 0
    for before, event in zip([None, *log], log, strict=False):
        if isinstance(event, CallStarted):
            starts += 1
            assert isinstance(before, PermissionDecided), f"{event.call} was started after {type(before).__name__}"
            assert (before.call, before.tool, before.hash) == (event.call, event.tool, event.hash)
            assert before.allowed
            assert len(before.hash) == 64
    assert starts == sum(event.allowed for event in judged), "something was allowed and not started"
    return starts
