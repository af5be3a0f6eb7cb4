"""A turn behind a request of OpenAI's clients: found by the id of a response, read, and answered.

Whatever comes from outside is looked up through `Access` first; the log is read only of what is then known to be theirs.
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
from everturn.core.gates import GateRow
from everturn.errors import AnsweredOtherwise, GateClosed, UnknownSession, UnknownTurn
from everturn.protocols.openai import APPROVABLE, Segments, approval_name, call_name, walked
from everturn.server.openai_bodies import New, refused
from everturn.server.routing import Asked

PREFIX = "resp_"
MOST_SEGMENTS = 1_000_000


class Place(Struct, frozen=True):
    """Where a response is: a segment of a turn. Its id says this, and proves nothing."""

    session: str
    turn: str
    segment: int = 0

    @property
    def id(self) -> str:
        """The id of the response."""
        said = msgspec.json.encode([self.session, self.turn, self.segment])
        return PREFIX + base64.urlsafe_b64encode(said).decode().rstrip("=")


def place_of(name: str) -> Place:
    """The id of a response → where it would be.

    Raises:
        UnknownTurn: nothing can have this id.
    """
    data = name.removeprefix(PREFIX)
    try:
        said = base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
        session, turn, segment = msgspec.json.decode(said, type=tuple[str, str, int])
    except (ValueError, msgspec.MsgspecError):
        raise UnknownTurn("there is no such response") from None
    place = Place(session, turn, segment)
    if place.id != name or not 0 <= segment <= MOST_SEGMENTS:
        raise UnknownTurn("there is no such response")
    return place


async def seen(asked: Asked, place: Place, *, only_clients: bool = False) -> Segments:
    """A turn of theirs, as far as its log goes.

    Raises:
        UnknownTurn: there is no such response; one of somebody else looks the same.
    """
    try:
        await asked.access.turn(place.session, place.turn)
        entries = await log_of(asked, place)
    except UnknownSession:
        raise UnknownTurn("there is no such response") from None
    segments = walked((entry.event for entry in entries), only_clients=only_clients)
    if place.segment > segments.now + segments.is_parked:
        raise UnknownTurn("there is no such response")
    return segments


async def log_of(asked: Asked, place: Place) -> list[Entry]:
    """The log of a turn that is known to be theirs."""
    with asked.access.within():
        return list(await asked.house.runtime.store.events(place.session, turn=place.turn))


# Answers ---------------------------------------------------------------------------------------------------------------


async def answer_all(asked: Asked, place: Place, segments: Segments, new: New) -> None:
    """Hand in what a client brings for gates of this turn; for the same thing again nothing is done.

    All of them are looked for first, so that of a wrong batch nothing is taken.

    Raises:
        Refusal: nothing like this is asked here.
        AnsweredOtherwise, GateClosed: not any more.
    """
    results = [(_row(place, segments, name, call_name, ("client",)), text) for name, text in new.results.items()]
    approvals = [
        (_row(place, segments, name, approval_name, APPROVABLE), *said) for name, said in new.approvals.items()
    ]
    given = {row.gate.id for row, *_ in (*results, *approvals)}
    if missing := [gate.tool for gate in segments.unanswered(place.segment) if gate.id not in given]:
        raise refused(f"answer all that was asked, at once; these are not answered: {', '.join(missing)}", "input")
    for row, text in results:
        await _done(asked, place, row, text)
    for row, is_allowed, why in approvals:
        if not _is_repeated(row, is_allowed, None):
            said = api.Answered(hash=row.gate.hash, allow="once" if is_allowed else None, deny=_denial(is_allowed, why))
            await asked.access.answer(place.session, row.gate.id, said)


def _denial(is_allowed: bool, why: str) -> str | bool | None:
    return None if is_allowed else why[:10_000] or True


def _row(place: Place, segments: Segments, name: str, named: Callable[..., str], kinds: tuple[str, ...]) -> GateRow:
    for row in segments.rows.values():
        if row.gate.kind in kinds and compare_digest(named(place.session, row.gate).encode(), name.encode()):
            return row
    raise refused("nothing of this id is asked here; answer with the ids of the response before", "input")


def _is_repeated(row: GateRow, is_allowed: bool, result: str | None) -> bool:
    """Whether just this was answered before."""
    if row.is_open:
        return False
    if row.verdict is None:
        raise GateClosed(f"gate {row.gate.id} is closed: nobody asks this any more")
    if row.verdict.allowed != is_allowed or row.verdict.result != result:
        raise AnsweredOtherwise(f"gate {row.gate.id} has been answered otherwise already")
    return True


async def _done(asked: Asked, place: Place, row: GateRow, text: str) -> None:
    """Hand in what a call came to: it is claimed and answered at once, for by now it was done."""
    if _is_repeated(row, True, text):
        return
    gate, user = row.gate, asked.access.principal.user
    # The same again is the same client, so that a request whose answer was lost can be sent once more.
    claim = hashlib.sha256(msgspec.json.encode(["openai", user, gate.id, gate.hash, text])).hexdigest()
    try:
        await asked.access.claim(place.session, gate.id, api.Claim(hash=gate.hash, claim=claim))
    except AnsweredOtherwise:
        pass  # it may have been this very answer, on its way into the log
    await asked.access.answer(place.session, gate.id, api.Answered(hash=gate.hash, result=text, claim=claim))
