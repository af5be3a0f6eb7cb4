"""The contexts hooks are called with: what `core.hooks` promises, on top of a `Run`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from everturn.core.asking import Gate, Verdict
from everturn.core.calls import Call
from everturn.core.canonical import JsonObject, clean, clean_all, digest, parse_object
from everturn.core.events import Append, Event, GateAnswered, GateOpened
from everturn.core.gates import check_fit
from everturn.core.messages import Message, Role
from everturn.core.parts import Finish, Output, Part, StepPart, TextPart, Usage
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec, request_message
from everturn.core.state import Step
from everturn.errors import AnswerUnfit
from everturn.turn.hookup import call
from everturn.turn.run import Run
from everturn.turn.supervisor import Settlement, Work

log = logging.getLogger(__name__)


class Context:
    """What every hook may know; and `run`, the turn as this process holds it, for plugins that write events."""

    def __init__(self, run: Run) -> None:
        self._run = self.run = run
        self.session, self.turn, self.options = run.session, run.turn, run.state.options

    @property
    def messages(self) -> list[Message]:
        """The turn's own messages so far."""
        return list(self._run.state.messages.values())

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn is being cancelled."""
        return self._run.is_cancelled


class OneRequest(Context):
    """A request that is being made."""

    body: ModelRequest

    def __init__(self, run: Run, step: int, closing: bool, system: list[str], params: dict[str, Any]) -> None:
        super().__init__(run)
        self.step, self.closing, self.system, self.params = step, closing, system, params

    def set_request_messages(self, messages: Iterable[RequestMessage | Mapping[str, Any]]) -> None:
        """Replace the messages of the body; of each only `request_message_fields` are kept."""
        fields = self._run.setup.settings.request_message_fields
        self.body.messages = [request_message(message, fields) for message in messages]


class OneAppend(Context):
    """A message that is about to join the tree."""

    def __init__(self, run: Run, message: Message) -> None:
        super().__init__(run)
        self.message = message

    def prevent_default(self) -> None:
        """Keep it out of the conversation."""
        self.message = replace(self.message, hidden=True)


async def change_append(run: Run, message: Message) -> Message:
    """Let every plugin change a message before it joins; its identity is not theirs to change."""
    if not run.setup.hooks["on_message_append"]:
        return message
    await run.commit([])  # a plugin may take its time, and what is staged is to be followed at once
    ctx = OneAppend(run, message)
    await run.call_hooks("on_message_append", ctx)
    return replace(ctx.message, id=message.id, parent=message.parent, turn=message.turn)


class OneCall(Context):
    """A call around its run."""

    def __init__(self, run: Run, call: Call, tool: ToolSpec, arguments: JsonObject) -> None:
        super().__init__(run)
        self.call, self.tool, self.arguments = call, tool, arguments
        self.output = Output("")
        self.state: Literal["completed", "failed"] = "completed"


class OneGate(Context):
    """A gate that is about to open."""

    def __init__(self, run: Run, gate: Gate) -> None:
        super().__init__(run)
        self.gate = gate
        self.verdict: Verdict | None = None

    @property
    def arguments(self) -> JsonObject:
        """What the call would run with."""
        return parse_object(self.gate.arguments) or {}

    def allow(self) -> None:
        """Answer: this once."""
        self.verdict = Verdict(allowed=True)

    def deny(self, reason: str = "") -> None:
        """Answer: no, and why."""
        self.verdict = Verdict(allowed=False, reason=clean(str(reason)))


async def open_gate(run: Run, gate: Gate) -> list[Event]:
    """Ask a person, unless a plugin answers on the spot; one that fails leaves it to the person."""
    events: list[Event] = [GateOpened(turn=run.turn, at=run.now(), gate=gate)]
    one = OneGate(run, gate)
    if run.setup.hooks["on_gate"]:
        await run.commit([])  # what a plugin judges is written
    for plugin, method in run.setup.hooks["on_gate"]:
        try:
            await call(method, one)
        except Exception:
            log.exception("%s.on_gate failed; the person is asked", plugin)
            break
        if one.verdict is not None:
            verdict = replace(one.verdict, by=f"plugin:{plugin}")
            try:
                check_fit(gate, verdict)
            except AnswerUnfit as error:
                log.warning("%s.on_gate: %s; the person is asked", plugin, error)
                one.verdict = None
                continue
            events.append(GateAnswered(turn=run.turn, at=run.now(), gate=gate.id, call=gate.call, verdict=verdict))
            run.stirs.ring()  # it can go on at once
            break
    return events


class OneStep(Context):
    """A step whose stream has ended, as one plugin sees it.

    The second half is what `turn.tools` works with; it is as open to any other plugin.
    """

    def __init__(self, run: Run, step: Step, plugin: str, is_followed: bool = False) -> None:
        super().__init__(run)
        self._step, self.plugin = step, plugin
        self._is_followed = is_followed  # by a commit, before anything else is done
        self.step = step.number
        self.deferred: list[Append] = []
        self._appended = self._asked = 0

    @property
    def message(self) -> Message:
        """The answer, with the parts of this step at its end."""
        state = self._run.state
        assert state.answer is not None
        return state.messages[state.answer]

    @property
    def finish(self) -> Finish:
        """Why the stream ended."""
        return self._step.finish or "other"

    @property
    def usage(self) -> Usage:
        """What the step used."""
        ends = [part for part in self.message.parts if isinstance(part, StepPart) and part.step == self.step]
        return ends[0].usage if ends else Usage()

    @property
    def calls(self) -> list[Call]:
        """The calls of this step, in the order in which the model made them."""
        return self._step.calls

    async def append_message(
        self,
        message: str | Iterable[Part],
        *,
        role: Role = "user",
        request: bool = False,
        priority: int = 0,
        deferred: bool = False,
    ) -> None:
        """Append a message now, or once every plugin is done."""
        parts = (TextPart(message),) if isinstance(message, str) else tuple(message)
        parts = msgspec.convert(clean_all(msgspec.to_builtins(parts)), tuple[Part, ...])
        name = f"{self.turn}.{self.plugin}.{self.step}.{self._appended}"
        self._appended += 1
        append = Append(Message(name, None, role, parts, by=self.plugin, turn=self.turn), priority, request)
        if deferred:
            self.deferred.append(append)
        else:
            await self._run.join(append, lambda made: change_append(self._run, made))

    async def append_and_request(
        self, message: str | Iterable[Part], *, role: Role = "user", priority: int = 0, deferred: bool = False
    ) -> None:
        """Append a message and ask for another step."""
        await self.append_message(message, role=role, request=True, priority=priority, deferred=deferred)

    async def ask(self, question: str) -> Verdict | None:
        """Put a question to a person, once; None while it is not answered."""
        name = f"{self.turn}.{self.plugin}.{self.step}.ask{self._asked}"
        self._asked += 1
        gates = self._run.state.gates
        if name not in gates:
            bound = digest(self.turn, self.plugin, self.step, question)
            asker = f"plugin:{self.plugin}"
            gate = Gate(name, self.turn, "", asker, clean(question), bound, kind="question", session=self.session)
            await self.record(*await open_gate(self._run, gate))
        return gates[name]

    # For plugins that run calls ----------------------------------------------------------------------------------

    async def record(self, *events: Event) -> None:
        """Write events of this turn down, all or none."""
        await self._run.commit(events)

    async def record_last(self, events: Sequence[Event], then: Callable[[], None]) -> None:
        """Write down what a plugin has to say of this step in the end; `then` is called once that is written."""
        if self._is_followed:
            self._run.stage(events, then)
        else:
            await self._run.commit(events)
            then()

    def spawn(self, call: str, work: Work) -> None:
        """Run a tool where it can outlive the turn."""
        self._run.setup.supervisor.spawn(self.turn, call, work)

    def running(self) -> set[str]:
        """The calls whose tools run in this process."""
        return self._run.setup.supervisor.running(self.turn)

    def done(self) -> dict[str, Settlement]:
        """What those tools have come to, as far as it is not known to be in the log."""
        return self._run.setup.supervisor.done(self.turn)

    def forget(self, calls: Iterable[str]) -> None:
        """These are in the log."""
        self._run.setup.supervisor.forget(self.turn, calls)

    def give_up(self, call: str, settlement: Settlement) -> None:
        """Settle a call whose tool does not end, and leave the tool to itself."""
        self._run.setup.supervisor.give_up(self.turn, call, settlement)

    @property
    def stirs(self) -> int:
        """How often a tool was done or something arrived; look, then wait for more with `stir`."""
        return self._run.stirs.strokes

    async def stir(self, heard: int) -> None:
        """Wait until there is more than `heard`."""
        await self._run.stirs.after(heard)
