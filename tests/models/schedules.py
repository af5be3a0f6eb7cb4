"""Random schedules that try to make a history a vendor refuses.

A schedule is one session on a memory store and 4 to 12 operations: answers that break off at any byte, cancels, deaths,
forks, edits, files, other models and other ways to call in the middle of everything. The provider is as strict as the vendors are. After every
operation nothing may have been refused, every turn must be over, and the next plain message must be answered.

    python tests/models/schedules.py --count 2000 [--seed N] [--jobs 2] [--trace] [--write]

A seed makes the same schedule every time; what runs at once waits for events, never for time. Who is asked and what they
say is in `schedule_models.py`. With `--write`, the figures go to `benchmarks/results/model_histories.json`; a run of the same
commit whose seeds follow adds to them, so many schedules can be played in pieces.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn import Chat, EverturnError, Output, TextPart, ToolContext, Turn, tool
from everturn.app import App
from everturn.core.deltas import Delta
from everturn.core.events import CallStarted, Gate, GateOpened, TurnCompleted, TurnFailed, TurnSuspended
from everturn.core.hooks import RequestContext
from everturn.core.messages import Message
from everturn.core.parts import LATE_NOTICE_PREFIX, FilePart, NoticePart, Opaque, ReasoningPart, StepPart, ToolPart
from everturn.core.ports import Tool
from everturn.core.requests import RequestCall, RequestMessage, RequestResult, ToolSpec
from everturn.core.state import fold
from everturn.errors import UnknownSession
from everturn.testing import CountingIds, FakeClock, MemoryStore
from everturn.testing.provider import Item, Provider, Say
from everturn.testing.provider.media.png import draw_png
from everturn.testing.provider.media.sound import wav
from everturn.tools import provider_tool

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script, too

from tests.models.schedule_models import (
    ALL_GROUPS,
    CLOUDS,
    FILES,
    GROUPS,
    MADE,
    MAKERS,
    MARK,
    MEDIA,
    ODD_ARGUMENTS,
    ODD_NAMES,
    WAYS,
    Plan,
    all_models,
    answer,
    group_of,
)

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks/results/model_histories.json"
SESSION = "session_0"
SERVER_TOOLS = [provider_tool(name, approval="auto") for name in ("web_search", "code_execution")]
STUCK = 30.0  # seconds after which a schedule that does not go on is given up, and reported


# What plugins do to a request --------------------------------------------------------------------------------------


class Odd:
    """Puts odd things into requests, and takes good ones out."""

    name = "odd"

    def __init__(self, seed: int, note: Callable[[str], None]) -> None:
        self._seed, self._note, self._count = seed, note, 0

    def on_before_request(self, ctx: RequestContext) -> None:
        if "@" in ctx.body.model:
            return  # such a model works on one message, and has none to put in its place
        self._count += 1
        dice = random.Random(f"{self._seed}/{self._count}")
        if dice.random() < 0.4:
            for _ in range(dice.choice((1, 1, 2))):
                self._meddle(dice, ctx)

    def _meddle(self, dice: random.Random, ctx: RequestContext) -> None:
        messages, at = ctx.body.messages, dice.randint(0, len(ctx.body.messages))
        kind = dice.choice(("insert", "insert", "insert", "drop", "repeat", "swap", "system", "tools", "none"))
        self._note(f"plugin: {kind}")
        match kind:
            case "insert":
                messages.insert(at, dice.choice(_odd_messages(dice)))
            case "drop" if messages:
                del messages[at - 1]
            case "repeat" if messages:
                messages.insert(at, dice.choice(messages))
            case "swap" if len(messages) > 1:
                messages[at - 1], messages[at - 2] = messages[at - 2], messages[at - 1]
            case "system":
                ctx.body.system = dice.choice(("", " "))
            case "tools":
                ctx.body.tools = []
                ctx.body.provider_tools = []
            case "none":
                messages.clear()
            case _:
                pass


def _odd_messages(dice: random.Random) -> list[RequestMessage]:
    text, thought = TextPart("psst"), ReasoningPart("hm", Opaque("nobody:nothing", "{}"))
    arguments = dice.choice(ODD_ARGUMENTS) if dice.random() < 0.3 else "{}"
    call = RequestCall(dice.choice(("x-1", "x y", "x" * 90)), dice.choice(ODD_NAMES), arguments)
    result = RequestResult(call.call, "look", dice.choice(("", "found")), dice.random() < 0.5)
    return [
        RequestMessage("user", (text,)),
        RequestMessage("user", ()),
        RequestMessage("user", (TextPart(dice.choice(("", " "))),)),
        RequestMessage("user", (NoticePart("odd", ""), thought, call, result)),
        RequestMessage("user", (call,)),
        RequestMessage("assistant", (text,)),
        RequestMessage("assistant", ()),
        RequestMessage("assistant", (TextPart(" "),)),
        RequestMessage("assistant", (thought,)),
        RequestMessage("assistant", (thought, call, text)),
        RequestMessage("assistant", (call, call)),
        RequestMessage("assistant", (result, NoticePart("odd", "well"))),
        RequestMessage("assistant", (FilePart("gone", "image/png", 3, "a.png"),)),
        RequestMessage("tool", (result,)),
        RequestMessage("tool", ()),
        RequestMessage("tool", (text, result)),
    ]


# What tools do -----------------------------------------------------------------------------------------------------


@dataclass
class World:
    """What tools act on, of the schedule that is being played. A slow call that is not freed outlives its turn."""

    store: MemoryStore = field(default_factory=MemoryStore)
    free: asyncio.Event = field(default_factory=asyncio.Event)


class _Renamed:
    """A tool under a name that no vendor takes, such as one from another server may have."""

    def __init__(self, inner: Tool, name: str) -> None:
        self._inner = inner
        self.spec: ToolSpec = replace(inner.spec, name=name)
        self.validate, self.run = inner.validate, inner.run


def all_tools(world: World) -> dict[str, Tool]:
    """A tool of every kind."""

    @tool(read_only=True)
    async def look(path: str) -> str:
        return f"content of {path}"

    @tool(idempotent=True)
    async def put(path: str, text: str) -> str:
        return f"wrote {len(text)} to {path}"

    @tool()
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    @tool(approval="always")
    async def mail(to: str) -> str:
        return f"mailed {to}"

    @tool(read_only=True)
    async def linger(ctx: ToolContext) -> str:
        await world.free.wait()
        return "lingered"

    @tool(read_only=True)
    async def fall() -> str:
        raise ValueError("")

    @tool(idempotent=True)
    async def hush() -> str:
        return ""

    @tool(read_only=True)
    async def picture(ctx: ToolContext) -> Output:
        dice = random.Random(ctx.call)
        data, kind, name = dice.choice(FILES)
        blob = await world.store.put_blob(data) if dice.random() < 0.8 else "gone"
        return Output(dice.choice(("", "a picture")), attachments=(FilePart(blob, kind, len(data), name),))

    tools: list[Tool] = [look, put, pay, mail, linger, fall, hush, picture, _Renamed(hush, "files/read it")]
    return {tool.spec.name: tool for tool in tools}


# One schedule --------------------------------------------------------------------------------------------------------


class Finding(Struct, frozen=True):
    """Something that must not be, and where."""

    seed: int
    operation: str
    model: str
    what: str
    is_refusal: bool  # the provider's own; otherwise something else that must not be
    trace: tuple[str, ...]
    body: dict[str, Any] = {}


@dataclass
class Tally:
    """What was done, with whom, and what came of it."""

    schedules: int = 0
    requests: int = 0
    operations: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])  # by group of models
    ingredients: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    findings: list[Finding] = field(default_factory=list[Finding])

    def add(self, other: Tally) -> None:
        """Count in what another process did."""
        self.schedules, self.requests = self.schedules + other.schedules, self.requests + other.requests
        self.operations += other.operations
        self.ingredients += other.ingredients
        self.findings += other.findings


class Manners(Struct, frozen=True):
    """What the person does when an answer hangs, a slow tool runs, or a gate waits."""

    hanging: str = "soft"
    running: str = "release"
    waiting: str = "answer"


class Wrong(Exception):
    """The property does not hold."""


class Stage:
    """A provider, the models on it, and the schedule that is being played: one after the other."""

    def __init__(self, provider: Provider, groups: Sequence[str]) -> None:
        self.groups = groups
        self.provider, self.models = provider, all_models(provider.url)
        self.world = World()
        self.tools = all_tools(self.world)  # made once: to make one takes as long as a request
        self.schedule: Schedule | None = None
        for name in {*self.models, *MADE}:
            provider.script(name, [partial(self._answer, name)])

    def _answer(self, name: str, body: dict[str, Any]) -> list[Item]:
        return self.schedule.serve(name, body) if self.schedule is not None else [Say("Nobody is here.")]

    async def play(self, seed: int, tally: Tally) -> None:
        """Play the schedule of a seed, and keep what was found."""
        self.provider.reset()
        schedule = self.schedule = Schedule(seed, self, tally)
        problem = ""
        try:
            async with asyncio.timeout(STUCK):
                await schedule.play()
        except Wrong as wrong:
            problem = str(wrong)
        except TimeoutError:
            problem = "quarantined"
        finally:
            await schedule.close()
            self.schedule = None
        tally.schedules += 1
        if problem:
            body = next((seen.body for seen in self.provider.seen if seen.status == 400), {})
            is_refusal, trace = bool(self.provider.refusals), tuple(schedule.trace)
            tally.findings.append(Finding(seed, schedule.operation, schedule.model, problem, is_refusal, trace, body))


class Schedule:
    """One session, one person, and everything that can go wrong."""

    chat: Chat

    def __init__(self, seed: int, stage: Stage, tally: Tally) -> None:
        self._dice, self._stage, self._tally, self._seed = random.Random(seed), stage, tally, seed
        self._world, tools = stage.world, stage.tools
        self._store = self._world.store = MemoryStore()
        self._world.free = asyncio.Event()
        chosen = [name for name in ("linger", "mail") if self._dice.random() < 0.7]  # others can only be right or wrong
        chosen += self._dice.sample(sorted(set(tools) - set(chosen)), self._dice.randint(2, 4) - len(chosen))
        self._tools = [tools[name] for name in chosen]
        if random.Random(f"server/{seed}").random() < 0.7:  # dice of their own: the rest of a schedule stays as it was
            self._tools += SERVER_TOOLS
        self._offered = [*chosen, self._dice.choice(sorted(tools))]  # a model may call what it is not offered
        self._plugins = [Odd(seed, self._note)] if self._dice.random() < 0.3 else []
        self._plans: list[Plan] = []
        self._processes = 0
        self._has_failed = self._has_cancelled = False
        self.model, self.operation = "", ""
        self.trace: list[str] = []
        self._group = ""  # of the models this schedule is with for now
        self._start()

    # The process ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._processes += 1
        models = self._stage.models
        model = models[self._model_name()]
        app = App(
            model,
            tools=self._tools,
            plugins=self._plugins,
            store=self._store,
            clock=FakeClock(),
            ids=CountingIds(f"p{self._processes}_"),
        )
        for other in models.values():
            app.add_model(other)
        self.chat = Chat(model, session=SESSION, app=app)

    async def _die(self) -> None:
        self.trace.append("  the process dies")
        self._note("process died")
        await self.chat.aclose()
        self._start()
        await self.chat.app.start()

    async def close(self) -> None:
        """Leave nothing running."""
        self._world.free.set()
        await self.chat.aclose()
        await self._stage.provider.wait_idle()

    # What the provider asks for --------------------------------------------------------------------------------------

    def serve(self, name: str, body: dict[str, Any]) -> list[Item]:
        """The next answer of the plan; when all is said, a plain one."""
        self.model = name
        self._tally.requests += 1
        plan = self._plans.pop(0) if self._plans else None
        items: list[Item] = [MADE.get(name, Say("There you are."))]
        if plan is not None:
            items = answer(plan, name, body, self._offered, self._note)
        self._has_failed = self._has_failed or (plan is not None and plan.kind in ("cut", "fail"))
        self.trace.append(f"    {self.model} <- {items}")
        return items

    def _note(self, ingredient: str) -> None:
        self._tally.ingredients[ingredient, group_of(self.model) if self.model else self._group] += 1

    def _plan(self, *kinds: str, calls: str = "") -> None:
        """What models will say: some steps of any kind, then these, then whatever the rest of the turn needs."""
        before = [Plan("calls", self._dice.getrandbits(32)) for _ in range(self._dice.choice((0, 0, 0, 1, 2)))]
        self._plans = [*before, *(Plan(kind, self._dice.getrandbits(32), calls) for kind in kinds)]

    # What a turn is given --------------------------------------------------------------------------------------------

    def _model_name(self) -> str:
        if not self._group or self._dice.random() < 0.45:
            groups = self._stage.groups
            self._group = self._dice.choices(groups, [ALL_GROUPS[group].weight for group in groups])[0]
        return self._dice.choice(ALL_GROUPS[self._group].names)

    def _how(self, **fixed: Any) -> dict[str, Any]:
        dice, name = self._dice, self._model_name()
        self.model = name
        params = dice.choice(ALL_GROUPS[group_of(name)].params)
        if dice.random() < 0.2:  # for this turn it calls in another way
            params = {
                **params,
                "tool_format": dice.choice((*WAYS, "native")),
                "constrained_decoding": dice.random() < 0.7,
            }
        return {
            "model": self._stage.models[name],
            "params": params,
            "tool_history": dice.choice(("full", "full", "full", "full", "results", "digest", "none")),
            "late": dice.choice(("inject", "inject", "keep", "discard")),
            "max_steps": dice.choice((10, 10, 1, 2, 3)),
            **fixed,
        }

    async def _words(self) -> str | list[TextPart | FilePart]:
        text = self._dice.choice(("Please.", "  ", "<think>", "word " * 30, "Ünï 🐢"))
        if self._dice.random() < 0.8:
            return text
        data, kind, name = self._dice.choice(FILES)
        file = await self.chat.attach(data, kind, name)
        return [TextPart(text), file] if self._dice.random() < 0.7 else [file]

    # The schedule ----------------------------------------------------------------------------------------------------

    async def play(self) -> None:
        """Do all of it.

        Raises:
            Wrong: the property does not hold.
        """
        for _ in range(self._dice.randint(4, 12)):
            self.operation = self._dice.choices(list(OPERATIONS), [weight for weight, _ in OPERATIONS.values()])[0]
            self.trace.append(self.operation)
            self.model = ""
            try:
                await OPERATIONS[self.operation][1](self)
            except EverturnError as error:  # the person may ask for what cannot be had
                self._note(f"not taken: {type(error).__name__}")
            model = self.model
            await self._check()
            await self._probe(self._how(max_steps=2))
            self._tally.operations[self.operation, group_of(model or self.model)] += 1
        self.operation = "the end"
        for group in map(
            ALL_GROUPS.__getitem__, self._stage.groups
        ):  # whatever became of it, all of them can go on with it
            name = self._dice.choice(group.names)
            how: dict[str, Any] = {"model": self._stage.models[name], "params": group.params[0]}
            await self._probe(how, is_undone=True)

    async def _probe(self, how: dict[str, Any], is_undone: bool | None = None) -> None:
        """The next plain message is answered. Often it is undone, so that oddities come to stand side by side."""
        self._plans = []
        self._has_failed = self._has_cancelled = False
        leaf = await self._leaf()
        turn = await self.chat.send("And now?", **how)
        await self._watch(turn, Manners())
        await self._check()
        if leaf is not None and (is_undone if is_undone is not None else self._dice.random() < 0.6):
            await self.chat.fork(leaf)

    async def _leaf(self) -> str | None:
        with suppress(UnknownSession):
            return (await self._store.info(SESSION)).leaf
        return None

    async def _check(self) -> None:
        """Nothing was refused, and nothing is left to do."""
        if refusals := self._stage.provider.refusals:
            seen = next(seen for seen in self._stage.provider.seen if seen.status == 400)
            self.model = seen.model or self.model
            raise Wrong(refusals[0])
        with suppress(UnknownSession):
            for _ in range(1000):  # turns of the loop: a result that came late is still being taken in
                if not await self._store.inbox(SESSION):
                    break
                await asyncio.sleep(0)
            if left := [*await self._store.inbox(SESSION), *await self._store.open_turns(SESSION)]:
                raise Wrong(f"not over, or not even begun: {left}")

    async def _turn(self, turn: Turn, manners: Manners | None = None) -> None:
        """Watch a turn, in this process and the next, until it is over as it should be."""
        manners = manners or Manners()
        self._has_failed = self._has_cancelled = False
        if self._world.free.is_set():
            self._world.free = asyncio.Event()
        if await self._watch(turn, manners):
            await self._die()
            if self._dice.random() < 0.3:
                self._plans = []
            turn = self.chat.turn(turn.id)
            await self._watch(turn, Manners())
        if self._dice.random() < 0.5:
            await self._free()

    async def _watch(self, turn: Turn, manners: Manners) -> bool:
        """Watch a turn, and do what is to be done on the way; True when this process is to die of it."""
        gates: list[Gate] = []
        reading = turn.events()
        try:
            async for event in reading:
                act = ""
                if isinstance(event, GateOpened):
                    gates.append(event.gate)
                elif isinstance(event, TurnSuspended):
                    act = manners.waiting
                elif isinstance(event, CallStarted) and event.tool == "linger":
                    act = manners.running
                elif isinstance(event, Delta) and MARK in event.text:
                    act = manners.hanging
                if act == "die":
                    return True
                if act:
                    await self._act(turn, act, gates)
        finally:
            await reading.aclose()
        await self._judge(turn)
        return False

    async def _act(self, turn: Turn, act: str, gates: list[Gate]) -> None:
        match act:
            case "release":
                self._world.free.set()
            case "answer":
                for gate in gates:
                    # A call that goes round in circles is asked about too, and has nothing to edit.
                    resolution = self._dice.choice(VERDICTS if gate.tool == "mail" else VERDICTS[:3])
                    self.trace.append(f"  {resolution}")
                    self._note("gate: " + ", ".join(resolution))
                    with suppress(EverturnError):  # answered before, by whoever watched then
                        await turn.answer(gate, **resolution)
            case _:
                self.trace.append(f"  cancel, {act}")
                self._note(f"cancel, {act}")
                self._has_cancelled = True
                await turn.cancel(hard=act == "hard")

    async def _judge(self, turn: Turn) -> None:
        log = [entry.event for entry in await self._store.events(SESSION, turn=turn.id)]
        if not log:
            return  # it was not taken, for its place in the tree was gone
        state = fold(log)
        self.trace.append(f"  {state.phase.value}")
        self._note(f"turn {state.phase.value}")
        if not state.phase.is_terminal:
            raise Wrong(f"the turn ended in {state.phase}")
        self._note_end(list(state.messages.values()))
        failed = next((event for event in log if isinstance(event, TurnFailed)), None)
        if failed is not None and not self._has_failed and not self._stage.provider.refusals:
            raise Wrong(f"the turn failed: {failed.problem.kind}: {failed.problem.text}")
        if failed is None and not self._has_cancelled and not any(isinstance(event, TurnCompleted) for event in log):
            raise Wrong(f"the turn was not completed: {state.phase.value}")

    def _note_end(self, messages: Sequence[Message]) -> None:
        """What was told late and where an answer broke off, for the coverage."""
        if any(
            isinstance(part, NoticePart) and part.kind.startswith(LATE_NOTICE_PREFIX)
            for message in messages
            for part in message.parts
        ):
            self._note("late result told")
        if not (self._has_failed or self._has_cancelled):
            return
        parts = messages[-1].parts[:-1] if messages else ()  # the last one says that the step is over
        match parts[-1] if parts else None:
            case None | StepPart():
                where = "nothing"
            case ReasoningPart(opaque=opaque):
                where = "reasoning, sealed" if opaque is not None else "reasoning"
            case ToolPart():
                where = "call"
            case _:
                where = "text"
        self._note(f"broke off in: {where}")

    async def _free(self) -> None:
        """Let slow tools end; what they bring comes late."""
        self._world.free.set()
        await self.chat.app.tool_tasks.wait_idle()

    async def _any_message(self, *roles: str) -> Message | None:
        tree = await self.chat.tree()
        messages = [message for message in tree.messages.values() if message.id not in tree.deleted]
        messages = [message for message in messages if not roles or message.role in roles]
        return self._dice.choice(messages) if messages else None

    # The operations --------------------------------------------------------------------------------------------------

    async def send(self) -> None:
        self._plan(*self._dice.choices(("text", "calls"), k=self._dice.randint(1, 3)))
        await self._turn(await self.chat.send(await self._words(), **self._how()))

    async def cut(self) -> None:
        self._plan("cut")
        await self._turn(await self.chat.send("Say it.", **self._how()))

    async def fail(self) -> None:
        self._plan("fail")
        await self._turn(await self.chat.send("Say it.", **self._how()))

    async def cancel_stream(self) -> None:
        self._plan("hang")
        manners = Manners(hanging=self._dice.choice(("soft", "hard")))
        await self._turn(await self.chat.send("Say it.", **self._how()), manners)

    async def cancel_tool(self) -> None:
        self._plan("calls", calls="linger")
        manners = Manners(running=self._dice.choice(("soft", "soft", "hard")))
        await self._turn(await self.chat.send("Do it.", **self._how()), manners)

    async def cancel_gate(self) -> None:
        self._plan("calls", calls="mail")
        manners = Manners(waiting=self._dice.choice(("soft", "hard")))
        await self._turn(await self.chat.send("Mail it.", **self._how()), manners)

    async def gate(self) -> None:
        self._plan("calls", calls="mail")
        await self._turn(await self.chat.send("Mail it.", **self._how()))

    async def die(self) -> None:
        kind, tool = self._dice.choice((("hang", ""), ("calls", "linger"), ("calls", "mail"), ("", "")))
        if not kind:
            await self._die()
            return
        self._plan(kind, *self._dice.choices(("text", "calls", "cut"), k=2), calls=tool)
        await self._turn(await self.chat.send("Do it.", **self._how()), Manners("die", "die", "die"))

    async def queue(self) -> None:
        """Two messages, the second while the first is being answered."""
        self._plan(*self._dice.choices(("text", "calls"), k=4))
        first = await self.chat.send("One.", **self._how())
        second = await self.chat.send("Two.", **self._how())
        await self._turn(first)
        await self._turn(second)

    async def late(self) -> None:
        """A tool outlives its turn, and its result comes while the next one is being answered."""
        await self.cancel_tool()
        self._plan("calls", "calls", calls="look")
        turn = await self.chat.send("And?", **self._how(late="inject"))
        self._world.free.set()
        await self._turn(turn)

    async def fork(self) -> None:
        message = await self._any_message()
        await self.chat.fork(message if self._dice.random() < 0.9 else None)

    async def edit(self) -> None:
        if (message := await self._any_message("user")) is not None:
            self._plan("calls")
            await self._turn(await self.chat.edit(message, "Or rather this."))

    async def rerun(self) -> None:
        if (message := await self._any_message()) is not None:
            self._plan("calls", "text")
            model = self._stage.models[self._model_name()]
            await self._turn(await self.chat.rerun(message, model=model))

    async def insert(self) -> None:
        if (message := await self._any_message()) is not None:
            self._plan("calls")
            await self._turn(await self.chat.send("In between.", after=message, **self._how()))

    async def make(self) -> None:
        """A picture, a voice or a transcript, so that answers hold files and come from models that do not talk."""
        name = self.model = self._dice.choice(MEDIA)
        words: list[TextPart | FilePart] = [TextPart("A turtle.")]
        if name.endswith("edit"):
            words.append(await self.chat.attach(draw_png(b"turtle"), "image/png", "turtle.png"))
        elif name.endswith("stt"):
            words.append(await self.chat.attach(wav("Hello."), "audio/wav", "hello.wav"))
        self._plans = [Plan(self._dice.choice(("text", "text", "text", "fail")), 0)]
        await self._turn(await self.chat.send(words, model=self._stage.models[name]))

    async def delete(self) -> None:
        if (message := await self._any_message()) is not None:
            await self.chat.delete(message)

    async def free(self) -> None:
        await self._free()


VERDICTS: tuple[dict[str, Any], ...] = (
    {"allow": "once"}, {"deny": True}, {"deny": "not today"}, {"allow": "once", "arguments": {"to": "eve"}},
)  # fmt: skip
OPERATIONS: dict[str, tuple[int, Callable[[Schedule], Awaitable[None]]]] = {
    "send": (4, Schedule.send),
    "cut": (5, Schedule.cut),
    "fail": (1, Schedule.fail),
    "cancel_stream": (4, Schedule.cancel_stream),
    "cancel_tool": (2, Schedule.cancel_tool),
    "cancel_gate": (1, Schedule.cancel_gate),
    "gate": (2, Schedule.gate),
    "die": (2, Schedule.die),
    "queue": (1, Schedule.queue),
    "late": (1, Schedule.late),
    "fork": (2, Schedule.fork),
    "edit": (1, Schedule.edit),
    "rerun": (2, Schedule.rerun),
    "insert": (1, Schedule.insert),
    "make": (2, Schedule.make),
    "delete": (1, Schedule.delete),
    "free": (1, Schedule.free),
}


CLOUD_STORY = (*CLOUDS, "responses", "gemini-2", "gemini-3", "messages")  # a conversation moves between them


async def play(
    seeds: Sequence[int],
    is_enough: Callable[[Tally], bool] = lambda tally: False,
    groups: Sequence[str] = tuple(GROUPS),
) -> Tally:
    """Play the schedules of these seeds, with models of these groups, until it is enough."""
    tally = Tally()
    async with Provider() as provider:
        stage = Stage(provider, groups)
        for seed in seeds:
            await stage.play(seed, tally)
            if is_enough(tally):
                break
    return tally


# From the command line -----------------------------------------------------------------------------------------------


def _table(counts: Counter[tuple[str, str]]) -> Iterator[str]:
    groups = [*dict.fromkeys([*GROUPS, *(group for _, group in counts if group in ALL_GROUPS)]), MAKERS]
    yield " " * 30 + "".join(f"{group:>11}" for group in groups)
    for row in dict.fromkeys(sorted(name for name, _ in counts)):
        yield f"{row:<30}" + "".join(f"{counts[row, group]:>11}" for group in groups)


def _share(seeds: Sequence[int], groups: Sequence[str]) -> Tally:
    return asyncio.run(play(seeds, groups=groups))


def _write(tally: Tally, seed: int, load: float) -> None:
    """Write the figures of this run, or add them to those of the run before it, in the form of `benchmarks/publish.py`."""
    commit = _git("rev-parse", "--short", "HEAD")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    refused = sum(finding.is_refusal for finding in tally.findings)
    counts = {
        "schedules": tally.schedules,
        "operations": sum(tally.operations.values()),
        "requests": tally.requests,
        "refused": refused,
        "others": len(tally.findings) - refused,
        "processor_seconds": round(used.ru_utime + used.ru_stime),
    }
    figures = {
        "first_seed": seed,
        "groups": len(GROUPS),
        **counts,
        "findings": [f"{finding.seed}: {finding.what}"[:300] for finding in tally.findings],
    }
    if RESULT.exists():
        before = json.loads(RESULT.read_text(encoding="utf-8"))
        found = before["figures"]
        if before["commit"] == commit and found["first_seed"] + found["schedules"] == seed:
            load = before["load_before"]
            figures = {**figures, **{name: found[name] + count for name, count in counts.items()}}
            figures |= {"first_seed": found["first_seed"], "findings": found["findings"] + figures["findings"]}
    record = {
        "commit": commit,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": round(load, 1),
        "command": f"python tests/models/schedules.py --seed {figures['first_seed']} --count {figures['schedules']}",
        "figures": figures,
    }
    RESULT.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Play many, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first; the others follow it")
    parser.add_argument("--trace", action="store_true", help="show what led to a finding")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", action="store_true", help="write the figures, or add them to the run before")
    parser.add_argument(
        "--clouds", action="store_true", help="with the models in clouds, and those they share a format with"
    )
    options = parser.parse_args()
    if options.write and options.clouds:
        parser.error("--write is for the usual models")
    if options.write and _git("status", "--porcelain", "--untracked-files=no", "--", "src", "tests"):
        parser.error("commit first: the figures name a commit")
    logging.disable()
    began, load = time.perf_counter(), os.getloadavg()[0]
    shares = [range(options.seed + job, options.seed + options.count, options.jobs) for job in range(options.jobs)]
    tally = Tally()
    with ProcessPoolExecutor(options.jobs) as pool:
        groups = CLOUD_STORY if options.clouds else tuple(GROUPS)
        for share in pool.map(_share, shares, repeat(groups)):
            tally.add(share)
    took = time.perf_counter() - began
    for finding in sorted(tally.findings, key=lambda finding: finding.seed):
        print(f"seed {finding.seed}: {finding.operation}, {finding.model}: {finding.what}")
        if options.trace:
            print(*finding.trace, finding.body, sep="\n")
    print(*_table(tally.operations), *_table(tally.ingredients), sep="\n")
    print(f"{tally.schedules} schedules, {sum(tally.operations.values())} operations, {tally.requests} requests")
    print(f"{took:.0f} s, {took / max(tally.schedules, 1) * 1000:.0f} ms each; {len(tally.findings)} findings")
    if options.write:
        _write(tally, options.seed, load)
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
