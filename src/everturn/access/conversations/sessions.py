"""Session access: sessions with their messages and turns, search, export and import, as one principal may use them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from everturn import api
from everturn.access.context.role_redaction import redact_problem
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.access.conversations.session_archive import export_readable, import_archive
from everturn.access.conversations.session_chat import open_chat, open_chat_of_session, read_parts
from everturn.access.conversations.session_parameters import (
    last_options,
    message_params,
    params_of_answer,
    stored_parameters,
    tools_for,
)
from everturn.access.conversations.session_search import search_messages, session_filter
from everturn.access.conversations.titles import with_title, with_titles
from everturn.access.conversations.turn_options import (
    TurnChoice,
    check_choice,
    check_mode,
    check_model,
    check_params,
    models_of,
)
from everturn.chat import Chat, Turn
from everturn.chat.agent_selection import select_agent
from everturn.chat.context import read_context
from everturn.chat.erase_session import erase_session
from everturn.chat.ratings import build_rating, rate_answer, read_ratings
from everturn.chat.session_parameters import read_session_parameters
from everturn.chat.session_update import build_update, update_session
from everturn.chat.validation import InputPart
from everturn.core.canonical_json import replace_surrogates
from everturn.core.commands import Send
from everturn.core.context.context_report import ContextReport
from everturn.core.events import Entry, Problem, TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import ContextPart
from everturn.core.phases import Phase
from everturn.core.projections.stats import stats_of
from everturn.core.session_parameters import NO_PARAMETERS, check_parameters
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import SessionInfo
from everturn.core.tenants.sharing import TEMPORARY_SECONDS
from everturn.errors import (
    ConfigError,
    EverturnError,
    KeyConflict,
    UnknownMessage,
    UnknownSession,
    UnknownTurn,
)

MOST_LISTED: Final = 200  # sessions on a page
MOST_PINNED: Final = 100


class SessionAccess:
    """Access to sessions, their messages and their turns."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def list(
        self,
        limit: int = 50,
        before: str = "",
        archived: api.Archived = "exclude",
        label: str = "",
        agent: str = "",
        since: float = 0.0,
    ) -> api.SessionPage:
        """A page of the sessions that the caller may see, the most recently changed first; without archived ones, unless
        they are asked for.
        """
        limit, tenant = max(1, min(limit, MOST_LISTED)), self.scope.principal.tenant
        where = session_filter(archived, label, agent)
        with self.scope.tenant_scope():
            infos = await self.scope.store.session_page(
                tenant, limit=limit, before=_parse_cursor(before), since=since, where=where, reader=self.scope.reader
            )
            pinned: Sequence[SessionInfo] = ()
            if not before:
                pinned = await self.scope.store.session_page(
                    tenant,
                    limit=MOST_PINNED,
                    since=since,
                    where=replace(where, pinned=True),
                    reader=self.scope.reader,
                )
            shown = dict.fromkeys(info.id for info in (*infos, *pinned))
            waiting = await self.scope.store.sessions_with_open_gates(list(shown))
            infos = await with_titles(self.scope.store, infos)
        last = infos[-1] if len(infos) == limit else None
        next_page = f"{last.touched!r}~{last.id}" if last is not None else ""
        views = [session_view(info) for info in infos]
        return api.SessionPage(
            sessions=views,
            next=next_page,
            waiting=[session for session in shown if session in waiting],
            pinned=[session_view(info) for info in pinned],
        )

    @needs("member")
    async def start(self, request: api.NewSession, key: str = "") -> api.MessageReceipt:
        """Start a session with its first message."""
        if request.parameters is not None:
            check_parameters(request.parameters)
        session = await self.scope.new_session_id(key)
        if request.temporary:  # before its first message: it must never be in a list
            until = self.scope.server_context.app.clock.now() + TEMPORARY_SECONDS
            await self.scope.store.sharing.set_temporary(self.scope.principal.tenant, session, until)
        try:
            sent = await self._send(session, request, key, request.agent)
        except UnknownSession as error:
            if not error.is_erased:
                raise
            raise KeyConflict("the session that this Idempotency-Key created was erased; use another key") from None
        if request.parameters is not None and sent.is_new:
            await self.update(session, api.PatchSession(parameters=request.parameters))
        return sent

    @needs("member")
    async def start_with_id(self, request: api.NewSession, name: str) -> api.MessageReceipt:
        """Start the session that a client calls by a name of its own; a second call sends nothing."""
        return await self._send(await self.scope.named_session(name), request, name, request.agent)

    @needs("viewer")
    async def get(self, session: str) -> api.SessionView:
        """One session."""
        info = await self.scope.readable_session(session)
        with self.scope.tenant_scope():
            view = session_view(await with_title(self.scope.store, info))
            parameters = await read_session_parameters(self.scope.store, session)
        return replace(view, parameters=None if parameters == NO_PARAMETERS else parameters)

    @needs("member")
    async def update(self, session: str, change: api.PatchSession, key: str = "") -> api.SessionView:
        """Rename, pin, archive or label a session, or choose its parameters. A turn that runs in it goes on."""
        await self.scope.own_root_session(session)
        principal, app = self.scope.principal, self.scope.server_context.app
        with self.scope.key_conflicts(key):
            command = build_update(
                self.scope.stored_key(key) or app.ids.new("cmd"),
                session,
                principal.tenant,
                app.clock.now(),
                title=None if change.title is None else replace_surrogates(change.title),
                pinned=change.pinned,
                archived=change.archived,
                labels=None if change.labels is None else [replace_surrogates(label) for label in change.labels],
                parameters=change.parameters,
                by=principal.user,
            )
            await update_session(app, command)
        return await self.get(session)

    @needs("member")
    async def rate(self, session: str, message: str, rated: api.PutRating, key: str = "") -> None:
        """Rate an answer, in the name of the caller; "" withdraws the rating."""
        await self.scope.own_root_session(session)
        principal, app = self.scope.principal, self.scope.server_context.app
        with self.scope.key_conflicts(key):
            command = build_rating(
                self.scope.stored_key(key) or app.ids.new("cmd"),
                session,
                principal.tenant,
                app.clock.now(),
                _checked_message(message),
                rated.rating,
                reason=replace_surrogates(rated.reason),
                by=principal.user,
            )
            await rate_answer(app, command)

    @needs("member")
    async def erase(self, session: str) -> None:
        """Erase a session of the caller and those of its sub-agents. An owner may erase what they cannot see."""
        await self.scope.private_root_session(session)
        await self.scope.audit_action(
            "session.erase", session
        )  # first: an erased session can no longer say that it existed
        try:
            left = await erase_session(self.scope.server_context.app, session)
        except EverturnError as error:
            await self.scope.audit_action("session.erase", session, failed=type(error).__name__)
            raise
        for upload in left:
            await self.scope.audit_action("upload.delete", session, failed=upload.id, expires=upload.expires)

    @needs("viewer")
    async def messages(
        self, session: str, leaf: str | None = None, limit: int | None = None, before: str | None = None
    ) -> api.MessageList:
        """The selected branch, or the one that ends at `leaf`, oldest first; with a limit, its last messages, or
        those `before` a message of it.
        """
        info = await self.scope.readable_session(session)
        end = info.leaf if leaf is None else _checked_message(leaf)
        if before is not None:
            if leaf is not None:
                raise ConfigError(
                    "`leaf` and `before` cannot be used together: `leaf` selects a branch, `before` continues a page"
                )
            end = _checked_message(before)
        with self.scope.tenant_scope():
            path = await self.scope.store.path(session, end, None if limit is None else limit + (before is not None))
        path = path[:-1] if before is not None else path
        more = path[0].id if path and path[0].parent is not None else ""
        messages = self.scope.redact_messages([message for message in path if not message.hidden])
        return api.MessageList(messages=messages, next=more, ratings=await self._ratings(session, messages))

    async def _ratings(self, session: str, messages: Sequence[Message]) -> list[api.RatingView]:
        shown = {message.id for message in messages}
        with self.scope.tenant_scope():
            ratings = await read_ratings(self.scope.store, session)
        return [
            api.RatingView(message=each.message, rating=each.rating, reason=each.reason, by=each.by, at=each.at)
            for each in ratings
            if each.message in shown
        ]

    @needs("viewer")
    async def tree(self, session: str) -> api.TreeView:
        """All messages that were not deleted, in the order in which they were added."""
        await self.scope.readable_session(session)
        with self.scope.tenant_scope():
            tree = await self.scope.store.tree(session)
        messages = [message for name, message in tree.messages.items() if name not in tree.deleted]
        return api.TreeView(messages=self.scope.redact_messages(messages), leaf=tree.leaf)

    @needs("member")
    async def send(self, session: str, request: api.NewMessage, key: str = "") -> api.MessageReceipt:
        """Send a message; `busy` says what happens to it while a turn is running."""
        info = await self.scope.own_root_session(session)
        return await self._send(session, request, key, request.agent or info.agent, request.after)

    async def _send(
        self, session: str, request: api.NewSession | api.NewMessage, key: str, name: str, after: str | None = None
    ) -> api.MessageReceipt:
        agent = self.scope.server_context.agents.get(name)
        choice = TurnChoice(
            model=request.model,
            params=request.params,
            tools=request.tools,
            tool_history=request.tool_history,
            context=request.context,
            late=request.late,
            max_steps=request.max_steps,
            clients=tuple(request.clients),
            priority=request.priority,
        )
        chosen_options = check_choice(agent, choice, self.scope.server_context.app.registry_of(agent.name))
        stored = getattr(request, "parameters", None) or await stored_parameters(self.scope, session)
        if stored.without_groups and choice.tools is None:
            chosen_options["tools"] = tools_for(stored, agent, self.scope.server_context.app.registry_of(agent.name))
        parts = await read_parts(self.scope, request.text, request.files, request.contexts)
        mode = check_mode(agent, request.mode)
        has_choice = bool(request.agent) or any(value is not None for value in chosen_options.values())
        has_choice = has_choice or mode == "auto_edit"  # it widens what one agent may do
        explicit = chosen_options.get("params")
        chosen_options["params"] = await message_params(self.scope, stored, agent, request.model, explicit)
        compared = {
            check_model(agent, name): await message_params(self.scope, stored, agent, name, explicit)
            for name in request.compare_with
        }
        has_choice = has_choice or bool(compared)
        make_chat = open_chat if has_choice else open_chat_of_session
        chat = await make_chat(self.scope, session, agent, mode, request.at_step_limit)
        after = None if after is None else _checked_message(after)
        for _ in range(1 + len(compared)):
            await self.scope.server_context.meter.count_turn(self.scope.principal.tenant, self.scope.principal.user)
        beside = await self._running_turn(session) if request.busy == "fork" and after is None else None
        try:
            with self.scope.key_conflicts(key):
                turn = await chat.send(
                    parts,
                    after=after,
                    key=self.scope.stored_key(key),
                    alone=request.busy == "reject",
                    beside=beside,
                    steer=request.busy == "steer",
                    at=request.at or None,
                    compare_with=compared,
                    **chosen_options,
                )
        except KeyConflict:
            if request.busy != "fork" or (earlier := await self._find_sent(chat, key, parts)) is None:
                raise
            return earlier
        return _sent(turn)

    async def _running_turn(self, session: str) -> str | None:
        """The running turn of a session, the oldest of several."""
        try:
            with self.scope.tenant_scope():
                turns = await self.scope.store.open_turns(session)
        except UnknownSession:  # it begins with this message
            return None
        return turns[0] if turns else None

    async def _find_sent(self, chat: Chat, key: str, parts: list[InputPart]) -> api.MessageReceipt | None:
        """What was sent with a key before. A fork begins where the running turn is, so a repeat may look different."""
        stored_key = self.scope.stored_key(key)
        with self.scope.tenant_scope():
            for command in await self.scope.store.inbox(chat.session):
                if isinstance(command, Send) and command.key == stored_key and command.parts == tuple(parts):
                    return api.MessageReceipt(
                        session=chat.session, turn=command.turn, message=command.message, is_new=False
                    )
            turn = await self.scope.store.turn_of_command(chat.session, stored_key) if stored_key else ""
            for entry in await self.scope.store.events(chat.session, turn=turn) if turn else ():
                started = entry.event
                if isinstance(started, TurnStarted) and started.command == stored_key and started.input is not None:
                    if started.input.parts != tuple(parts):
                        return None
                    return api.MessageReceipt(
                        session=chat.session, turn=started.turn, message=started.input.id, is_new=False
                    )
        return None

    @needs("member")
    async def rerun(
        self, session: str, message: str, request: api.RegenerateAnswer, key: str = ""
    ) -> api.MessageReceipt:
        """Regenerate an answer, from its beginning or after one of its steps."""
        info = await self.scope.own_root_session(session)
        agent = self.scope.server_context.agents.get(info.agent)
        with self.scope.tenant_scope():
            (message_row,) = await self.scope.store.path(session, _checked_message(message), 1)
        if request.model:
            model = check_model(agent, request.model)
        else:
            # A model name from the log counts only if it is the agent's: a log may come from anywhere.
            is_agent_model = message_row.role == "assistant" and message_row.by in models_of(agent)
            model = message_row.by if is_agent_model else agent.options.model
        params = (
            check_params(request.params)
            if request.params
            else await params_of_answer(self.scope, session, message_row, model)
        )
        stored = await stored_parameters(self.scope, session)
        params = await message_params(self.scope, stored, agent, model, params)
        tools = tools_for(stored, agent, self.scope.server_context.app.registry_of(agent.name))
        await self.scope.server_context.meter.count_turn(self.scope.principal.tenant, self.scope.principal.user)
        chat = await open_chat(self.scope, session, agent, check_mode(agent, request.mode), request.at_step_limit)
        with self.scope.key_conflicts(key):
            stored_key = self.scope.stored_key(key)
            turn = await chat.rerun(
                message_row.id,
                model=model,
                params=params,
                tools=tools,
                after_step=request.after_step,
                key=stored_key,
            )
            return _sent(turn)

    @needs("member")
    async def compact(self, session: str, request: api.CompactSession, key: str = "") -> api.MessageReceipt:
        """Summarise the earlier part of the selected branch; the turn of the receipt has no answer."""
        info = await self.scope.own_root_session(session)
        chat = await open_chat(self.scope, session, self.scope.server_context.agents.get(info.agent))
        await self.scope.server_context.meter.count_turn(self.scope.principal.tenant, self.scope.principal.user)
        with self.scope.key_conflicts(key):
            return _sent(await chat.compact(focus=request.focus, key=self.scope.stored_key(key)))

    @needs("viewer")
    async def context(self, session: str, at: str | None = None, model: str = "") -> ContextReport:
        """What fills the context window of the selected branch, or of the one that ends `at` a message."""
        info = await self.scope.readable_session(session)
        place = None if at is None else _checked_message(at)
        if info.parent:  # a sub-agent's next turn has the options of its last one
            with self.scope.tenant_scope():
                options = await last_options(self.scope, session, info.leaf)
                return await read_context(self.scope.server_context.app, session, info.tenant, options, at=place)
        agent = self.scope.server_context.agents.get(info.agent)
        chat = await (open_chat if model else open_chat_of_session)(self.scope, session, agent)
        with self.scope.tenant_scope():
            report = await chat.context(at=place, model=check_model(agent, model) if model else None)
            spent = await self.scope.store.spent(session=session)
        return replace(report, cost=spent.usage.cost)

    @needs("member")
    async def edit_message(
        self, session: str, message: str, edited: api.EditMessage, key: str = ""
    ) -> api.MessageReceipt:
        """Edit a message of the person, and answer the new version."""
        info = await self.scope.own_root_session(session)
        agent = self.scope.server_context.agents.get(info.agent)
        model = check_model(agent, edited.model) if edited.model else None
        parts = await read_parts(self.scope, edited.text, edited.files, edited.contexts or [])
        if edited.contexts is None:
            with self.scope.tenant_scope():
                (before,) = await self.scope.store.path(session, _checked_message(message), 1)
            parts += [part for part in before.parts if isinstance(part, ContextPart)]
        stored = await stored_parameters(self.scope, session)
        params = await message_params(self.scope, stored, agent, edited.model, None)
        tools = tools_for(stored, agent, self.scope.server_context.app.registry_of(agent.name))
        chat = await open_chat(self.scope, session, agent, check_mode(agent, edited.mode), edited.at_step_limit)
        await self.scope.server_context.meter.count_turn(self.scope.principal.tenant, self.scope.principal.user)
        with self.scope.key_conflicts(key):
            original, stored_key = _checked_message(message), self.scope.stored_key(key)
            return _sent(await chat.edit(original, parts, model=model, params=params, tools=tools, key=stored_key))

    @needs("member")
    async def select_message(self, session: str, selected: api.SelectBranch) -> None:
        """Continue from a message, or from the beginning."""
        await self.scope.own_root_session(session)
        await self.scope.chat(session).fork(None if selected.message is None else _checked_message(selected.message))

    @needs("member")
    async def fork_answer(self, session: str, message: str, request: api.ForkAnswer, key: str = "") -> api.ForkedAnswer:
        """Continue inside an answer, after one of its finished steps."""
        await self.scope.own_root_session(session)
        with self.scope.key_conflicts(key):
            copy = await self.scope.chat(session).fork(
                _checked_message(message), step=request.step, key=self.scope.stored_key(key)
            )
        return api.ForkedAnswer(message=copy or "")

    @needs("member")
    async def switch_agent(self, session: str, switched: api.SwitchAgent, key: str = "") -> api.SessionView:
        """Hand a session to another agent, which takes its next turns."""
        await self.scope.own_root_session(session)
        agent = self.scope.server_context.agents.get(switched.agent)
        if not switched.agent:
            raise ConfigError("agent: the name of the agent for this session")
        principal, app = self.scope.principal, self.scope.server_context.app
        with self.scope.key_conflicts(key):
            await select_agent(app, session, principal.tenant, agent.name, principal.user, self.scope.stored_key(key))
        return await self.get(session)

    @needs("member")
    async def delete_message(self, session: str, message: str) -> None:
        """Hide a message and everything after it."""
        await self.scope.own_root_session(session)
        await self.scope.chat(session).delete(_checked_message(message))

    # Turns -------------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def turn(self, session: str, turn: str) -> api.TurnView:
        """A turn as its log says; idle while its command waits in the inbox."""
        await self.scope.readable_session(session)
        state, log = await self._state(session, turn)
        waiting = [gate for name, gate in state.gate_details.items() if state.gates[name] is None]
        return api.TurnView(
            session=session,
            turn=turn,
            phase=state.phase,
            step=state.step.number if state.step is not None else 0,
            messages=self.scope.redact_messages(list(state.messages.values())),
            gates=[self.scope.redact_gate(gate) for gate in waiting],
            usage=state.usage,
            problem=self._redact_problem(state.ending.problem if state.ending is not None else None),
            stats=stats_of(log, self.scope.server_context.app.clock.now()),
        )

    def _redact_problem(self, problem: Problem | None) -> Problem | None:
        return redact_problem(problem) if self.scope.is_redacted and problem is not None else problem

    async def _state(self, session: str, turn: str) -> tuple[TurnState, list[Entry]]:
        if not is_id(turn):
            raise UnknownTurn("there is no such turn")
        with self.scope.tenant_scope():
            # The inbox first: a command that is processed between the two reads is then in the log.
            inbox = await self.scope.store.inbox(session)
            log = await self.scope.store.events(session, turn=turn)
        if log:
            return fold(entry.event for entry in log), log
        state = TurnState(turn)
        if not any(isinstance(command, Send) and command.turn == turn for command in inbox):
            with self.scope.tenant_scope():
                if not await self.scope.store.has_turn_command(session, turn):
                    raise UnknownTurn("there is no such turn")
            state.phase = Phase.CANCELLED  # before it started
        return state, log

    @needs("member")
    async def cancel_turn(self, session: str, turn: str, cancelled: api.CancelTurn, key: str = "") -> None:
        """Cancel a turn; `hard` also cancels its tools."""
        await self.scope.own_session(session, "write")
        if not is_id(turn):
            raise UnknownTurn("there is no such turn")
        with self.scope.key_conflicts(key):
            await self.scope.chat(session).turn(turn).cancel(hard=cancelled.hard, key=self.scope.stored_key(key))

    # Search, export and import -----------------------------------------------------------------------------------

    @needs("viewer")
    async def search(
        self,
        text: str,
        limit: int = 50,
        archived: api.Archived = "include",
        label: str = "",
        agent: str = "",
        since: float = 0.0,
        until: float = 0.0,
    ) -> api.SearchResults:
        """Messages that contain these words, in the sessions that the caller may see and that fit the filters.

        With a filter, the newest 1,000 messages with these words are looked at.
        """
        return await search_messages(
            self.scope,
            text,
            limit,
            session_filter(archived, label, agent),
            since=since,
            until=until,
        )

    @needs("member")
    async def export(self, session: str, file: Path) -> None:
        """Write a session to a file, with everything in it."""
        await self.scope.own_root_session(session, "read")
        await export_readable(self.scope, session, file)

    @needs("member")
    async def import_file(self, file: Path) -> api.SessionView:
        """Import a session from a file, under a new id. Nothing in it continues by itself."""
        session = await import_archive(self.scope, file)
        return session_view(await self.scope.own_session(session))


