"""Commands: the requests to a session. A command is durable before it is acknowledged; the driver carries it out.

`key` makes a command idempotent: the same key with the same body is the same command, with another body a conflict.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.gates import GateResolution
from everturn.core.messages import ForkPoint, Message
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, Part
from everturn.core.ratings import Rating
from everturn.core.session_parameters import SessionParameters


class Command(Struct, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True, repr_omit_defaults=True):
    """Base class of all commands."""

    key: str
    session: str
    tenant: str = "local"
    at: float = 0.0

    @property
    def body(self) -> Command:
        """The command as it is compared for idempotency: everything but its time."""
        return replace(self, at=0.0)


class ComparedAnswer(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """One more answer to the message of a `Send`: a turn of its own, with another model."""

    turn: str
    model: str
    params: dict[str, object] | None = None


class Send(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Start a turn: with `parts` as a new message, or (None) by regenerating the answer to `parent`.

    With `at_leaf` the parent is the end of the selected branch at the time the turn starts. A command with `alone` is
    not admitted while another turn runs or is queued. A command that `steers` joins the turn `joins` between two of its
    steps; if that is no longer possible, or no turn was running, it starts a turn of its own. With `not_before` the turn
    starts at that time or later.

    Without `base` the turn is that of `options`. With it, the agent that has the session when the turn starts takes it: if
    that is another one than `options` are for, its options are added to `base`, which has what the caller gave, and the
    values of the fields in `chosen`.

    With `fork` the turn continues another answer after one of its finished steps: the copy of these steps gets the id
    `message`, and the answer of the turn follows it. There are no `parts`, and `parent` is that of the other answer.

    `compared` are further answers to the same message. Their turns start in the same append, each in a branch of its own,
    and their `TurnStarted` events carry the key of this command: turns of one command are a comparison.
    """

    turn: str
    message: str = ""
    parts: tuple[Part, ...] | None = None
    parent: str | None = None
    at_leaf: bool = False
    alone: bool = False
    steers: bool = False
    joins: str = ""
    not_before: float = 0.0
    options: TurnOptions = TurnOptions()
    base: TurnOptions | None = None  # without client tools and metadata, which are in `options`
    chosen: tuple[str, ...] = ()  # names of fields of `base` that the caller chose for this message
    compared: tuple[ComparedAnswer, ...] = ()
    fork: ForkPoint | None = None

    @property
    def turns(self) -> tuple[str, ...]:
        """The turns that it starts: one, or one for each compared model."""
        return (self.turn, *(answer.turn for answer in self.compared))

    @property
    def body(self) -> Command:
        """Without ids and a trace, which every attempt makes anew, without the turn that happened to be running, and
        without the layers of the prompt, which may have changed since.

        With `base`, also without what the agent contributed: another one may have the session by now.
        """
        options = replace(self.options, trace="") if self.options.trace else self.options
        options, base = options if options.prompt is None else replace(options, prompt=None), self.base
        if base is not None:
            options = TurnOptions(clients=options.clients, metadata=options.metadata)
            base = base if base.prompt is None else replace(base, prompt=None)
        compared = tuple(replace(answer, turn="") for answer in self.compared)
        return replace(self, at=0.0, turn="", message="", joins="", options=options, base=base, compared=compared)


class ResolveGate(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Resolve a gate; `hash` repeats the hash of what the person was shown."""

    gate: str
    hash: str
    resolution: GateResolution


class Cancel(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """End a turn; `hard` also cancels its tools."""

    turn: str
    hard: bool = False


class Select(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Select the branch that ends at a message (None: start at the root).

    With a `step` that is the copy of an answer up to this step, which is added beside it under the id `copy`.
    """

    message: str | None
    step: int = 0
    copy: str = ""


class SelectAgent(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Hand the session to another agent. Not admitted while a turn runs or waits."""

    agent: str
    by: str = ""


class SetInstructions(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Set the instructions of the session; "" removes them."""

    text: str
    by: str = ""


class UpdateSession(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Change how a session is listed, or its parameters; None leaves a field as it is."""

    title: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    labels: tuple[str, ...] | None = None
    parameters: SessionParameters | None = None
    by: str = ""


class RateAnswer(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Rate an answer; "" withdraws the rating."""

    message: str
    rating: Rating
    reason: str = ""
    by: str = ""


class Delete(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Hide a message and everything under it."""

    message: str


class LateResult(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Deliver the result of a tool that outlived its turn."""

    turn: str
    call: str
    output: Output


class Revoke(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Revoke a grant."""

    grant: str
    by: str = ""


class ClaimCall(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Claim a call for one client, which alone runs it; a second claim before the lease ends extends the lease."""

    gate: str
    hash: str
    by: str
    lease: float  # seconds


class NotifyCall(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Tell a call that the sub-agent run it waits for is about to end."""

    turn: str
    call: str


class FinishWait(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Deliver the result of an external system to the call that waits for it, or end the wait because it `timed_out`.

    Both have the same key, so that admission decides which of them was first.
    """

    turn: str
    call: str
    wait: str
    value: str = ""  # JSON
    timed_out: bool = False


class Revert(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Restore the files under a root to a recorded tree."""

    root: str
    tree: str
    by: str = ""


class ImportMessages(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Add a conversation that was held elsewhere after `parent`, or (`at_leaf`) at the end of the selected branch.

    Each message follows the one before it; the first has no parent yet. Their ids are derived from the key, so that a
    repeat is the same command. Not admitted while a turn runs or is queued.
    """

    messages: tuple[Message, ...]
    parent: str | None = None
    at_leaf: bool = False
    by: str = ""


AnyCommand = (
    Send
    | ResolveGate
    | Cancel
    | Select
    | SelectAgent
    | SetInstructions
    | UpdateSession
    | RateAnswer
    | Delete
    | LateResult
    | Revoke
    | ClaimCall
    | NotifyCall
    | FinishWait
    | Revert
    | ImportMessages
)
