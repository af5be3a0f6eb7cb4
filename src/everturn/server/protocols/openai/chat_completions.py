"""Chat Completions endpoint: finds the conversation, sends the new message, and responds with the answer.

The conversation is the session in the header `x-everturn-session` or in `metadata.session`, or one that is recognised by a
fingerprint of its messages.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from starlette.responses import Response

from everturn import api
from everturn.core.tenants.accounts import ConversationFingerprint
from everturn.protocols.chat_completions import ChatCompletionsEncoder
from everturn.protocols.openai_common import openai_error
from everturn.server.protocols.openai.headers import (
    SESSION,
    gate_wait_seconds,
    json_response,
    list_agent_names,
    response_headers,
    response_id_of,
)
from everturn.server.protocols.openai.respond import MonitoredStream, collect
from everturn.server.protocols.openai.schema import (
    ChatBody,
    ChatMessage,
    NewInput,
    bad_request,
    call_fingerprint,
    conversation_fingerprint,
    copy_fingerprint,
    message_fields,
    split_chat_messages,
    store_files,
)
from everturn.server.protocols.openai.turns import ResponseId, answer_all, load_segments
from everturn.server.route import HttpRequestContext
from everturn.server.streams.registry import StreamSlot

SHARED_PREFIX: Final = "~"
"""Prefix of the message id in a fingerprint that several conversations share."""


async def chat(context: HttpRequestContext) -> Response:
    """POST /v1/chat/completions."""
    body: ChatBody = context.body
    wait = gate_wait_seconds(context)  # before anything is sent
    new, before = split_chat_messages(body.messages)
    with context.streams.reserve(context.access) as seat:
        return await _chat(context, body, new, before, wait, seat)


async def _chat(
    context: HttpRequestContext,
    body: ChatBody,
    new: NewInput,
    before: list[ChatMessage],
    wait: float,
    seat: StreamSlot,
) -> Response:
    response_id = await (_submit_results(context, new) if new.results else _send_message(context, body, new, before))
    is_stream, now = bool(body.stream), context.server_context.app.clock.now()
    encoder = ChatCompletionsEncoder(
        response_id.session,
        response_id.turn,
        body.model,
        now,
        segment=response_id.segment,
        with_usage=bool((body.stream_options or {}).get("include_usage")),
        is_stream=is_stream,
    )

    async def save_fingerprint() -> None:
        await _save_fingerprints(context, response_id, body, encoder)

    if is_stream:
        headers = response_headers(response_id, new)
        inner = await context.streams.encoded(
            context.access, response_id.session, response_id.turn, encoder, headers, seat
        )
        return MonitoredStream(inner, encoder, save_fingerprint, wait)
    await collect(context, response_id, encoder, wait, seat)
    await save_fingerprint()
    if encoder.failure:
        # OpenAI's client would retry by itself, and that would send another message.
        view = api.ErrorView(code="turn_failed", message=encoder.failure)
        return json_response(
            openai_error(view, 502), {**response_headers(response_id, new), "x-should-retry": "false"}, 502
        )
    return json_response(encoder.whole(), response_headers(response_id, new))


async def _send_message(
    context: HttpRequestContext, body: ChatBody, new: NewInput, before: list[ChatMessage]
) -> ResponseId:
    """Send the new message: to the named session, to the recognised one, or to a new one."""
    if not new.has_message:
        raise bad_request("the last message must be new: a user message, or the result of a call", "messages")
    session = context.request.headers.get(SESSION) or (body.metadata or {}).get("session")
    fingerprint: ConversationFingerprint | None = None
    if not session and new.has_history:
        principal = context.access.principal
        fingerprint = await context.server_context.accounts.fingerprint(
            principal.tenant, conversation_fingerprint(principal.user, body.user, before)
        )
        if fingerprint is None:
            raise bad_request(
                "this conversation is not known here. The server keeps the history: send only the new message, with "
                f"the header {SESSION} (the first response has it), or a single message to start a new conversation",
                "messages",
            )
        session = fingerprint.session
    fields = message_fields(body, new, await store_files(context.access, new.files), await list_agent_names(context))
    if not session:
        return response_id_of(await context.access.sessions.start(api.NewSession(**fields), context.key))
    after = None
    if fingerprint is not None:
        after = fingerprint.message.removeprefix(SHARED_PREFIX) or None
        if fingerprint.message.startswith(SHARED_PREFIX):
            session = await _copy_session(context, session)
    return response_id_of(
        await context.access.sessions.send(session, api.NewMessage(**fields, after=after), context.key)
    )


async def _copy_session(context: HttpRequestContext, session: str) -> str:
    """Copy a session for a conversation that has the same messages as another one.

    They may be two people's, behind one API key; grants, claims and files of one must not become the other's.
    """
    principal, accounts = context.access.principal, context.server_context.accounts
    name = copy_fingerprint(principal.user, context.key)
    if context.key and (existing := await accounts.fingerprint(principal.tenant, name)) is not None:
        return existing.session
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        file = Path(folder, "session.zip")
        await context.access.sessions.export(session, file)
        copy = (await context.access.sessions.import_file(file)).id
    if context.key:
        await accounts.put_fingerprint(
            principal.tenant, name, ConversationFingerprint(copy, ""), context.server_context.app.clock.now()
        )
    return copy


async def _submit_results(context: HttpRequestContext, new: NewInput) -> ResponseId:
    """Submit the results of client tools, and continue their turn."""
    if new.has_message:
        raise bad_request("submit the tool results first; send the new message after the answer", "messages")
    principal, response_id = context.access.principal, None
    for name in new.results:
        fingerprint = await context.server_context.accounts.fingerprint(
            principal.tenant, call_fingerprint(principal.user, name)
        )
        call_response = (
            None if fingerprint is None else ResponseId(fingerprint.session, *_split_turn(fingerprint.message))
        )
        if call_response is None or (response_id is not None and call_response != response_id):
            raise bad_request("no pending call has this id, or it belongs to another answer", "messages")
        response_id = call_response
    assert response_id is not None
    await answer_all(context, response_id, await load_segments(context, response_id, only_clients=True), new)
    return ResponseId(response_id.session, response_id.turn, response_id.segment + 1)


def _split_turn(text: str) -> tuple[str, int]:
    turn, _, segment = text.rpartition(" ")
    return turn, int(segment)


async def _save_fingerprints(
    context: HttpRequestContext, response_id: ResponseId, body: ChatBody, encoder: ChatCompletionsEncoder
) -> None:
    """Store the fingerprint of the conversation with its answer, so that it is recognised when the client sends it back."""
    principal, accounts, now = (
        context.access.principal,
        context.server_context.accounts,
        context.server_context.app.clock.now(),
    )
    for name in encoder.call_names:
        fingerprint = ConversationFingerprint(response_id.session, f"{response_id.turn} {response_id.segment}")
        await accounts.put_fingerprint(principal.tenant, call_fingerprint(principal.user, name), fingerprint, now)
    calls = [{"id": name} for name in encoder.call_names]
    messages = [message for message in body.messages if message.role not in ("system", "developer")]
    conversation_messages = [*messages, ChatMessage("assistant", encoder.text, calls or None)]
    name, last = (
        conversation_fingerprint(principal.user, body.user, conversation_messages),
        encoder.message if encoder.segments.is_over else "",
    )
    old = await accounts.fingerprint(principal.tenant, name)
    if old is not None and (old.session != response_id.session or old.message.startswith(SHARED_PREFIX)):
        last = SHARED_PREFIX + last
    await accounts.put_fingerprint(principal.tenant, name, ConversationFingerprint(response_id.session, last), now)
