"""Sessions and messages, as one principal may see them and speak in them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from everturn import api
from everturn.access.agents import AgentSpec
from everturn.access.handles import file_of
from everturn.access.inside import Inside, is_id
from everturn.access.needs import needs
from everturn.access.saying import PARAMS, Choice, chosen, model_of, models_of, plain
from everturn.access.titles import with_title, with_titles
from everturn.chat import Chat, Turn
from everturn.core.commands import Send
from everturn.core.events import TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import FilePart, TextPart
from everturn.core.ports import SessionInfo
from everturn.errors import ConfigError, EverturnError, KeyConflict, UnknownMessage, UnknownSession

MOST_LISTED = 200  # sessions on a page


class Talking(Inside):
    """What somebody may see of sessions, and say in them."""

    @needs("viewer")
    async def sessions(self, limit: int = 50, before: str = "") -> api.SessionPage:
        """A page of the tenant's sessions, those touched last first."""
        limit = max(1, min(limit, MOST_LISTED))
        with self.within():
            found = await self.store.listed(self.principal.tenant, limit=limit, before=_place(before))
            waiting = await self.store.waiting([info.id for info in found])
            found = await with_titles(self.store, found)
        last = found[-1] if len(found) == limit else None
        next_page = f"{last.touched!r}~{last.id}" if last is not None else ""
        views = [session_view(info) for info in found]
        return api.SessionPage(sessions=views, next=next_page, waiting=[one.id for one in views if one.id in waiting])

    @needs("member")
    async def begin(self, said: api.NewSession, key: str = "") -> api.Sent:
        """Begin a session with its first message."""
        try:
            return await self._say(await self.fresh_session(key), said, key, said.agent)
        except UnknownSession as error:
            if not error.is_erased:
                raise
            raise KeyConflict("what was begun with this Idempotency-Key was erased; take another") from None

    @needs("member")
    async def begin_named(self, said: api.NewSession, name: str) -> api.Sent:
        """Begin the session that a face calls by a name of its own; a second time is none."""
        return await self._say(await self.named_session(name), said, name, said.agent)

    @needs("viewer")
    async def session(self, session: str) -> api.SessionView:
        """One session."""
        info = await self.readable(session)
        with self.within():
            return session_view(await with_title(self.store, info))

    @needs("owner")
    async def erase(self, session: str) -> None:
        """Take everything out of a session and those of its sub-turns."""
        await self.own_top(session)
        await self.note("session.erase", session)  # first: what is gone can no longer say that it was
        try:
            await self.store.erase(session)
        except EverturnError as error:
            await self.note("session.erase", session, failed=type(error).__name__)
            raise

    @needs("viewer")
    async def messages(
        self, session: str, leaf: str | None = None, limit: int | None = None, before: str | None = None
    ) -> api.MessageList:
        """The selected branch, or the one that ends at a message, oldest first; with a limit, the last of it, or what
        comes `before` a message of it.
        """
        info = await self.readable(session)
        end = info.leaf if leaf is None else _message(leaf)
        if before is not None:
            if leaf is not None:
                raise ConfigError(
                    "`leaf` says where a branch ends and `before` where a page of it does; say one of them"
                )
            end = _message(before)
        with self.within():
            path = await self.store.path(session, end, None if limit is None else limit + (before is not None))
        path = path[:-1] if before is not None else path
        more = path[0].id if path and path[0].parent is not None else ""
        return api.MessageList(messages=self.shown([one for one in path if not one.hidden]), next=more)

    @needs("viewer")
    async def tree(self, session: str) -> api.TreeView:
        """All messages that were not deleted, as they joined."""
        await self.readable(session)
        with self.within():
            tree = await self.store.tree(session)
        there = [message for name, message in tree.messages.items() if name not in tree.deleted]
        return api.TreeView(messages=self.shown(there), leaf=tree.leaf)

    @needs("member")
    async def send(self, session: str, said: api.NewMessage, key: str = "") -> api.Sent:
        """Go on in a session; `busy` says what becomes of it while a turn is under way."""
        info = await self.own_top(session)
        return await self._say(session, said, key, said.agent or info.agent, said.after)

    async def _say(
        self, session: str, said: api.NewSession | api.NewMessage, key: str, name: str, after: str | None = None
    ) -> api.Sent:
        agent = self.house.agents.get(name)
        choice = Choice(
            model=said.model,
            params=said.params,
            tools=said.tools,
            history=said.history,
            late=said.late,
            max_steps=said.max_steps,
            clients=tuple(said.clients),
        )
        how = chosen(agent, choice, self.house.runtime.registry)
        parts = await self._parts(said.text, said.files)
        chat, after = self._chat(session, agent), None if after is None else _message(after)
        await self.house.meter.work(self.principal.tenant)
        beside = await self._under_way(session) if said.busy == "fork" and after is None else None
        try:
            with self.keyed(key):
                turn = await chat.send(
                    parts,
                    after=after,
                    key=self.key(key),
                    alone=said.busy == "reject",
                    beside=beside,
                    steer=said.busy == "steer",
                    **how,
                )
        except KeyConflict:
            if said.busy != "fork" or (earlier := await self._earlier(chat, key, parts)) is None:
                raise
            return earlier
        return _sent(turn)

    async def _under_way(self, session: str) -> str | None:
        """The turn that runs in a session, the oldest of several."""
        try:
            with self.within():
                turns = await self.store.open_turns(session)
        except UnknownSession:  # it begins with this
            return None
        return turns[0] if turns else None

    async def _earlier(self, chat: Chat, key: str, parts: list[TextPart | FilePart]) -> api.Sent | None:
        """What was sent with a key before. Where a fork begins depends on what runs, so a repeat may look different."""
        wanted = self.key(key)
        with self.within():
            for command in await self.store.inbox(chat.session):
                if isinstance(command, Send) and command.key == wanted and command.parts == tuple(parts):
                    return api.Sent(session=chat.session, turn=command.turn, message=command.message, is_new=False)
            for entry in await self.store.events(chat.session):
                begun = entry.event
                if isinstance(begun, TurnStarted) and begun.command == wanted and begun.input is not None:
                    if begun.input.parts != tuple(parts):
                        return None
                    return api.Sent(session=chat.session, turn=begun.turn, message=begun.input.id, is_new=False)
        return None

    @needs("member")
    async def rerun(self, session: str, message: str, asked: api.Rerun, key: str = "") -> api.Sent:
        """Another answer."""
        info = await self.own_top(session)
        agent = self.house.agents.get(info.agent)
        with self.within():
            found = (await self.store.tree(session)).get(_message(message))
        if asked.model:
            model = model_of(agent, asked.model)
        else:
            # Never by a name out of the log unless it is the agent's: a log may come from anywhere.
            is_its_own = found.role == "assistant" and found.by in models_of(agent)
            model = found.by if is_its_own else agent.options.model
        params = plain(asked.params) if asked.params else await self._params_of(session, found, model)
        await self.house.meter.work(self.principal.tenant)
        chat = self._chat(session, agent)
        with self.keyed(key):
            return _sent(await chat.rerun(found.id, model=model, params=params, key=self.key(key)))

    async def _params_of(self, session: str, message: Message, model: str) -> dict[str, Any] | None:
        """What something that is no talk was made with, so that it is made so again."""
        if message.role != "assistant" or self.house.runtime.modality_of(model) == "chat":
            return None
        with self.within():
            log = await self.store.events(session, turn=message.turn)
        options = next((entry.event.options for entry in log if isinstance(entry.event, TurnStarted)), None)
        return {name: value for name, value in ((options and options.params) or {}).items() if name in PARAMS}

    @needs("member")
    async def edit(self, session: str, message: str, edited: api.Edited, key: str = "") -> api.Sent:
        """A new version of a message of the person's, and an answer to it."""
        info = await self.own_top(session)
        agent = self.house.agents.get(info.agent)
        model = model_of(agent, edited.model) if edited.model else None
        parts = await self._parts(edited.text, edited.files)
        chat = self._chat(session, agent)
        await self.house.meter.work(self.principal.tenant)
        with self.keyed(key):
            return _sent(await chat.edit(_message(message), parts, model=model, key=self.key(key)))

    @needs("member")
    async def select(self, session: str, selected: api.Selected) -> None:
        """Go on from a message, or from the beginning."""
        await self.own_top(session)
        await self.chat(session).fork(None if selected.message is None else _message(selected.message))

    @needs("member")
    async def delete(self, session: str, message: str) -> None:
        """Hide a message and everything under it."""
        await self.own_top(session)
        await self.chat(session).delete(_message(message))

    def _chat(self, session: str, agent: AgentSpec) -> Chat:
        return self.chat(session, replace(agent.options, agent=agent.name, by=self.principal.user))

    async def _parts(self, text: str, files: list[str]) -> list[TextPart | FilePart]:
        secret = await self.house.secret("files") if files else b""
        attached: list[TextPart | FilePart] = [file_of(secret, self.principal.tenant, file) for file in files]
        return [TextPart(text), *attached] if text else attached


def session_view(info: SessionInfo) -> api.SessionView:
    """A session, as it is shown in a list."""
    return api.SessionView(
        id=info.id,
        title=info.title,
        agent=info.agent,
        by=info.by,
        created=info.created,
        touched=info.touched,
        leaf=info.leaf,
        is_awake=info.is_awake,
        stuck=info.stuck,
        above=info.above,
    )


def _message(message: str) -> str:
    if not is_id(message):
        raise UnknownMessage("there is no such message")
    return message


def _place(before: str) -> tuple[float, str] | None:
    """Where a page goes on: `next` of the one before."""
    if not before:
        return None
    touched, _, session = before.partition("~")
    try:
        at = float(touched)
    except ValueError:
        at = float("nan")
    if not abs(at) < 1e15 or not is_id(session):
        raise ConfigError("before: say `next` of the page before, as it is")
    return at, session


def _sent(turn: Turn) -> api.Sent:
    return api.Sent(session=turn.session, turn=turn.id, message=turn.message, is_new=turn.is_new)
