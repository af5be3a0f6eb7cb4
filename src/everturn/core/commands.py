"""Commands: the requests to a session. A command is durable before it is acknowledged; the driver carries it out.

`key` makes a command idempotent: the same key with the same body is the same command, with another body a conflict.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.gates import GateResolution
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, Part


class Command(Struct, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Base class of all commands."""

    key: str
    session: str
    tenant: str = "local"
    at: float = 0.0

    @property
    def body(self) -> Command:
        """The command as it is compared for idempotency: everything but its time."""
        return replace(self, at=0.0)


class Send(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Start a turn: with `parts` as a new message, or (None) by regenerating the answer to `parent`.

    With `at_leaf` the parent is the end of the selected branch at the time the turn starts. A command with `alone` is
    not admitted while another turn runs or is queued. A command that `steers` joins the turn `joins` between two of its
    steps; if that is no longer possible, or no turn was running, it starts a turn of its own.
    """

    turn: str
    message: str = ""
    parts: tuple[Part, ...] | None = None
    parent: str | None = None
    at_leaf: bool = False
    alone: bool = False
    steers: bool = False
    joins: str = ""
    options: TurnOptions = TurnOptions()

    @property
    def body(self) -> Command:
        """Without the ids, which every attempt makes anew, and without the turn that happened to be running."""
        return replace(self, at=0.0, turn="", message="", joins="")


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
    """Select the branch that ends at a message (None: start at the root)."""

    message: str | None


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


class Revert(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Restore the files under a root to a recorded tree."""

    root: str
    tree: str
    by: str = ""


AnyCommand = Send | ResolveGate | Cancel | Select | Delete | LateResult | Revoke | ClaimCall | NotifyCall | Revert
