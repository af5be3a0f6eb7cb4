"""A2A routes: the card of each agent, and its JSON-RPC endpoint. A task is a turn, and a context is a session.

The id of a message is its idempotency key: a client that repeats a request gets the same task. A text never approves a
call; only a data part with `approved: true` does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from everturn import __version__, api
from everturn.access.access import Access
from everturn.access.conversations.sessions import SessionAccess
from everturn.config.server_options import ServerOptions
from everturn.core.gates import Gate
from everturn.errors import EverturnError, UnknownGate, UnknownSession, UnknownTurn
from everturn.protocols.a2a import A2aEncoder, TaskNames, task_object
from everturn.protocols.waiting_point import StreamPosition
from everturn.server.errors import RequestError
from everturn.server.middleware import AllowedHosts
from everturn.server.protocols.common import ContinuedTurn, ProtocolReply, answer_open_gates, client_result_text
from everturn.server.protocols.openai.respond import collect
from everturn.server.protocols.openai.turns import ResponseId
from everturn.server.route import HttpRequestContext, Response, Route
from everturn.server.streams.registry import StreamSlot

VERSION: Final = "1.0"
MOST_TASKS: Final = 100  # on a page of ListTasks
KEY_SIZE: Final = 150  # characters of a message id

TASK_NOT_FOUND, NOT_CANCELABLE, PUSH_NOT_SUPPORTED, UNSUPPORTED = -32001, -32002, -32003, -32004
CONTENT_TYPE, NO_EXTENDED_CARD, VERSION_NOT_SUPPORTED = -32005, -32007, -32009
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602

Wire = dict[str, Any]
Params = TypeVar("Params")


class A2aError(Exception):
    """An error in the terms of the protocol: a JSON-RPC code, and what to do."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class RpcRequest(Struct, frozen=True):
    """The body of a JSON-RPC request."""

    jsonrpc: str
    method: Annotated[str, Meta(max_length=200)]
    id: str | int | None = None
    params: dict[str, Any] = {}


