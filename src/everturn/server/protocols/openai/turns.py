"""Turns behind OpenAI responses: finds a turn by a response id, reads its segments, and answers its gates.

Every id from outside is first looked up through `Access`; the log is read only of a turn that belongs to the caller.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from hmac import compare_digest

import msgspec
from msgspec import Struct

from everturn import api
from everturn.core.events import Entry
from everturn.core.gate_rows import GateRow
from everturn.errors import AnsweredOtherwise, GateClosed, UnknownSession, UnknownTurn
from everturn.protocols.openai_common import APPROVABLE, TurnSegments, approval_name, call_name, segments_of_log
from everturn.server.protocols.openai.schema import NewInput, bad_request
from everturn.server.route import HttpRequestContext

PREFIX = "resp_"
MOST_SEGMENTS = 1_000_000


class ResponseId(Struct, frozen=True):
    """The position of a response: a segment of a turn. The id encodes it, and grants no access."""

    session: str
    turn: str
    segment: int = 0

    @property
    def id(self) -> str:
        """The id of the response."""
        data = msgspec.json.encode([self.session, self.turn, self.segment])
        return PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")


def parse_response_id(name: str) -> ResponseId:
    """Decode the id of a response.

    Raises:
        UnknownTurn: this is no valid id.
    """
    data = name.removeprefix(PREFIX)
    try:
        raw = base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
        session, turn, segment = msgspec.json.decode(raw, type=tuple[str, str, int])
    except (ValueError, msgspec.MsgspecError):
        raise UnknownTurn("there is no such response") from None
    response_id = ResponseId(session, turn, segment)
    if response_id.id != name or not 0 <= segment <= MOST_SEGMENTS:
        raise UnknownTurn("there is no such response")
    return response_id


async def load_segments(
    context: HttpRequestContext, response_id: ResponseId, *, only_clients: bool = False
) -> TurnSegments:
    """The segments of a turn of the caller, as far as its log goes.

    Raises:
        UnknownTurn: there is no such response; one of another user looks the same.
    """
    try:
        await context.access.sessions.turn(response_id.session, response_id.turn)
        entries = await read_turn_log(context, response_id)
    except UnknownSession:
        raise UnknownTurn("there is no such response") from None
    segments = segments_of_log((entry.event for entry in entries), only_clients=only_clients)
    if response_id.segment > segments.current + segments.is_suspended:
        raise UnknownTurn("there is no such response")
    return segments


async def read_turn_log(context: HttpRequestContext, response_id: ResponseId) -> list[Entry]:
    """The log of a turn that is known to belong to the caller."""
    with context.access.scope.tenant_scope():
        return list(await context.server_context.app.store.events(response_id.session, turn=response_id.turn))


# Answers ---------------------------------------------------------------------------------------------------------------


async def answer_all(
    context: HttpRequestContext, response_id: ResponseId, segments: TurnSegments, new: NewInput
) -> None:
    """Answer the turn's gates with a client's results and approvals; an identical answer again does nothing.

    All gates are looked up first, so that nothing of a wrong batch is applied.

    Raises:
        RequestError: one of the ids is no gate of this turn, or a gate is not answered.
        AnsweredOtherwise, GateClosed: a gate has another answer, or is closed.
    """
    results = [
        (_find_gate(response_id, segments, name, call_name, ("client",)), text) for name, text in new.results.items()
    ]
    approvals = [
        (_find_gate(response_id, segments, name, approval_name, APPROVABLE), *answer)
        for name, answer in new.approvals.items()
    ]
    answered_ids = {row.gate.id for row, *_ in (*results, *approvals)}
    if missing := [gate.tool for gate in segments.unanswered(response_id.segment) if gate.id not in answered_ids]:
        raise bad_request(f"answer all pending calls in one request; missing: {', '.join(missing)}", "input")
    for row, text in results:
        await _submit_result(context, response_id, row, text)
    for row, is_allowed, why in approvals:
        if not _is_repeated(row, is_allowed, None):
            answer = api.AnswerGate(
                hash=row.gate.hash, allow="once" if is_allowed else None, deny=_denial(is_allowed, why)
            )
            await context.access.gates.resolve(response_id.session, row.gate.id, answer)


def _denial(is_allowed: bool, why: str) -> str | bool | None:
    return None if is_allowed else why[:10_000] or True


def _find_gate(
    response_id: ResponseId, segments: TurnSegments, name: str, named: Callable[..., str], kinds: tuple[str, ...]
) -> GateRow:
    for row in segments.rows.values():
        if row.gate.kind in kinds and compare_digest(named(response_id.session, row.gate).encode(), name.encode()):
            return row
    raise bad_request("no pending call has this id; use the ids of the previous response", "input")


def _is_repeated(row: GateRow, is_allowed: bool, result: str | None) -> bool:
    """Whether the gate already has this very answer."""
    if row.is_open:
        return False
    if row.resolution is None:
        raise GateClosed(f"gate {row.gate.id} is closed: its answer is no longer needed")
    if row.resolution.allowed != is_allowed or row.resolution.result != result:
        raise AnsweredOtherwise(f"gate {row.gate.id} has already been answered in another way")
    return True


async def _submit_result(context: HttpRequestContext, response_id: ResponseId, row: GateRow, text: str) -> None:
    """Submit the result of a client's call: claim and answer it at once, because the client has run it."""
    if _is_repeated(row, True, text):
        return
    gate, user = row.gate, context.access.principal.user
    # The claim is derived from the answer, so that a request whose response was lost can be repeated.
    claim = hashlib.sha256(msgspec.json.encode(["openai", user, gate.id, gate.hash, text])).hexdigest()
    try:
        await context.access.gates.claim(response_id.session, gate.id, api.ClaimGate(hash=gate.hash, claim=claim))
    except AnsweredOtherwise:
        pass  # it may have been this very answer, on its way into the log
    await context.access.gates.resolve(
        response_id.session, gate.id, api.AnswerGate(hash=gate.hash, result=text, claim=claim)
    )