def session_view(info: SessionInfo) -> api.SessionView:
    """A session, as the API lists it."""
    return api.SessionView(
        id=info.id,
        title=info.title,
        agent=info.agent,
        by=info.by,
        created=info.created,
        updated=info.touched,
        leaf=info.leaf,
        is_awake=info.is_awake,
        quarantined=info.quarantined,
        parent=info.parent,
        awaited_agent=info.awaited_agent,
        pinned=info.pinned,
        archived=info.archived,
        labels=list(info.labels),
        is_renamed=info.is_renamed,
    )


def _checked_message(message: str) -> str:
    if not is_id(message):
        raise UnknownMessage("there is no such message")
    return message


def _parse_cursor(before: str) -> tuple[float, str] | None:
    """Parse the cursor of a page of sessions: `next` of the page before."""
    if not before:
        return None
    touched, _, session = before.partition("~")
    try:
        at = float(touched)
    except ValueError:
        at = float("nan")
    if not abs(at) < 1e15 or not is_id(session):
        raise ConfigError("before: pass `next` of the previous page unchanged")
    return at, session


def _sent(turn: Turn) -> api.MessageReceipt:
    compared = [other.id for other in turn.compared]
    return api.MessageReceipt(
        session=turn.session, turn=turn.id, message=turn.message, is_new=turn.is_new, compared=compared
    )
