"""Chat Completions: find the conversation, say what is new in it, and answer.

It goes on from the session in the header `x-everturn-session` or in `metadata.session`, or from a conversation that is
known again by what was said in it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from starlette.responses import Response

from everturn import api
from everturn.core.accounts import Mark
from everturn.protocols.completions import Completions
from everturn.protocols.openai import openai_error
from everturn.server.lives import Seat
from everturn.server.openai_bodies import (
    ChatBody,
    ChatMessage,
    New,
    asked_of,
    chat_new,
    conversation,
    copied_of,
    kept,
    refused,
    said_of,
)
from everturn.server.openai_giving import Carried, collect
from everturn.server.openai_turns import Place, answer_all, seen
from everturn.server.openai_words import SESSION, agents_of, as_json, headers_of, patience_of, place_at
from everturn.server.routing import Asked

SEVERAL: Final = "~"
"""Stands before the message of a mark when several conversations have come to it."""


async def chat(asked: Asked) -> Response:
    """POST /v1/chat/completions."""
    body: ChatBody = asked.body
    patience = patience_of(asked)  # before anything is sent
    new, before = chat_new(body.messages)
    with asked.streams.seat(asked.access) as seat:
        return await _chat(asked, body, new, before, patience, seat)


async def _chat(
    asked: Asked, body: ChatBody, new: New, before: list[ChatMessage], patience: float, seat: Seat
) -> Response:
    place = await (_go_on(asked, new) if new.results else _say(asked, body, new, before))
    is_stream, now = bool(body.stream), asked.house.runtime.clock.now()
    encoder = Completions(
        place.session,
        place.turn,
        body.model,
        now,
        segment=place.segment,
        with_usage=bool((body.stream_options or {}).get("include_usage")),
        is_stream=is_stream,
    )

    async def keep() -> None:
        await _keep(asked, place, body, encoder)

    if is_stream:
        headers = headers_of(place, new)
        inner = await asked.streams.encoded(asked.access, place.session, place.turn, encoder, headers, seat)
        return Carried(inner, encoder, keep, patience)
    await collect(asked, place, encoder, patience, seat)
    await keep()
    if encoder.failure:
        # Their client would send it all again by itself, and that would be another message.
        view = api.ErrorView(code="turn_failed", message=encoder.failure)
        return as_json(openai_error(view, 502), {**headers_of(place, new), "x-should-retry": "false"}, 502)
    return as_json(encoder.whole(), headers_of(place, new))


async def _say(asked: Asked, body: ChatBody, new: New, before: list[ChatMessage]) -> Place:
    """Send what is new: to the session that is named, to the one that is known again, or to a new one."""
    if not new.has_said:
        raise refused("the last message has to be new: something of the person's, or the result of a call", "messages")
    session = asked.request.headers.get(SESSION) or (body.metadata or {}).get("session")
    mark: Mark | None = None
    if not session and new.has_history:
        principal = asked.access.principal
        mark = await asked.house.accounts.mark(principal.tenant, conversation(principal.user, body.user, before))
        if mark is None:
            raise refused(
                "this conversation is not known here. The server keeps the history: send only the new message, with "
                f"the header {SESSION} (it came with the first answer), or a single message to begin anew",
                "messages",
            )
        session = mark.session
    fields = said_of(body, new, await kept(asked.access, new.files), await agents_of(asked))
    if not session:
        return place_at(await asked.access.begin(api.NewSession(**fields), asked.key))
    after = None
    if mark is not None:
        after = mark.message.removeprefix(SEVERAL) or None
        if mark.message.startswith(SEVERAL):
            session = await _copied(asked, session)
    return place_at(await asked.access.send(session, api.NewMessage(**fields, after=after), asked.key))


async def _copied(asked: Asked, session: str) -> str:
    """A session of its own for a conversation that cannot be told from another one by what was said in it.

    They may be two people's, behind one key; what one of them allows, claims or keeps must not be the other's.
    """
    principal, accounts = asked.access.principal, asked.house.accounts
    name = copied_of(principal.user, asked.key)
    if asked.key and (known := await accounts.mark(principal.tenant, name)) is not None:
        return known.session
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        file = Path(folder, "session.zip")
        await asked.access.export(session, file)
        copy = (await asked.access.bring_in(file)).id
    if asked.key:
        await accounts.put_mark(principal.tenant, name, Mark(copy, ""), asked.house.runtime.clock.now())
    return copy


async def _go_on(asked: Asked, new: New) -> Place:
    """Hand in what calls came to, and go on with their turn."""
    if new.has_said:
        raise refused("hand in the results first; what is new is said after the answer", "messages")
    principal, place = asked.access.principal, None
    for name in new.results:
        mark = await asked.house.accounts.mark(principal.tenant, asked_of(principal.user, name))
        found = None if mark is None else Place(mark.session, *_apart(mark.message))
        if found is None or (place is not None and found != place):
            raise refused("no call of this id waits here, or it is of another answer", "messages")
        place = found
    assert place is not None
    await answer_all(asked, place, await seen(asked, place, only_clients=True), new)
    return Place(place.session, place.turn, place.segment + 1)


def _apart(said: str) -> tuple[str, int]:
    turn, _, segment = said.rpartition(" ")
    return turn, int(segment)


async def _keep(asked: Asked, place: Place, body: ChatBody, encoder: Completions) -> None:
    """Remember the conversation with its answer, so that it is known when the client brings it back."""
    principal, accounts, now = asked.access.principal, asked.house.accounts, asked.house.runtime.clock.now()
    for name in encoder.call_names:
        mark = Mark(place.session, f"{place.turn} {place.segment}")
        await accounts.put_mark(principal.tenant, asked_of(principal.user, name), mark, now)
    calls = [{"id": name} for name in encoder.call_names]
    talk = [message for message in body.messages if message.role not in ("system", "developer")]
    whole = [*talk, ChatMessage("assistant", encoder.text, calls or None)]
    name, last = conversation(principal.user, body.user, whole), encoder.message if encoder.segments.is_over else ""
    old = await accounts.mark(principal.tenant, name)
    if old is not None and (old.session != place.session or old.message.startswith(SEVERAL)):
        last = SEVERAL + last
    await accounts.put_mark(principal.tenant, name, Mark(place.session, last), now)
