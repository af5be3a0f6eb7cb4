"""Run result: what a run came to, or what it waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, cast, get_args

from msgspec import Struct

from everturn.chat.validation import timestamp
from everturn.core.events import CallFinished, Entry, Event, Problem, StepFinished, SubagentStarted, WaitKind
from everturn.core.gates import Gate, GateKind
from everturn.core.messages import Message
from everturn.core.parts import Usage, final_text
from everturn.core.phases import Phase
from everturn.core.projections.stats import TurnStats, stats_of
from everturn.core.rules.policy import Rule
from everturn.core.state import Refusal, TurnState
from everturn.errors import ConfigError, NoOutput

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    OutputT = TypeVar("OutputT", covariant=True, default=Any)
else:  # `typing` has no defaults before Python 3.13, and only type checkers need one
    from typing import TypeVar

    OutputT = TypeVar("OutputT", covariant=True)

RunStatus = Literal["completed", "waiting", "refused", "limited", "cancelled", "failed"]
"""How a run stands. A run that failed raises `TurnError`, whose `result` has the status `failed`."""

GrantScope = Literal["session", "folder", "user", "tenant"]
"""Where an approval holds: in the session, in turns in the same folder, in turns of the same user, or in all of the tenant."""


class Always(Struct, frozen=True):
    """A remembered approval ("always allow"): which of the rules that the gate offers is stored, for whom, and until when."""

    rule: Rule | None = None  # None: the narrowest rule that the gate offers
    scope: GrantScope = "session"
    until: datetime | float = 0.0  # a time with a time zone, or seconds since the epoch; 0: until it is revoked

    @property
    def reply(self) -> dict[str, Any]:
        """The keyword arguments of an answer that says this.

        Raises:
            ConfigError: there is no such scope, or the time is not one.
        """
        if self.scope not in get_args(GrantScope):
            raise ConfigError(f"scope={self.scope!r}: one of {', '.join(get_args(GrantScope))}")
        is_limited = self.scope in ("folder", "user")
        return {
            "allow": self.rule or "always",
            "everywhere": self.scope != "session",
            "within": self.scope if is_limited else "",
            "until": timestamp(self.until) if isinstance(self.until, datetime) else self.until,
        }


class GateAnswers(Protocol):
    """The part of a chat that answers gates."""

    async def answer(self, gate: Gate, **reply: Any) -> bool:
        """Answer a gate."""
        ...


class PendingGate:
    """A question that a run waits for (`result.gates`), with methods that answer it: `approve`, `deny`, `submit`."""

    def __init__(self, gate: Gate, chat: GateAnswers, sync: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.gate, self._chat, self._sync = gate, chat, sync

    @property
    def id(self) -> str:
        """The id of the gate."""
        return self.gate.id

    @property
    def kind(self) -> GateKind:
        """The kind of question: `call`, `result`, `form` and others."""
        return self.gate.kind

    @property
    def tool(self) -> str:
        """The tool of the call, or the plugin that asks."""
        return self.gate.tool

    @property
    def arguments(self) -> str:
        """The arguments of the call as JSON, or the question."""
        return self.gate.arguments

    @property
    def why(self) -> str:
        """The reason for the question."""
        return self.gate.why

    async def approve(
        self, *, arguments: dict[str, Any] | None = None, always: bool | Always = False, by: str = "person"
    ) -> None:
        """Allow the call: with other `arguments` if you like, and from now on with `always`."""
        reply: dict[str, Any] = {"allow": "once", "by": by}
        if isinstance(always, Always):
            reply |= always.reply
        elif always:
            reply["allow"] = "always"
        if arguments is not None:
            reply["arguments"] = arguments
        await self._chat.answer(self.gate, **reply)

    async def deny(self, reason: str = "", *, stop: bool = False, by: str = "person") -> None:
        """Deny the call, with a reason that the model reads; with `stop` the turn ends."""
        more: dict[str, Any] = {"stop": True} if stop else {}
        await self._chat.answer(self.gate, deny=reason or True, by=by, **more)

    async def submit(self, value: object, *, failed: bool = False, by: str = "person") -> None:
        """Answer with a value: a form that is filled in, or the result of a call that was run by hand."""
        from everturn.core.canonical_json import encode_canonical

        text = value if isinstance(value, str) and self.gate.kind != "form" else encode_canonical(value)
        await self._chat.answer(self.gate, result=text, failed=failed, by=by)

    def approve_sync(
        self, *, arguments: dict[str, Any] | None = None, always: bool | Always = False, by: str = "person"
    ) -> None:
        """`approve` for code without an event loop."""
        self._sync(self.approve(arguments=arguments, always=always, by=by))

    def deny_sync(self, reason: str = "", *, stop: bool = False, by: str = "person") -> None:
        """`deny` for code without an event loop."""
        self._sync(self.deny(reason, stop=stop, by=by))

    def submit_sync(self, value: object, *, failed: bool = False, by: str = "person") -> None:
        """`submit` for code without an event loop."""
        self._sync(self.submit(value, failed=failed, by=by))

    def __repr__(self) -> str:
        return f"PendingGate({self.kind}: {self.tool} {self.arguments[:80]})"


class PendingWait(Struct, frozen=True):
    """A timer, or an external result, that a tool of a run waits for."""

    kind: WaitKind
    call: str
    until: float = 0.0  # when the timer fires, or the external result times out; 0: never


class RunResult(Generic[OutputT]):
    """The result of a run. `messages` are its own: the input, the answers, and messages of plugins."""

    def __init__(
        self,
        *,
        session: str,
        turn: str,
        phase: Phase,
        status: RunStatus,
        messages: tuple[Message, ...] = (),
        usage: Usage | None = None,
        reports: tuple[Problem, ...] = (),
        gates: tuple[PendingGate, ...] = (),
        waits: tuple[PendingWait, ...] = (),
        state: TurnState | None = None,
        entries: Sequence[Entry] = (),
        parse: Callable[[str], Any] | None = None,
        resume: Callable[[float | None], Awaitable[RunResult[Any]]] | None = None,
        sync: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
    ) -> None:
        self.session, self.turn, self.phase, self.status = session, turn, phase, status
        self.messages, self.usage, self.reports, self.gates = messages, usage or Usage(), reports, gates
        self.state, self.waits, self._entries = state, waits, entries
        self._parse, self._resume, self._sync = parse, resume, sync

    @property
    def id(self) -> str:
        """The name of the run for `App.turn`, in any process."""
        return f"{self.session}/{self.turn}"

    @property
    def message(self) -> Message | None:
        """The last answer."""
        answers = [message for message in self.messages if message.role == "assistant"]
        return answers[-1] if answers else None

    @property
    def text(self) -> str:
        """The final text: that of the last step of the last answer."""
        return final_text(self.message.parts) if self.message is not None else ""

    @property
    def output(self) -> OutputT:
        """The output of a completed run, of the agent's output type.

        Raises:
            NoOutput: the run is not completed; the text names its status.
        """
        if self.status != "completed":
            raise NoOutput(_no_output(self))
        return self.text if self._parse is None else self._parse(self.text)  # pyright: ignore[reportReturnType]

    @property
    def stats(self) -> TurnStats:
        """Steps, calls, retries, and durations with and without waiting for people."""
        return stats_of(self._entries)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems that did not end the run: tools that were not available, and failed sub-agent runs with the reason."""
        return warnings_of(entry.event for entry in self._entries)

    @property
    def refusal(self) -> Refusal | None:
        """Why a guardrail refused the message or the answer; None: none did."""
        return self.state.refusal if self.state is not None else None

    @property
    def waiting_for(self) -> tuple[PendingGate | PendingWait, ...]:
        """The open gates, timers and external results; empty unless the status is `waiting`."""
        return (*self.gates, *self.waits)

    async def resume(self, wait: float | None = None) -> RunResult[OutputT]:
        """Wait until the run has ended, or waits for something new.

        Raises:
            StillWaiting: nothing that it waits for has been resolved.
            TurnError: the run failed.
        """
        if self._resume is None:
            raise ConfigError(f"this run is {self.status}; only a run that waits can be resumed")
        return await self._resume(wait)

    def resume_sync(self, wait: float | None = None) -> RunResult[OutputT]:
        """`resume` for code without an event loop."""
        assert self._sync is not None
        return self._sync(self.resume(wait))

    def __eq__(self, other: object) -> bool:
        """Whether both say the same of the same run."""
        return isinstance(other, RunResult) and self._compared == cast("RunResult[Any]", other)._compared

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def _compared(self) -> tuple[object, ...]:
        return self.id, self.status, self.messages, self.usage, self.reports

    def __repr__(self) -> str:
        return f"RunResult({self.status}, {self.text[:60]!r})"


def warnings_of(events: Iterable[Event]) -> tuple[str, ...]:
    """What a turn lacked, from its log: each text once."""
    found: dict[str, None] = {}
    subagents: set[str] = set()
    for event in events:
        if isinstance(event, StepFinished) and event.warning:
            found[event.warning] = None
        elif isinstance(event, SubagentStarted):
            subagents.add(event.call)
        elif isinstance(event, CallFinished) and event.state == "failed" and event.call in subagents:
            found[event.output.text] = None
    return tuple(found)


def _no_output(result: RunResult[Any]) -> str:
    if result.status == "waiting":
        if not result.gates:
            waits = ", ".join(wait.kind for wait in result.waits[:3])
            return f"the run waits ({waits}); result.waiting_for says for what: await result.resume()"
        open_gates = ", ".join(f"{gate.kind} of {gate.tool}" for gate in result.gates[:3])
        return f"the run is waiting for an answer ({open_gates}); resolve result.gates, then: await result.resume()"
    limit = result.state.limit if result.state is not None else None
    why = f": {limit.text}" if limit is not None and result.status == "limited" else ""
    return f"the run is {result.status}{why}; result.text has what was said, and there is no output"
