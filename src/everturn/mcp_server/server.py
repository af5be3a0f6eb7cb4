"""Agent server: runs the calls of MCP clients as turns of an agent, and returns their results.

A gate becomes an elicitation. A client of the modern protocol receives the forms and a ticket, and the server keeps
nothing for it: it may send the answers tomorrow, to another process. An older client is asked while it waits.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from everturn import EverturnError, __version__
from everturn.app import App
from everturn.chat.session import Chat
from everturn.chat.turn import Turn
from everturn.core.canonical_json import JsonObject
from everturn.core.events import CallFinished
from everturn.core.gates import Gate
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart
from everturn.core.phases import Phase
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError, UnknownSession, leaf_errors
from everturn.mcp_server.direct_call import CLIENT_MODEL_NAME, ClientModel, encode_call
from everturn.mcp_server.elicitation import (
    ElicitationForm,
    ResumeTicket,
    make_denial,
    make_form,
    parse_form_reply,
    read_ticket,
    write_ticket,
)
from everturn.mcp_server.turn_progress import TurnProgress
from everturn.running.permissions import Permissions

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext

log = logging.getLogger(__name__)

MAX_CALLS = 200  # calls at once
LARGEST_FILE = 4_000_000  # bytes of a file that is sent whole
CANCEL_TIMEOUT = 5.0  # seconds to cancel the turn of an abandoned call
SESSION: Final = re.compile(r"mcp_[0-9a-f]{16,64}")  # only sessions of this server, not others in the same store
NO_SESSION = "there is no session {session!r} here; leave it out to begin one"
ABOUT_ASK = (
    "Give a task to the agent and get its answer. It works in a session of its own; with the `session` of an earlier "
    "answer it goes on there, and remembers. Without a task it goes on with what waits in that session."
)
ASK_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "description": "what is to be done, in words"},
        "session": {"type": "string", "description": "the session of an earlier answer, to go on there"},
    },
    "additionalProperties": False,
}


class AgentServer:
    """An agent and its tools for MCP clients.

    `rules` are those of the runtime. Here they only hide tools that they deny outright; they apply to every call in any
    case.
    """

    def __init__(
        self,
        app: App,
        *,
        model: str = "",
        name: str = "everturn",
        options: TurnOptions | None = None,
        rules: Iterable[Rule] = (),
        about: str = "",
    ) -> None:
        if importlib.util.find_spec("mcp") is None:
            raise ConfigError("`everturn mcp` needs the mcp library: pip install 'everturn[mcp]'")
        from mcp.server import Server

        self._app, self._model = app, model
        self._options = options or TurnOptions()
        self._permits = Permissions(rules)
        self._under_way = 0
        self.is_stopping = False  # this process is stopping; another one continues unfinished turns
        app.add_model(ClientModel())  # before the runtime starts, because unfinished calls continue with it
        self.server: Server[Any] = Server(
            name,
            version=__version__,
            instructions=about or None,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    @property
    def ask_name(self) -> str:
        """Name of the tool that takes tasks."""
        return "ask" if "ask" not in self._app.tools else "ask_agent"

    def specs(self) -> dict[str, ToolSpec]:
        """Return the agent's tools, without those that are denied outright."""
        enabled = self._app.registry_of(self._options.agent).enabled(self._options.tools)
        return {spec.name: spec for spec in self._permits.offered_tools(enabled, self._options)}

    async def _list(self, ctx: Any, params: Any) -> types.ListToolsResult:
        import mcp_types as types

        ask = types.Tool(name=self.ask_name, description=ABOUT_ASK, input_schema=ASK_SCHEMA)
        tools = [
            types.Tool(
                name=spec.name,
                description=spec.description,
                input_schema={"type": "object", **spec.schema},
                annotations=types.ToolAnnotations(read_only_hint=spec.read_only, idempotent_hint=not spec.at_most_once),
            )
            for spec in self.specs().values()
        ]
        return types.ListToolsResult(tools=[ask, *tools])

    async def _call(self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS

        is_ask = params.name == self.ask_name
        if not is_ask and params.name not in (specs := self.specs()):
            names = ", ".join([self.ask_name, *specs])
            raise MCPError(INVALID_PARAMS, f"there is no tool called {params.name!r}; there are: {names}")
        if self._under_way >= MAX_CALLS:
            return _failed(f"there are {MAX_CALLS} calls under way already; try again when some have ended")
        self._under_way += 1
        try:
            return await self._serve(ctx, params, is_ask)
        except* EverturnError as errors:
            failure = leaf_errors(errors)[0]
        finally:
            self._under_way -= 1
        return _failed(str(failure))

    async def _serve(self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams, is_ask: bool) -> Any:
        arguments = params.arguments or {}
        if params.request_state is not None:
            ticket = read_ticket(params.request_state)
            if ticket is None:
                raise ConfigError("this request state was not issued by this server; call the tool again without it")
            chat = await self._open_session(ticket.session, is_ask, params.name)
            turn = chat.turn(ticket.turn)
        else:
            ticket = None
            chat, turn = await (self._ask(arguments) if is_ask else self._begin(params.name, arguments))
        call = _ClientCall(ctx, chat, turn, is_ask, ticket)
        try:
            if ticket is not None:
                await call.answer(ticket, params.input_responses or {})
            return await call.finish(ticket.cursor if ticket is not None else "")
        except asyncio.CancelledError:
            import anyio

            if not self.is_stopping:
                with anyio.move_on_after(CANCEL_TIMEOUT, shield=True):  # the client has cancelled the call
                    await turn.cancel()
            raise

    async def _ask(self, arguments: JsonObject) -> tuple[Chat, Turn]:
        task, session = arguments.get("task", ""), arguments.get("session", "")
        unknown = set(arguments) - {"task", "session"}
        if unknown or not isinstance(task, str) or not isinstance(session, str) or not (task.strip() or session):
            raise ConfigError(f"{self.ask_name} takes a task, as text, and optionally the session of an earlier answer")
        chat = await self._open_session(session, True) if session else self._chat(self._app.ids.new("mcp"), True)
        if task.strip():
            return chat, await chat.send(task)
        waiting = await self._app.store.open_turns(session)
        if not waiting:
            raise ConfigError(f"session {session} waits for nothing; send a task")
        await self._app.start()
        return chat, chat.turn(waiting[0])

    async def _begin(self, tool: str, arguments: JsonObject) -> tuple[Chat, Turn]:
        chat = self._chat(self._app.ids.new("mcp"), False, tool)
        return chat, await chat.send(encode_call(tool, arguments))

    async def _open_session(self, session: str, is_ask: bool, tool: str = "") -> Chat:
        try:
            if SESSION.fullmatch(session) is None:
                raise UnknownSession(session)
            await self._app.store.info(session)
        except UnknownSession:
            raise UnknownSession(NO_SESSION.format(session=session)) from None
        return self._chat(session, is_ask, tool)

    def _chat(self, session: str, is_ask: bool, tool: str = "") -> Chat:
        if is_ask:
            return Chat(self._model, app=self._app, session=session, options=self._options)
        options = replace(self._options, tools=(tool,), max_steps=2)
        return Chat(CLIENT_MODEL_NAME, app=self._app, session=session, options=options)


class _ClientCall:
    """One call of a client, while it is under way."""

    def __init__(self, ctx: Any, chat: Chat, turn: Turn, is_ask: bool, ticket: ResumeTicket | None) -> None:
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        self._ctx, self._chat, self._turn, self._is_ask = ctx, chat, turn, is_ask
        self._is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        capabilities = ctx.session.client_capabilities
        elicitation = capabilities.elicitation if capabilities is not None else None
        self._can_ask = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
        self._answered: list[str] = list(ticket.asked) if ticket is not None else []

    async def answer(self, ticket: ResumeTicket, responses: Any) -> None:
        """Submit the replies of the person; a gate without a reply is asked again."""
        open_gates = {gate.id: gate for gate in await self._chat.gates()}
        self._answered = []
        for gate_id, hash in ticket.asked.items():
            gate, response = open_gates.get(gate_id), responses.get(gate_id)
            if gate is None:
                self._answered.append(gate_id)  # resolved elsewhere, or closed
            elif gate.hash == hash and response is not None and hasattr(response, "action"):
                await self._reply(gate, response)
                self._answered.append(gate_id)

    async def finish(self, cursor: str) -> Any:
        """Follow the turn until it ends, or until the client must ask a person."""
        async with TurnProgress(self._chat, self._turn, self._report_progress, cursor) as watch:
            for gate in self._answered:
                watch.skip(gate)
            while gates := await watch.next_gates():
                forms = {gate.id: (gate, make_form(gate, self._is_ask)) for gate in gates}
                if self._is_modern and self._can_ask:
                    askable = {
                        name: (gate, form) for name, (gate, form) in forms.items() if isinstance(form, ElicitationForm)
                    }
                    if askable:
                        return self._required(askable, watch.cursor)
                for gate, form in forms.values():
                    await self._ask_client(watch, gate, form)
        return await self._result()

    async def _ask_client(self, watch: TurnProgress, gate: Gate, form: ElicitationForm | str) -> None:
        if isinstance(form, str) or not self._can_ask or self._is_modern:
            await self._chat.answer(gate, **make_denial(gate, form if isinstance(form, str) else ""))
            return
        elicit = self._ctx.session.elicit_form(form.text, form.schema, self._ctx.request_id)
        response = await watch.wait_unless_closed(gate, elicit)
        if response is not None:
            await self._reply(gate, response)

    async def _reply(self, gate: Gate, response: Any) -> None:
        from everturn.errors import GateClosed

        try:
            await self._chat.answer(gate, **parse_form_reply(gate, response.action, response.content, self._is_ask))
        except GateClosed:
            log.info("gate %s was answered elsewhere in the meantime", gate.id)

    def _required(self, askable: dict[str, tuple[Gate, ElicitationForm]], cursor: str) -> types.InputRequiredResult:
        import mcp_types as types

        requests: dict[str, Any] = {
            name: types.ElicitRequest(
                params=types.ElicitRequestFormParams(message=form.text, requested_schema=form.schema)
            )
            for name, (_, form) in askable.items()
        }
        hashes = {name: gate.hash for name, (gate, _) in askable.items()}
        ticket = ResumeTicket(self._chat.session, self._turn.id, cursor, hashes)
        return types.InputRequiredResult(input_requests=requests, request_state=write_ticket(ticket))

    async def _report_progress(self, count: int, text: str) -> None:
        await self._ctx.session.report_progress(count, None, text)

    async def _result(self) -> Any:
        return await (self._ask_result() if self._is_ask else self._call_result())

    async def _ask_result(self) -> Any:
        import mcp_types as types

        ids = {"session": self._chat.session, "turn": self._turn.id}
        try:
            turn = await self._turn
            text = turn.text if turn.phase is Phase.COMPLETED else "the turn was cancelled"
            failed = turn.phase is not Phase.COMPLETED
        except* EverturnError as errors:
            text, failed = str(leaf_errors(errors)[0]), True
        return types.CallToolResult(
            content=[
                types.TextContent(type="text", text=text),
                types.TextContent(type="text", text=f"session: {self._chat.session}"),
            ],
            structured_content={"text": text, **ids},
            is_error=failed,
        )

    async def _call_result(self) -> Any:
        import mcp_types as types

        entries = await self._chat.app.store.events(self._chat.session, turn=self._turn.id)
        finished = [entry.event for entry in entries if isinstance(entry.event, CallFinished)]
        if not finished:
            await self._turn  # raises the failure of the turn
            return _failed("the call was cancelled before it began")
        output, state = finished[0].output, finished[0].state
        files = [await self._file(file) for file in output.attachments]
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=output.text), *files], is_error=state != "completed"
        )

    async def _file(self, file: FilePart) -> Any:
        import mcp_types as types

        kind = file.media_type.partition("/")[0]
        if file.size > LARGEST_FILE or kind not in ("image", "audio"):
            return types.TextContent(type="text", text=f"a file: {file.name or file.blob}, {file.media_type}")
        data = base64.b64encode(await self._chat.read(file)).decode()
        make: Any = types.ImageContent if kind == "image" else types.AudioContent
        return make(type=kind, data=data, mime_type=file.media_type)


def _failed(text: str) -> Any:
    import mcp_types as types

    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
