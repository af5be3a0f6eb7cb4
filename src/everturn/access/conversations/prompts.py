"""Prompt access: saved prompts, and the instructions that a tenant, a user or a session adds to those of an agent.

Both are texts in the store of memory files, under owners that no user can have: no tool of a model reaches them. The
instructions of a session are events of its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from everturn import api
from everturn.access.context.agents import AgentSpec
from everturn.access.context.roles import needs, require_role
from everturn.access.context.scope import ScopedAccess
from everturn.chat.session_instructions import read_session_instructions, set_session_instructions
from everturn.core.canonical_json import replace_surrogates
from everturn.core.memory.user_memory import PROMPT_OWNER_PREFIX, MemoryDelete, MemoryPut, check_memory_text
from everturn.core.options import NO_PROMPT, Prompt, TurnOptions
from everturn.core.tenants.saved_prompts import PromptArgument, SavedPrompt, check_prompt, dump_prompt, load_prompt
from everturn.errors import ConfigError, Forbidden, ToolError, UnknownFile
from everturn.running.prompt_layers import with_prompt
from everturn.turn.request import instruction_layers

INSTRUCTIONS: Final = "instructions"
FOLDER: Final = "prompts"
OPEN_LAYERS: Final = frozenset(("shared", "user", "session"))
"""The layers whose texts everybody in the tenant may read; the others are the operator's configuration."""


