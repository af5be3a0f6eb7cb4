"""Chat: one session of the library API: send messages, follow turns, edit the message tree, answer gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from msgspec.structs import replace

from everturn.agents.definition import AgentDefinition
from everturn.base_app import BaseApp, StatusListener
from everturn.chat.admission import OutgoingMessage, admit_message
from everturn.chat.agent_selection import select_agent
from everturn.chat.attachments import store_attachment
from everturn.chat.chat_arguments import resolve_arguments
from everturn.chat.commands import carry_out
from everturn.chat.comparison import ComparedModels, compared_answers, params_by_model
from everturn.chat.context import read_context
from everturn.chat.forks import copy_id, fork_point
from everturn.chat.import_export import ImportedMessages, export_conversation, import_conversation
from everturn.chat.message_options import OptionsResolver, SendOptions
from everturn.chat.open_gates import read_open_gates
from everturn.chat.ratings import build_rating, rate_answer
from everturn.chat.replies import GateReply, answer_gate, checked_name, claim_call
from everturn.chat.result import RunResult
from everturn.chat.run import Run
from everturn.chat.send_arguments import ChatSendArguments, check_send_arguments
from everturn.chat.session_update import build_update, update_session
from everturn.chat.steering import find_steered_turn, id_of_turn
from everturn.chat.tree import read_branch, read_message, read_tree
from everturn.chat.turn import Turn
from everturn.chat.validation import (
    MessageInput,
    id_of,
    message_parts,
    timestamp,
    validate_params,
)
from everturn.core.commands import Delete, Revert, Revoke, Select
from everturn.core.context.context_report import ContextReport
from everturn.core.events import FilesReverted, TurnStarted
from everturn.core.gates import CallClaim, Gate, Grant
from everturn.core.messages import Message
from everturn.core.options import ClientTool, LatePolicy, StepLimitPolicy, ToolHistory, TurnOptions
from everturn.core.parts import FilePart, FilesPart, Part
from everturn.core.phases import Phase
from everturn.core.ports import Model
from everturn.core.rate_limits import Priority
from everturn.core.ratings import Rating
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import TurnStore
from everturn.core.tenants.accounts import LOCAL
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.core.tree import MessageTree
from everturn.errors import CommandRefused, ConfigError, UnknownSession, UnknownTurn
from everturn.message_formats import MessageFormat
from everturn.running.drive_setup import TurnSettings
from everturn.tools.registry import ToolItem, ToolRegistry

PLAIN_DEPENDENCIES = (
    "deps=… is an object of this process, and a turn in this store may be continued by another one; give the "
    "agent a factory: "
    "Agent(…, deps=make_deps), with async def make_deps(turn: TurnInfo) -> Deps, and what differs as metadata={…}"
)


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
        model: Model | str | AgentDefinition[Any],
        *,
        tools: Iterable[ToolItem] | ToolRegistry = (),
        plugins: Iterable[object] = (),
        system: str = "",
        session: str | None = None,
        store: TurnStore | str | None = None,
        options: TurnOptions | None = None,
        settings: TurnSettings | None = None,
        rules: Iterable[Rule] | str | Path = (),
        app: BaseApp | None = None,
        tenant: str = LOCAL,
    ) -> None:
        setup = resolve_arguments(
            model,
            tools=tools,
            plugins=plugins,
            system=system,
            store=store,
            options=options,
            settings=settings,
            rules=rules,
            app=app,
        )
        self.app = setup.app
        self.session = session or self.app.ids.new("session")
        self.tenant = tenant
        self._options = OptionsResolver(*setup)

    async def send(
        self,
        message: MessageInput,
        *,
        after: str | Message | None = None,
        key: str | None = None,
        agent: AgentDefinition[Any] | str | None = None,
        model: Model | str | None = None,
        compare_with: ComparedModels = (),
        params: Mapping[str, Any] | None = None,
        tool_history: ToolHistory | None = None,
        context: str | None = None,
        late: LatePolicy | None = None,
        max_steps: int | None = None,
        tools: Iterable[str] | None = None,
        clients: Iterable[ClientTool] | None = None,
        alone: bool = False,
        beside: str | Turn | None = None,
        steer: bool | str | Turn = False,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        by: str | None = None,
        at: datetime | float | None = None,
        priority: Priority | None = None,
        at_step_limit: StepLimitPolicy | None = None,
    ) -> Turn:
        """Send a message at the end of the selected branch, or `after` a message, and start a turn.

        The message is durable when this returns. The same `key` always returns the same turn. The agent that has the
        session when the turn starts takes it; with `agent` that one does, and has the session from then on. `model`
        selects another model, of any vendor. `tools` selects the tools of this turn by patterns of their names; `@group` selects a
        whole group, even if it is off. `clients` are tools that the caller runs. `beside` a turn, the message starts a
        branch where that turn started, and does not wait for it. `metadata` is JSON for the agent's dependencies and
        tools, and part of the log; `deps` are dependencies for this turn alone, with a store in memory. `by` is the user.

        With `compare_with`, up to three further models answer the same message at the same time, each in a turn and a branch
        of its own: `turn.compared`. They are a list of names, or a mapping with the parameters of each. The answer that
        begins first is on the selected branch; `fork` continues from another one.

        With `steer` the message joins the running turn of the selected branch, or the given turn, between two of its
        steps, and the other options have no effect; that turn is returned. If it ends before the message could join, or
        has no step left, or if no turn is running, the message starts a turn of its own. To `await` the returned turn
        waits for the turn that has the message.

        With `at` (a datetime with a time zone, or a Unix timestamp) the message is durable now and starts its turn at
        that time, or when its branch is free after it; `turn.cancel()` withdraws it before that.

        With `at_step_limit="ask"` a turn that has reached `max_steps` opens a gate of the kind `limit`: if it is approved, the
        turn may take as many steps again. Otherwise, and when it is denied, the model is asked for a closing answer.

        While requests wait for a provider's rate limit, those of turns with the `priority` "background" go last; that
        is the default for a message with `at`, because no user watches it.

        Raises:
            SessionBusy: `alone` was set, and another turn is running or queued.
            CommandRefused: `steer` names a sub-agent run, which only its parent turn directs, or a turn with client
                tools of another user.
        """
        own: dict[str, Any] = {
            "tool_history": tool_history,
            "context": context,
            "late": late,
            "max_steps": max_steps,
            "tools": tools,
            "clients": None if clients is None else tuple(clients),
            "metadata": None if metadata is None else validate_params(metadata),
            "by": by,
            "priority": priority or ("background" if at is not None else None),
            "at_step_limit": at_step_limit,
        }
        sent = self._options.resolve(agent, model=model, params=params, **own)
        if others := params_by_model(compare_with):
            if steer is not False:
                raise ConfigError("a message that steers joins the running turn; leave compare_with out")
            answers = [
                self._options.resolve(agent, model=name, params=params if value is None else value, **own).options
                for name, value in others.items()
            ]
            sent = sent._replace(compared=compared_answers(self.app, sent.options, answers))
        if deps is not None and not self.app.is_in_memory:
            raise ConfigError(PLAIN_DEPENDENCIES)
        parent = None if after is None else id_of(after)
        if beside is not None:
            if after is not None:
                raise ConfigError("`after` and `beside` cannot be used together")
            parent = await self._beginning_of(beside)
        joined_turn = None
        if steer is not False:
            if after is not None or beside is not None or alone:
                raise ConfigError("a message that steers joins the running turn; leave after, beside and alone out")
            target = steer if steer is True else id_of_turn(steer)
            joined_turn = await find_steered_turn(self.app.store, self.session, target, sent.options.by)
            if at is not None:
                raise ConfigError("a message that steers joins the running turn; leave `at` out")
        new = OutgoingMessage(
            parts=message_parts(message),
            options=sent,
            parent=parent,
            at_leaf=after is None and beside is None,
            key=key,
            alone=alone,
            joins=joined_turn,
            not_before=0.0 if at is None else timestamp(at),
            deps=deps,
        )
        return await admit_message(self.app, self.session, self.tenant, new)

    async def run(
        self,
        message: MessageInput,
        *,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        wait: float | None = None,
        **how: Unpack[ChatSendArguments],
    ) -> RunResult[Any]:
        """Send a message, and wait until its turn has ended or is suspended; `how` is as in `send`.

        Raises:
            TurnError: the turn failed.
        """
        check_send_arguments("run", how, ("wait", "session", "app"))
        return await (await self.send(message, metadata=metadata, deps=deps, **how)).result(wait)

    def stream(
        self,
        message: MessageInput,
        *,
        metadata: Mapping[str, Any] | None = None,
        deps: Any = None,
        **how: Unpack[ChatSendArguments],
    ) -> Run[Any]:
        """Send a message, and show its turn as it happens: `async with chat.stream("…") as run`."""
        check_send_arguments("stream", how, ("session", "app"))
        return Run(lambda: self.send(message, metadata=metadata, deps=deps, **how))

    async def _beginning_of(self, turn: str | Turn) -> str | None:
        """The parent message of a turn; None: it started the conversation."""
        state = await self.turn(id_of_turn(turn)).state()
        if state.phase is Phase.IDLE:
            raise UnknownTurn(f"there is no turn {state.id!r} in this session, or it has not begun")
        return state.parent

    async def _admit(
        self, parts: tuple[Part, ...] | None, options: SendOptions, parent: str | None = None, key: str | None = None
    ) -> Turn:
        """Admit a message under a given parent; without parts, a request for another answer to it."""
        new = OutgoingMessage(parts=parts, options=options, parent=parent, key=key)
        return await admit_message(self.app, self.session, self.tenant, new)

    def turn(self, turn: str) -> Turn:
        """A turn of this session, by its id: to follow it again, or from another process."""
        return Turn(self.app, self.session, turn, tenant=self.tenant)

    # The tree ----------------------------------------------------------------------------------------------------

    async def rerun(
        self,
        message: str | Message,
        *,
        model: Model | str | None = None,
        params: Mapping[str, Any] | None = None,
        tools: Iterable[str] | None = None,
        after_step: int = 0,
        key: str | None = None,
    ) -> Turn:
        """Regenerate: a new version beside an answer, or another answer to a user message. `tools` is as in `send`.

        With `after_step` the first steps of the answer stay, with their calls and results: they are copied into a message
        beside it, and the model continues after the step of this number. None of their calls runs again, and files stay as
        they are. An answer that is still being written has its finished steps.

        An answer of a model that is not for chat (a picture, speech) is generated by the same model, unless `model` is
        given.

        Raises:
            CommandRefused: the answer has no such step, or the step is not finished.
        """
        original = await self._message(message)
        if after_step:
            new = OutgoingMessage(
                parts=None,
                options=self._options.resolve(model=model, params=params, tools=tools),
                parent=original.parent,
                key=key,
                fork=fork_point(original, after_step),
            )
            return await admit_message(self.app, self.session, self.tenant, new)
        parent = original.parent if original.role == "assistant" else original.id
        if model is None and original.role == "assistant" and self.app.modality_of(original.by) != "chat":
            model = original.by
            params = {**await self._params_of(original.turn), **(params or {})}
        return await self._admit(None, self._options.resolve(model=model, params=params, tools=tools), parent, key)

    async def compact(self, *, focus: str = "", key: str | None = None) -> Turn:
        """Summarise the earlier part of the selected branch, so that later requests are shorter; `focus` is kept above all.

        The messages stay in the tree, and so does the summary: `delete` it to undo the compaction. The turn that is
        returned has no answer; its `result()` waits for the summary.

        Raises:
            UnknownSession: nothing was said yet.
            SessionBusy: a turn is running or queued; in it the conversation is compacted when it has to be.
        """
        await self.app.store.info(self.session)
        options = replace(self._options.defaults, compact=focus.strip(), context="auto")
        new = OutgoingMessage(parts=None, options=SendOptions(options), at_leaf=True, key=key, alone=True)
        return await admit_message(self.app, self.session, self.tenant, new)

    async def context(self, *, at: str | Message | None = None, model: Model | str | None = None) -> ContextReport:
        """Report how full the context window is, for the selected branch or the one that ends `at` a message.

        It is the size of the next request: of the turn that runs, or of a message that is sent now, with `model` if it
        is given. Nothing is sent to a provider, and plugins are not called.

        Raises:
            UnknownMessage: there is no message `at`.
        """
        options, base, chosen, _ = self._options.resolve(model=model)
        place = None if at is None else id_of(at)
        return await read_context(self.app, self.session, self.tenant, options, at=place, base=base, chosen=chosen)

    async def _params_of(self, turn: str) -> Mapping[str, Any]:
        """The parameters that a turn started with."""
        for entry in await self.app.store.events(self.session, turn=turn):
            if isinstance(entry.event, TurnStarted):
                return entry.event.options.params or {}
        return {}

    async def edit(
        self,
        message: str | Message,
        text: MessageInput,
        *,
        model: Model | str | None = None,
        params: Mapping[str, Any] | None = None,
        tools: Iterable[str] | None = None,
        key: str | None = None,
    ) -> Turn:
        """Edit a user message: a new version beside it, and an answer to it. `params` and `tools` are as in `send`."""
        original = await self._message(message)
        if original.role != "user":
            raise ConfigError("only messages of a person can be edited; chat.rerun creates another answer")
        options = self._options.resolve(model=model, params=params, tools=tools)
        return await self._admit(message_parts(text), options, original.parent, key)

    async def insert(self, after: str | Message, text: MessageInput, *, model: Model | str | None = None) -> Turn:
        """Send a message after an earlier one: a new branch beside the existing messages."""
        return await self._admit(message_parts(text), self._options.resolve(model=model), id_of(after))

    async def fork(self, message: str | Message | None, *, step: int = 0, key: str | None = None) -> str | None:
        """Continue from an earlier message (None: from the beginning): the next `send` starts a branch there.

        With a `step` it starts inside an answer, after the step of this number: the steps up to it are copied into a
        message beside the answer, with their calls and results, and none of the calls runs again. `rerun` with
        `after_step` lets the model continue there at once. Returns the id of the message that the branch continues from.

        Raises:
            CommandRefused: the answer has no such step, or the step is not finished.
        """
        to, key = None if message is None else id_of(message), key or self._key()
        if not step:
            await carry_out(self.app, Select(key=key, message=to, **self._stamp()))
            return to
        if to is None:
            raise ConfigError("a step is one of an answer: fork(message, step=…)")
        place = fork_point(await self._message(to), step)
        copy = copy_id(self.session, key)
        command = Select(key=key, message=place.message, step=place.step, copy=copy, **self._stamp())
        await carry_out(self.app, command)
        return copy

    # The agent ---------------------------------------------------------------------------------------------------

    async def agent(self) -> str:
        """The agent that has the session now: of its last turn or handoff, or the one that a person selected."""
        try:
            return (await self.app.store.info(self.session)).agent
        except UnknownSession:  # the session is created by its first message
            return self._options.defaults.agent

    async def switch(self, agent: AgentDefinition[Any] | str, *, by: str = "person", key: str | None = None) -> None:
        """Hand the session to another agent, which takes the next turns on every branch until the next handoff.

        Messages that are queued or scheduled go to it as well. The same `key` selects it once.

        Raises:
            ConfigError: the app does not know the agent.
            SessionBusy, CommandRefused: a turn is running or suspended.
            UnknownSession: the session has no message yet; `app.chat(id, agent=…)` says who begins.
        """
        await select_agent(self.app, self.session, self.tenant, self._options.agent_name(agent), by, key)

    async def update(
        self,
        *,
        title: str | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        labels: Iterable[str] | None = None,
        by: str = "person",
        key: str | None = None,
    ) -> None:
        """Rename, pin, archive or label the session; None leaves a field as it is. The same `key` changes it once.

        A title given here is not replaced by the one that is derived from the first message, or generated by a model.

        Raises:
            ConfigError: nothing changes, or the title or a label is not valid.
            UnknownSession: the session has no message yet.
        """
        command = build_update(
            key or self._key(),
            self.session,
            self.tenant,
            self.app.clock.now(),
            title=title,
            pinned=pinned,
            archived=archived,
            labels=labels,
            by=by,
        )
        await update_session(self.app, command)

    async def rate(
        self, message: str | Message, rating: Rating, *, reason: str = "", by: str = "person", key: str | None = None
    ) -> None:
        """Rate an answer "up" or "down", for evals and for people; "" withdraws the rating. No model reads it.

        Raises:
            ConfigError: the message is not an answer, or the rating is not valid.
            UnknownMessage: there is no such message.
        """
        message_id = (await self._message(message)).id
        key, at = key or self._key(), self.app.clock.now()
        await rate_answer(
            self.app, build_rating(key, self.session, self.tenant, at, message_id, rating, reason=reason, by=by)
        )

    async def delete(self, message: str | Message) -> None:
        """Hide a message and everything under it."""
        message_id = (await self._message(message)).id
        await carry_out(self.app, Delete(key=self._key(), message=message_id, **self._stamp()))

    async def _message(self, message: str | Message) -> Message:
        """One message as the store has it.

        Raises:
            UnknownMessage: it does not exist, or was deleted.
        """
        return await read_message(self.app.store, self.session, id_of(message))

    def _key(self) -> str:
        return self.app.ids.new("cmd")

    def _stamp(self) -> CommandStamp:
        """The common fields of a command of this session."""
        return CommandStamp(session=self.session, tenant=self.tenant, at=self.app.clock.now())

    async def tree(self) -> MessageTree:
        """All messages of the session."""
        return await read_tree(self.app.store, self.session)

    async def messages(self, leaf: str | Message | None = None) -> list[Message]:
        """The selected branch, or the one that ends at `leaf`, oldest first."""
        return await read_branch(self.app.store, self.session, id_of(leaf) if leaf else None)

    async def attach(self, file: bytes | Path | str, media_type: str = "", name: str = "") -> FilePart:
        """Store a file in order to send it: `send([TextPart("What is this?"), await attach(path)])`.

        The text of a PDF or Office file is read, in a process of its own, and stored beside it.
        """
        return await store_attachment(self.app.store, self.tenant, file, media_type, name)

    async def read(self, file: FilePart) -> bytes:
        """The bytes of a file that was attached, or that a model or a tool generated."""
        with blobs_of_tenant(self.tenant):
            return await self.app.store.blob(file.blob)

    # Conversations of other libraries --------------------------------------------------------------------------------

    async def import_messages(
        self,
        messages: object,
        *,
        format: MessageFormat | None = None,
        after: str | Message | None = None,
        key: str | None = None,
        by: str = "",
    ) -> ImportedMessages:
        """Add a conversation that was held elsewhere at the end of the selected branch, or `after` a message.

        `messages` is a message list of OpenAI (Chat Completions or Responses), Anthropic or Pydantic AI: plain data,
        objects of their SDKs, JSON, or a request body that contains the list. The format is detected, or named by
        `format`. The messages are marked as `imported`; their calls do not run, and their results count as untrusted.
        Instructions in the list are returned and not imported: they belong to the agent. The same `key` imports once.

        Raises:
            ConfigError: this is not a message list, or nothing in it can be imported.
            SessionBusy: a turn is running or queued.
        """
        return await import_conversation(
            self.app,
            messages,
            format,
            parent=None if after is None else id_of(after),
            at_leaf=after is None,
            by=checked_name(by) if by else "",
            key=key or self._key(),
            **self._stamp(),
        )

    async def export_messages(
        self, *, format: MessageFormat, leaf: str | Message | None = None
    ) -> list[dict[str, Any]]:
        """The selected branch, or the one that ends at `leaf`, as a message list of another library, in plain JSON data.

        It is what a model would be sent: every call with its result, and no instructions. Provider signatures stay
        here.
        """
        return await export_conversation(self.app.store, self.tenant, await self.messages(leaf), format)

    # Gates and grants-----------------------------------------------------------------------------------------------

    async def gates(self) -> list[Gate]:
        """The open gates of this session and its sub-agent runs."""
        return await read_open_gates(self.app, self.session)

    async def answer(self, gate: Gate, **reply: Unpack[GateReply]) -> bool:
        """Answer a gate; see `Turn.answer`. False if the same answer was given before."""
        return await answer_gate(self.app, self.session, self.tenant, gate, reply)

    async def claim(self, gate: Gate, by: str, lease: float = 60.0) -> CallClaim:
        """Claim a client call for `lease` seconds; claim it again to extend the lease.

        Answer it with `answer(gate, result=…, claim=by)`, or with `failed=True` and what went wrong.

        Raises:
            ClaimedOtherwise: another client has claimed it.
            AnsweredOtherwise, GateClosed, GateExpired: the gate is no longer open.
        """
        return await claim_call(self.app, self.session, self.tenant, gate, by, lease)

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
        after = await self.app.store.head(self.session)
        await carry_out(self.app, command)
        for entry in await self.app.store.events(self.session, after):
            if isinstance(entry.event, FilesReverted) and entry.event.command == key:
                return entry.event
        raise CommandRefused("the files were not reverted")

    async def grants(self) -> list[Grant]:
        """The valid grants of this session."""
        try:
            return await self.app.store.grants(self.session, self.app.clock.now())
        except UnknownSession:  # the session is created by its first message
            return []

    async def revoke(self, grant: Grant, *, by: str = "person") -> None:
        """Revoke a grant.

        Raises:
            UnknownGrant: it was revoked before, or belongs to another session.
        """
        if not isinstance(grant, Grant):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError("chat.revoke needs a grant: one of chat.grants()")
        await carry_out(self.app, Revoke(key=self._key(), grant=grant.id, by=checked_name(by), **self._stamp()))

    def subscribe(self, listener: StatusListener) -> Callable[[], None]:
        """Call `listener` for every phase a turn enters, before its work starts; returns a function that unsubscribes."""

        def filtered(status: Any) -> None:
            if status.session == self.session:
                listener(status)

        self.app.listeners.append(filtered)
        return lambda: self.app.listeners.remove(filtered) if filtered in self.app.listeners else None

    async def __aenter__(self) -> Chat:
        """Start the runtime; unfinished turns of the store continue."""
        await self.app.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop driving; nothing in the store is lost."""
        await self.aclose()

    async def aclose(self) -> None:
        """Stop driving; nothing in the store is lost."""
        await self.app.aclose()
