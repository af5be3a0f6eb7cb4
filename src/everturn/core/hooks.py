"""Plugin hooks. A plugin is any object with some of these methods, plain or async.

    on_input ─ on_turn_start ─ on_message_append (the answer) ─┐
      ┌── on_system_prompt · on_params · on_before_request · on_stream_chunk … · on_output ── on_after_request ──┐
      │        └ on_compact · on_overflow (it is too long)        └ on_message_append (per append)               │
      │        └ on_call_start · on_gate · on_call_end (per call)  └ on_input (per steering message)             │
      └───────── once per step, again while calls finished or a plugin asked for another request ───────────────┘
    on_turn_end | on_error ─ clean-ups, last in first out
    on_revert, between turns

Plugins run in our process and are trusted like our own code. Deriving from `Plugin` is optional: it is here for
editors, and as the reference. Two plugins of the same `name`: the later one takes the earlier one's place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, Literal, Protocol, TypeAlias

from everturn.core.calls import CallRecord
from everturn.core.canonical_json import JsonObject
from everturn.core.chunks import Chunk
from everturn.core.events import Gate, GateResolution, Problem, TurnOptions
from everturn.core.messages import Message, Role
from everturn.core.parts import CompactionReason, Finish, Output, Part, Usage
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec
from everturn.errors import ModelError


class Suspend(Enum):
    """The value that `on_after_request` returns while the plugin is not done with the step."""

    SUSPEND = "suspend"


SUSPEND: Final = Suspend.SUSPEND
"""Not done: suspend the turn, hold nothing in memory, and call the hook again when something for this turn arrives."""

Cleanup: TypeAlias = Callable[[], Awaitable[None] | None]
MaybeAwaitable: TypeAlias = Awaitable[None] | None


class TurnContext(Protocol):
    """The attributes that every hook can read."""

    session: str
    turn: str
    options: TurnOptions

    @property
    def messages(self) -> list[Message]:
        """The turn's own messages so far: its input, its answers, and messages that plugins appended."""
        ...

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn is being cancelled; an error raised now counts as that cancellation."""
        ...


OutputBuffer = Literal["none", "sentence", "step"]
"""How much of a step waits until `on_output` has passed it."""
OUTPUT_BUFFERS: Final[tuple[OutputBuffer, ...]] = ("none", "sentence", "step")
OutputKind = Literal["text", "reasoning", "arguments"]


class StartContext(TurnContext, Protocol):
    """The start of a turn, before its first request."""

    async def append(self, message: str | Iterable[Part], *, role: Role = "user") -> None:
        """Append a message before the first request.

        Its id is made of (turn, plugin, `start`, position), so a repeat after a crash adds nothing. In a turn that has
        made its first request it does nothing.
        """
        ...


class InputContext(TurnContext, Protocol):
    """A message of a person that no model has read yet."""

    def refuse(self, text: str) -> None:
        """Refuse the message: no model reads it, now or later, and the turn completes with this text as its answer.

        A refused steering message is left out, and the turn goes on.
        """
        ...


class OutputContext(TurnContext, Protocol):
    """A piece of the model's output before it is committed: a whole part or, if it streams, a sentence."""

    step: int
    kind: OutputKind
    tool: str  # of arguments: the tool that is called

    def refuse(self, text: str) -> None:
        """Refuse the step: this text takes the place of all that it wrote, none of its calls runs, the turn ends."""
        ...


class RequestContext(TurnContext, Protocol):
    """A model request in preparation. `system` and `params` are set first, `body` once it is assembled."""

    step: int
    closing: bool  # the last request of a turn that ran out of steps: no tools
    system: list[str]
    params: dict[str, Any]
    body: ModelRequest

    def set_request_messages(self, messages: Iterable[RequestMessage | Mapping[str, Any]]) -> None:
        """Replace the messages of the body; of each only `request_message_fields` are kept."""
        ...


class OverflowContext(RequestContext, Protocol):
    """A request that was too long for its model; change `body`, then `retry`."""

    attempt: int  # 1 for the first overflow of the step in this process

    def retry(self, messages: Iterable[RequestMessage | Mapping[str, Any]] | None = None) -> None:
        """Send the request again, as `body` is now, or with these messages. At most three times in a step."""
        ...


class CompactContext(TurnContext, Protocol):
    """The context of `on_compact`: a summary that is about to be requested.

    Assign to `instructions` to change the instructions for the summary.
    """

    why: CompactionReason
    replaced: list[Message]  # the messages that the summary replaces, as a whole or in part
    instructions: str
    focus: str  # what the person asked to keep

    def add(self, text: str) -> None:
        """Give the model that writes the summary something to include."""
        ...

    def use(self, text: str) -> None:
        """Take this text as the summary: no model is asked."""
        ...

    def refuse(self, reason: str) -> None:
        """Refuse the compaction: the conversation stays as it is, unless it does not fit into the window."""
        ...


class PartialAnswer(Protocol):
    """The answer as far as it has arrived."""

    @property
    def text(self) -> str:
        """The text of this step so far."""
        ...


class StepContext(TurnContext, Protocol):
    """A step whose stream has completed."""

    step: int
    finish: Finish
    usage: Usage

    @property
    def message(self) -> Message:
        """The answer, with the parts of this step at its end."""
        ...

    @property
    def calls(self) -> list[CallRecord]:
        """The calls of this step, in the order in which the model made them."""
        ...

    async def append_message(
        self,
        message: str | Message | Iterable[Part] | Iterable[str] | Iterable[Message],
        *,
        role: Role = "user",
        request: bool = False,
        priority: int = 0,
        deferred: bool = False,
    ) -> None:
        """Append a message now, or (`deferred`) once every plugin is done, high `priority` first.

        A list of texts or of messages appends several; a list of parts is one message. A message's id is made of (plugin, step, position), so a hook that runs again after a crash adds nothing
        twice.
        """
        ...

    async def append_and_request(
        self,
        message: str | Message | Iterable[Part] | Iterable[str] | Iterable[Message],
        *,
        role: Role = "user",
        priority: int = 0,
        deferred: bool = False,
    ) -> None:
        """Append a message, or several, and ask for another step."""
        ...

    append = append_message
    retry = append_and_request

    async def ask(self, question: str) -> GateResolution | None:
        """Ask a person a question, once; None until it is answered (return `SUSPEND` then)."""
        ...


