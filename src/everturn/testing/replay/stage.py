"""The plugins of a recorded turn, played: each writes what it wrote, when what came before it has happened again.

What people, clients, models and time did is not theirs to write: they wait for it, as they did then.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from everturn.core.events import (
    AnswerOpened,
    CallSettled,
    CallStarted,
    Event,
    FilesChanged,
    FilesReverted,
    HookFinished,
    LimitReached,
    MessageAdded,
    RevertStarted,
    StepFinished,
    StepInterrupted,
    TurnEnding,
)
from everturn.core.hooks import PENDING, AppendContext, Pending, RequestContext, RevertContext, StepContext, TurnContext
from everturn.core.messages import Message
from everturn.core.options import Budget, Spent
from everturn.core.parts import ToolPart, Usage
from everturn.core.ports import Entry, SessionInfo
from everturn.core.requests import ToolSpec
from everturn.stores.memory import MemoryStore
from everturn.testing.doubles import FakeClock
from everturn.testing.replay.model import MEMO, Unread
from everturn.testing.replay.script import Script, owner_of
from everturn.turn.contexts import Context, OneRequest, OneStep
from everturn.turn.finalize import STILL_RUNS, STOPPED
from everturn.turn.run import Settings
from everturn.turn.supervisor import Settlement

PLENTY: Final = 10**9
NEVER: Final = 1e9  # seconds: no model of a recording is too slow
_LIMIT = re.compile(r"the limit of ([\d.,e+]+) (US dollars|\w+) for")


class RecordedClock(FakeClock):
    """The time that it was."""

    def reach(self, at: float) -> None:
        """Let it be as late as it was then."""
        self.advance(max(at - self.now(), 0.0))


class RecordedSpec(ToolSpec, frozen=True, kw_only=True):
    """A tool of which nothing is known but its name, and what it was known by."""

    known_as: str = ""

    @property
    def identity(self) -> str:
        """What it was known by."""
        return self.known_as


class RecordedStore(MemoryStore):
    """A store that tells what is written, and knows of other people's spending what the recording tells of it."""

    def __init__(self, session: str, script: Script, watch: Callable[[Event], None] | None = None) -> None:
        super().__init__()
        self._name, self._script, self._watch = session, script, watch
        self._limits = [event for event in script.events if isinstance(event, LimitReached)]
        self.above: Mapping[str, Sequence[Event]] = {}  # the sessions above a sub-turn, as they were when it began

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write, and say so."""
        head = await super().append(session, after, events, epoch)
        if session == self._name:
            if self._watch is not None:
                for event in events:
                    self._watch(event)
            self._script.hear(events)
        return head

    async def info(self, session: str) -> SessionInfo:
        """A session; one above this is there, and that is all that is asked of it."""
        return SessionInfo(session) if session in self.above else await super().info(session)

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        """The log of a session, or of one above it."""
        if session not in self.above:
            return await super().events(session, after, turn)
        entries = [Entry(seq, event) for seq, event in enumerate(self.above[session], 1)]
        return [one for one in entries if turn is None or getattr(one.event, "turn", "") == turn]

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes; a file that a model made has the name that it had."""
        return data.blob if isinstance(data, Unread) else await super().put_blob(data)

    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """Nothing; or too much, when that is what comes next."""
        scope = "session" if session else "above" if top else "tenant"
        for limit in self._limits:
            if limit.scope == scope and self._script.next_of(limit.turn) is limit:
                much = {"tokens": Usage(input=PLENTY), "cost": Usage(cost=float(PLENTY))}.get(limit.limit, Usage())
                steps, calls = (PLENTY if limit.limit == name else 0 for name in ("steps", "calls"))
                return Spent(steps, calls, much)
        return Spent()


