"""What a client asks over MCP → turns of an agent, and what came of them as results.

A gate becomes an elicitation. A client of the protocol's modern kind is given the forms and a ticket, and nothing is
held for it: it may bring the answers tomorrow, to another process. One of the older kind is asked while it waits.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import logging
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from everturn import EverturnError, __version__
from everturn.chat.session import Chat
from everturn.chat.turn import Turn
from everturn.core.asking import Gate
from everturn.core.canonical import JsonObject
from everturn.core.events import CallSettled
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart
from everturn.core.policy import Rule
from everturn.core.requests import ToolSpec
from everturn.core.state import Phase
from everturn.errors import ConfigError, UnknownSession
from everturn.mcp_server.direct import NAME, ClientModel, written
from everturn.mcp_server.forms import (
    Form,
    Ticket,
    denial,
    form_of,
    read_ticket,
    reply_of,
    write_ticket,
)
from everturn.mcp_server.watching import Watch
from everturn.turn.permit import Permits
from everturn.wiring import Runtime

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext

log = logging.getLogger(__name__)

MOST = 200  # calls at once
LARGEST_FILE = 4_000_000  # bytes of a file that is sent whole
LEAVE = 5.0  # seconds to hand in that a turn is cancelled
SESSION: Final = re.compile(r"mcp_[0-9a-f]{16,64}")  # ours, and of nobody else who uses the same store
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
    """An agent and its tools, for clients that speak MCP.

    `rules` are those of the runtime, to leave out tools that they deny outright; they hold for every call in any case.
    """

    def __init__(
        self,
        runtime: Runtime,
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

        self._runtime, self._model = runtime, model
        self._options = options or TurnOptions()
        self._permits = Permits(rules)
        self._under_way = 0
        self.is_leaving = False  # this process ends, and what it leaves unfinished goes on in another
        runtime.add_model(ClientModel())  # before it starts: calls that were left unfinished go on with it
        self.server: Server[Any] = Server(
            name,
            version=__version__,
            instructions=about or None,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    @property
    def ask_name(self) -> str:
        """What the tool is called that takes tasks."""
        return "ask" if "ask" not in self._runtime.tools else "ask_agent"

    def specs(self) -> dict[str, ToolSpec]:
        """The agent's own tools, but for those that are denied outright."""
        enabled = self._runtime.registry.enabled(self._options.tools)
        return {spec.name: spec for spec in self._permits.offered(enabled, self._options)}

    async def _list(self, ctx: Any, params: Any) -> types.ListToolsResult:
        import mcp_types as types

        ask = types.Tool(name=self.ask_name, description=ABOUT_ASK, input_schema=ASK_SCHEMA)
        own = [
            types.Tool(
                name=spec.name,
                description=spec.description,
                input_schema={"type": "object", **spec.schema},
                annotations=types.ToolAnnotations(
                    read_only_hint=spec.effects == "read", idempotent_hint=spec.effects != "once"
                ),
            )
            for spec in self.specs().values()
        ]
        return types.ListToolsResult(tools=[ask, *own])

    async def _call(self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import INVALID_PARAMS

        is_ask = params.name == self.ask_name
        if not is_ask and params.name not in (specs := self.specs()):
            there = ", ".join([self.ask_name, *specs])
            raise MCPError(INVALID_PARAMS, f"there is no tool called {params.name!r}; there are: {there}")
        if self._under_way >= MOST:
            return _failed(f"there are {MOST} calls under way already; try again when some have ended")
        self._under_way += 1
        try:
            return await self._serve(ctx, params, is_ask)
        except* EverturnError as errors:
            failure = _first(errors)
        finally:
            self._under_way -= 1
        return _failed(str(failure))

    async def _serve(self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams, is_ask: bool) -> Any:
        arguments = params.arguments or {}
        if params.request_state is not None:
            ticket = read_ticket(params.request_state)
            if ticket is None:
                raise ConfigError("this request state was not given out here; make the call anew, without one")
            chat = await self._known(ticket.session, is_ask, params.name)
            turn = chat.turn(ticket.turn)
        else:
            ticket = None
            chat, turn = await (self._ask(arguments) if is_ask else self._begin(params.name, arguments))
        serving = _Serving(ctx, chat, turn, is_ask, ticket)
        try:
            if ticket is not None:
                await serving.answer(ticket, params.input_responses or {})
            return await serving.finish(ticket.cursor if ticket is not None else "")
        except asyncio.CancelledError:
            import anyio

            if not self.is_leaving:
                with anyio.move_on_after(LEAVE, shield=True):  # they do not want it any more
                    await turn.cancel()
            raise

    async def _ask(self, arguments: JsonObject) -> tuple[Chat, Turn]:
        task, session = arguments.get("task", ""), arguments.get("session", "")
        wrong = set(arguments) - {"task", "session"}
        if wrong or not isinstance(task, str) or not isinstance(session, str) or not (task.strip() or session):
            raise ConfigError(f"{self.ask_name} takes a task, in words, and the session of an earlier answer or none")
        chat = await self._known(session, True) if session else self._chat(self._runtime.ids.new("mcp"), True)
        if task.strip():
            return chat, await chat.send(task)
        waiting = await self._runtime.store.open_turns(session)
        if not waiting:
            raise ConfigError(f"nothing waits in session {session}; say a task")
        await self._runtime.start()
        return chat, chat.turn(waiting[0])

    async def _begin(self, tool: str, arguments: JsonObject) -> tuple[Chat, Turn]:
        chat = self._chat(self._runtime.ids.new("mcp"), False, tool)
        return chat, await chat.send(written(tool, arguments))

    async def _known(self, session: str, is_ask: bool, tool: str = "") -> Chat:
        try:
            if SESSION.fullmatch(session) is None:
                raise UnknownSession(session)
            await self._runtime.store.info(session)
        except UnknownSession:
            raise UnknownSession(NO_SESSION.format(session=session)) from None
        return self._chat(session, is_ask, tool)

    def _chat(self, session: str, is_ask: bool, tool: str = "") -> Chat:
        if is_ask:
            return Chat(self._model, runtime=self._runtime, session=session, options=self._options)
        options = replace(self._options, tools=(tool,), max_steps=2)
        return Chat(NAME, runtime=self._runtime, session=session, options=options)


class _Serving:
    """One call of a client, while it is under way."""

    def __init__(self, ctx: Any, chat: Chat, turn: Turn, is_ask: bool, ticket: Ticket | None) -> None:
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        self._ctx, self._chat, self._turn, self._is_ask = ctx, chat, turn, is_ask
        self._is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        can = ctx.session.client_capabilities
        asks = can.elicitation if can is not None else None
        self._can_ask = asks is not None and (asks.form is not None or asks.url is None)
        self._answered: list[str] = list(ticket.asked) if ticket is not None else []

    async def answer(self, ticket: Ticket, responses: Any) -> None:
        """Hand in what the person has filled in; what is not among it is asked again."""
        standing = {gate.id: gate for gate in await self._chat.gates()}
        self._answered = []
        for gate_id, hash in ticket.asked.items():
            gate, response = standing.get(gate_id), responses.get(gate_id)
            if gate is None:
                self._answered.append(gate_id)  # by somebody else, or it is over
            elif gate.hash == hash and response is not None and hasattr(response, "action"):
                await self._reply(gate, response)
                self._answered.append(gate_id)

    async def finish(self, cursor: str) -> Any:
        """Watch the turn until it is over, or until the client has to ask somebody."""
        async with Watch(self._chat, self._turn, self._tell, cursor) as watch:
            for gate in self._answered:
                watch.skip(gate)
            while gates := await watch.gates():
                forms = {gate.id: (gate, form_of(gate, self._is_ask)) for gate in gates}
                if self._is_modern and self._can_ask:
                    asked = {name: (gate, form) for name, (gate, form) in forms.items() if isinstance(form, Form)}
                    if asked:
                        return self._required(asked, watch.cursor)
                for gate, form in forms.values():
                    await self._put(watch, gate, form)
        return await self._result()

    async def _put(self, watch: Watch, gate: Gate, form: Form | str) -> None:
        if isinstance(form, str) or not self._can_ask or self._is_modern:
            await self._chat.answer(gate, **denial(gate, form if isinstance(form, str) else ""))
            return
        elicit = self._ctx.session.elicit_form(form.text, form.schema, self._ctx.request_id)
        response = await watch.unless_closed(gate, elicit)
        if response is not None:
            await self._reply(gate, response)

    async def _reply(self, gate: Gate, response: Any) -> None:
        from everturn.errors import GateClosed

        try:
            await self._chat.answer(gate, **reply_of(gate, response.action, response.content, self._is_ask))
        except GateClosed:
            log.info("gate %s was answered elsewhere meanwhile", gate.id)

    def _required(self, asked: dict[str, tuple[Gate, Form]], cursor: str) -> types.InputRequiredResult:
        import mcp_types as types

        requests: dict[str, Any] = {
            name: types.ElicitRequest(
                params=types.ElicitRequestFormParams(message=form.text, requested_schema=form.schema)
            )
            for name, (_, form) in asked.items()
        }
        hashes = {name: gate.hash for name, (gate, _) in asked.items()}
        ticket = Ticket(self._chat.session, self._turn.id, cursor, hashes)
        return types.InputRequiredResult(input_requests=requests, request_state=write_ticket(ticket))

    async def _tell(self, count: int, text: str) -> None:
        await self._ctx.session.report_progress(count, None, text)

    async def _result(self) -> Any:
        return await (self._answer_of_ask() if self._is_ask else self._result_of_call())

    async def _answer_of_ask(self) -> Any:
        import mcp_types as types

        where = {"session": self._chat.session, "turn": self._turn.id}
        try:
            ended = await self._turn
            text = ended.text if ended.phase is Phase.COMPLETED else "the turn was cancelled"
            failed = ended.phase is not Phase.COMPLETED
        except* EverturnError as errors:
            text, failed = str(_first(errors)), True
        return types.CallToolResult(
            content=[
                types.TextContent(type="text", text=text),
                types.TextContent(type="text", text=f"session: {self._chat.session}"),
            ],
            structured_content={"text": text, **where},
            is_error=failed,
        )

    async def _result_of_call(self) -> Any:
        import mcp_types as types

        entries = await self._chat.runtime.store.events(self._chat.session, turn=self._turn.id)
        settled = [entry.event for entry in entries if isinstance(entry.event, CallSettled)]
        if not settled:
            await self._turn  # raises what it ended in
            return _failed("the call was cancelled before it began")
        output, state = settled[0].output, settled[0].state
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


def _first(errors: BaseExceptionGroup[EverturnError]) -> BaseException:
    found: Sequence[BaseException] = errors.exceptions
    while isinstance(found[0], BaseExceptionGroup):
        found = found[0].exceptions
    return found[0]