class PromptAccess:
    """Access to saved prompts and instructions."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    # Saved prompts -------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def list(self) -> api.PromptList:
        """The prompts of the caller, of the tenant and of the configuration; of two with one name, the nearer one."""
        configured = self.scope.server_context.saved_prompts
        shared, own = await asyncio.gather(
            self._stored(_shared_owner(self.scope)), self._stored(_own_owner(self.scope))
        )
        found: dict[str, api.PromptView] = {}
        by_scope: dict[api.PromptScope, Iterable[SavedPrompt]] = {"config": configured, "shared": shared, "user": own}
        for scope, prompts in by_scope.items():
            found |= {prompt.name: _view(prompt, scope) for prompt in prompts}
        return api.PromptList(prompts=[found[name] for name in sorted(found)])

    @needs("member")
    async def write(self, put: api.PutPrompt) -> api.PromptView:
        """Write a prompt of the caller, or with `shared` of the tenant."""
        owner = self._owner(put.shared)
        arguments = tuple(
            PromptArgument(argument.name, argument.description, argument.default) for argument in put.arguments
        )
        prompt = check_prompt(SavedPrompt(put.name, replace_surrogates(put.text), put.description, arguments))
        await self._write(owner, f"{FOLDER}/{prompt.name}", dump_prompt(prompt))
        return _view(prompt, "shared" if put.shared else "user")

    @needs("member")
    async def delete(self, name: str, shared: bool = False) -> None:
        """Delete a prompt of the caller, or with `shared` of the tenant."""
        owner, now = self._owner(shared), self.scope.server_context.app.clock.now()
        stored = await self._stored(owner)
        if not any(prompt.name == name for prompt in stored):
            raise UnknownFile("there is no such prompt")
        await self.scope.store.user_memory.change(*owner, MemoryDelete(f"{FOLDER}/{name}"), at=now)

    async def _stored(self, owner: tuple[str, str]) -> Iterable[SavedPrompt]:
        memory = self.scope.store.user_memory
        with self.scope.tenant_scope():
            paths = [info.path for info in await memory.files(*owner) if info.path.startswith(f"{FOLDER}/")]
            files = await asyncio.gather(*(memory.file(*owner, path) for path in paths))
        prompts = [load_prompt(file.text) for file in files if file is not None]
        return [prompt for prompt in prompts if prompt is not None]

    # Instructions --------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def instructions(self, agent: str = "") -> api.InstructionsView:
        """The layers of instructions that a new session of the caller would have, in the order in which they are sent."""
        return await self._layers(self.scope.server_context.agents.get(agent), "")

    @needs("viewer")
    async def session_instructions(self, session: str) -> api.InstructionsView:
        """The layers of instructions that the next turn of a session would have."""
        info = await self.scope.readable_session(session)
        if info.parent:
            raise Forbidden("the instructions of a sub-agent's session come from its agent and cannot be changed")
        return await self._layers(self.scope.server_context.agents.get(info.agent), session)

    @needs("member")
    async def write_instructions(self, put: api.PutInstructions) -> api.InstructionsView:
        """Write the instructions of the caller, or with `shared` of the tenant; "" removes them."""
        text = _checked(put.text)
        await self._write(self._owner(put.shared), INSTRUCTIONS, text)
        if put.shared:
            await self.scope.audit_action("instructions.shared", f"{len(text)} characters")
        return await self.instructions()

    @needs("member")
    async def write_session_instructions(
        self, session: str, put: api.PutSessionInstructions, key: str = ""
    ) -> api.InstructionsView:
        """Set the instructions of a session, for the messages that are sent from now on; "" removes them."""
        await self.scope.own_root_session(session)
        principal, app = self.scope.principal, self.scope.server_context.app
        with self.scope.key_conflicts(key):
            stored_key = self.scope.stored_key(key)
            await set_session_instructions(
                app, session, principal.tenant, _checked(put.text), by=principal.user, key=stored_key
            )
        return await self.session_instructions(session)

    async def _layers(self, agent: AgentSpec, session: str) -> api.InstructionsView:
        context = self.scope.server_context
        caller_layers = await read_caller_layers(self.scope, session)
        options = TurnOptions(prompt=caller_layers)
        if agent.definition is not None and context.app.agents.get(agent.name) is agent.definition:
            options = context.app.agent_options(agent.name, options)
        else:
            options = TurnOptions(system=agent.options.system, model=agent.options.model, prompt=caller_layers)
        setup = context.app.drive_setup(options)
        options = options if setup is None else with_prompt(setup, options)
        layers = [*instruction_layers(options), ("privacy", (options.prompt or NO_PROMPT).privacy)]
        is_shown = self.scope.principal.role == "operator"
        return api.InstructionsView(
            layers=[
                api.InstructionLayer(
                    layer=name, text=text if is_shown or name in OPEN_LAYERS else "", size=len(text.encode())
                )
                for name, text in layers
                if text
            ]
        )

    # Store ---------------------------------------------------------------------------------------------------------

    def _owner(self, shared: bool) -> tuple[str, str]:
        if shared:
            require_role(self.scope.principal, "owner", "prompts and instructions of the tenant")
        return _shared_owner(self.scope) if shared else _own_owner(self.scope)

    async def _write(self, owner: tuple[str, str], path: str, text: str) -> None:
        memory, now = self.scope.store.user_memory, self.scope.server_context.app.clock.now()
        try:
            if text:
                check_memory_text(text, "text")
                await memory.change(*owner, MemoryPut(path, text), at=now)
            elif await memory.file(*owner, path) is not None:
                await memory.change(*owner, MemoryDelete(path), at=now)
        except ToolError as error:
            raise ConfigError(str(error).replace("memory", "this store")) from None


async def read_caller_layers(scope: ScopedAccess, session: str) -> Prompt | None:
    """The layers that a message has from the tenant, the caller and its session; None if all of them are empty."""
    memory = scope.store.user_memory
    with scope.tenant_scope():
        shared, own, text = await asyncio.gather(
            memory.file(*_shared_owner(scope), INSTRUCTIONS),
            memory.file(*_own_owner(scope), INSTRUCTIONS),
            read_session_instructions(scope.store, session),
        )
    prompt = Prompt(shared=shared.text if shared else "", user=own.text if own else "", session=text)
    return None if prompt == NO_PROMPT else prompt


def _own_owner(scope: ScopedAccess) -> tuple[str, str]:
    return scope.principal.tenant, PROMPT_OWNER_PREFIX + scope.principal.user


def _shared_owner(scope: ScopedAccess) -> tuple[str, str]:
    return scope.principal.tenant, PROMPT_OWNER_PREFIX


def _checked(text: str) -> str:
    return replace_surrogates(text).strip()


def _view(prompt: SavedPrompt, scope: api.PromptScope) -> api.PromptView:
    return api.PromptView(
        name=prompt.name,
        text=prompt.text,
        description=prompt.description,
        arguments=[
            api.PromptArgumentView(name=argument.name, description=argument.description, default=argument.default)
            for argument in prompt.arguments
        ],
        scope=scope,
    )
