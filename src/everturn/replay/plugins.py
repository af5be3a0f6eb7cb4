"""Recorded plugins: each writes the events it wrote in the recording, once the events before them have happened again.

They do not write what people, clients, models and time did: they wait for it, as in the recording.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    CallStarted,
    Entry,
    Event,
    FilesChanged,
    FilesReverted,
    HookFinished,
    LimitReached,
    MessageAdded,
    RevertStarted,
    StepFinished,
    StepInterrupted,
    TurnFinishing,
)
from everturn.core.hooks import SUSPEND, AppendContext, RequestContext, RevertContext, StepContext, Suspend, TurnContext
from everturn.core.messages import Message
from everturn.core.options import Budget, Spent
from everturn.core.parts import ToolPart, Usage
from everturn.core.requests import ToolSpec
from everturn.core.store_ports import SessionInfo
from everturn.replay.model import MEMO, RecordedFileBytes
from everturn.replay.script import ReplayScript, find_writer
from everturn.running.drive_setup import TurnSettings
from everturn.running.hook_contexts import HookContext, RequestHookContext, StepHookContext
from everturn.running.tool_tasks import ToolOutcome
from everturn.stores.memory import MemoryStore
from everturn.testing.doubles import FakeClock
from everturn.turn.finalize import ENDED_TOOL_STOPPED, STILL_RUNS

PLENTY: Final = 10**9
NEVER: Final = 1e9  # seconds: no timeout for a recorded model
_LIMIT = re.compile(r"the limit of ([\d.,e+]+) (US dollars|\w+) for")


class RecordedClock(FakeClock):
    """Clock that shows the recorded time."""

    def advance_to(self, at: float) -> None:
        """Advance to a recorded time."""
        self.advance(max(at - self.now(), 0.0))


class RecordedSpec(ToolSpec, frozen=True, kw_only=True):
    """A tool of which only the name and the identity are known."""

    known_as: str = ""

    @property
    def identity(self) -> str:
        """The recorded identity."""
        return self.known_as


class RecordedStore(MemoryStore):
    """Store that reports what is written, and answers questions about spending as the recording implies."""

    def __init__(self, session: str, script: ReplayScript, watch: Callable[[Event], None] | None = None) -> None:
        super().__init__()
        self._name, self._script, self._watch = session, script, watch
        self._limits = [event for event in script.events if isinstance(event, LimitReached)]
        # Logs of the parent sessions of a sub-agent, as they were at its start.
        self.parent_logs: Mapping[str, Sequence[Event]] = {}

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Append events, and report them."""
        head = await super().append(session, after, events, epoch)
        if session == self._name:
            if self._watch is not None:
                for event in events:
                    self._watch(event)
            self._script.note_written(events)
        return head

    async def info(self, session: str) -> SessionInfo:
        """Return a session; of a parent session only its existence matters."""
        return SessionInfo(session) if session in self.parent_logs else await super().info(session)

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        """Return the log of the session, or of a parent session."""
        if session not in self.parent_logs:
            return await super().events(session, after, turn)
        entries = [Entry(seq, event) for seq, event in enumerate(self.parent_logs[session], 1)]
        return [entry for entry in entries if turn is None or getattr(entry.event, "turn", "") == turn]

    async def put_blob(self, data: bytes) -> str:
        """Store bytes; a file that a model made keeps its recorded name."""
        return data.blob if isinstance(data, RecordedFileBytes) else await super().put_blob(data)

    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """Return nothing; or too much, if the next recorded event is that this limit is reached."""
        scope = "session" if session else "parent" if top else "tenant"
        for limit in self._limits:
            if limit.scope == scope and self._script.next_event(limit.turn) is limit:
                usage = {"tokens": Usage(input=PLENTY), "cost": Usage(cost=float(PLENTY))}.get(limit.limit, Usage())
                steps, calls = (PLENTY if limit.limit == name else 0 for name in ("steps", "calls"))
                return Spent(steps, calls, usage)
        return Spent()


