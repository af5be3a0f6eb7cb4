"""A server → an app that follows it: which session is shown, what waits anywhere, and what its screens may ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from textual import events
from textual.app import App
from textual.screen import Screen

from everturn import api
from everturn.client import Server
from everturn.errors import EverturnError, ServerUnavailable, UnknownSession
from everturn.terminal.screen import prose
from everturn.tui import settings
from everturn.tui.base import Language, Severity
from everturn.tui.commands import Commands
from everturn.tui.early_keys import keys_of
from everturn.tui.following import Follower
from everturn.tui.looks import DARK, THEMES
from everturn.tui.side import MOST, Side
from everturn.tui.state import SessionState
from everturn.tui.talking import TalkScreen, title_of
from everturn.tui.words.app import words

if TYPE_CHECKING:
    from everturn.tui.app import EverturnApp

T = TypeVar("T")
NOBODY = api.Me(tenant="", user="", role="viewer", version="")
AGAIN = 3.0  # seconds before a stream that has ended is asked for again
LISTED = 20.0  # seconds between two looks at the list of sessions, beside what the stream tells


class Hosting(App[int]):
    """All of the app but its keys."""

    def __init__(
        self,
        server: Server,
        session: str = "",
        language: Language | str = "",
        theme: str = "",
        *,
        notes: Sequence[str] = (),
        attach: Sequence[Path] = (),
        is_here: bool = False,
        is_in_memory: bool = False,
        typed: str = "",
    ) -> None:
        super().__init__()
        self.liked = settings.load()
        self.server, self.me, self.agents = server, NOBODY, api.AgentList(agents=[])
        self.language: Language = "zh" if (language or self.liked.language) == "zh" else "en"
        self.waits: list[api.GateView] = []
        self.follower: Follower | None = None
        self.sessions: dict[str, api.SessionView] = {}
        self.commands = Commands(cast("EverturnApp", self))
        self.agent = self.model = ""  # what was chosen for the next message; "": what is usual
        self.attached: list[api.FileView] = []
        self.editing = self.picked = ""  # messages
        self.note = ""
        self.problem = ""  # why it broke down
        self.farewell: list[str] = []
        self._first, self._notes, self._files = session, notes, attach
        self.is_here, self.is_in_memory = is_here, is_in_memory  # what is in memory only ends with this process
        self._drafts: dict[str, str] = {}
        self._early: list[events.Event] | None = [*keys_of(typed)]  # keys, until the box can take them; None: it can
        self._begun = asyncio.Event()
        for one in THEMES:
            self.register_theme(one)
        wanted = theme or self.liked.theme
        self.theme = wanted if wanted in self.available_themes else DARK

    # What it begins with -----------------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        """The conversation."""
        return TalkScreen()

    @property
    def talk(self) -> TalkScreen:
        """The conversation, whatever lies on top of it."""
        found = self.screen_stack[0]
        assert isinstance(found, TalkScreen)
        return found

    def on_mount(self) -> None:
        """Draw first, and ask then."""
        self.run_worker(self._watch, exit_on_error=False)
        self.set_interval(LISTED, self._list)

    async def _begin(self) -> None:
        for note in self._notes:
            self.tell(note)
        try:
            if self._first:
                await self.open_session(self._first, keeps_text=True)
            await self._learn()
            if self._files:
                await self.commands.attach(self._files)
        finally:
            self._begun.set()
        await self._list()
        self.draw()

    async def begun(self) -> None:
        """Wait until what was said on the command line is done: what is sent then goes where it is meant to."""
        await self._begun.wait()

    async def on_event(self, event: events.Event) -> None:
        """Keep keys that come before the box has the focus: without one, they would be lost."""
        if self._early is not None and isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self._early.append(event)
        else:
            await super().on_event(event)

    async def ready(self) -> None:
        """The box is there: handle the keys that were kept, in order, and do what was said on the command line."""
        early, self._early = self._early or [], None
        for event in early:
            await super().on_event(event)
        self.run_worker(self._begin, exit_on_error=False)

    # A host, to its screens --------------------------------------------------------------------------------------------

    async def open_session(self, session: str, leaf: str | None = None, *, keeps_text: bool = False) -> None:
        """Show another session; "" is a new one. `keeps_text`: what is in the box is meant for it."""
        old, talk = self.follower, self.talk
        self._drafts["" if old is None else old.id] = "" if self.editing or keeps_text else talk.composer.text
        if old is not None:
            await old.aclose()
        self.editing = self.picked = ""
        self.follower = Follower(self.server, session, self._changed, self._failed) if session else None
        if self.follower is not None:
            self.follower.start()
        talk.transcript.show(state_of(self.follower), leaf)
        if not keeps_text:
            talk.composer.write(self._drafts.get(session, ""))
        talk.composer.box.focus()
        self.draw()

    async def attempt(self, doing: Awaitable[T]) -> T | None:
        """Do it; what goes wrong is told to the person in one line, and then this is None."""
        try:
            return await doing
        except EverturnError as error:
            self.tell(str(error), "error")
            return None

    def tell(self, text: str, severity: Severity = "information") -> None:
        """Tell the person something that goes away by itself."""
        self.notify(prose(" ".join(text.split())), severity=severity, markup=False)

    def server_moved(self, is_here: bool) -> None:
        """Another process has the sessions now, or this one has."""
        self.is_here, said = is_here, words(self.language)
        if self.is_running:
            self.tell(said.moved_here if is_here else said.moved_away)
            self.run_worker(self._learn(), exit_on_error=False)

    async def _learn(self) -> None:
        """Ask who we are there, and who answers: another process may be configured otherwise."""
        found = await self.attempt(asyncio.gather(self.server.me(), self.server.agent_list()))
        if found is not None:
            self.me, self.agents = found
        self.draw()

    def who(self) -> tuple[str, str]:
        """The agent and the model of the next message."""
        agents = self.agents.agents
        view = None if self.follower is None else self.sessions.get(self.follower.id)
        name = self.agent if view is None else view.agent
        agent = next((one for one in agents if one.name == name), agents[0] if agents else None)
        if agent is None:
            return "", ""
        return agent.name, self.model or agent.model

    def choose(self, agent: str = "", model: str = "") -> None:
        """Take another agent, for new sessions, or another model."""
        said = words(self.language)
        if agent:
            self.agent, self.model = agent, ""
            text = said.agent_now if self.follower is None else said.agent_new_only
            self.tell(text.format(name=agent))
        if model:
            self.model = model
            self.tell(said.model_now.format(name=model))
        self.draw()

    def gates_here(self) -> list[api.GateView]:
        """What waits for an answer in the session that is shown, and in the sub-turns that run for it."""
        if self.follower is None:
            return []
        state, known = self.follower.state, {one.gate.id: one for one in self.waits}
        own = [
            known.get(gate.id)
            or api.GateView(session=self.follower.id, title=state.tree.title, opened=time.time(), gate=gate)
            for gate in state.open_gates
        ]
        return [*own, *state.below]

    # What comes from the server ------------------------------------------------------------------------------------------

    def _changed(self, turns: set[str]) -> None:
        if self.is_running and self.screen_stack:
            self.talk.transcript.changed(turns)
            self.draw()
            for screen in self.screen_stack:
                if (refresh := getattr(screen, "refresh_state", None)) is not None:
                    refresh()

    def _failed(self, error: EverturnError) -> None:
        self.tell(str(error), "error")
        session = "" if self.follower is None else self.follower.id
        if isinstance(error, UnknownSession):
            self.call_later(self.open_session, "")
        elif isinstance(error, ServerUnavailable):
            self.set_timer(AGAIN, lambda: self.call_later(self._again, session))

    async def _again(self, session: str) -> None:
        if self.follower is not None and self.follower.id == session:
            await self.open_session(session)

    async def _watch(self) -> None:
        """What waits, and what moves, anywhere."""
        while True:
            inbox = self.server.inbox()
            try:
                async for item in inbox:
                    self._take(item)
            except EverturnError as error:
                self.tell(str(error), "error")
            finally:
                await inbox.aclose()
            await asyncio.sleep(AGAIN)

    def _take(self, item: api.InboxItem) -> None:
        before = {one.gate.id for one in self.waits}
        if item.snapshot is not None:
            self.waits = list(item.snapshot.gates)
            self.sessions |= {view.id: view for view in item.snapshot.awake}
        if item.session is not None:
            view = item.session
            self.sessions[view.id] = view
            if item.waits is not None:
                others = [one for one in self.waits if one.session != view.id]
                self.waits = sorted([*others, *item.waits], key=lambda one: one.opened)
        if self.liked.bell and any(one.gate.id not in before for one in self.waits):
            self.bell()
        for screen in self.screen_stack:
            if (refresh := getattr(screen, "refresh_waits", None)) is not None:
                refresh()
        self.draw()

    async def _list(self) -> None:
        try:
            page = await self.server.sessions(MOST)
        except EverturnError:  # whether the server is heard, the streams tell
            return
        self.sessions |= {view.id: view for view in page.sessions}
        self.draw()

    def listed(self) -> list[api.SessionView]:
        """The sessions that are known of, those touched last first; none that runs for another."""
        found = [view for view in self.sessions.values() if not view.above]
        return sorted(found, key=lambda view: -view.touched)

    def draw(self) -> None:
        if not self.screen_stack or not self.talk.is_mounted:
            return
        self.talk.draw()
        side = self.talk.query_one(Side)
        if side.display:
            shown = "" if self.follower is None else self.follower.id
            side.put(self.listed(), shown, title_of(state_of(self.follower)))

    # When it breaks ------------------------------------------------------------------------------------------------------

    def _handle_exception(self, error: Exception) -> None:
        import logging

        logging.getLogger(__name__).error("the screen broke down", exc_info=error)
        self.problem = self.problem or f"{type(error).__name__}: {error}"
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        """Say nothing here: whoever runs this says it, in one line."""
        self._exit_renderables.clear()


def state_of(follower: Follower | None) -> SessionState:
    """What there is of a session; of none, nothing."""
    return SessionState() if follower is None else follower.state
