"""Approval gates: questions to a person or a client, their resolutions, and the grants that remember them."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.core.parts import Output
from everturn.core.rules.policy import Rule

GateKind = Literal["call", "egress", "loop", "manual", "result", "question", "form", "client", "limit"]
"""What a gate asks: may this call run (call), may this data be sent outside (egress), is this loop wanted (loop), run
this by hand (manual), may the model read this result (result), a plugin's question (question), a running tool's form
(form), may the turn take more steps (limit). A `client` gate is for a program: a client claims the call, runs it, and answers with the result."""

GATE_KINDS_OF_RUNNING_TOOL: Final = ("form", "client")
"""The kinds of gates that a running tool opens."""

GATE_KINDS_FOR_MEMBERS: Final = (*GATE_KINDS_OF_RUNNING_TOOL, "limit")
"""The kinds of gates that members may answer; all others are for approvers. Who may send a message may also continue a turn."""

GATE_KINDS_WITHOUT_CALL: Final = ("question", "limit")
"""The kinds of gates that are about a turn, not about one of its calls."""


class Gate(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A question to a person or a client, bound by `hash` to the exact bytes that would be executed."""

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
    why: str = ""  # why the gate was opened
    offers: tuple[Rule, ...] = ()  # the rules that an answer may store as a grant: exactly one of these
    session_only: bool = False  # such a grant holds only in its session, for the user who started the turn
    output: Output | None = None  # the result in question, as the model would read it
    failed: bool = False  # the call failed, and this is its error
    fingerprint: str = ""  # the fingerprint of the call, for loop detection
    preview: str = ""  # what the call would change, as its tool says
    base_version: str = ""  # the base version of the preview: the call fails if it has changed
    form: str = ""  # the JSON Schema of the answer's `result`
    once: bool = False  # once a client has claimed the call, no other client may run it
    lease: float = 0.0  # seconds that a client should claim it for
    folder: str = ""  # the folder that the turn works in: a grant of one of the offers may be for it alone

    @property
    def offer_for_all(self) -> Rule | None:
        """The offered rule that covers every call of the tool, whatever its arguments ("allow all edits"), if there is one."""
        return next((rule for rule in self.offers if rule.match and rule.is_for_everything), None)


class CallClaim(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A client's claim of a call, valid until a time."""

    by: str
    until: float


GrantLimit = Literal["", "user", "folder"]
"""Of the turns of a tenant, those that a grant covers: all, those of the same user, or those in the same folder."""


class Grant(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A remembered approval.

    It holds in one session and its sub-agent runs or, without `session`, in the whole tenant: in all turns, in those of
    one user (`asker`), or in those that work in one `folder`.
    """

    id: str  # of the gate that was answered
    rule: Rule
    session: str = ""
    by: str = ""
    at: float = 0.0
    expires: float = 0.0  # 0: until it is revoked
    tool: str = ""  # the tool it was given for
    identity: str = ""  # of that tool: the grant does not cover another tool of the same name
    asker: str = ""  # the user whose turns it covers; "": the turns of all users
    folder: str = ""  # the folder whose turns it covers; "": the turns in any folder


class GateResolution(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """The answer to a gate: allow (with `arguments`, if they were edited), or deny (with a `reason` that the model
    reads).

    With a `result` nothing runs: the person or client ran the call by hand, and this is its result. With a `grant` such
    calls are allowed from now on, `until` a time, in this session or `everywhere` (`within` the turns of the same user
    or the same folder only). A reviewed result is sent, sent as
    the redacted `text`, or withheld. A form is answered with the JSON in `result`. A denial with `others` also denies
    the other open gates of the session and its sub-agent runs; one with `stop` ends the turn without another request.
    """

    allowed: bool
    reason: str = ""
    arguments: str = ""
    by: str = ""
    result: str | None = None
    failed: bool = False  # they ran it and it failed; `result` says why
    grant: Rule | None = None
    everywhere: bool = False
    until: float = 0.0
    text: str | None = None
    others: bool = False
    claim: str = ""  # the client that ran the call
    stop: bool = False
    within: GrantLimit = ""
