"""Base of the terminal app: which session is shown, the gates of all sessions, startup and errors, and the host
interface of its screens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from textual import events
from textual.app import App
from textual.screen import Screen

from everturn import api
from everturn.client import Server
from everturn.core.options import PermissionMode
from everturn.core.parts import ContextPart
from everturn.errors import EverturnError, ServerUnavailable, UnknownSession
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui import settings
from everturn.terminal.tui.chat import ChatScreen, session_title
from everturn.terminal.tui.command_host import CommandHost
from everturn.terminal.tui.commands import Commands
from everturn.terminal.tui.folder import PICK, FolderStart, find_session, next_mode, open_folder
from everturn.terminal.tui.host import Language, Severity
from everturn.terminal.tui.key_buffer import keys_from_text
from everturn.terminal.tui.mcp_offers import McpOfferList, OfferHost
from everturn.terminal.tui.session_commands import listed_first
from everturn.terminal.tui.session_follower import SessionFollower
from everturn.terminal.tui.sidebar import MAX_SESSIONS, Sidebar
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.texts.app import get_app_texts
from everturn.terminal.tui.texts.folder import get_folder_texts
from everturn.terminal.tui.themes import DARK, THEMES

T = TypeVar("T")
UNKNOWN_USER = api.Me(tenant="", user="", role="viewer", version="")
FOCUS_INTERVAL, FOCUS_TIMEOUT = 0.02, 3.0  # seconds between looks at a new screen, and to wait for it
RECONNECT_DELAY = 3.0  # seconds before a stream that has ended is reopened
LIST_INTERVAL = 20.0  # seconds between two requests for the list of sessions, besides the events of the stream


class AppBase(App[int]):
    """The whole app except its keys."""

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
        start: FolderStart | None = None,
    ) -> None:
        super().__init__()
        self.user_settings = settings.load_user_settings()
        self.server, self.me, self.agents = server, UNKNOWN_USER, api.AgentList(agents=[])
        self.language: Language = "zh" if (language or self.user_settings.language) == "zh" else "en"
        self.inbox_gates: list[api.GateView] = []
        self.follower: SessionFollower | None = None
        self.sessions: dict[str, api.SessionView] = {}
        self.commands = Commands(cast("CommandHost", self))  # its actions are those of `TerminalApp`
        self.prompts: list[api.PromptView] = []  # saved prompts
        self.mcp_offers = McpOfferList(cast("OfferHost", self))
        self.agent = self.model = ""  # choice for the next message; "": the default
        self.mode: PermissionMode = ""  # of the next message; "": the agent's own
        self.folder: api.FolderView | None = None  # the folder that this terminal works in
        self.start = start
        self.attached: list[api.FileView] = []
        self.contexts: list[ContextPart] = []
        self.editing = self.picked = ""  # message ids
        self.note = ""
        self.problem = ""  # the error that ended the app
        self.exit_messages: list[str] = []
        self._initial_session, self._notes, self._files = session, notes, attach
        self.on_first_screen: Callable[[], None] = lambda: None
        self.is_here, self.is_in_memory = is_here, is_in_memory  # sessions in memory end with this process
        self._drafts: dict[str, str] = {}
        self._buffered_keys: list[events.Event] | None = [
            *keys_from_text(typed)
        ]  # keys typed before the input is ready; None: it is ready
        self._started = asyncio.Event()
        for palette in THEMES:
            self.register_theme(palette)
        wanted = theme or self.user_settings.theme
        self.theme = wanted if wanted in self.available_themes else DARK

    # Startup -----------------------------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        """Return the conversation screen."""
        return ChatScreen()

    @property
    def chat_screen(self) -> ChatScreen:
        """The conversation screen, whichever screen is on top of it."""
        screen = self.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    def on_mount(self) -> None:
        """Update the list of sessions from time to time."""
        self.set_interval(LIST_INTERVAL, self._list)

    async def _begin(self) -> None:
        for note in self._notes:
            self.show_message(note)
        try:
            session = self._initial_session
            if self.start is not None:
                await open_folder(self, self.start, is_first=True)
                session = session or await find_session(self, self.start)
            if session:
                await self.open_session(session, keeps_text=True)
            await self._load_agents()
            if self._files:
                await self.commands.files.attach(self._files)
        finally:
            self._started.set()
        await self._list()
        self.draw()
        if self.start is not None and self.start.resume == PICK:
            await self.run_action("app.sessions")

    async def wait_until_started(self) -> None:
        """Wait until the command-line options are applied, so that a message goes to the session that they name."""
        await self._started.wait()

    async def on_event(self, event: events.Event) -> None:
        """Buffer keys that arrive before the input has the focus: without a focus they would be lost."""
        if self._buffered_keys is not None and isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self._buffered_keys.append(event)
        else:
            await super().on_event(event)

    async def handle_input_ready(self) -> None:
        """The input is ready: handle the buffered keys in order; when it is drawn, apply the command-line options."""
        await self._replay_keys()
        self.chat_screen.call_after_refresh(self._request_data)

    def _request_data(self) -> None:
        """Send the first requests. The first screen is drawn by now: the HTTP client alone takes long to import."""
        self.on_first_screen()
        self.run_worker(self._watch, exit_on_error=False)
        self.run_worker(self._begin, exit_on_error=False)

    def buffer_keys_for(self, screen: Screen[Any]) -> None:
        """Buffer keys until a screen that is about to be shown has the focus: they are meant for it."""
        self._buffered_keys = [] if self._buffered_keys is None else self._buffered_keys
        self._release_keys(screen, time.monotonic() + FOCUS_TIMEOUT)

    def _release_keys(self, screen: Screen[Any], until: float) -> None:
        is_ready = screen.is_running and screen.focused is not None
        if not is_ready and time.monotonic() < until:
            self.set_timer(FOCUS_INTERVAL, lambda: self._release_keys(screen, until))
            return
        self.call_later(self._replay_keys)

    async def _replay_keys(self) -> None:
        early, self._buffered_keys = self._buffered_keys or [], None
        for event in early:
            await super().on_event(event)

    # Host interface of the screens -------------------------------------------------------------------------------------

    async def open_session(self, session: str, leaf: str | None = None, *, keeps_text: bool = False) -> None:
        """Show another session; "" is a new one. `keeps_text`: the text in the input is meant for it, and stays."""
        old, talk = self.follower, self.chat_screen
        self._drafts["" if old is None else old.id] = "" if self.editing or keeps_text else talk.composer.text
        if old is not None:
            await old.aclose()
        self.editing = self.picked = ""
        self.follower = (
            SessionFollower(self.server, session, self._changed, self._failed, lambda: self.model) if session else None
        )
        if self.follower is not None:
            self.follower.start()
        talk.transcript.show(state_of(self.follower), leaf)
        if not keeps_text:
            talk.composer.write(self._drafts.get(session, ""))
        talk.composer.text_area.focus()
        self.draw()

    async def attempt(self, doing: Awaitable[T]) -> T | None:
        """Await it; show an error to the person in one line, and return None."""
        try:
            return await doing
        except EverturnError as error:
            self.show_message(str(error), "error")
            return None

    def show_message(self, text: str, severity: Severity = "information") -> None:
        """Show a notification to the person."""
        self.notify(escape_prose(" ".join(text.split())), severity=severity, markup=False)

    def server_moved(self, is_here: bool) -> None:
        """Another process serves the sessions now, or this one does."""
        self.is_here, texts = is_here, get_app_texts(self.language)
        if self.is_running:
            self.show_message(texts.moved_here if is_here else texts.moved_away)
            self.run_worker(self._reopen(), exit_on_error=False)

    async def _reopen(self) -> None:
        """Open the folder at the process that has the store now, and request what it offers."""
        if self.start is not None:
            await open_folder(self, self.start, is_first=False)
        await self._load_agents()

    async def _load_agents(self) -> None:
        """Request the user, the agents, the models and the saved prompts again: another process may be configured differently."""
        requests = asyncio.gather(self.server.me(), self.server.agent_list(), self.server.prompts())
        answers = await self.attempt(requests)
        if answers is not None:
            self.me, self.agents, self.prompts = answers
        self.draw()

    def write_input(self, text: str) -> None:
        """Replace the text in the input."""
        self.chat_screen.composer.write(text)
        self.chat_screen.composer.text_area.focus()

    def current_agent_and_model(self) -> tuple[str, str]:
        """Return the agent and the model of the next message."""
        agents = self.agents.agents
        view = None if self.follower is None else self.sessions.get(self.follower.id)
        name = self.agent if view is None else view.agent
        agent = next((candidate for candidate in agents if candidate.name == name), agents[0] if agents else None)
        if agent is None:
            return "", ""
        return agent.name, self.model or agent.model

    def current_agent_view(self) -> api.AgentView | None:
        """Return the agent of the next message, as the server describes it."""
        name = self.current_agent_and_model()[0]
        return next((view for view in self.agents.agents if view.name == name), None)

    def mode_to_send(self) -> PermissionMode:
        """Return the permission mode of the next message; "": the agent has no folder, and no mode was chosen."""
        view = self.current_agent_view()
        if view is None or self.mode not in view.modes:
            return ""
        return self.mode if view.folder or self.mode == "plan" else ""

    def cycle_mode(self) -> None:
        """Select the next permission mode, for the messages from now on."""
        view, texts = self.current_agent_view(), get_folder_texts(self.language)
        mode = next_mode(self.mode or "ask", [] if view is None else view.modes)
        if not mode:
            return self.show_message(texts.no_modes)
        self.mode = mode
        self.clear_notifications()  # the one about the mode before covers the conversation, too
        running = None if self.follower is None else self.follower.state.running
        text = texts.mode_now[mode]
        if running is not None and (kept := running.options.mode or "ask") != mode:
            text = f"{text} {texts.mode_later.format(mode=texts.modes[kept])}"
        self.show_message(text)
        self.draw()
        return None

    def choose(self, agent: str = "", model: str = "") -> None:
        """Select another agent for new sessions, or another model."""
        texts = get_app_texts(self.language)
        if agent:
            self.agent, self.model = agent, ""
            text = texts.agent_now if self.follower is None else texts.agent_new_only
            self.show_message(text.format(name=agent))
        if model:
            self.model = model
            self.show_message(texts.model_now.format(name=model))
            if self.follower is not None:
                self.follower.refresh_context()
        self.draw()

    def gates_of_session(self) -> list[api.GateView]:
        """Return the open gates of the session that is shown, and of its sub-agents."""
        if self.follower is None:
            return []
        state, known = self.follower.state, {view.gate.id: view for view in self.inbox_gates}
        own = [
            known.get(gate.id)
            or api.GateView(session=self.follower.id, title=state.tree.title, opened=time.time(), gate=gate)
            for gate in state.open_gates
        ]
        return [*own, *state.subagent_gates]

    # Events from the server ----------------------------------------------------------------------------------------------

    def _changed(self, turns: set[str]) -> None:
        if self.is_running and self.screen_stack:
            self.chat_screen.transcript.update_turns(turns)
            self.draw()
            for screen in self.screen_stack:
                if (refresh := getattr(screen, "refresh_state", None)) is not None:
                    refresh()

    def _failed(self, error: EverturnError) -> None:
        self.show_message(str(error), "error")
        session = "" if self.follower is None else self.follower.id
        if isinstance(error, UnknownSession):
            self.call_later(self.open_session, "")
        elif isinstance(error, ServerUnavailable):
            self.set_timer(RECONNECT_DELAY, lambda: self.call_later(self._again, session))

    async def _again(self, session: str) -> None:
        if self.follower is not None and self.follower.id == session:
            await self.open_session(session)

    async def _watch(self) -> None:
        """Follow the inbox: open gates and active sessions, anywhere."""
        while True:
            inbox = self.server.inbox()
            try:
                async for item in inbox:
                    self._apply_inbox_item(item)
            except EverturnError as error:
                self.show_message(str(error), "error")
            finally:
                await inbox.aclose()
            await asyncio.sleep(RECONNECT_DELAY)

    def _apply_inbox_item(self, item: api.InboxItem) -> None:
        before = {gate_view.gate.id for gate_view in self.inbox_gates}
        if item.snapshot is not None:
            self.inbox_gates = list(item.snapshot.gates)
            self.sessions |= {view.id: view for view in item.snapshot.awake}
        if item.session is not None:
            view = item.session
            self.sessions[view.id] = view
            if item.waits is not None:
                others = [gate_view for gate_view in self.inbox_gates if gate_view.session != view.id]
                self.inbox_gates = sorted([*others, *item.waits], key=lambda gate_view: gate_view.opened)
        if any(gate_view.gate.id not in before for gate_view in self.inbox_gates):
            if self.user_settings.bell:
                self.bell()
            if item.snapshot is None:
                self._notify_desktop(get_app_texts(self.language).notify_gate)
        for screen in self.screen_stack:
            if (refresh := getattr(screen, "refresh_waits", None)) is not None:
                refresh()
        self.draw()

    def _notify_desktop(self, text: str) -> None:
        """Ask the terminal for a notification, unless it has the focus: OSC 9 and OSC 777, which others ignore."""
        if not self.app_focus and (driver := self._driver) is not None:
            driver.write(f"\x1b]9;{text}\x07\x1b]777;notify;Everturn;{text}\x07")

    async def _list(self) -> None:
        try:
            page = await self.server.sessions(MAX_SESSIONS)
        except EverturnError:  # the streams report a lost connection
            return
        self.sessions |= {view.id: view for view in page.sessions}
        self.draw()

    def recent_sessions(self) -> list[api.SessionView]:
        """Return the known sessions, pinned ones first, without archived ones and those of sub-agents."""
        return listed_first(list(self.sessions.values()))

    def draw(self) -> None:
        """Draw the conversation screen and the sidebar again."""
        # While the app closes, requests end and timers fire, and some widgets are gone.
        if not self.is_running or not self.screen_stack or not self.chat_screen.is_mounted:
            return
        self.chat_screen.draw()
        side = self.chat_screen.query_one(Sidebar)
        if side.display:
            shown = "" if self.follower is None else self.follower.id
            side.put(self.recent_sessions(), shown, session_title(state_of(self.follower)))

    # Errors ---------------------------------------------------------------------------------------------------------------

    def _handle_exception(self, error: Exception) -> None:
        import logging

        logging.getLogger(__name__).error("the terminal UI failed", exc_info=error)
        self.problem = self.problem or f"{type(error).__name__}: {error}"
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        """Print nothing here: the caller of the app prints the error in one line."""
        self._exit_renderables.clear()


def state_of(follower: SessionFollower | None) -> SessionState:
    """Return the state of a followed session; an empty state for None."""
    return SessionState() if follower is None else follower.state
