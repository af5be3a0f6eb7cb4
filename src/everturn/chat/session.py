"""A session from outside: messages go in, turns come out, and its tree can be walked and cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from msgspec.structs import replace

from everturn.chat.answering import Reply, answer, claim, name_of
from everturn.chat.door import (
    Input,
    check_by_hand,
    check_clients,
    checked_options,
    id_of,
    kind_of,
    parts_of,
    plain_params,
    refuse_with_runtime,
)
from everturn.chat.steering import id_of_turn, steered_by
from everturn.chat.turn import Turn
from everturn.core.accounts import LOCAL
from everturn.core.asking import Claimed, Gate, Grant
from everturn.core.canonical import clean
from everturn.core.commands import Delete, Revert, Revoke, Select, Send
from everturn.core.events import FilesReverted, TurnStarted
from everturn.core.hooks import HOOKS
from everturn.core.messages import Message
from everturn.core.modality import Modality, missing, modality_of, unfit
from everturn.core.options import ClientTool, HistoryPolicy, LatePolicy, TurnOptions
from everturn.core.parts import FilePart, FilesPart, Part
from everturn.core.policy import Rule
from everturn.core.ports import Model, Store, Tool, ToolSource
from everturn.core.state import Phase, fold
from everturn.core.tree import Tree
from everturn.errors import CommandRefused, ConfigError, MissingInput, UnknownSession, UnknownTurn
from everturn.tools.agent import Agent
from everturn.tools.groups import Group
from everturn.tools.registry import Registry
from everturn.turn.descent import detached_below, sessions_below
from everturn.turn.request import merge
from everturn.turn.run import Prompt, Settings
from everturn.wiring import Listener, Runtime


class Stamp(TypedDict):
    """Where, whose and when: what every command says."""

    session: str
    tenant: str
    at: float


class Chat:
    """A conversation with a model that may call tools: a session, and what it runs on.

    Everything else is a plugin, a wrapper around a model or a tool, or a field of `settings`.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        tools: Iterable[Tool | Group | ToolSource] | Registry = (),
        plugins: Iterable[object] = (),
        system: str = "",
        session: str | None = None,
        store: Store | str | None = None,
        options: TurnOptions | None = None,
        settings: Settings | None = None,
        rules: Iterable[Rule] | str | Path = (),
        runtime: Runtime | None = None,
        tenant: str = LOCAL,
    ) -> None:
        if hasattr(tools, "spec") or isinstance(tools, Group) or any(hasattr(plugins, hook) for hook in HOOKS):
            raise ConfigError("tools and plugins are lists: tools=[search], plugins=[Timing()]")
        tools, plugins = tools if isinstance(tools, Registry) else list(tools), list(plugins)
        if isinstance(options, dict) or isinstance(settings, dict):
            raise ConfigError("options is a TurnOptions(...), settings is a Settings(...)")
        if runtime is None:
            if settings is not None and system:
                raise ConfigError("give `system`, or `settings` with a prompt of its own, not both")
            settings = settings or Settings(prompt=Prompt(agent=system))
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
        message: Input,
        *,
        after: str | Message | None = None,
        key: str | None = None,
        model: Model | str | None = None,
        params: Mapping[str, Any] | None = None,
        history: HistoryPolicy | None = None,
        late: LatePolicy | None = None,
        max_steps: int | None = None,
        tools: Iterable[str] | None = None,
        clients: Iterable[ClientTool] | None = None,
        alone: bool = False,
        beside: str | Turn | None = None,
        steer: bool | str | Turn = False,
    ) -> Turn:
        """Send a message at the end of the selected branch, or `after` a message, and start a turn.

        The message is safe when this returns. With the same `key` the same turn is returned, however often. Another
        `model` than the chat's may answer, of any vendor. `tools` are those of this turn, by patterns of their names,
        and `@group` for all of a group, though it is off otherwise. `clients` are tools that whoever sends this runs.
        `beside` a turn, the message begins a branch where that turn began, and is not waiting for it.

        With `steer` it joins the turn that is under way on the selected branch, or the one that is named, between two
        of its steps, and what else is said here does not count; the turn that is returned is that one. If that ends
        before it could join, or has no step left, the message starts a turn of its own, as it does when nothing is
        under way. To `await` what is returned is to wait for the turn that has the message, whichever it is.

        Raises:
            SessionBusy: it was to be `alone`, and another turn is under way, or asked for.
            CommandRefused: it was to steer a sub-turn, which answers to the turn above it and to nobody else; or one
                that runs tools in the client of somebody else.
        """
        options = self._turn_options(
            model=model,
            params=params,
            history=history,
            late=late,
            max_steps=max_steps,
            tools=tools,
            clients=None if clients is None else tuple(clients),
        )
        place = None if after is None else id_of(after)
        if beside is not None:
            if after is not None:
                raise ConfigError("a message is sent after a message, or beside a turn, not both")
            place = await self._beginning_of(beside)
        steered = None
        if steer is not False:
            if after is not None or beside is not None or alone:
                raise ConfigError("a message that steers has its place in the turn; leave after, beside and alone out")
            named = steer if steer is True else id_of_turn(steer)
            steered = await steered_by(self.runtime.store, self.session, named, options.by)
        at_leaf = after is None and beside is None
        return await self._send(parts_of(message), place, at_leaf, key, options, alone, steered)

    async def _beginning_of(self, turn: str | Turn) -> str | None:
        """The message under which a turn began; None: it began the conversation."""
        state = await self.turn(id_of_turn(turn)).state()
        if state.phase is Phase.IDLE:
            raise UnknownTurn(f"there is no turn {state.id!r} in this session, or it has not begun")
        return state.parent

    def _turn_options(self, **changed: Any) -> TurnOptions:
        given = {name: value for name, value in changed.items() if value is not None}
        if "model" in given:
            given["model"] = self.runtime.add_model(given["model"])
        fields = {name: getattr(self._options, name) for name in TurnOptions.__struct_fields__}
        if "model" in given and self.runtime.modality_of(given["model"]) != "chat":
            fields["params"] = None  # those of the chat were meant for talk
        if "params" in given:
            given["params"] = merge((fields["params"] or {}, plain_params(given["params"])))
        return self._checked(TurnOptions(**{**fields, **given}))

    def _checked(self, options: TurnOptions) -> TurnOptions:
        """Options that make sense, and name only tools that there are."""
        if getattr(options, "tools", None) is not None:
            options = replace(options, tools=self.runtime.registry.check(options.tools))
        options = checked_options(options)
        if not self.runtime.sources:  # or tools may be meant that are still to come
            check_by_hand(options.by_hand, self.runtime.tools)
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
        taken = receipt.command
        assert isinstance(taken, Send)
        turn = Turn(self.runtime, self.session, taken.turn, taken.key, self.tenant)
        # Sent once more, it may have begun a turn of its own meanwhile; a new one is still to join.
        if taken.joins and (receipt.is_new or not await self.runtime.store.events(self.session, turn=taken.turn)):
            turn = Turn(self.runtime, self.session, taken.joins, taken.key, self.tenant, otherwise=taken.turn)
        turn.message, turn.is_new = taken.message, receipt.is_new
        return turn

    async def _check(
        self, modality: Modality, parts: tuple[Part, ...] | None, parent: str | None, at_leaf: bool, key: str | None
    ) -> None:
        """Refuse what a model that is not for chat could not work on, before anything is created.

        Raises:
            MissingInput: and it says what is missing.
        """
        branch = await self.messages() if at_leaf else await self.messages(parent) if parent else []
        if parts is None and branch:
            parts = branch[-1].parts
        lack = missing(modality, branch, parts or ())
        may_come = not unfit(modality, parts or ()) and await self._is_busy()  # it is looked at again in its turn
        if lack and not may_come and not (key is not None and await self._was_taken(key)):
            raise MissingInput(lack)

    async def _is_busy(self) -> bool:
        """Whether there is a turn under way, or to come, that may bring a file."""
        try:
            store = self.runtime.store
            return bool(await store.inbox(self.session) or await store.open_turns(self.session))
        except UnknownSession:
            return False

    async def _was_taken(self, key: str) -> bool:
        """Whether a message with this key was taken before: the same again is the same turn, whatever is there now."""
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
        """Answer again: a new version beside an answer, or another answer to a message of the person's.

        An answer that was no talk (a picture, a voice) is made again as it was made, unless another model is given.
        """
        found = (await self.tree()).get(id_of(message))
        parent = found.parent if found.role == "assistant" else found.id
        if model is None and found.role == "assistant" and self.runtime.modality_of(found.by) != "chat":
            model = found.by
            params = {**await self._params_of(found.turn), **(params or {})}
        return await self._send(None, parent, False, key, self._turn_options(model=model, params=params))

    async def _params_of(self, turn: str) -> Mapping[str, Any]:
        """What a turn was told when it began."""
        for entry in await self.runtime.store.events(self.session, turn=turn):
            if isinstance(entry.event, TurnStarted):
                return entry.event.options.params or {}
        return {}

    async def edit(
        self, message: str | Message, text: Input, *, model: Model | str | None = None, key: str | None = None
    ) -> Turn:
        """Say it differently: a new version beside a message of the person's, and an answer to it."""
        found = (await self.tree()).get(id_of(message))
        if found.role != "user":
            raise ConfigError("edit is for what a person wrote; rerun gives another answer")
        return await self._send(parts_of(text), found.parent, False, key, self._turn_options(model=model))

    async def insert(self, after: str | Message, text: Input, *, model: Model | str | None = None) -> Turn:
        """Say something after an earlier message: a new branch, beside whatever followed there."""
        return await self._send(parts_of(text), id_of(after), at_leaf=False, options=self._turn_options(model=model))

    async def fork(self, message: str | Message | None) -> None:
        """Go on from an earlier message (None: from the beginning): the next `send` starts a branch there."""
        to = None if message is None else id_of(message)
        await self._tell(Select(key=self._key(), message=to, **self._stamp()))

    switch = fork

    async def delete(self, message: str | Message) -> None:
        """Hide a message and everything under it."""
        gone = (await self.tree()).get(id_of(message)).id
        await self._tell(Delete(key=self._key(), message=gone, **self._stamp()))

    def _key(self) -> str:
        return self.runtime.ids.new("cmd")

    def _stamp(self) -> Stamp:
        """What every command of this session carries."""
        return Stamp(session=self.session, tenant=self.tenant, at=self.runtime.clock.now())

    async def _tell(self, command: Select | Delete | Revoke | Revert) -> None:
        after = await self.runtime.store.head(self.session)
        await self.runtime.command(command)
        await self.runtime.acted_on(command, after)

    async def tree(self) -> Tree:
        """All messages of the session."""
        try:
            return await self.runtime.store.tree(self.session)
        except UnknownSession:  # it begins with its first message
            return Tree()

    async def messages(self, leaf: str | Message | None = None) -> list[Message]:
        """The selected branch, or the one that ends at `leaf`, oldest first."""
        store = self.runtime.store
        try:
            path = await store.path(self.session, id_of(leaf) if leaf else (await store.info(self.session)).leaf)
        except UnknownSession:  # it begins with its first message
            return []
        return [message for message in path if not message.hidden]

    async def attach(self, file: bytes | Path | str, media_type: str = "", name: str = "") -> FilePart:
        """Keep a file with the session's store, to be sent: `send([TextPart("What is this?"), await attach(path)])`."""
        if not isinstance(file, bytes):
            file = Path(file)
            name = name or file.name
            data = await asyncio.to_thread(file.read_bytes)
        else:
            data = file
        if not data:
            raise ConfigError(f"{name or 'the file'} is empty; there is nothing to send")
        name = clean(name)
        return FilePart(await self.runtime.store.put_blob(data), media_type or kind_of(name, data), len(data), name)

    async def read(self, file: FilePart) -> bytes:
        """The bytes of a file: one that was attached, or that a model or a tool has made."""
        return await self.runtime.store.blob(file.blob)

    # Around it -----------------------------------------------------------------------------------------------------

    async def gates(self) -> list[Gate]:
        """The questions that wait for a person in this session, and in the sub-turns that run for it."""
        store = self.runtime.store
        try:
            found = [row.gate for row in await store.gates(self.session)]
            logs = [await store.events(self.session, turn=turn) for turn in await store.open_turns(self.session)]
        except UnknownSession:  # it begins with its first message
            return []
        states = [fold(entry.event for entry in log) for log in logs if log]
        below = await sessions_below(store, self.session, states)
        if any(isinstance(tool, Agent) and tool.asks.detached for tool in self.runtime.tools.values()):
            below += [name for name in await detached_below(store, self.session) if name not in below]
        for name in below:
            found += [row.gate for row in await store.gates(name)]
        return found

    async def answer(self, gate: Gate, **reply: Unpack[Reply]) -> bool:
        """Answer a gate; see `Turn.answer`. False when this very answer was given before."""
        return await answer(self.runtime, self.session, self.tenant, gate, reply)

    async def claim(self, gate: Gate, by: str, lease: float = 60.0) -> Claimed:
        """Take a call upon yourself that is for a client, for `lease` seconds; again, to have more time.

        Answer it with `answer(gate, result=…, claim=by)`, or with `failed=True` and what went wrong.

        Raises:
            ClaimedOtherwise: another client has it.
            AnsweredOtherwise, GateClosed, GateExpired: nobody waits for it any more.
        """
        return await claim(self.runtime, self.session, self.tenant, gate, by, lease)

    async def revert(
        self, files: FilesPart, *, to: Literal["before", "after"] = "before", by: str = "person"
    ) -> FilesReverted:
        """Let files be what they were before (or after) a step; what they are now can be had back with `unrevert`.

        Raises:
            SessionBusy: a turn is under way.
            CommandRefused: nobody here keeps these files, or they could not be restored.
        """
        if to not in ("before", "after"):
            raise ConfigError(f'to={to!r}: "before" the step, or "after" it')
        return await self._revert(files.root, files.before if to == "before" else files.after, by)

    async def unrevert(self, undo: FilesReverted, *, by: str = "person") -> FilesReverted:
        """Let files be what they were before they were reverted."""
        return await self._revert(undo.root, undo.before, by)

    async def _revert(self, root: str, tree: str, by: str) -> FilesReverted:
        key = self._key()
        command = Revert(key=key, root=root, tree=tree, by=name_of(by), **self._stamp())
        after = await self.runtime.store.head(self.session)
        await self._tell(command)
        for entry in await self.runtime.store.events(self.session, after):
            if isinstance(entry.event, FilesReverted) and entry.event.command == key:
                return entry.event
        raise CommandRefused("it was not done")

    async def grants(self) -> list[Grant]:
        """What people have allowed from now on, and holds in this session."""
        try:
            return await self.runtime.store.grants(self.session, self.runtime.clock.now())
        except UnknownSession:  # it begins with its first message
            return []

    async def revoke(self, grant: Grant, *, by: str = "person") -> None:
        """Let a remembered answer hold no more.

        Raises:
            UnknownGrant: it was revoked before, or holds elsewhere.
        """
        if not isinstance(grant, Grant):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError("revoke the grant itself: one of chat.grants()")
        await self._tell(Revoke(key=self._key(), grant=grant.id, by=name_of(by), **self._stamp()))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every phase a turn enters, before its work starts; returns how to stop."""

        def mine(snapshot: Any) -> None:
            if snapshot.session == self.session:
                listener(snapshot)

        self.runtime.listeners.append(mine)
        return lambda: self.runtime.listeners.remove(mine) if mine in self.runtime.listeners else None

    async def __aenter__(self) -> Chat:
        """Start, and go on with whatever the store has unfinished."""
        await self.runtime.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop driving; nothing in the store is lost by it."""
        await self.aclose()

    async def aclose(self) -> None:
        """Stop driving; nothing in the store is lost by it."""
        await self.runtime.aclose()
