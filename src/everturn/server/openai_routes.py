"""OpenAI's routes: Chat Completions and Responses, for clients that know nothing of us. A `model` is an agent of ours.

The conversation is kept here: a response goes on from `previous_response_id`. Chat Completions are in `openai_chat`.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

from starlette.responses import Response

from everturn import api
from everturn.access.access import Access
from everturn.access.needs import role_of
from everturn.core.state import Phase
from everturn.protocols.openai import openai_error
from everturn.protocols.responses import About, Responses
from everturn.server.lives import Seat
from everturn.server.openai_bodies import (
    ChatBody,
    New,
    ResponsesBody,
    kept,
    refused,
    responses_new,
    said_of,
)
from everturn.server.openai_chat import chat
from everturn.server.openai_giving import collect, feed_log, feed_rest
from everturn.server.openai_turns import Place, answer_all, place_of, seen
from everturn.server.openai_words import agents_of, as_json, headers_of, patience_of, place_at
from everturn.server.routing import Asked, Param, Route

SOON: Final = 5.0  # seconds in which a turn that was cancelled has ended


async def models(asked: Asked) -> Response:
    """GET /v1/models."""
    found = (await asked.access.agents()).agents
    told = [{"id": agent.name, "object": "model", "created": 0, "owned_by": "everturn"} for agent in found]
    return as_json({"object": "list", "data": told})


# Responses -------------------------------------------------------------------------------------------------------------


async def create(asked: Asked) -> Response:
    """POST /v1/responses."""
    body: ResponsesBody = asked.body
    patience_of(asked)  # before anything is sent
    with asked.streams.seat(asked.access) if body.stream or not body.background else nullcontext() as seat:
        return await _create(asked, body, seat)


async def _create(asked: Asked, body: ResponsesBody, seat: Seat | None) -> Response:
    new = responses_new(body.input, body.instructions)
    if body.previous_response_id:
        place = await _after(asked, body, new, place_of(body.previous_response_id))
    else:
        if new.has_history or new.has_answers:
            raise refused(
                "the server keeps the history: send what is new, with previous_response_id", "previous_response_id"
            )
        if not new.has_said:
            raise refused("there is nothing in the input", "input")
        fields = said_of(body, new, await kept(asked.access, new.files), await agents_of(asked))
        place = place_at(await asked.access.begin(api.NewSession(**fields), asked.key))
    about = About(
        place.id,
        place.session,
        place.turn,
        body.model,
        asked.house.runtime.clock.now(),
        place.segment,
        body.previous_response_id or "",
        body.metadata or {},
        bool(body.background),
    )
    encoder, headers = Responses(about), headers_of(place, new)
    if body.stream:
        return await asked.streams.encoded(asked.access, place.session, place.turn, encoder, headers, seat)
    if not body.background:
        await collect(asked, place, encoder, patience_of(asked), seat)
    return as_json(encoder.whole(), headers)


async def _after(asked: Asked, body: ResponsesBody, new: New, place: Place) -> Place:
    """Go on after a response: with its turn, which waits for these answers, or with something new."""
    segments = await seen(asked, place)
    is_asked = segments.now > place.segment or segments.is_parked
    if new.has_answers or (is_asked and not new.has_said):
        if new.has_said:
            raise refused("answer what was asked first; what is new is said after that", "input")
        await answer_all(asked, place, segments, new)
        if not is_asked:
            raise refused("this response has not ended yet; follow it with GET /v1/responses/{id}?stream=true", "input")
        return Place(place.session, place.turn, place.segment + 1)
    if not new.has_said:
        raise refused("there is nothing in the input", "input")
    if segments.unanswered(segments.now):
        raise refused("the response before waits for an answer; give it, or cancel that response", "input")
    fields = said_of(body, new, await kept(asked.access, new.files), await agents_of(asked))
    view = await asked.access.turn(place.session, place.turn)
    after = view.messages[-1].id if segments.is_over and view.messages else None
    return place_at(await asked.access.send(place.session, api.NewMessage(**fields, after=after), asked.key))


async def _told(asked: Asked, after: int = -1) -> tuple[Place, Responses]:
    """A response by its id."""
    place = place_of(asked.ids["id"])
    segments = await seen(asked, place)
    previous = Place(place.session, place.turn, place.segment - 1).id if place.segment else ""
    started = segments.started
    agent = started.options.agent if started else ""
    created = started.at if started else asked.house.runtime.clock.now()
    about = About(place.id, place.session, place.turn, agent, created, place.segment, previous)
    return place, Responses(about, after)


async def retrieve(asked: Asked) -> Response:
    """GET /v1/responses/{id}."""
    place, encoder = await _told(asked, asked.query.get("starting_after", -1))
    if asked.query.get("stream"):
        return await asked.streams.encoded(asked.access, place.session, place.turn, encoder, headers_of(place, New()))
    await feed_log(asked, place, encoder)
    if not encoder.is_done and (await asked.access.turn(place.session, place.turn)).phase is Phase.CANCELLED:
        encoder.end("over")  # before it began
    return as_json(encoder.whole(), headers_of(place, New()))


async def cancel(asked: Asked) -> Response:
    """POST /v1/responses/{id}/cancel."""
    place, encoder = await _told(asked)
    await asked.access.cancel(place.session, place.turn, api.Cancelled(), asked.key)
    await feed_rest(asked, place, encoder, SOON)
    if (await asked.access.turn(place.session, place.turn)).phase is Phase.CANCELLED:
        encoder.status = "cancelled"  # also of one that had ended at a gate
    return as_json(encoder.whole(), headers_of(place, New()))


# The table -------------------------------------------------------------------------------------------------------------

_STREAM: Final = Param("stream", {"type": "boolean"}, "as events, from the first, or after a number")
_AFTER: Final = Param(
    "starting_after",
    {"type": "integer", "minimum": -1, "maximum": 2**53},
    "the `sequence_number` of the last event seen",
)


def _route(method: Any, path: str, calls: Any, handler: Any, about: str, **more: Any) -> Route:
    name = f"openai_{handler.__name__}"
    return Route(
        method=method,
        path=path,
        name=name,
        needs=role_of(calls),
        calls=calls,
        about=about,
        handler=handler,
        tag="openai",
        **more,
    )


ROUTES: Final = [
    _route("GET", "/v1/models", Access.agents, models, "The agents, as models.", answer=dict[str, Any]),
    _route(
        "POST",
        "/v1/chat/completions",
        Access.send,
        chat,
        "An answer of an agent, as OpenAI Chat Completions have it.",
        body=ChatBody,
        answer=dict[str, Any],
    ),
    _route(
        "POST",
        "/v1/responses",
        Access.send,
        create,
        "An answer of an agent, as OpenAI Responses have it.",
        body=ResponsesBody,
        answer=dict[str, Any],
    ),
    _route(
        "GET",
        "/v1/responses/{id}",
        Access.turn,
        retrieve,
        "A response: as it is now, or as its events from after one of them.",
        query=(_STREAM, _AFTER, Param("include_obfuscation", {"type": "boolean"}, "there is none, whatever is said")),
        answer=dict[str, Any],
    ),
    _route(
        "POST", "/v1/responses/{id}/cancel", Access.cancel, cancel, "End the turn of a response.", answer=dict[str, Any]
    ),
]

__all__ = ["ROUTES", "openai_error"]
