"""What may be asked of a session. A command is durable before it is acknowledged, and acted on by the driver.

`key` makes a command idempotent: the same key with the same body is the same command, with another body a conflict.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.asking import Verdict
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, Part


class Command(Struct, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The root of all commands."""

    key: str
    session: str
    tenant: str = "local"
    at: float = 0.0

    @property
    def body(self) -> Command:
        """What makes two commands the same one: everything but when it came."""
        return replace(self, at=0.0)


class Send(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Start a turn: with `parts` as a new message, or (None) by answering once more what is at `parent`.

    With `at_leaf` the place is whatever end of the selected branch is there when the turn can begin. `alone` is not
    admitted while another turn is under way, or asked for. One that `steers` joins the turn `joins` between two of its
    steps; where that cannot be any more, or nothing was under way, it starts a turn of its own like any other.
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
        """The ids are made anew for every try, so they do not count; nor does what happened to be under way."""
        return replace(self, at=0.0, turn="", message="", joins="")


class Answer(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Answer a gate; `hash` echoes what was shown."""

    gate: str
    hash: str
    verdict: Verdict


class Cancel(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """End a turn; `hard` also cancels its tools."""

    turn: str
    hard: bool = False


class Select(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Select the branch that ends at a message (None: begin anew at the root)."""

    message: str | None


class Delete(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Hide a message and everything under it."""

    message: str


class Late(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool that outlived its turn hands in its result."""

    turn: str
    call: str
    output: Output


class Revoke(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Let a remembered answer hold no more."""

    grant: str
    by: str = ""


class Take(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A client claims a call, so that it alone does it; once more before its time is over, to have more of it."""

    gate: str
    hash: str
    by: str
    lease: float  # seconds


class Stir(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The sub-turn that a call waits for is about to be over."""

    turn: str
    call: str


class Revert(Command, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Let the files beneath a root be what they were, as a tree that was recorded here."""

    root: str
    tree: str
    by: str = ""


AnyCommand = Send | Answer | Cancel | Select | Delete | Late | Revoke | Take | Stir | Revert