class Speaker:
    """A plugin that had a word behind steps."""

    def __init__(self, name: str, script: Script, clock: RecordedClock) -> None:
        self.name, self._script, self._clock = name, script, clock
        ending: set[str] = set()
        self._outlive: set[str] = set()  # calls whose tools ran when their turn was over, or on
        for event in script.events:
            if isinstance(event, TurnEnding):
                ending.add(event.turn)
            elif isinstance(event, CallSettled):
                is_held = event.turn in ending and event.output.text in (STILL_RUNS, STOPPED)
                self._outlive |= {event.call} if is_held or event.out else set()

    async def on_after_request(self, ctx: StepContext) -> Pending | None:
        """Write what was written, up to the plugin's last word on this step."""
        assert isinstance(ctx, OneStep)
        script, turn = self._script, ctx.turn
        while True:
            heard, event = script.bell.strokes, script.next_of(turn)
            if isinstance(event, HookFinished) and event.plugin == self.name:
                ctx.deferred.extend(event.deferred)
                self._pass(event)
                return None
            if event is not None and owner_of(event) == self.name:
                await self._write(ctx, event)
                continue
            if event is not None and script.rests_before(event):
                return PENDING
            await script.bell.after(heard)

    async def _write(self, ctx: OneStep, event: Event) -> None:
        self._clock.reach(event.at)
        await ctx.record(replace(event, at=self._clock.now()))
        if isinstance(event, CallStarted) and event.call in self._outlive and event.call not in ctx.running():
            ctx.spawn(event.call, _never())

    def _pass(self, event: HookFinished) -> None:
        """A limit of time is noticed before the next request: then it must be as late as it was."""
        self._clock.reach(event.at)
        events = self._script.events
        behind = next((at for at, one in enumerate(events) if one is event), len(events)) + 1
        after = next((one for one in events[behind:] if getattr(one, "turn", "") == event.turn), None)
        if isinstance(after, LimitReached):
            self._clock.reach(after.at)


class Prompter:
    """What else plugins did then: what they offered, changed and recorded."""

    name = "replay"

    def __init__(self, script: Script, clock: RecordedClock) -> None:
        self._script, self._clock = script, clock
        self._offers: dict[tuple[str, int], list[RecordedSpec]] = {}
        self._messages: dict[str, Message] = {}
        for event in script.events:
            if isinstance(event, StepFinished | StepInterrupted):
                self._offers[event.turn, event.step] = offered(event)
            elif isinstance(event, AnswerOpened | MessageAdded):
                self._messages[event.message.id] = event.message

    async def on_before_request(self, ctx: RequestContext) -> None:
        """Offer the tools that were called, and tell the model which step this is."""
        assert isinstance(ctx, OneRequest)
        await self._write(ctx)
        ctx.body.tools = [*self._offers.get((ctx.turn, ctx.step), ())]
        ctx.body.memo[MEMO] = (ctx.turn, ctx.step)

    def on_message_append(self, ctx: AppendContext) -> None:
        """Let a message be what plugins made of it."""
        ctx.message = self._messages.get(ctx.message.id, ctx.message)

    async def on_turn_end(self, ctx: TurnContext) -> None:
        """Write what was recorded of folders in the end."""
        await self._write(ctx)

    async def on_error(self, ctx: TurnContext, error: object) -> None:
        """The same, when it failed."""
        await self._write(ctx)

    def on_revert(self, ctx: RevertContext) -> None:
        """Say that files were what they were."""
        for event in self._script.events:
            if isinstance(event, RevertStarted | FilesReverted) and (event.root, event.after) == (ctx.root, ctx.tree):
                ctx.is_done, ctx.before = bool(ctx.before), ctx.before or event.before
                return

    async def _write(self, ctx: TurnContext) -> None:
        assert isinstance(ctx, Context)
        await ctx.run.commit([])
        while isinstance(event := self._script.next_of(ctx.turn), FilesChanged) and not event.call:
            self._clock.reach(event.at)
            await ctx.run.commit([replace(event, at=self._clock.now())])


def offered(event: StepFinished | StepInterrupted) -> list[RecordedSpec]:
    """The tools that a step shows to have been offered."""
    known = {part.name: part.identity for part in event.parts if isinstance(part, ToolPart) and part.identity}
    return [RecordedSpec(name, "", {}, known_as=identity) for name, identity in known.items()]


def settings_of(events: Iterable[Event]) -> Settings:
    """Settings under which limits were reached that no turn had of its own."""
    budgets = {"session": Budget(), "tenant": Budget()}
    for event in events:
        if isinstance(event, LimitReached) and event.scope in budgets and (found := _LIMIT.match(event.text)):
            number = float(found[1].replace(",", ""))
            value = number if event.limit == "cost" else int(number)
            budgets[event.scope] = replace(budgets[event.scope], **{event.limit: value})
    return Settings(
        first_chunk_timeout=NEVER,
        idle_timeout=NEVER,
        step_timeout=NEVER,
        session_budget=budgets["session"],
        tenant_budget=budgets["tenant"],
    )


async def _never() -> Settlement:
    return await asyncio.get_running_loop().create_future()
