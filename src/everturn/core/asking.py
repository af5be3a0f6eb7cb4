"""Questions to a person, and their answers."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.core.parts import Output
from everturn.core.policy import Rule

GateKind = Literal["call", "egress", "loop", "hand", "result", "question", "form", "client"]
"""What a person is asked: may this call run, may this leave the house, is this loop wanted, will you do this yourself,
may the model read this result; whatever a plugin wants to know, or a tool that runs. The last is for a program: a client
claims the call, does it, and answers with what came of it."""

WITHIN: Final = ("form", "client")
"""What a tool asks while it runs."""


class Gate(Struct, frozen=True, gc=False, omit_defaults=True):
    """A question to a person, bound by `hash` to the very bytes that would be executed."""

    id: str
    turn: str
    call: str
    tool: str
    arguments: str
    hash: str
    expires: float = 0.0  # 0: as long as the turn waits
    kind: GateKind = "call"
    session: str = ""
    identity: str = ""  # of the tool
    why: str = ""  # this is asked
    offers: tuple[Rule, ...] = ()  # what `always` may store: one of these, exactly
    session_only: bool = False  # and what is stored holds in its session, for the user who asked for the turn
    output: Output | None = None  # the result in question, as the model would read it
    failed: bool = False  # it is that of a call that failed
    mark: str = ""  # by which the loop guard knows the call again
    preview: str = ""  # what it would do, as the tool says, to what there is now:
    basis: str = ""  # the call fails if that has changed
    form: str = ""  # the JSON Schema of the answer's `result`
    once: bool = False  # what a client has begun, no other may begin
    lease: float = 0.0  # seconds that a client should claim it for


class Claimed(Struct, frozen=True, gc=False, omit_defaults=True):
    """A client has taken a call upon itself, until a time."""

    by: str
    until: float


class Grant(Struct, frozen=True, gc=False, omit_defaults=True):
    """A remembered answer. It holds in one session and its sub-turns, or (`session` is empty) in all of the tenant's."""

    id: str  # of the gate that was answered
    rule: Rule
    session: str = ""
    by: str = ""
    at: float = 0.0
    expires: float = 0.0  # 0: until it is revoked
    tool: str = ""  # it was given for,
    identity: str = ""  # and as what: another tool of the same name has no part in it
    asker: str = ""  # the user for whose turns alone it holds; "": for everybody's


class Verdict(Struct, frozen=True, gc=False, omit_defaults=True):
    """What was answered: allow (with these arguments, if they were edited), or deny (with a reason the model reads).

    With a `result` nothing is run: whoever answered has done it by hand, and this is what came of it. With a `grant` it
    is allowed from now on, `until` a time, in this session or `everywhere`. A result that was asked about is sent, or
    sent as the `text` that is left of it, or withheld. A form is filled in as the JSON in `result`. With `others` a denial is also that of all that is asked beside.
    """

    allowed: bool
    reason: str = ""
    arguments: str = ""
    by: str = ""
    result: str | None = None
    failed: bool = False  # they tried, and that is why it did not work
    grant: Rule | None = None
    everywhere: bool = False
    until: float = 0.0
    text: str | None = None
    others: bool = False
    claim: str = ""  # the client that did it
