"""Approval gates and their answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from everturn.api.base import Body, GrantReach, Name, View
from everturn.core.gates import CallClaim, Gate, Grant
from everturn.core.rules.policy import Rule


class AnswerGate(Body, frozen=True, kw_only=True):
    """Answer a gate: one of `allow`, `deny` and `result`; see `Turn.answer`.

    `hash` is the hash of the gate that was shown.
    """

    hash: Annotated[str, Meta(min_length=1, max_length=200)]
    allow: Literal["once", "always"] | None = None
    rule: Rule | None = None  # with allow="always": one of the gate's offers
    deny: Annotated[str, Meta(max_length=10_000)] | bool | None = None
    arguments: dict[str, Any] | None = None
    result: Annotated[str, Meta(max_length=4_000_000)] | None = None
    text: Annotated[str, Meta(max_length=4_000_000)] | None = None
    everywhere: bool = False
    within: GrantReach = (
        ""  # with `everywhere`: in turns of the same "user" (""), of the same "folder", or of the "tenant"
    )
    until: Annotated[float, Meta(ge=0)] = 0.0
    others: bool = False
    stop: bool = False
    failed: bool = False
    claim: Name = ""


class ClaimGate(Body, frozen=True, kw_only=True):
    """Claim a call for a client; `claim` is an unguessable name, which the client repeats in its answer."""

    hash: Annotated[str, Meta(min_length=1, max_length=200)]
    claim: Annotated[str, Meta(min_length=16, max_length=200)]
    lease: Annotated[float, Meta(gt=0, le=3600)] = 60.0


class GateView(View, frozen=True, kw_only=True):
    """An open gate: its session, since when it is open, and the claim of a client, if any."""

    session: str
    title: str
    opened: float
    gate: Gate
    claim: CallClaim | None = None


class GateList(View, frozen=True, kw_only=True):
    """A page of open gates, oldest first, and the cursor of the next page; "": this is the last page."""

    gates: list[GateView]
    next: str = ""


class ClaimView(View, frozen=True, kw_only=True):
    """A client's claim of a call, until a time."""

    until: float


class SessionGrantList(View, frozen=True, kw_only=True):
    """The valid grants."""

    grants: list[Grant]