class RecordedPlugin:
    """A plugin that wrote events after steps."""

    def __init__(self, name: str, script: ReplayScript, clock: RecordedClock) -> None:
        self.name, self._script, self._clock = name, script, clock
        ending: set[str] = set()
        self._outliving_calls: set[str] = set()  # calls whose tools still ran at the end of their turn
        for event in script.events:
            if isinstance(event, TurnFinishing):
                ending.add(event.turn)
            elif isinstance(event, CallFinished):
                is_held = event.turn in ending and event.output.text in (STILL_RUNS, ENDED_TOOL_STOPPED)
                self._outliving_calls |= {event.call} if is_held or event.still_running else set()

    async def on_after_request(self, ctx: StepContext) -> Suspend | None:
        """Write the recorded events of this plugin, up to its last one for this step."""
        assert isinstance(ctx, StepHookContext)
        script, turn = self._script, ctx.turn
        while True:
            strokes, event = script.notifier.count, script.next_event(turn)
            if isinstance(event, HookFinished) and event.plugin == self.name:
                ctx.deferred.extend(event.deferred)
                self._advance_past(event)
                return None
            if event is not None and find_writer(event) == self.name:
                await self._write(ctx, event)
                continue
            if event is not None and script.was_suspended_before(event):
                return SUSPEND
            await script.notifier.wait_beyond(strokes)

    async def _write(self, ctx: StepHookContext, event: Event) -> None:
        self._clock.advance_to(event.at)
        await ctx.record(replace(event, at=self._clock.now()))
        if (
            isinstance(event, CallStarted)
            and event.call in self._outliving_calls
            and event.call not in ctx.running_calls()
        ):
            ctx.spawn(event.call, _never())

    def _advance_past(self, event: HookFinished) -> None:
        """Advance the clock if a time limit follows: it is checked before the next request."""
        self._clock.advance_to(event.at)
        events = self._script.events
        next_position = next((at for at, item in enumerate(events) if item is event), len(events)) + 1
        following = next((item for item in events[next_position:] if getattr(item, "turn", "") == event.turn), None)
        if isinstance(following, LimitReached):
            self._clock.advance_to(following.at)


class RecordedHooks:
    """The other recorded effects of plugins: offered tools, changed messages, file events."""

    name = "replay"

    def __init__(self, script: ReplayScript, clock: RecordedClock) -> None:
        self._script, self._clock = script, clock
        self._offers: dict[tuple[str, int], list[RecordedSpec]] = {}
        self._messages: dict[str, Message] = {}
        for event in script.events:
            if isinstance(event, StepFinished | StepInterrupted):
                self._offers[event.turn, event.step] = list_offered_tools(event)
            elif isinstance(event, AnswerStarted | MessageAdded):
                self._messages[event.message.id] = event.message

    async def on_before_request(self, ctx: RequestContext) -> None:
        """Offer the tools that were called, and tell the model its step."""
        assert isinstance(ctx, RequestHookContext)
        await self._write(ctx)
        ctx.body.tools = [*self._offers.get((ctx.turn, ctx.step), ())]
        ctx.body.memo[MEMO] = (ctx.turn, ctx.step)

    def on_message_append(self, ctx: AppendContext) -> None:
        """Replace a message by its recorded version, as plugins changed it."""
        ctx.message = self._messages.get(ctx.message.id, ctx.message)

    async def on_turn_end(self, ctx: TurnContext) -> None:
        """Write the recorded file events at the end of the turn."""
        await self._write(ctx)

    async def on_error(self, ctx: TurnContext, error: object) -> None:
        """Write them when the turn failed, too."""
        await self._write(ctx)

    def on_revert(self, ctx: RevertContext) -> None:
        """Report the recorded result of a revert."""
        for event in self._script.events:
            if isinstance(event, RevertStarted | FilesReverted) and (event.root, event.after) == (ctx.root, ctx.tree):
                ctx.is_done, ctx.before = bool(ctx.before), ctx.before or event.before
                return

    async def _write(self, ctx: TurnContext) -> None:
        assert isinstance(ctx, HookContext)
        await ctx.run.commit([])
        while isinstance(event := self._script.next_event(ctx.turn), FilesChanged) and not event.call:
            self._clock.advance_to(event.at)
            await ctx.run.commit([replace(event, at=self._clock.now())])


def list_offered_tools(event: StepFinished | StepInterrupted) -> list[RecordedSpec]:
    """Return the tools that a step must have been offered."""
    identities = {part.name: part.identity for part in event.parts if isinstance(part, ToolPart) and part.identity}
    return [RecordedSpec(name, "", {}, known_as=identity) for name, identity in identities.items()]


def derive_settings(events: Iterable[Event]) -> TurnSettings:
    """Return settings with the budgets whose limits were reached, if no turn had them itself."""
    budgets = {"session": Budget(), "tenant": Budget()}
    for event in events:
        if isinstance(event, LimitReached) and event.scope in budgets and (match := _LIMIT.match(event.text)):
            number = float(match[1].replace(",", ""))
            value = number if event.limit == "cost" else int(number)
            budgets[event.scope] = replace(budgets[event.scope], **{event.limit: value})
    return TurnSettings(
        first_chunk_timeout=NEVER,
        idle_timeout=NEVER,
        step_timeout=NEVER,
        session_budget=budgets["session"],
        tenant_budget=budgets["tenant"],
    )


async def _never() -> ToolOutcome:
    return await asyncio.get_running_loop().create_future()