class A2aPart(Struct, frozen=True, rename="camel"):
    """A part of a message: a text, the bytes of a file in base64, or data. A URL is never fetched."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: Any = None
    filename: str = ""
    media_type: str = ""


class A2aMessage(Struct, frozen=True, rename="camel"):
    """A message from the client."""

    message_id: Annotated[str, Meta(min_length=1)]
    role: str = "ROLE_USER"
    context_id: str = ""
    task_id: str = ""
    parts: Annotated[list[A2aPart], Meta(max_length=64)] = []


class SendConfiguration(Struct, frozen=True, rename="camel"):
    """How the answer is wanted."""

    return_immediately: bool = False
    history_length: Annotated[int, Meta(ge=0)] | None = None
    task_push_notification_config: dict[str, Any] | None = None


class SendParams(Struct, frozen=True, rename="camel"):
    """The parameters of SendMessage and SendStreamingMessage."""

    message: A2aMessage
    configuration: SendConfiguration = SendConfiguration()


class TaskParams(Struct, frozen=True, rename="camel"):
    """The parameters of GetTask, CancelTask and SubscribeToTask."""

    id: str
    history_length: Annotated[int, Meta(ge=0)] | None = None


class ListParams(Struct, frozen=True, rename="camel"):
    """The parameters of ListTasks."""

    context_id: str = ""
    status: str = ""
    page_size: Annotated[int, Meta(ge=0)] = 50
    page_token: str = ""
    history_length: Annotated[int, Meta(ge=0)] | None = 0
    include_artifacts: bool = False


class TaskId(Struct, frozen=True):
    """The turn behind a task. The id encodes it, and grants no access."""

    session: str
    turn: str

    @property
    def id(self) -> str:
        """The id of the task."""
        data = msgspec.json.encode([self.session, self.turn])
        return base64.urlsafe_b64encode(data).decode().rstrip("=")


def parse_task_id(name: str) -> TaskId:
    """Decode the id of a task.

    Raises:
        A2aError: this is no valid id.
    """
    try:
        raw = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4))
        session, turn = msgspec.json.decode(raw, type=tuple[str, str])
    except (ValueError, msgspec.MsgspecError):
        raise A2aError(TASK_NOT_FOUND, "there is no such task") from None
    task = TaskId(session, turn)
    if task.id != name:
        raise A2aError(TASK_NOT_FOUND, "there is no such task")
    return task


class A2aRoutes:
    """Handlers of the protocol."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._methods: Mapping[str, Callable[[HttpRequestContext, RpcRequest], Awaitable[Wire | Response]]] = {
            "SendMessage": self._send,
            "SendStreamingMessage": self._send_streaming,
            "GetTask": self._get,
            "ListTasks": self._list,
            "CancelTask": self._cancel,
            "SubscribeToTask": self._subscribe,
        }

    # The card ----------------------------------------------------------------------------------------------------------

    async def default_card(self, context: HttpRequestContext) -> Wire:
        """The card of the default agent."""
        return self._card(context, (await context.access.agents()).agents[0])

    async def card(self, context: HttpRequestContext) -> Wire:
        """The card of one agent."""
        return self._card(context, await _find_agent(context.access, context.ids["agent"]))

    def _card(self, context: HttpRequestContext, agent: api.AgentView) -> Wire:
        description = agent.description or f"The agent {agent.name}."
        skill = {"id": agent.name, "name": agent.name, "description": description, "tags": ["chat"]}
        return {
            "name": agent.name,
            "description": description,
            "version": __version__,
            "supportedInterfaces": [
                {
                    "url": f"{self._origin(context)}/a2a/{agent.name}",
                    "protocolBinding": "JSONRPC",
                    "protocolVersion": VERSION,
                }
            ],
            "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
            "securitySchemes": {"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
            "securityRequirements": [{"schemes": {"key": {"list": []}}}],
            "defaultInputModes": ["text/plain", "application/json", "application/octet-stream"],
            "defaultOutputModes": ["text/plain"],
            "skills": [skill],
        }

    def _origin(self, context: HttpRequestContext) -> str:
        """The URL of this server; the middleware has checked the Host."""
        host = context.request.headers["host"]
        return self._options.public_url.rstrip("/") or AllowedHosts(self._options).origin(host)

    # JSON-RPC ----------------------------------------------------------------------------------------------------------

    async def call(self, context: HttpRequestContext) -> Wire | Response:
        """Answer one JSON-RPC request.

        Raises:
            Forbidden, NotRecognised, TooMuch: as in every route, these are HTTP errors.
        """
        request: RpcRequest = context.body
        try:
            version = context.request.headers.get("a2a-version", VERSION)
            if request.jsonrpc != "2.0":
                raise A2aError(INVALID_REQUEST, 'the body is not a JSON-RPC 2.0 request: "jsonrpc" is not "2.0"')
            if version != VERSION:
                raise A2aError(VERSION_NOT_SUPPORTED, f"this server supports version {VERSION}, not {version[:20]!r}")
            if "PushNotificationConfig" in request.method:
                raise A2aError(PUSH_NOT_SUPPORTED, "push notifications are not supported; use /api/webhooks")
            if request.method == "GetExtendedAgentCard":
                raise A2aError(NO_EXTENDED_CARD, "there is no extended card; the card has everything")
            method = self._methods.get(request.method)
            if method is None:
                known = ", ".join(self._methods)
                raise A2aError(METHOD_NOT_FOUND, f"there is no method {request.method!r}; there are {known}")
            result = await method(context, request)
        except (A2aError, EverturnError) as error:
            return {"jsonrpc": "2.0", "id": request.id, "error": _error(error)}
        return result if isinstance(result, Response) else {"jsonrpc": "2.0", "id": request.id, "result": result}

    async def _send(self, context: HttpRequestContext, request: RpcRequest) -> Wire:
        params = _params(request, SendParams)
        with context.streams.reserve(context.access) as seat:
            task, place = await self._start(context, params)
            if not params.configuration.return_immediately:
                await self._wait(context, task, place, seat)
        return {"task": await self._task(context, task, params.configuration.history_length)}

    async def _send_streaming(self, context: HttpRequestContext, request: RpcRequest) -> Response:
        params = _params(request, SendParams)
        with context.streams.reserve(context.access) as seat:
            task, place = await self._start(context, params)
            return await self._stream(context, request, task, place, seat)

    async def _get(self, context: HttpRequestContext, request: RpcRequest) -> Wire:
        params = _params(request, TaskParams)
        return await self._task(context, parse_task_id(params.id), params.history_length)

    async def _cancel(self, context: HttpRequestContext, request: RpcRequest) -> Wire:
        task = parse_task_id(_params(request, TaskParams).id)
        if (await self._view(context, task)).phase.is_terminal:
            raise A2aError(NOT_CANCELABLE, "the task has ended")
        with context.streams.reserve(context.access) as seat:
            await context.access.sessions.cancel_turn(task.session, task.turn, api.CancelTurn())
            await self._wait(context, task, None, seat, is_cancelled=True)
        return await self._task(context, task)

    async def _subscribe(self, context: HttpRequestContext, request: RpcRequest) -> Response:
        task = parse_task_id(_params(request, TaskParams).id)
        if (await self._view(context, task)).phase.is_terminal:
            raise A2aError(UNSUPPORTED, "the task has ended; GetTask returns it")
        with context.streams.reserve(context.access) as seat:
            place = StreamPosition(at=context.server_context.app.clock.now(), still_open=await _open(context, task))
            return await self._stream(context, request, task, place, seat)

    async def _list(self, context: HttpRequestContext, request: RpcRequest) -> Wire:
        params = _params(request, ListParams)
        size = min(params.page_size or 50, MOST_TASKS)
        history = params.history_length or 0
        tasks: list[Wire] = []
        following = ""
        if params.context_id:
            messages = (await context.access.sessions.messages(params.context_id)).messages
            turns = list(dict.fromkeys(message.turn for message in reversed(messages) if message.turn))
            found = [TaskId(params.context_id, turn) for turn in turns[:size]]
        else:
            page = await context.access.sessions.list(size, params.page_token)
            following = page.next or ""
            found = [
                TaskId(session.id, turn)
                for session in page.sessions
                if session.agent == context.ids["agent"] and (turn := await _last_turn(context.access, session.id))
            ]
        for task in found:
            made = await self._task(context, task, history)
            if params.status in ("", "TASK_STATE_UNSPECIFIED", made["status"]["state"]):
                tasks.append(made if params.include_artifacts else {k: v for k, v in made.items() if k != "artifacts"})
        return {"tasks": tasks, "nextPageToken": following, "pageSize": size, "totalSize": len(tasks)}

    # Turns -------------------------------------------------------------------------------------------------------------

    async def _start(self, context: HttpRequestContext, params: SendParams) -> tuple[TaskId, StreamPosition | None]:
        """Send the message as a new turn; or, if it names a task, as the answer to its questions."""
        message = params.message
        if params.configuration.task_push_notification_config:
            raise A2aError(PUSH_NOT_SUPPORTED, "push notifications are not supported; use /api/webhooks")
        if message.role not in ("ROLE_USER", "user"):
            raise A2aError(INVALID_PARAMS, "message.role: the role of a client message must be ROLE_USER")
        if message.task_id:
            return await self._answer(context, message)
        agent = (await _find_agent(context.access, context.ids["agent"])).name
        text, files = await _input(context.access, message.parts)
        key = f"a2a:{message.message_id}"
        if len(message.message_id) > KEY_SIZE or not key.isascii() or not key.isprintable():
            raise A2aError(INVALID_PARAMS, f"message.messageId: at most {KEY_SIZE} plain characters")
        access = context.access
        if message.context_id:
            sent = await access.sessions.send(
                message.context_id, api.NewMessage(text=text, files=files, agent=agent), key
            )
        else:
            sent = await access.sessions.start(api.NewSession(text=text, files=files, agent=agent), key)
        return TaskId(sent.session, sent.turn), None

    async def _answer(self, context: HttpRequestContext, message: A2aMessage) -> tuple[TaskId, StreamPosition]:
        task = parse_task_id(message.task_id)
        view = await self._view(context, task)
        if view.phase.is_terminal:
            raise A2aError(UNSUPPORTED, "the task has ended; send a message with its contextId to start the next one")
        replies = _replies(message.parts, view.gates)
        continued: ContinuedTurn | None = await answer_open_gates(context, task.session, replies, {})
        if continued is None or continued.turn != task.turn:
            raise A2aError(INVALID_PARAMS, "none of these questions is open in this task; GetTask lists those that are")
        return task, continued.position

    async def _view(self, context: HttpRequestContext, task: TaskId) -> api.TurnView:
        try:
            return await context.access.sessions.turn(task.session, task.turn)
        except UnknownSession:
            raise UnknownTurn("there is no such task") from None

    async def _task(self, context: HttpRequestContext, task: TaskId, history: int | None = None) -> Wire:
        return task_object(await self._view(context, task), self._names(context, task), history)

    def _names(self, context: HttpRequestContext, task: TaskId) -> TaskNames:
        return TaskNames(task.id, task.session, task.session, self._origin(context))

    async def _stream(
        self,
        context: HttpRequestContext,
        request: RpcRequest,
        task: TaskId,
        place: StreamPosition | None,
        seat: StreamSlot,
    ) -> Response:
        encoder = A2aEncoder(request.id, self._names(context, task), place)
        return await context.streams.encoded(context.access, task.session, task.turn, encoder, seat=seat)

    async def _wait(
        self,
        context: HttpRequestContext,
        task: TaskId,
        place: StreamPosition | None,
        seat: StreamSlot,
        *,
        is_cancelled: bool = False,
    ) -> None:
        """Wait until the task is over, or needs an answer; a task that is cancelled, until it is over."""
        encoder = A2aEncoder(None, self._names(context, task), place, ends_at_gates=not is_cancelled)
        await collect(context, ResponseId(task.session, task.turn), encoder, 0.0, seat)


async def _find_agent(access: Access, name: str) -> api.AgentView:
    for agent in (await access.agents()).agents:
        if agent.name == name:
            return agent
    raise RequestError("unknown")


async def _open(context: HttpRequestContext, task: TaskId) -> frozenset[str]:
    views = (await context.access.gates.page(task.session)).gates
    return frozenset(view.gate.id for view in views)


async def _last_turn(access: Access, session: str) -> str:
    messages = (await access.sessions.messages(session)).messages
    return messages[-1].turn if messages else ""


async def _input(access: Access, parts: list[A2aPart]) -> tuple[str, list[str]]:
    """The text of a message, and the handles of its files."""
    texts: list[str] = []
    files: list[str] = []
    for part in parts:
        if part.text is not None:
            texts.append(part.text)
        elif part.raw is not None:
            try:
                content = base64.b64decode(part.raw, validate=True)
            except (binascii.Error, ValueError):
                raise A2aError(INVALID_PARAMS, "message.parts: `raw` is not base64") from None
            files.append((await access.files.upload(content, part.media_type, part.filename)).file)
        elif part.url is not None:
            raise A2aError(CONTENT_TYPE, "message.parts: send a file as `raw`; URLs are not fetched")
        else:
            texts.append(client_result_text(part.data))
    if not texts and not files:
        raise A2aError(INVALID_PARAMS, "message.parts: a part must be a text, a file or data")
    return "\n\n".join(texts), files


def _replies(parts: list[A2aPart], gates: list[Gate]) -> dict[str, ProtocolReply]:
    """The answers to the questions of a task: data parts by gate, or one text for one open question.

    Raises:
        A2aError: the message answers nothing.
    """
    replies: dict[str, ProtocolReply] = {}
    for part in parts:
        value: object = part.data
        if not isinstance(value, dict):
            continue
        data = cast("Wire", value)
        gate, reason = data.get("gate"), data.get("reason")
        if isinstance(gate, str):
            reason = reason[:10_000] if isinstance(reason, str) else ""
            arguments, text, result = data.get("arguments"), data.get("text"), data.get("result")
            replies[gate] = (
                ProtocolReply(
                    reason=reason,
                    arguments=cast("Wire", arguments) if isinstance(arguments, dict) else None,
                    text=text if isinstance(text, str) else None,
                    result=None if result is None else client_result_text(result),
                )
                if data.get("approved") is True or result is not None
                else ProtocolReply(approved=False, reason=reason)
            )
    questions = [gate for gate in gates if gate.kind == "question"]
    texts = [part.text for part in parts if part.text]
    if not replies and texts and len(gates) == len(questions) == 1:
        replies[questions[0].id] = ProtocolReply(text="\n\n".join(texts))
    if not replies:
        example = '{"gate": "' + (gates[0].id if gates else "…") + '", "approved": true}'
        raise A2aError(
            INVALID_PARAMS, f"message.parts: a text cannot approve a call; send a data part such as {example}"
        )
    return replies


def _params(request: RpcRequest, kind: type[Params]) -> Params:
    try:
        return msgspec.convert(request.params, kind)
    except msgspec.ValidationError as error:
        raise A2aError(INVALID_PARAMS, f"params: {error}") from None


def _error(error: A2aError | EverturnError) -> Wire:
    """The JSON-RPC error; what every route answers with an HTTP status is raised again."""
    if isinstance(error, A2aError):
        return {"code": error.code, "message": str(error)}
    if isinstance(error, UnknownTurn):
        return {"code": TASK_NOT_FOUND, "message": "there is no such task"}
    if isinstance(error, UnknownSession):
        return {"code": INVALID_PARAMS, "message": "there is no such context; leave contextId out to begin one"}
    if isinstance(error, UnknownGate):
        return {"code": INVALID_PARAMS, "message": "there is no such question"}
    if isinstance(error, RequestError) and error.code == "unfit":
        return {"code": INVALID_PARAMS, "message": str(error)}
    raise error


def a2a_routes(options: ServerOptions) -> list[Route]:
    """The routes of the protocol."""
    handlers = A2aRoutes(options)
    card: Mapping[str, Any] = {"method": "GET", "needs": "viewer", "answer": dict[str, Any], "tag": "a2a"}
    return [
        Route(
            **card,
            path="/.well-known/agent-card.json",
            name="a2a_default_card",
            calls=Access.agents,
            about="The A2A card of the default agent.",
            handler=handlers.default_card,
        ),
        Route(
            **card,
            path="/a2a/{agent}/.well-known/agent-card.json",
            name="a2a_card",
            calls=Access.agents,
            about="The A2A card of an agent.",
            handler=handlers.card,
        ),
        Route(
            method="POST",
            path="/a2a/{agent}",
            name="a2a_call",
            needs="member",
            calls=SessionAccess.send,
            about="A JSON-RPC request of A2A 1.0: SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask or "
            "SubscribeToTask.",
            handler=handlers.call,
            body=RpcRequest,
            answer=dict[str, Any],
            tag="a2a",
        ),
    ]
