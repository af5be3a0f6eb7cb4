"""Hook contexts: the implementations of the protocols in `core.hooks`, on top of an `ActiveTurn`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from msgspec.structs import replace

from everturn.core.calls import CallRecord
from everturn.core.canonical_json import (
    JsonObject,
    hash_values,
    parse_object,
    replace_surrogates,
)
from everturn.core.events import DeferredMessage, Event, GateOpened, GateResolved
from everturn.core.gate_rows import check_answer_fits_gate
from everturn.core.gates import Gate, GateResolution
from everturn.core.messages import Message, Role
from everturn.core.parts import Finish, Output, StepPart, Usage
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec, build_request_message
from everturn.core.state import StepState
from everturn.errors import AnswerUnfit, HookMisused
from everturn.running.active_turn import ActiveTurn
from everturn.running.appended_messages import Appendable, split_messages
from everturn.running.plugin_table import invoke_hook
from everturn.running.tool_tasks import ToolCoroutine, ToolOutcome

log = logging.getLogger(__name__)


_WHERE: Final = {
    "append": "on_turn_start and on_after_request append messages",
    "append_message": "on_after_request appends messages (in on_turn_start: ctx.append)",
    "append_and_request": "on_after_request asks for another step",
    "ask": "on_after_request asks a person",
    "retry": "on_after_request asks for another step, and on_overflow sends its request again",
    "refuse": "on_input refuses what a person says, and on_output what the model wrote, before it is committed",
    "system": "on_system_prompt changes the system prompt",
    "params": "on_params changes the parameters",
    "body": "on_before_request changes the body, once it is assembled",
    "set_request_messages": "on_before_request replaces the messages of a request",
    "prevent_default": "on_message_append keeps a message out of the conversation",
    "allow": "on_gate answers a gate",
    "deny": "on_gate answers a gate",
}


class HookContext:
    """The context of every hook; `run` is the active turn, for plugins that write events."""

    def __init__(self, run: ActiveTurn) -> None:
        self._run = self.run = run
        self.session, self.turn, self.options = run.session, run.turn, run.state.options

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say which hook can do what this one cannot."""
            if name in _WHERE:
                raise HookMisused(f"ctx.{name} is not possible in this hook: {_WHERE[name]}")
            raise AttributeError(f"the context of this hook has no {name!r}")

    @property
    def messages(self) -> list[Message]:
        """The turn's own messages so far, without refused ones."""
        return [message for message in self._run.state.messages.values() if not message.refused]

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn is being cancelled."""
        return self._run.is_cancelled


class SystemParagraphs(list[str]):
    """The paragraphs of a system prompt. A text that would be added as its single characters is refused."""

    def __iadd__(self, added: Iterable[str]) -> Self:
        """Add paragraphs."""
        return super().__iadd__(_paragraphs(added))

    def extend(self, added: Iterable[str]) -> None:
        """Add paragraphs."""
        super().extend(_paragraphs(added))


def _paragraphs(texts: Iterable[str]) -> Iterable[str]:
    if isinstance(texts, str):
        raise HookMisused("ctx.system must be a list of paragraphs: ctx.system.append(text) adds one")
    return texts


class RequestHookContext(HookContext):
    """A model request in preparation."""

    body: ModelRequest

    def __init__(self, run: ActiveTurn, step: int, closing: bool, system: list[str], params: dict[str, Any]) -> None:
        super().__init__(run)
        self.step, self.closing, self.system, self.params = step, closing, system, params

    @property
    def system(self) -> list[str]:
        """The paragraphs of the system prompt."""
        return self._system

    @system.setter
    def system(self, texts: list[str]) -> None:
        self._system = SystemParagraphs(_paragraphs(texts))

    def set_request_messages(self, messages: Iterable[RequestMessage | Mapping[str, Any]]) -> None:
        """Replace the messages of the body; of each only `request_message_fields` are kept."""
        fields = self._run.setup.settings.request_message_fields
        self.body.messages = [build_request_message(message, fields) for message in messages]


class AppendHookContext(HookContext):
    """A message that is about to be added to the tree."""

    def __init__(self, run: ActiveTurn, message: Message) -> None:
        super().__init__(run)
        self.message = message

    def prevent_default(self) -> None:
        """Keep it out of the conversation."""
        self.message = replace(self.message, hidden=True)


async def run_append_hooks(run: ActiveTurn, message: Message) -> Message:
    """Let every plugin change a message before it is added; its id, parent and turn stay."""
    if not run.setup.hooks["on_message_append"]:
        return message
    await run.commit([])  # a plugin may be slow, and staged events must be written at once
    ctx = AppendHookContext(run, message)
    await run.call_hooks("on_message_append", ctx)
    return replace(ctx.message, id=message.id, parent=message.parent, turn=message.turn)


class CallHookContext(HookContext):
    """A call before or after its run."""

    def __init__(self, run: ActiveTurn, call: CallRecord, tool: ToolSpec, arguments: JsonObject) -> None:
        super().__init__(run)
        self.call, self.tool, self.arguments = call, tool, arguments
        self.output = Output("")
        self.state: Literal["completed", "failed"] = "completed"


class GateHookContext(HookContext):
    """A gate that is about to open."""

    def __init__(self, run: ActiveTurn, gate: Gate) -> None:
        super().__init__(run)
        self.gate = gate
        self.resolution: GateResolution | None = None

    @property
    def arguments(self) -> JsonObject:
        """What the call would run with."""
        return parse_object(self.gate.arguments) or {}

    def allow(self) -> None:
        """Approve this call once."""
        self.resolution = GateResolution(allowed=True)

    def deny(self, reason: str = "") -> None:
        """Deny this call, with a reason."""
        self.resolution = GateResolution(allowed=False, reason=replace_surrogates(str(reason)))


async def open_gate(run: ActiveTurn, gate: Gate) -> list[Event]:
    """The events that open a gate, with its answer if a plugin gives one; if a plugin fails, the person is asked."""
    events: list[Event] = [GateOpened(turn=run.turn, at=run.now(), gate=gate)]
    ctx = GateHookContext(run, gate)
    if run.setup.hooks["on_gate"]:
        await run.commit([])  # what a plugin decides about must be in the log
    for plugin, method in run.setup.hooks["on_gate"]:
        try:
            await invoke_hook(method, ctx)
        except Exception:
            log.exception("%s.on_gate failed; a person is asked instead", plugin)
            break
        if ctx.resolution is not None:
            resolution = replace(ctx.resolution, by=f"plugin:{plugin}")
            try:
                check_answer_fits_gate(gate, resolution)
            except AnswerUnfit as error:
                log.warning("%s.on_gate: %s; a person is asked instead", plugin, error)
                ctx.resolution = None
                continue
            events.append(
                GateResolved(turn=run.turn, at=run.now(), gate=gate.id, call=gate.call, resolution=resolution)
            )
            run.tool_notifier.notify()  # the call can continue at once
            break
    return events


class StepHookContext(HookContext):
    """A step whose stream has completed, as one plugin sees it.

    The second half is for `calls.pipeline`; any other plugin may use it as well.
    """

    def __init__(self, run: ActiveTurn, step: StepState, plugin: str, is_followed: bool = False) -> None:
        super().__init__(run)
        self._step, self.plugin = step, plugin
        self._is_followed = is_followed  # a commit follows before any effect
        self.step = step.number
        self.deferred: list[DeferredMessage] = []
        self._appended = self._question_count = 0

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
        """The token usage of the step."""
        ends = [part for part in self.message.parts if isinstance(part, StepPart) and part.step == self.step]
        return ends[0].usage if ends else Usage()

    @property
    def calls(self) -> list[CallRecord]:
        """The calls of this step, in the order in which the model made them."""
        return self._step.calls

    async def append_message(
        self,
        message: Appendable,
        *,
        role: Role = "user",
        request: bool = False,
        priority: int = 0,
        deferred: bool = False,
    ) -> None:
        """Append a message, or several, now or once every plugin is done."""
        messages = split_messages(message, role)
        for number, (own_role, parts) in enumerate(messages, 1):
            name = f"{self.turn}.{self.plugin}.{self.step}.{self._appended}"
            self._appended += 1
            appended = Message(name, None, own_role, parts, by=self.plugin, turn=self.turn)
            append = DeferredMessage(appended, priority, request and number == len(messages))
            if deferred:
                self.deferred.append(append)
            else:
                await self._run.add_message(append, lambda message: run_append_hooks(self._run, message))

    async def append_and_request(
        self, message: Appendable, *, role: Role = "user", priority: int = 0, deferred: bool = False
    ) -> None:
        """Append a message, or several, and ask for another step."""
        await self.append_message(message, role=role, request=True, priority=priority, deferred=deferred)

    append = append_message
    retry = append_and_request

    async def ask(self, question: str) -> GateResolution | None:
        """Ask a person a question, once; None until it is answered."""
        name = f"{self.turn}.{self.plugin}.{self.step}.ask{self._question_count}"
        self._question_count += 1
        gates = self._run.state.gates
        if name not in gates:
            question_hash = hash_values(self.turn, self.plugin, self.step, question)
            asker = f"plugin:{self.plugin}"
            gate = Gate(
                name,
                self.turn,
                "",
                asker,
                replace_surrogates(question),
                question_hash,
                kind="question",
                session=self.session,
            )
            await self.record(*await open_gate(self._run, gate))
        return gates[name]

    # For plugins that run calls ----------------------------------------------------------------------------------

    async def record(self, *events: Event) -> None:
        """Write events of this turn, all or none."""
        await self._run.commit(events)

    async def record_last(self, events: Sequence[Event], then: Callable[[], None]) -> None:
        """Write the last events of a plugin for this step; `then` is called once they are written."""
        if self._is_followed:
            self._run.stage(events, then)
        else:
            await self._run.commit(events)
            then()

    def spawn(self, call: str, work: ToolCoroutine) -> None:
        """Run a tool where it can outlive the turn."""
        self._run.setup.tool_tasks.spawn(self.turn, call, work)

    def running_calls(self) -> set[str]:
        """The calls whose tools run in this process."""
        return self._run.setup.tool_tasks.running_calls(self.turn)

    def outcomes(self) -> dict[str, ToolOutcome]:
        """The outcomes of those tools that are not known to be in the log."""
        return self._run.setup.tool_tasks.outcomes(self.turn)

    def forget(self, calls: Iterable[str]) -> None:
        """Drop the outcomes of these calls, which are in the log."""
        self._run.setup.tool_tasks.forget(self.turn, calls)

    def give_up(self, call: str, settlement: ToolOutcome) -> None:
        """Finish a call whose tool does not end, and abandon the tool."""
        self._run.setup.tool_tasks.give_up(self.turn, call, settlement)

    @property
    def notifications(self) -> int:
        """The number of notifications (a tool is done, something arrived); check, then wait for more with `wait_for_notification`."""
        return self._run.tool_notifier.count

    async def wait_for_notification(self, seen: int) -> None:
        """Wait until there are more notifications than `seen`."""
        await self._run.tool_notifier.wait_beyond(seen)
