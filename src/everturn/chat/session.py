"""Chat: one session of the library API: send messages, follow turns, edit the message tree, answer gates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from msgspec.structs import replace

from everturn.chat.replies import GateReply, answer_gate, checked_name, claim_call
from everturn.chat.steering import find_steered_turn, id_of_turn
from everturn.chat.turn import Turn
from everturn.chat.validation import (
    MessageInput,
    check_clients,
    check_manual,
    guess_media_type,
    id_of,
    message_parts,
    refuse_with_runtime,
    validate_options,
    validate_params,
)
from everturn.core.accounts import LOCAL
from everturn.core.canonical_json import replace_surrogates
from everturn.core.commands import Delete, Revert, Revoke, Select, Send
from everturn.core.events import FilesReverted, TurnStarted
from everturn.core.gates import CallClaim, Gate, Grant
from everturn.core.hooks import HOOKS
from everturn.core.messages import Message
from everturn.core.modality import Modality, explain_invalid_message, explain_missing_input, modality_of
from everturn.core.options import ClientTool, LatePolicy, ToolHistory, TurnOptions
from everturn.core.parts import FilePart, FilesPart, Part
from everturn.core.ports import Model, Tool, ToolSource
from everturn.core.rules.policy import Rule
from everturn.core.state import Phase, fold
from everturn.core.store_ports import TurnStore
from everturn.core.tree import MessageTree
from everturn.errors import CommandRefused, ConfigError, MissingInput, UnknownSession, UnknownTurn
from everturn.running.active_turn import Prompt, TurnSettings
from everturn.running.subagent_index import active_subagent_sessions, detached_subagent_sessions
from everturn.runtime import Runtime, StatusListener
from everturn.tools.agent import Agent
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolRegistry
from everturn.turn.request import merge_params


class CommandStamp(TypedDict):
    """The fields of every command: session, tenant and time."""

    session: str
    tenant: str
    at: float


class Chat:
    """A conversation with a model that may call tools: a session, and the runtime it runs on.

    Everything else is a plugin, a wrapper around a model or a tool, or a field of `settings`.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        tools: Iterable[Tool | ToolGroup | ToolSource] | ToolRegistry = (),
        plugins: Iterable[object] = (),
        system: str = "",
        session: str | None = None,
        store: TurnStore | str | None = None,
        options: TurnOptions | None = None,
        settings: TurnSettings | None = None,
        rules: Iterable[Rule] | str | Path = (),
        runtime: Runtime | None = None,
        tenant: str = LOCAL,
    ) -> None:
        if hasattr(tools, "spec") or isinstance(tools, ToolGroup) or any(hasattr(plugins, hook) for hook in HOOKS):
            raise ConfigError("tools and plugins are lists: tools=[search], plugins=[Timing()]")
        tools, plugins = tools if isinstance(tools, ToolRegistry) else list(tools), list(plugins)
        if isinstance(options, dict) or isinstance(settings, dict):
            raise ConfigError("options is a TurnOptions(...), settings is a Settings(...)")
        if runtime is None:
            if settings is not None and system:
                raise ConfigError("give `system`, or `settings` with a prompt of its own, not both")
            settings = settings or TurnSettings(prompt=Prompt(agent=system))
            runtime = Runtime(model, tools=tools, plugins=plugins, store=store, settings=settings, rules=rules)
        else:
            given = {"tools": tools, "plugins": plugins, "system": system, "rules": rules}
            refuse_with_runtime({**given, "store": store is not None, "settings": settings is not None})
            options = replace(options or TurnOptions(), model=runtime.add_model(model))
        self.runtime = runtime
        self.session = session or runtime.ids.new("session")
        self.tenant = tenant
        self._options = self._checked(options or TurnOptions())

    async def send(
        self,
        message: MessageInput,
        *,
        after: str | Message | None = None,
        key: str | None = None,
        model: Model | str | None = None,
        params: Mapping[str, Any] | None = None,
        tool_history: ToolHistory | None = None,
        late: LatePolicy | None = None,
        max_steps: int | None = None,
        tools: Iterable[str] | None = None,
        clients: Iterable[ClientTool] | None = None,
        alone: bool = False,
        beside: str | Turn | None = None,
        steer: bool | str | Turn = False,
    ) -> Turn:
        """Send a message at the end of the selected branch, or `after` a message, and start a turn.

        The message is durable when this returns. The same `key` always returns the same turn. `model` selects another
        model, of any vendor. `tools` selects the tools of this turn by patterns of their names; `@group` selects a
        whole group, even if it is off. `clients` are tools that the caller runs. `beside` a turn, the message starts a
        branch where that turn started, and does not wait for it.

        With `steer` the message joins the running turn of the selected branch, or the given turn, between two of its
        steps, and the other options have no effect; that turn is returned. If it ends before the message could join, or
        has no step left, or if no turn is running, the message starts a turn of its own. To `await` the returned turn
        waits for the turn that has the message.

        Raises:
            SessionBusy: `alone` was set, and another turn is running or queued.
            CommandRefused: `steer` names a sub-agent run, which only its parent turn directs, or a turn with client
                tools of another user.
        """
        options = self._turn_options(
            model=model,
            params=params,
            tool_history=tool_history,
            late=late,
            max_steps=max_steps,
            tools=tools,
            clients=None if clients is None else tuple(clients),
        )
        parent = None if after is None else id_of(after)
        if beside is not None:
            if after is not None:
                raise ConfigError("a message is sent after a message, or beside a turn, not both")
            parent = await self._beginning_of(beside)
        joined_turn = None
        if steer is not False:
            if after is not None or beside is not None or alone:
                raise ConfigError("a message that steers has its place in the turn; leave after, beside and alone out")
            target = steer if steer is True else id_of_turn(steer)
            joined_turn = await find_steered_turn(self.runtime.store, self.session, target, options.by)
        at_leaf = after is None and beside is None
        return await self._send(message_parts(message), parent, at_leaf, key, options, alone, joined_turn)

    async def _beginning_of(self, turn: str | Turn) -> str | None:
        """The parent message of a turn; None: it started the conversation."""
        state = await self.turn(id_of_turn(turn)).state()
        if state.phase is Phase.IDLE:
            raise UnknownTurn(f"there is no turn {state.id!r} in this session, or it has not begun")
        return state.parent

    def _turn_options(self, **changed: Any) -> TurnOptions:
        overrides = {name: value for name, value in changed.items() if value is not None}
        if "model" in overrides:
            overrides["model"] = self.runtime.add_model(overrides["model"])
        fields = {name: getattr(self._options, name) for name in TurnOptions.__struct_fields__}
        if "model" in overrides and self.runtime.modality_of(overrides["model"]) != "chat":
            fields["params"] = None  # the chat's parameters are for chat models
        if "params" in overrides:
            overrides["params"] = merge_params((fields["params"] or {}, validate_params(overrides["params"])))
        return self._checked(TurnOptions(**{**fields, **overrides}))

    def _checked(self, options: TurnOptions) -> TurnOptions:
        """Validate options, and check that the tools they name exist."""
        if getattr(options, "tools", None) is not None:
            options = replace(options, tools=self.runtime.registry.check_selection(options.tools))
        options = validate_options(options)
        if not self.runtime.sources:  # otherwise a source may still publish them
            check_manual(options.manual, self.runtime.tools)
        check_clients(options.clients, self.runtime.tools)
        return options

    async def _send(
        self,
        parts: tuple[Part, ...] | None,
        parent: str | None,
        at_leaf: bool,
        key: str | None = None,
        options: TurnOptions | None = None,
        alone: bool = False,
        joins: str | None = None,
    ) -> Turn:
        options = options or self._options
        if (modality := modality_of(self.runtime.model_for(options.model))) != "chat":
            await self._check(modality, parts, parent, at_leaf, key)
        ids = self.runtime.ids
        command = Send(
            key=key or ids.new("cmd"),
            session=self.session,
            tenant=self.tenant,
            at=self.runtime.clock.now(),
            turn=ids.new("turn"),
            message=ids.new("msg") if parts is not None else "",
            parts=parts,
            parent=parent,
            at_leaf=at_leaf,
            alone=alone,
            steers=joins is not None,
            joins=joins or "",
            options=options,
        )
        receipt = await self.runtime.command(command)
        admitted = receipt.command
        assert isinstance(admitted, Send)
        turn = Turn(self.runtime, self.session, admitted.turn, admitted.key, self.tenant)
        # If sent again, it may have started its own turn meanwhile; a new one has yet to join.
        if admitted.joins and (receipt.is_new or not await self.runtime.store.events(self.session, turn=admitted.turn)):
            turn = Turn(self.runtime, self.session, admitted.joins, admitted.key, self.tenant, otherwise=admitted.turn)
        turn.message, turn.is_new = admitted.message, receipt.is_new
        return turn

    async def _check(
        self, modality: Modality, parts: tuple[Part, ...] | None, parent: str | None, at_leaf: bool, key: str | None
    ) -> None:
        """Check the input of a model that is not for chat, before anything is created.

        Raises:
            MissingInput: the input is incomplete; the text says what is missing.
        """
        branch = await self.messages() if at_leaf else await self.messages(parent) if parent else []
        if parts is None and branch:
            parts = branch[-1].parts
        problem = explain_missing_input(modality, branch, parts or ())
        may_come = (
            not explain_invalid_message(modality, parts or ()) and await self._is_busy()
        )  # it is checked again when its turn starts
        if problem and not may_come and not (key is not None and await self._was_taken(key)):
            raise MissingInput(problem)

    async def _is_busy(self) -> bool:
        """Whether a turn is running or queued that may produce a file."""
        try:
            store = self.runtime.store
            return bool(await store.inbox(self.session) or await store.open_turns(self.session))
        except UnknownSession:
            return False

    async def _was_taken(self, key: str) -> bool:
        """Whether a message with this key was admitted before: a repeat returns the same turn, whatever the branch has
        now.
        """
        try:
            log = await self.runtime.store.events(self.session)
        except UnknownSession:
            return False
        return any(isinstance(entry.event, TurnStarted) and entry.event.command == key for entry in log)

    def turn(self, turn: str) -> Turn:
        """A turn of this session, by its id: to follow it again, or from another process."""
        return Turn(self.runtime, self.session, turn, tenant=self.tenant)

    # The tree ----------------------------------------------------------------------------------------------------

    async def rerun(
        self,
        message: str | Message,
        *,
        model: Model | str | None = None,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Turn:
        """Regenerate: a new version beside an answer, or another answer to a user message.

        An answer of a model that is not for chat (a picture, speech) is generated by the same model, unless `model` is
        given.
        """
        original = (await self.tree()).get(id_of(message))
        parent = original.parent if original.role == "assistant" else original.id
        if model is None and original.role == "assistant" and self.runtime.modality_of(original.by) != "chat":
            model = original.by
            params = {**await self._params_of(original.turn), **(params or {})}
        return await self._send(None, parent, False, key, self._turn_options(model=model, params=params))

    async def _params_of(self, turn: str) -> Mapping[str, Any]:
        """The parameters that a turn started with."""
        for entry in await self.runtime.store.events(self.session, turn=turn):
            if isinstance(entry.event, TurnStarted):
                return entry.event.options.params or {}
        return {}

    async def edit(
        self, message: str | Message, text: MessageInput, *, model: Model | str | None = None, key: str | None = None
    ) -> Turn:
        """Edit a user message: a new version beside it, and an answer to it."""
        original = (await self.tree()).get(id_of(message))
        if original.role != "user":
            raise ConfigError("edit is for what a person wrote; rerun gives another answer")
        return await self._send(message_parts(text), original.parent, False, key, self._turn_options(model=model))

    async def insert(self, after: str | Message, text: MessageInput, *, model: Model | str | None = None) -> Turn:
        """Send a message after an earlier one: a new branch beside the existing messages."""
        return await self._send(
            message_parts(text), id_of(after), at_leaf=False, options=self._turn_options(model=model)
        )

    async def fork(self, message: str | Message | None) -> None:
        """Continue from an earlier message (None: from the beginning): the next `send` starts a branch there."""
        to = None if message is None else id_of(message)
        await self._tell(Select(key=self._key(), message=to, **self._stamp()))

    switch = fork

    async def delete(self, message: str | Message) -> None:
        """Hide a message and everything under it."""
        message_id = (await self.tree()).get(id_of(message)).id
        await self._tell(Delete(key=self._key(), message=message_id, **self._stamp()))

    def _key(self) -> str:
        return self.runtime.ids.new("cmd")

    def _stamp(self) -> CommandStamp:
        """The common fields of a command of this session."""
        return CommandStamp(session=self.session, tenant=self.tenant, at=self.runtime.clock.now())

    async def _tell(self, command: Select | Delete | Revoke | Revert) -> None:
        after = await self.runtime.store.head(self.session)
        await self.runtime.command(command)
        await self.runtime.wait_until_carried_out(command, after)

    async def tree(self) -> MessageTree:
        """All messages of the session."""
        try:
            return await self.runtime.store.tree(self.session)
        except UnknownSession:  # the session is created by its first message
            return MessageTree()

    async def messages(self, leaf: str | Message | None = None) -> list[Message]:
        """The selected branch, or the one that ends at `leaf`, oldest first."""
        store = self.runtime.store
        try:
            path = await store.path(self.session, id_of(leaf) if leaf else (await store.info(self.session)).leaf)
        except UnknownSession:  # the session is created by its first message
            return []
        return [message for message in path if not message.hidden]

    async def attach(self, file: bytes | Path | str, media_type: str = "", name: str = "") -> FilePart:
        """Store a file in order to send it: `send([TextPart("What is this?"), await attach(path)])`."""
        if not isinstance(file, bytes):
            file = Path(file)
            name = name or file.name
            data = await asyncio.to_thread(file.read_bytes)
        else:
            data = file
        if not data:
            raise ConfigError(f"{name or 'the file'} is empty; there is nothing to send")
        name = replace_surrogates(name)
        return FilePart(
            await self.runtime.store.put_blob(data), media_type or guess_media_type(name, data), len(data), name
        )

    async def read(self, file: FilePart) -> bytes:
        """The bytes of a file that was attached, or that a model or a tool generated."""
        return await self.runtime.store.blob(file.blob)

    # Gates and grants-----------------------------------------------------------------------------------------------

    async def gates(self) -> list[Gate]:
        """The open gates of this session and its sub-agent runs."""
        store = self.runtime.store
        try:
            gates = [row.gate for row in await store.gates(self.session)]
            logs = [await store.events(self.session, turn=turn) for turn in await store.open_turns(self.session)]
        except UnknownSession:  # the session is created by its first message
            return []
        states = [fold(entry.event for entry in log) for log in logs if log]
        subagent_sessions = await active_subagent_sessions(store, self.session, states)
        if any(isinstance(tool, Agent) and tool.request.detached for tool in self.runtime.tools.values()):
            subagent_sessions += [
                name for name in await detached_subagent_sessions(store, self.session) if name not in subagent_sessions
            ]
        for name in subagent_sessions:
            gates += [row.gate for row in await store.gates(name)]
        return gates

    async def answer(self, gate: Gate, **reply: Unpack[GateReply]) -> bool:
        """Answer a gate; see `Turn.answer`. False if the same answer was given before."""
        return await answer_gate(self.runtime, self.session, self.tenant, gate, reply)

    async def claim(self, gate: Gate, by: str, lease: float = 60.0) -> CallClaim:
        """Claim a client call for `lease` seconds; claim it again to extend the lease.

        Answer it with `answer(gate, result=…, claim=by)`, or with `failed=True` and what went wrong.

        Raises:
            ClaimedOtherwise: another client has claimed it.
            AnsweredOtherwise, GateClosed, GateExpired: the gate is no longer open.
        """
        return await claim_call(self.runtime, self.session, self.tenant, gate, by, lease)

    async def revert(
        self, files: FilesPart, *, to: Literal["before", "after"] = "before", by: str = "person"
    ) -> FilesReverted:
        """Restore files to their state before (or after) a step; `unrevert` undoes this.

        Raises:
            SessionBusy: a turn is running.
            CommandRefused: no plugin handles these files, or the restore failed.
        """
        if to not in ("before", "after"):
            raise ConfigError(f'to={to!r}: "before" the step, or "after" it')
        return await self._revert(files.root, files.before if to == "before" else files.after, by)

    async def unrevert(self, undo: FilesReverted, *, by: str = "person") -> FilesReverted:
        """Undo a revert."""
        return await self._revert(undo.root, undo.before, by)

    async def _revert(self, root: str, tree: str, by: str) -> FilesReverted:
        key = self._key()
        command = Revert(key=key, root=root, tree=tree, by=checked_name(by), **self._stamp())
        after = await self.runtime.store.head(self.session)
        await self._tell(command)
        for entry in await self.runtime.store.events(self.session, after):
            if isinstance(entry.event, FilesReverted) and entry.event.command == key:
                return entry.event
        raise CommandRefused("it was not done")

    async def grants(self) -> list[Grant]:
        """The valid grants of this session."""
        try:
            return await self.runtime.store.grants(self.session, self.runtime.clock.now())
        except UnknownSession:  # the session is created by its first message
            return []

    async def revoke(self, grant: Grant, *, by: str = "person") -> None:
        """Revoke a grant.

        Raises:
            UnknownGrant: it was revoked before, or belongs to another session.
        """
        if not isinstance(grant, Grant):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError("revoke the grant itself: one of chat.grants()")
        await self._tell(Revoke(key=self._key(), grant=grant.id, by=checked_name(by), **self._stamp()))

    def subscribe(self, listener: StatusListener) -> Callable[[], None]:
        """Call `listener` for every phase a turn enters, before its work starts; returns a function that unsubscribes."""

        def filtered(status: Any) -> None:
            if status.session == self.session:
                listener(status)

        self.runtime.listeners.append(filtered)
        return lambda: self.runtime.listeners.remove(filtered) if filtered in self.runtime.listeners else None

    async def __aenter__(self) -> Chat:
        """Start the runtime; unfinished turns of the store continue."""
        await self.runtime.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop driving; nothing in the store is lost."""
        await self.aclose()

    async def aclose(self) -> None:
        """Stop driving; nothing in the store is lost."""
        await self.runtime.aclose()