class AppendContext(TurnContext, Protocol):
    """A message that is about to be added to the tree; assign to `message` to change it."""

    message: Message

    def prevent_default(self) -> None:
        """Keep it out of the conversation: not shown, not sent in later turns."""
        ...


class CallContext(TurnContext, Protocol):
    """A call before or after its run: a hook may replace `arguments` before, `output` and `state` after it."""

    call: CallRecord
    tool: ToolSpec
    arguments: JsonObject
    output: Output
    state: Literal["completed", "failed"]


class GateContext(TurnContext, Protocol):
    """A gate that is about to open. A hook may answer it, but cannot widen it beyond its call."""

    gate: Gate

    @property
    def arguments(self) -> JsonObject:
        """What the call would run with; `gate.arguments` is the same as text."""
        ...

    def allow(self) -> None:
        """Approve this call once."""
        ...

    def deny(self, reason: str = "") -> None:
        """Deny this call, with a reason."""
        ...


class RevertContext(Protocol):
    """A revert of the files under a root.

    The hook runs twice: to record the present tree, then to restore the old one.
    """

    session: str
    root: str
    tree: str  # the tree to restore
    before: str  # the present tree; empty in the first run: record it, set it, and do nothing else
    is_done: bool  # set it once the files are restored


class Plugin:
    """Base class with every hook. Each docstring says when the hook runs and what a failure does."""

    @property
    def name(self) -> str:
        """The name under which the log records that this plugin is done with a step."""
        return type(self).__name__

    output_buffer: OutputBuffer = "step"
    """How much of a step waits until `on_output` has passed it."""

    def on_input(self, ctx: InputContext, message: Message) -> MaybeAwaitable:
        """Each message of a person, before anything is done with it, in order; may refuse it. A failure ends the turn.

        It runs for the message that a turn answers (again when it is answered anew), and for each steering message
        before it joins. After a crash it may run again.
        """

    def on_turn_start(self, ctx: StartContext) -> Awaitable[Cleanup | None] | Cleanup | None:
        """Input admitted, before the first request; again when another process takes over the turn.

        In registration order; may append messages. Not in a turn that is refused. A failure ends the turn; clean-ups of those that ran still run.
        """

    def on_system_prompt(self, ctx: RequestContext) -> MaybeAwaitable:
        """Each request, in order; may change `ctx.system`. A failure ends the turn."""

    def on_params(self, ctx: RequestContext) -> MaybeAwaitable:
        """Each request, in order; may change `ctx.params`. A failure ends the turn."""

    def on_before_request(self, ctx: RequestContext) -> MaybeAwaitable:
        """Body assembled, each step, in order; may change `ctx.body`. A failure ends the turn."""

    def on_stream_chunk(self, ctx: TurnContext, chunk: Chunk, message: PartialAnswer) -> MaybeAwaitable:
        """Every chunk, every plugin. A failure ends the turn."""

    def on_output(self, ctx: OutputContext, text: str) -> Awaitable[str | None] | str | None:
        """What the model wrote, before it is committed, in order: text, reasoning and arguments of calls alike.

        What it returns is committed and shown; None passes it; `ctx.refuse` refuses the step. `output_buffer` says how
        much is held back until then. A failure ends the turn, without what did not pass.
        """

    def on_overflow(self, ctx: OverflowContext, error: ModelError) -> MaybeAwaitable:
        """The model refused a request as too long, in order, until one retries it. A failure ends the turn."""

    def on_compact(self, ctx: CompactContext) -> MaybeAwaitable:
        """A summary is about to be asked for, in order; may add to it, write it or refuse it. A failure ends the turn.

        After a crash it runs again.
        """

    def on_after_request(self, ctx: StepContext) -> Awaitable[Suspend | None] | Suspend | None:
        """The step's stream completed; all plugins run at once. One failure ends the turn.

        The log records each plugin that is done, so that after a crash only the others run again.
        """

    def on_message_append(self, ctx: AppendContext) -> MaybeAwaitable:
        """Before an answer or a plugin's message (not the user's own) is added, in order. A failure ends the turn."""

    def on_call_start(self, ctx: CallContext) -> MaybeAwaitable:
        """Before a call is checked, approved and run; may change `ctx.arguments`. A failure fails the call."""

    def on_call_end(self, ctx: CallContext) -> MaybeAwaitable:
        """After a call ran, also a late one; may change `ctx.output`. A failure fails the call."""

    def on_gate(self, ctx: GateContext) -> MaybeAwaitable:
        """A gate is about to open; may answer it. On a failure the person is asked."""

    def on_revert(self, ctx: RevertContext) -> MaybeAwaitable:
        """A revert of files, outside of any turn. A failure refuses it."""

    def on_turn_end(self, ctx: TurnContext) -> MaybeAwaitable:
        """Turn completed or cancelled (not after an error), in order. A failure is reported."""

    def on_error(self, ctx: TurnContext, error: Problem) -> MaybeAwaitable:
        """Turn failed; every plugin. A failure is reported."""


HOOKS: Final = tuple(name for name in vars(Plugin) if name.startswith("on_"))
