"""Chat of a session: through which a caller sends messages to it, and the parts of such a message."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from everturn import api
from everturn.access.context.agents import AgentSpec
from everturn.access.context.scope import ScopedAccess
from everturn.access.conversations.prompts import read_caller_layers
from everturn.access.conversations.upload_handles import NOT_A_FILE, decode_handle
from everturn.chat import Chat
from everturn.chat.validation import InputPart
from everturn.core.options import PermissionMode, StepLimitPolicy, TurnOptions
from everturn.core.parts import ContextPart, FilePart, TextPart
from everturn.errors import UnknownFile


async def open_chat(
    scope: ScopedAccess,
    session: str,
    agent: AgentSpec,
    mode: PermissionMode = "",
    at_step_limit: StepLimitPolicy = "answer",
) -> Chat:
    """A chat whose messages are for an agent, with the options and prompt layers of the caller."""
    prompt = await read_caller_layers(scope, session)
    folder = agent.options.folder or scope.server_context.folder
    by = scope.principal.user
    options = replace(agent.options, agent=agent.name, by=by, folder=folder, prompt=prompt, mode=mode)
    return scope.chat(session, replace(options, at_step_limit=at_step_limit))


async def open_chat_of_session(
    scope: ScopedAccess,
    session: str,
    agent: AgentSpec,
    mode: PermissionMode = "",
    at_step_limit: StepLimitPolicy = "answer",
) -> Chat:
    """A chat whose messages are taken by the agent that has the session when their turn starts.

    Not for a message with choices of its own: those were checked for one agent.
    """
    app, principal = scope.server_context.app, scope.principal
    if agent.definition is None or app.agents.get(agent.name) is not agent.definition:
        return await open_chat(scope, session, agent, mode, at_step_limit)
    prompt = await read_caller_layers(scope, session)
    folder = agent.options.folder or scope.server_context.folder
    options = TurnOptions(by=principal.user, folder=folder, prompt=prompt, mode=mode, at_step_limit=at_step_limit)
    return Chat(agent.definition, app=app, session=session, options=options, tenant=principal.tenant)


async def _file(scope: ScopedAccess, handle: str) -> FilePart:
    async for key in scope.server_context.accounts.keys.candidates("files"):
        with suppress(UnknownFile):
            return decode_handle(key, scope.principal.tenant, handle)
    raise UnknownFile(NOT_A_FILE)


async def read_parts(
    scope: ScopedAccess, text: str, files: list[str], contexts: list[api.AttachedContext]
) -> list[InputPart]:
    """The parts of a message: its text, the uploads with these handles, and what the client attached as context."""
    attached: list[InputPart] = [await _file(scope, file) for file in files]
    for context in contexts:
        attached.append(
            ContextPart(context.kind, context.text, context.title, context.source, untrusted=context.untrusted)
        )
    return [TextPart(text), *attached] if text else attached
