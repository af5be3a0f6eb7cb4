"""Sessions screen: lists and searches all sessions, and opens, exports and erases them."""

from __future__ import annotations

import asyncio
import re
import time
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from everturn import api
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.chat_host import ChatHost, get_chat_host
from everturn.terminal.tui.confirm import Confirm
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.folder import agent_label
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.sidebar import format_age, status_sign
from everturn.terminal.tui.texts.screens import ScreenTexts, get_screen_texts

SEARCH_DELAY = 0.25  # seconds without a key before the search starts
EXCERPT_LEAD = 30  # characters shown before a match
PAGE = 100  # sessions


def match_excerpt(text: str, query: str) -> str:
    """Return the part of a message that matches a query, on one line."""
    flat = " ".join(text.split())
    index = flat.lower().find(query.split()[0].lower()) if query.split() else -1
    return flat if index < EXCERPT_LEAD else f"…{flat[index - EXCERPT_LEAD :]}"


class SessionsScreen(ClosingScreen[None], ModalScreen[None]):
    """A search field, and the list."""

    DEFAULT_CSS = """
    SessionsScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("ctrl+e", "export", "export", priority=True),
        Binding("ctrl+d", "erase", "erase", priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[str] = []
        self._query = ""

    @property
    def host(self) -> ChatHost:
        """The app, as the host of the conversation."""
        return get_chat_host(self)

    @property
    def _screen_texts(self) -> ScreenTexts:
        return get_screen_texts(self.host.language)

    def compose(self) -> ComposeResult:
        """The search field, the list, the key hints."""
        texts = self._screen_texts
        with Vertical(classes="pane tall"):
            yield Static(Content(texts.sessions), classes="title", markup=False)
            yield Input(placeholder=texts.search, classes="search")
            yield OptionList(classes="list", markup=False)
            yield KeyHints(texts.session_keys)

    async def on_mount(self) -> None:
        """List the known sessions, and request the others."""
        self.query_one(Input).focus()
        self.call_after_refresh(self._list)
        page = await self.host.attempt(self.host.server.sessions(PAGE))
        if page is not None:
            self.host.sessions |= {view.id: view for view in (*page.pinned, *page.sessions)}
            self._list()

    def on_resize(self) -> None:
        """Draw the rows for the new width."""
        self.call_after_refresh(self.refresh_waits)

    def refresh_waits(self) -> None:
        """Draw the list again after a change."""
        if not self._query and self.is_mounted:
            self._list()

    def _list(self) -> None:
        app, texts = self.host, self._screen_texts
        waiting = {gate_view.session for gate_view in app.inbox_gates}
        states = {"?": texts.waiting, "!": texts.quarantined, "●": texts.running, "^": texts.pinned, "○": ""}
        rows: list[tuple[str, str, str]] = []
        for view in app.recent_sessions():
            sign = status_sign(view, waiting)
            age = format_age(view.updated, time.time(), texts)
            when = "  ".join(filter(None, (states[sign], escape_prose(agent_label(app.agents, view.agent)), age)))
            if cell_len(when) > self._room // 2:  # the name of the agent is the least of it
                when = "  ".join(filter(None, (states[sign], age)))
            rows.append((view.id, f"{sign} {escape_prose(view.title) or texts.untitled}", when))
        self._show(rows, texts.no_sessions)

    def _show(self, rows: list[tuple[str, str, str]], nothing: str) -> None:
        listed = self.query_one(OptionList)
        chosen = self._chosen()
        listed.clear_options()
        self._rows = [session for session, _, _ in rows]
        room = self._room
        for _, title, when in rows:
            right = Content.styled(when, "$text-muted").truncate(room // 2, ellipsis=True)
            right = right.highlight_regex(f"^{re.escape(self._screen_texts.waiting)}", style="$foreground bold")
            left = Content(title).truncate(room - right.cell_length - 2, ellipsis=True)
            gap = " " * max(2, room - left.cell_length - right.cell_length)
            listed.add_option(Option(Content.assemble(left, gap, right)))
        if rows:
            listed.highlighted = self._rows.index(chosen) if chosen in self._rows else 0
        else:
            listed.add_option(Option(Content.styled(nothing, "$text-muted"), disabled=True))

    @property
    def _room(self) -> int:
        """The columns of a row."""
        return max(20, (self.query_one(OptionList).size.width or 70) - 2)

    def _chosen(self) -> str:
        index = self.query_one(OptionList).highlighted
        return self._rows[index] if index is not None and index < len(self._rows) else ""

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._query = event.value.strip()
        self.run_worker(self._search(self._query), exclusive=True, group="search", exit_on_error=False)

    async def _search(self, query: str) -> None:
        if not query:
            self._list()
            return
        await asyncio.sleep(SEARCH_DELAY)
        results = await self.host.attempt(self.host.server.search(query))
        if results is not None:
            self._show([self._found(result, query) for result in results], self._screen_texts.nothing_found)

    def _found(self, result: api.SearchHit, query: str) -> tuple[str, str, str]:
        view = self.host.sessions.get(result.session)
        title = escape_prose(view.title) if view is not None else ""
        return result.session, f"  {escape_prose(match_excerpt(result.message.text, query))}", title

    def action_move(self, step: int) -> None:
        """Move the selection, while the search field keeps the focus."""
        listed = self.query_one(OptionList)
        if step > 0:
            listed.action_cursor_down()
        else:
            listed.action_cursor_up()

    @on(Input.Submitted)
    async def _entered(self) -> None:
        await self._open(self._chosen())

    @on(OptionList.OptionSelected)
    async def _selected(self, event: OptionList.OptionSelected) -> None:
        await self._open(self._rows[event.option_index])

    async def _open(self, session: str) -> None:
        if session:
            self.dismiss(None)
            await self.host.open_session(session)

    async def action_export(self) -> None:
        """Write the session to a file in the current folder."""
        if session := self._chosen():
            await self.host.commands.files.export("", session)

    def action_erase(self) -> None:
        """Erase the contents of the session, after a confirmation."""
        session = self._chosen()
        if not session:
            return
        view = self.host.sessions.get(session)
        title = view.title if view is not None else session

        async def agreed(yes: bool | None) -> None:
            if yes:
                await self._erase(session)

        self.host.push_screen(
            Confirm(
                self._screen_texts.erase,
                self._screen_texts.erase_what.format(title=escape_prose(title) or self._screen_texts.untitled),
            ),
            agreed,
        )

    async def _erase(self, session: str) -> None:
        app = self.host
        if app.follower is not None and app.follower.id == session:
            await app.open_session("")
        erased = await app.attempt(_erase_session(app, session))
        if erased:
            app.sessions.pop(session, None)
            app.show_message(self._screen_texts.erased)
            self._list()


async def _erase_session(app: ChatHost, session: str) -> bool:
    await app.server.session(session).erase()
    return True
