"""Every plugin hook, on one page. A plugin is any object with some of these methods, plain or async.

    on_turn_start ─ on_message_append (the answer) ─┐
      ┌── on_system_prompt · on_params · on_before_request · on_stream_chunk … · on_after_request ──┐   once per step
      │        └ on_call_start · on_gate · on_call_end (per call)   └ on_message_append (per append) │
      └────────────────────── again while calls were settled or somebody asked ─────────────────────┘
    on_turn_end | on_error ─ clean-ups, last in first out
    on_revert, between turns

Plugins run in our process and are trusted like our own code. Deriving from `Plugin` is optional: it is here for
editors, and as the reference. Two plugins of the same `name`: the later one takes the earlier one's place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Literal, Protocol, TypeAlias

from everturn.core.calls import Call
from everturn.core.canonical import JsonObject
from everturn.core.chunks import Chunk
from everturn.core.events import Gate, Problem, TurnOptions, Verdict
from everturn.core.messages import Message, Role
from everturn.core.parts import Finish, Output, Part, Usage
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec


class Pending(Enum):
    """What `on_after_request` returns when it is not done with the step."""

    PENDING = "pending"


PENDING: Final = Pending.PENDING
"""Not done: park the turn, hold nothing in memory, and call again when something for this turn has arrived."""

Cleanup: TypeAlias = Callable[[], Awaitable[None] | None]
MaybeAwaitable: TypeAlias = Awaitable[None] | None


class TurnContext(Protocol):
    """What every hook may know."""

    session: str
    turn: str
    options: TurnOptions

    @property
    def messages(self) -> list[Message]:
        """The turn's own messages so far: its input, its answers, what plugins appended."""
        ...

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn is being cancelled; an error raised now counts as that cancellation."""
        ...


class RequestContext(TurnContext, Protocol):
    """A request that is being made. `system` and `params` are there first, `body` once it is assembled."""

    step: int
    closing: bool  # the last request of a turn that ran out of steps: no tools
    system: list[str]
    params: dict[str, Any]
    body: ModelRequest

    def set_request_messages(self, messages: Iterable[RequestMessage | Mapping[str, Any]]) -> None:
        """Replace the messages of the body; of each only `request_message_fields` are kept."""
        ...


class Draft(Protocol):
    """The answer as far as it has arrived."""

    @property
    def text(self) -> str:
        """The text of this step so far."""
        ...


class StepContext(TurnContext, Protocol):
    """A step whose stream has ended."""

    step: int
    finish: Finish
    usage: Usage

    @property
    def message(self) -> Message:
        """The answer, with the parts of this step at its end."""
        ...

    @property
    def calls(self) -> list[Call]:
        """The calls of this step, in the order in which the model made them."""
        ...

    async def append_message(
        self,
        message: str | Iterable[Part],
        *,
        role: Role = "user",
        request: bool = False,
        priority: int = 0,
        deferred: bool = False,
    ) -> None:
        """Append a message now, or (`deferred`) once every plugin is done, high `priority` first.

        The message's id is made of (plugin, step, position), so a hook that runs again after a crash adds nothing.
        """
        ...

    async def append_and_request(
        self, message: str | Iterable[Part], *, role: Role = "user", priority: int = 0, deferred: bool = False
    ) -> None:
        """Append a message and ask for another step."""
        ...

    async def ask(self, question: str) -> Verdict | None:
        """Put a question to a person, once; None while it is not answered (then return `PENDING`)."""
        ...


class AppendContext(TurnContext, Protocol):
    """A message that is about to join the tree; assign to `message` to change it."""

    message: Message

    def prevent_default(self) -> None:
        """Keep it out of the conversation: not shown, not sent in later turns."""
        ...


class CallContext(TurnContext, Protocol):
    """A call around its run: `arguments` may be replaced before, `output` and `state` after it."""

    call: Call
    tool: ToolSpec
    arguments: JsonObject
    output: Output
    state: Literal["completed", "failed"]


class GateContext(TurnContext, Protocol):
    """A gate that is about to open. It may be answered; it can not be made wider than the call it is for."""

    gate: Gate

    @property
    def arguments(self) -> JsonObject:
        """What the call would run with; `gate.arguments` is the same as text."""
        ...

    def allow(self) -> None:
        """Answer: this once."""
        ...

    def deny(self, reason: str = "") -> None:
        """Answer: no, and why."""
        ...


class RevertContext(Protocol):
    """Files beneath a root that are to be what they were: asked twice, to record what they are and to restore them."""

    session: str
    root: str
    tree: str  # what they are to be
    before: str  # what they are; empty while it is not known: record it and set it, and do nothing else
    is_done: bool  # set it once they are restored


class Plugin:
    """The hooks. How and when each is called, and what happens when it fails, is said beside it."""

    @property
    def name(self) -> str:
        """Under which name its finished work is recorded."""
        return type(self).__name__

    def on_turn_start(self, ctx: TurnContext) -> Awaitable[Cleanup | None] | Cleanup | None:
        """Input admitted, before the first request; again when a process takes the turn over to go on with it.

        In registration order. A failure ends the turn; clean-ups of those that ran still run.
        """

    def on_system_prompt(self, ctx: RequestContext) -> MaybeAwaitable:
        """Each request, in order; may change `ctx.system`. A failure ends the turn."""

    def on_params(self, ctx: RequestContext) -> MaybeAwaitable:
        """Each request, in order; may change `ctx.params`. A failure ends the turn."""

    def on_before_request(self, ctx: RequestContext) -> MaybeAwaitable:
        """Body assembled, each step, in order; may change `ctx.body`. A failure ends the turn."""

    def on_stream_chunk(self, ctx: TurnContext, chunk: Chunk, message: Draft) -> MaybeAwaitable:
        """Every chunk, every plugin. A failure ends the turn."""

    def on_after_request(self, ctx: StepContext) -> Awaitable[Pending | None] | Pending | None:
        """The step's stream ended well; all plugins at once. One failure ends the turn.

        Finishing is recorded, so that after a crash only those run again that were not done.
        """

    def on_message_append(self, ctx: AppendContext) -> MaybeAwaitable:
        """Before an answer or a plugin's message joins the tree (not the person's own), in order. A failure ends."""

    def on_call_start(self, ctx: CallContext) -> MaybeAwaitable:
        """Before a call is checked, asked about and run; may change `ctx.arguments`. A failure fails the call."""

    def on_call_end(self, ctx: CallContext) -> MaybeAwaitable:
        """After a call ran, also a late one; may change `ctx.output`. A failure fails the call."""

    def on_gate(self, ctx: GateContext) -> MaybeAwaitable:
        """A gate is about to open; may answer it. A failure leaves it to the person."""

    def on_revert(self, ctx: RevertContext) -> MaybeAwaitable:
        """Files are to be what they were, outside of any turn. A failure refuses it."""

    def on_turn_end(self, ctx: TurnContext) -> MaybeAwaitable:
        """Turn completed or cancelled (not after an error), in order. A failure is reported."""

    def on_error(self, ctx: TurnContext, error: Problem) -> MaybeAwaitable:
        """Turn failed; every plugin. A failure is reported."""


HOOKS: Final = tuple(name for name in vars(Plugin) if name.startswith("on_"))
