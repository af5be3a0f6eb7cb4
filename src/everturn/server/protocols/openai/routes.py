"""OpenAI routes: the Responses endpoints, the list of models, and the route table. A `model` is one of our agents.

The server keeps the conversation: a response continues from `previous_response_id`. Chat Completions are in
`chat_completions`.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

from starlette.responses import Response

from everturn import api
from everturn.access.access import Access
from everturn.access.context.roles import role_of
from everturn.access.conversations.sessions import SessionAccess
from everturn.core.phases import Phase
from everturn.protocols.openai_common import openai_error
from everturn.protocols.responses import ResponseHeader, ResponsesEncoder
from everturn.server.protocols.openai.chat_completions import chat
from everturn.server.protocols.openai.headers import (
    gate_wait_seconds,
    json_response,
    list_agent_names,
    response_headers,
    response_id_of,
)
from everturn.server.protocols.openai.respond import collect, feed_log, feed_rest
from everturn.server.protocols.openai.schema import (
    ChatBody,
    NewInput,
    ResponsesBody,
    bad_request,
    message_fields,
    parse_responses_input,
    store_files,
)
from everturn.server.protocols.openai.turns import ResponseId, answer_all, load_segments, parse_response_id
from everturn.server.route import HttpRequestContext, Param, Route
from everturn.server.streams.registry import StreamSlot

CANCEL_TIMEOUT: Final = 5.0  # seconds in which a cancelled turn has ended


async def models(context: HttpRequestContext) -> Response:
    """GET /v1/models."""
    agents = (await context.access.agents()).agents
    entries = [{"id": agent.name, "object": "model", "created": 0, "owned_by": "everturn"} for agent in agents]
    return json_response({"object": "list", "data": entries})


# Responses -------------------------------------------------------------------------------------------------------------


async def create(context: HttpRequestContext) -> Response:
    """POST /v1/responses."""
    body: ResponsesBody = context.body
    gate_wait_seconds(context)  # before anything is sent
    with context.streams.reserve(context.access) if body.stream or not body.background else nullcontext() as seat:
        return await _create(context, body, seat)


async def _create(context: HttpRequestContext, body: ResponsesBody, seat: StreamSlot | None) -> Response:
    new = parse_responses_input(body.input, body.instructions)
    if body.previous_response_id:
        response_id = await _after(context, body, new, parse_response_id(body.previous_response_id))
    else:
        if new.has_history or new.has_answers:
            raise bad_request(
                "the server keeps the history: send only new items, with previous_response_id", "previous_response_id"
            )
        if not new.has_message:
            raise bad_request("the input is empty", "input")
        fields = message_fields(
            body, new, await store_files(context.access, new.files), await list_agent_names(context)
        )
        response_id = response_id_of(await context.access.sessions.start(api.NewSession(**fields), context.key))
    about = ResponseHeader(
        response_id.id,
        response_id.session,
        response_id.turn,
        body.model,
        context.server_context.app.clock.now(),
        response_id.segment,
        body.previous_response_id or "",
        body.metadata or {},
        bool(body.background),
    )
    encoder, headers = ResponsesEncoder(about), response_headers(response_id, new)
    if body.stream:
        return await context.streams.encoded(
            context.access, response_id.session, response_id.turn, encoder, headers, seat
        )
    if not body.background:
        await collect(context, response_id, encoder, gate_wait_seconds(context), seat)
    return json_response(encoder.whole(), headers)


async def _after(
    context: HttpRequestContext, body: ResponsesBody, new: NewInput, response_id: ResponseId
) -> ResponseId:
    """Continue after a response: with its turn, which waits for these answers, or with a new message."""
    segments = await load_segments(context, response_id)
    is_waiting = segments.current > response_id.segment or segments.is_suspended
    if new.has_answers or (is_waiting and not new.has_message):
        if new.has_message:
            raise bad_request("answer the pending approvals or calls first; send the new message after that", "input")
        await answer_all(context, response_id, segments, new)
        if not is_waiting:
            raise bad_request(
                "this response has not ended yet; follow it with GET /v1/responses/{id}?stream=true", "input"
            )
        return ResponseId(response_id.session, response_id.turn, response_id.segment + 1)
    if not new.has_message:
        raise bad_request("the input is empty", "input")
    if segments.unanswered(segments.current):
        raise bad_request("the previous response waits for an answer; send it, or cancel that response", "input")
    fields = message_fields(body, new, await store_files(context.access, new.files), await list_agent_names(context))
    view = await context.access.sessions.turn(response_id.session, response_id.turn)
    after = view.messages[-1].id if segments.is_over and view.messages else None
    return response_id_of(
        await context.access.sessions.send(response_id.session, api.NewMessage(**fields, after=after), context.key)
    )


async def _load_response(context: HttpRequestContext, after: int = -1) -> tuple[ResponseId, ResponsesEncoder]:
    """Load a response by its id."""
    response_id = parse_response_id(context.ids["id"])
    segments = await load_segments(context, response_id)
    previous = (
        ResponseId(response_id.session, response_id.turn, response_id.segment - 1).id if response_id.segment else ""
    )
    started = segments.started
    agent = started.options.agent if started else ""
    created = started.at if started else context.server_context.app.clock.now()
    about = ResponseHeader(
        response_id.id, response_id.session, response_id.turn, agent, created, response_id.segment, previous
    )
    return response_id, ResponsesEncoder(about, after)


async def retrieve(context: HttpRequestContext) -> Response:
    """GET /v1/responses/{id}."""
    response_id, encoder = await _load_response(context, context.query.get("starting_after", -1))
    if context.query.get("stream"):
        return await context.streams.encoded(
            context.access, response_id.session, response_id.turn, encoder, response_headers(response_id, NewInput())
        )
    await feed_log(context, response_id, encoder)
    if (
        not encoder.is_done
        and (await context.access.sessions.turn(response_id.session, response_id.turn)).phase is Phase.CANCELLED
    ):
        encoder.end("over")  # cancelled before it began
    return json_response(encoder.whole(), response_headers(response_id, NewInput()))


async def cancel(context: HttpRequestContext) -> Response:
    """POST /v1/responses/{id}/cancel."""
    response_id, encoder = await _load_response(context)
    await context.access.sessions.cancel_turn(response_id.session, response_id.turn, api.CancelTurn(), context.key)
    await feed_rest(context, response_id, encoder, CANCEL_TIMEOUT)
    if (await context.access.sessions.turn(response_id.session, response_id.turn)).phase is Phase.CANCELLED:
        encoder.status = "cancelled"  # also if it had ended at a gate
    return json_response(encoder.whole(), response_headers(response_id, NewInput()))


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
    _route("GET", "/v1/models", Access.agents, models, "List the agents, as OpenAI models.", answer=dict[str, Any]),
    _route(
        "POST",
        "/v1/chat/completions",
        SessionAccess.send,
        chat,
        "Run an agent with OpenAI's Chat Completions protocol.",
        body=ChatBody,
        answer=dict[str, Any],
    ),
    _route(
        "POST",
        "/v1/responses",
        SessionAccess.send,
        create,
        "Run an agent with OpenAI's Responses protocol.",
        body=ResponsesBody,
        answer=dict[str, Any],
    ),
    _route(
        "GET",
        "/v1/responses/{id}",
        SessionAccess.turn,
        retrieve,
        "Get a response, or stream its events after a sequence number.",
        query=(
            _STREAM,
            _AFTER,
            Param("include_obfuscation", {"type": "boolean"}, "Ignored: Everturn adds no obfuscation."),
        ),
        answer=dict[str, Any],
    ),
    _route(
        "POST",
        "/v1/responses/{id}/cancel",
        SessionAccess.cancel_turn,
        cancel,
        "Cancel the turn of a response.",
        answer=dict[str, Any],
    ),
]

__all__ = ["ROUTES", "openai_error"]
