"""Chat: one session of the library API: send messages, follow turns, edit the message tree, answer gates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

from msgspec.structs import replace

from everturn.agents.definition import AgentDefinition
from everturn.agents.session_agent import options_of_agent
from everturn.base_app import BaseApp, StatusListener
from everturn.chat.agent_selection import select_agent
from everturn.chat.comparison import ComparedModels, compared_answers, params_by_model
from everturn.chat.context import read_context
from everturn.chat.import_export import ImportedMessages, import_id, read_files
from everturn.chat.ratings import build_rating, rate_answer
from everturn.chat.replies import GateReply, answer_gate, checked_name, claim_call
from everturn.chat.result import RunResult
from everturn.chat.run import Run
from everturn.chat.send_arguments import ChatSendArguments, check_send_arguments
from everturn.chat.session_update import build_update, update_session
from everturn.chat.steering import find_steered_turn, id_of_turn
from everturn.chat.turn import Turn
from everturn.chat.validation import (
    MessageInput,
    check_clients,
    check_manual,
    check_tools,
    guess_media_type,
    id_of,
    message_parts,
    refuse_with_app,
    timestamp,
    validate_options,
    validate_params,
)
from everturn.core.canonical_json import replace_surrogates
from everturn.core.commands import ComparedAnswer, Delete, ImportMessages, Revert, Revoke, Select, Send
from everturn.core.context.context_report import ContextReport
from everturn.core.context.documents import document_type, page_count
from everturn.core.events import FilesReverted, TurnStarted
from everturn.core.gates import CallClaim, Gate, Grant
from everturn.core.history import render_history
from everturn.core.hooks import HOOKS
from everturn.core.messages import Message
from everturn.core.modality import Modality, explain_invalid_message, explain_missing_input, modality_of
from everturn.core.options import ClientTool, LatePolicy, Prompt, StepLimitPolicy, ToolHistory, TurnOptions
from everturn.core.parts import FilePart, FilesPart, Part
from everturn.core.phases import Phase
from everturn.core.ports import Model
from everturn.core.rate_limits import Priority
from everturn.core.ratings import Rating
from everturn.core.rules.policy import Rule
from everturn.core.state import fold
from everturn.core.store_ports import TurnStore
from everturn.core.tenants.accounts import LOCAL
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.core.tree import MessageTree
from everturn.errors import CommandRefused, ConfigError, MissingInput, UnknownMessage, UnknownSession, UnknownTurn
from everturn.message_formats import MessageFormat, read_messages, write_messages
from everturn.running.active_turn import TurnSettings
from everturn.running.subagent_index import active_subagent_sessions, detached_subagent_sessions
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolItem, ToolRegistry
from everturn.tools.subagent import SubagentTool
from everturn.turn.request import merge_params

PLAIN_DEPENDENCIES = (
    "deps=… is an object of this process, and a turn in this store may be continued by another one; give the "
    "agent a factory: "
    "Agent(…, deps=make_deps), with async def make_deps(turn: TurnInfo) -> Deps, and what differs as metadata={…}"
)


class SendOptions(NamedTuple):
    """The options of a message; with a `base`, another agent that has the session by then takes its turn.

    See `core.commands.Send`.
    """

    options: TurnOptions
    base: TurnOptions | None = None
    chosen: tuple[str, ...] = ()
    compared: tuple[ComparedAnswer, ...] = ()


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
        if (
            hasattr(tools, "spec")
            or callable(tools)
            or isinstance(tools, ToolGroup)
            or any(hasattr(plugins, hook) for hook in HOOKS)
        ):
            raise ConfigError("tools and plugins must be lists: tools=[search], plugins=[Timing()]")
        tools, plugins = tools if isinstance(tools, ToolRegistry) else list(tools), list(plugins)
        if isinstance(options, dict) or isinstance(settings, dict):
            raise ConfigError("options must be a TurnOptions(...), settings a Settings(...)")
        agent = model if isinstance(model, AgentDefinition) else None
        base: TurnOptions | None = None
        self._agent = ""
        if agent is not None:
            arguments = {"tools": tools, "plugins": plugins, "system": system, "rules": rules}
            if any(arguments.values()):
                raise ConfigError("an agent has its own instructions, tools, plugins and rules; pass them to Agent(…)")
            app = app or BaseApp(agents=[agent], store=store, settings=settings)
            self._agent, base = app.add_agent(agent), options or TurnOptions()
            options = app.agent_options(self._agent, base)
        elif app is None:
            assert not isinstance(model, AgentDefinition)
            if model is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise ConfigError(
                    "None is not a model; pass a model or an agent: Chat('openai:gpt-5.2'), Chat(Agent(…))"
                )
            if settings is not None and system:
                raise ConfigError("pass `system`, or `settings` with a prompt, not both")
            settings = settings or TurnSettings(prompt=Prompt(agent=system))
            app = BaseApp(model, tools=tools, plugins=plugins, store=store, settings=settings, rules=rules)
        else:
            assert not isinstance(model, AgentDefinition)
            arguments = {"tools": tools, "plugins": plugins, "system": system, "rules": rules}
            refuse_with_app({**arguments, "store": store is not None, "settings": settings is not None})
            options = replace(options or TurnOptions(), model=app.add_model(model))
        self.app = app
        self.session = session or app.ids.new("session")
        self.tenant = tenant
        self._options = self._checked(options or TurnOptions())
        self._base = self._options if base is None else self._checked(base)  # without what the agent contributes

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
        sent = self._turn_options(agent, model=model, params=params, **own)
        if others := params_by_model(compare_with):
            if steer is not False:
                raise ConfigError("a message that steers joins the running turn; leave compare_with out")
            answers = [
                self._turn_options(agent, model=name, params=params if value is None else value, **own).options
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
        at_leaf = after is None and beside is None
        not_before = 0.0 if at is None else timestamp(at)
        return await self._send(
            message_parts(message), parent, at_leaf, key, sent, alone, joined_turn, not_before, deps
        )

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

    def _turn_options(self, agent: AgentDefinition[Any] | str | None = None, **changed: Any) -> SendOptions:
        overrides = {name: value for name, value in changed.items() if value is not None}
        own = self._options
        if agent is None and not overrides and own.tools is None and not own.manual and not own.clients:
            # Checked when this chat was made, and it names no tools, which may have changed.
            return SendOptions(own, self._base) if self._agent else SendOptions(own)
        if "model" in overrides:
            overrides["model"] = self.app.add_model(overrides["model"])
        if agent is not None:
            base, chosen = self._with_overrides(overrides)
            return SendOptions(self._checked(options_of_agent(self.app, self._known_agent(agent), base, chosen)))
        options = self._merged_options(dict(overrides))
        if not self._agent:
            return SendOptions(options)
        # The values as they were checked; client tools and metadata are those of any agent.
        checked = {name: getattr(options, name) for name in overrides if name not in ("params", "clients", "metadata")}
        base, chosen = self._with_overrides({**checked, "params": overrides.get("params")})
        return SendOptions(options, base, chosen)

    def _with_overrides(self, overrides: Mapping[str, Any]) -> tuple[TurnOptions, tuple[str, ...]]:
        """The chat's own options with what was chosen for a message, and the names of that."""
        changed = {name: value for name, value in overrides.items() if value is not None}
        if "params" in changed:
            changed["params"] = merge_params((self._base.params or {}, validate_params(changed["params"])))
        return (replace(self._base, **changed) if changed else self._base), tuple(sorted(changed))

    def _known_agent(self, agent: AgentDefinition[Any] | str) -> str:
        """The name of an agent of this app.

        Raises:
            ConfigError: the app does not know it; the text lists those it knows.
        """
        if isinstance(agent, AgentDefinition):
            return self.app.add_agent(agent)
        return self.app.binding(agent).name

    def _merged_options(self, overrides: dict[str, Any]) -> TurnOptions:
        fields = {name: getattr(self._options, name) for name in TurnOptions.__struct_fields__}
        if "model" in overrides and self.app.modality_of(overrides["model"]) != "chat":
            fields["params"] = None  # the chat's parameters are for chat models
        if "params" in overrides:
            overrides["params"] = merge_params((fields["params"] or {}, validate_params(overrides["params"])))
        return self._checked(TurnOptions(**{**fields, **overrides}))

    def _checked(self, options: TurnOptions) -> TurnOptions:
        """Validate options, and check that the tools they name exist."""
        registry = self.app.registry_of(getattr(options, "agent", ""))
        if getattr(options, "tools", None) is not None:
            options = replace(options, tools=self._check_tools(options.tools, registry))
        options = validate_options(options)
        if not self.app.sources:  # otherwise a source may still publish them
            check_manual(options.manual, registry.tools)
        check_clients(options.clients, registry.tools)
        return options

    def _check_tools(self, patterns: Any, registry: ToolRegistry) -> tuple[str, ...] | None:
        """Check that tools exist: those of the agent that begins, of the app, or of another agent that may take over."""
        if not self._agent:
            return registry.check_selection(patterns)
        others = [self.app.registry, *(self.app.binding(name).registry for name in self.app.agents)]
        return check_tools(patterns, self.app.binding(self._agent).registry, others)

    async def _send(
        self,
        parts: tuple[Part, ...] | None,
        parent: str | None,
        at_leaf: bool,
        key: str | None = None,
        sent: SendOptions | None = None,
        alone: bool = False,
        joins: str | None = None,
        not_before: float = 0.0,
        deps: Any = None,
    ) -> Turn:
        options, base, chosen, compared = sent or SendOptions(self._options)
        if (modality := modality_of(self.app.model_for(options.model))) != "chat":
            await self._check(modality, parts, parent, at_leaf, key)
        ids = self.app.ids
        command = Send(
            key=key or ids.new("cmd"),
            session=self.session,
            tenant=self.tenant,
            at=self.app.clock.now(),
            turn=ids.new("turn"),
            message=ids.new("msg") if parts is not None else "",
            parts=parts,
            parent=parent,
            at_leaf=at_leaf,
            alone=alone,
            steers=joins is not None,
            joins=joins or "",
            not_before=not_before,
            options=options,
            base=base,
            chosen=chosen,
            compared=compared,
        )
        for name in (command.turn, *(answer.turn for answer in compared)) if deps is not None else ():
            self.app.turn_dependencies[name] = deps
        receipt = await self.app.command(command)
        admitted = receipt.command
        assert isinstance(admitted, Send)
        turn = Turn(self.app, self.session, admitted.turn, admitted.key, self.tenant)
        # If sent again, it may have started its own turn meanwhile; a new one has yet to join.
        if admitted.joins and (receipt.is_new or not await self.app.store.events(self.session, turn=admitted.turn)):
            turn = Turn(self.app, self.session, admitted.joins, admitted.key, self.tenant, otherwise=admitted.turn)
        turn.message, turn.is_new = admitted.message, receipt.is_new
        turn.compared = tuple(
            Turn(self.app, self.session, other.turn, tenant=self.tenant) for other in admitted.compared
        )
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
            store = self.app.store
            return bool(await store.inbox(self.session) or await store.open_turns(self.session))
        except UnknownSession:
            return False

    async def _was_taken(self, key: str) -> bool:
        """Whether a message with this key was admitted before: a repeat returns the same turn, whatever the branch has
        now.
        """
        try:
            turn = await self.app.store.turn_of_command(self.session, key)
            log = await self.app.store.events(self.session, turn=turn) if turn else []
        except UnknownSession:
            return False
        return any(isinstance(entry.event, TurnStarted) and entry.event.command == key for entry in log)

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
        key: str | None = None,
    ) -> Turn:
        """Regenerate: a new version beside an answer, or another answer to a user message. `tools` is as in `send`.

        An answer of a model that is not for chat (a picture, speech) is generated by the same model, unless `model` is
        given.
        """
        original = await self._message(message)
        parent = original.parent if original.role == "assistant" else original.id
        if model is None and original.role == "assistant" and self.app.modality_of(original.by) != "chat":
            model = original.by
            params = {**await self._params_of(original.turn), **(params or {})}
        return await self._send(None, parent, False, key, self._turn_options(model=model, params=params, tools=tools))

    async def compact(self, *, focus: str = "", key: str | None = None) -> Turn:
        """Summarise the earlier part of the selected branch, so that later requests are shorter; `focus` is kept above all.

        The messages stay in the tree, and so does the summary: `delete` it to undo the compaction. The turn that is
        returned has no answer; its `result()` waits for the summary.

        Raises:
            UnknownSession: nothing was said yet.
            SessionBusy: a turn is running or queued; in it the conversation is compacted when it has to be.
        """
        await self.app.store.info(self.session)
        sent = SendOptions(replace(self._options, compact=focus.strip(), context="auto"))
        return await self._send(None, None, at_leaf=True, key=key, sent=sent, alone=True)

    async def context(self, *, at: str | Message | None = None, model: Model | str | None = None) -> ContextReport:
        """Report how full the context window is, for the selected branch or the one that ends `at` a message.

        It is the size of the next request: of the turn that runs, or of a message that is sent now, with `model` if it
        is given. Nothing is sent to a provider, and plugins are not called.

        Raises:
            UnknownMessage: there is no message `at`.
        """
        options, base, chosen, _ = self._turn_options(model=model)
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
        options = self._turn_options(model=model, params=params, tools=tools)
        return await self._send(message_parts(text), original.parent, False, key, options)

    async def insert(self, after: str | Message, text: MessageInput, *, model: Model | str | None = None) -> Turn:
        """Send a message after an earlier one: a new branch beside the existing messages."""
        return await self._send(message_parts(text), id_of(after), at_leaf=False, sent=self._turn_options(model=model))

    async def fork(self, message: str | Message | None) -> None:
        """Continue from an earlier message (None: from the beginning): the next `send` starts a branch there."""
        to = None if message is None else id_of(message)
        await self._tell(Select(key=self._key(), message=to, **self._stamp()))

    # The agent ---------------------------------------------------------------------------------------------------

    async def agent(self) -> str:
        """The agent that has the session now: of its last turn or handoff, or the one that a person selected."""
        try:
            return (await self.app.store.info(self.session)).agent
        except UnknownSession:  # the session is created by its first message
            return self._options.agent

    async def switch(self, agent: AgentDefinition[Any] | str, *, by: str = "person", key: str | None = None) -> None:
        """Hand the session to another agent, which takes the next turns on every branch until the next handoff.

        Messages that are queued or scheduled go to it as well. The same `key` selects it once.

        Raises:
            ConfigError: the app does not know the agent.
            SessionBusy, CommandRefused: a turn is running or suspended.
            UnknownSession: the session has no message yet; `app.chat(id, agent=…)` says who begins.
        """
        await select_agent(self.app, self.session, self.tenant, self._known_agent(agent), by, key)

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
        await self._tell(Delete(key=self._key(), message=message_id, **self._stamp()))

    async def _message(self, message: str | Message) -> Message:
        """One message as the store has it.

        Raises:
            UnknownMessage: it does not exist, or was deleted.
        """
        message_id = id_of(message)
        try:
            (found,) = await self.app.store.path(self.session, message_id, 1)
        except UnknownSession:  # the session is created by its first message
            raise UnknownMessage(f"there is no message {message_id!r} in this session") from None
        return found

    def _key(self) -> str:
        return self.app.ids.new("cmd")

    def _stamp(self) -> CommandStamp:
        """The common fields of a command of this session."""
        return CommandStamp(session=self.session, tenant=self.tenant, at=self.app.clock.now())

    async def _tell(self, command: Select | Delete | Revoke | Revert) -> None:
        after = await self.app.store.head(self.session)
        await self.app.command(command)
        await self.app.wait_until_carried_out(command, after)

    async def tree(self) -> MessageTree:
        """All messages of the session."""
        try:
            return await self.app.store.tree(self.session)
        except UnknownSession:  # the session is created by its first message
            return MessageTree()

    async def messages(self, leaf: str | Message | None = None) -> list[Message]:
        """The selected branch, or the one that ends at `leaf`, oldest first."""
        store = self.app.store
        try:
            path = await store.path(self.session, id_of(leaf) if leaf else (await store.info(self.session)).leaf)
        except UnknownSession:  # the session is created by its first message
            return []
        return [message for message in path if not message.hidden]

    async def attach(self, file: bytes | Path | str, media_type: str = "", name: str = "") -> FilePart:
        """Store a file in order to send it: `send([TextPart("What is this?"), await attach(path)])`.

        The text of a PDF or Office file is read, in a process of its own, and stored beside it.
        """
        if not isinstance(file, bytes):
            file = Path(file)
            name = name or file.name
            data = await asyncio.to_thread(file.read_bytes)
        else:
            data = file
        if not data:
            raise ConfigError(f"{name or 'the file'} is empty; there is nothing to send")
        name = replace_surrogates(name)
        media_type = media_type or guess_media_type(name, data)
        text, pages = b"", 0
        if document := document_type(media_type, name):
            from everturn.documents.extraction import extract_text

            media_type, text = document, await extract_text(data, document)
            pages = page_count(text)
        with blobs_of_tenant(self.tenant):
            blob = await self.app.store.put_blob(data)
            text_blob = await self.app.store.put_blob(text) if text else ""
        return FilePart(blob, media_type, len(data), name, text_blob, pages)

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
        builder = read_messages(messages, format)
        key = key or self._key()
        imported = builder.build(import_id(self.session, key))
        if not imported:
            raise ConfigError("there is no message to import" + "".join(f"; {text}" for text in builder.warnings))
        with blobs_of_tenant(self.tenant):
            for data in builder.files.values():
                await self.app.store.put_blob(data)
        command = ImportMessages(
            key=key,
            messages=imported,
            parent=None if after is None else id_of(after),
            at_leaf=after is None,
            by=checked_name(by) if by else "",
            **self._stamp(),
        )
        try:
            after_head = await self.app.store.head(self.session)
        except UnknownSession:  # the import creates the session
            after_head = 0
        receipt = await self.app.command(command)
        await self.app.wait_until_carried_out(command, after_head if receipt.is_new else 0)
        tree = await self.tree()
        placed = tuple(tree.messages[message.id] for message in imported)
        return ImportedMessages(placed, builder.system, tuple(builder.warnings), receipt.is_new)

    async def export_messages(
        self, *, format: MessageFormat, leaf: str | Message | None = None
    ) -> list[dict[str, Any]]:
        """The selected branch, or the one that ends at `leaf`, as a message list of another library, in plain JSON data.

        It is what a model would be sent: every call with its result, and no instructions. Provider signatures stay
        here.
        """
        messages = [message for message in await self.messages(leaf) if message.parts]
        with blobs_of_tenant(self.tenant):
            files = await read_files(self.app.store, messages)
        return write_messages(render_history(messages), format, files)

    # Gates and grants-----------------------------------------------------------------------------------------------

    async def gates(self) -> list[Gate]:
        """The open gates of this session and its sub-agent runs."""
        store = self.app.store
        try:
            gates = [row.gate for row in await store.gates(self.session)]
            logs = [await store.events(self.session, turn=turn) for turn in await store.open_turns(self.session)]
        except UnknownSession:  # the session is created by its first message
            return []
        states = [fold(entry.event for entry in log) for log in logs if log]
        subagent_sessions = await active_subagent_sessions(store, self.session, states)
        if any(isinstance(tool, SubagentTool) and tool.request.detached for tool in self.app.tools.values()):
            subagent_sessions += [
                name for name in await detached_subagent_sessions(store, self.session) if name not in subagent_sessions
            ]
        for name in subagent_sessions:
            gates += [row.gate for row in await store.gates(name)]
        return gates

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
        await self._tell(command)
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
        await self._tell(Revoke(key=self._key(), grant=grant.id, by=checked_name(by), **self._stamp()))

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
