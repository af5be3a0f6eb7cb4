"""All sessions: listed and searched, opened, exported and erased."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from everturn import api
from everturn.terminal.screen import prose
from everturn.tui.base import app_of
from everturn.tui.confirming import Confirm
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.keys import Hints
from everturn.tui.side import ago, sign_of
from everturn.tui.words.around import AroundWords, words

if TYPE_CHECKING:
    from everturn.tui.app import EverturnApp

PAUSE = 0.25  # seconds without a key before words are looked for
AROUND = 30  # characters shown in front of what was found
PAGE = 100  # sessions


def found_in(text: str, query: str) -> str:
    """The part of a message that has the words, on one line."""
    flat = " ".join(text.split())
    at = flat.lower().find(query.split()[0].lower()) if query.split() else -1
    return flat if at < AROUND else f"…{flat[at - AROUND :]}"


class SessionsScreen(ClosingScreen[None], ModalScreen[None]):
    """A list, and words to look for."""

    DEFAULT_CSS = """
    SessionsScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("ctrl+e", "export", "export", priority=True),
        Binding("ctrl+d", "erase", "erase", priority=True),
        Binding("down", "to_list", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[str] = []
        self._query = ""

    @property
    def around(self) -> EverturnApp:
        """The app, as it is."""
        return app_of(self)

    @property
    def _said(self) -> AroundWords:
        return words(self.around.language)

    def compose(self) -> ComposeResult:
        """Words, the list, the keys."""
        said = self._said
        with Vertical(classes="pane tall"):
            yield Static(Content(said.sessions), classes="title", markup=False)
            yield Input(placeholder=said.search, classes="search")
            yield OptionList(classes="list", markup=False)
            yield Hints(said.session_keys)

    async def on_mount(self) -> None:
        """List what is known, and ask for the rest."""
        self.query_one(Input).focus()
        self.call_after_refresh(self._list)
        page = await self.around.attempt(self.around.server.sessions(PAGE))
        if page is not None:
            self.around.sessions |= {view.id: view for view in page.sessions}
            self._list()

    def on_resize(self) -> None:
        """Rows have more room, or less."""
        self.call_after_refresh(self.refresh_waits)

    def refresh_waits(self) -> None:
        """Something has moved."""
        if not self._query and self.is_mounted:
            self._list()

    def _list(self) -> None:
        app, said = self.around, self._said
        waiting = {one.session for one in app.waits}
        states = {"?": said.waiting, "!": said.stuck, "●": said.running, "○": ""}
        rows: list[tuple[str, str, str]] = []
        for view in app.listed():
            sign = sign_of(view, waiting)
            when = "  ".join(filter(None, (states[sign], prose(view.agent), ago(view.touched, time.time(), said))))
            rows.append((view.id, f"{sign} {prose(view.title) or said.untitled}", when))
        self._show(rows, said.no_sessions)

    def _show(self, rows: list[tuple[str, str, str]], nothing: str) -> None:
        listed = self.query_one(OptionList)
        at = self._chosen()
        listed.clear_options()
        self._rows = [session for session, _, _ in rows]
        room = max(20, (listed.size.width or 70) - 2)
        for _, title, when in rows:
            right = Content.styled(when, "dim").truncate(room // 2, ellipsis=True)
            left = Content(title).truncate(room - right.cell_length - 2, ellipsis=True)
            gap = " " * max(2, room - left.cell_length - right.cell_length)
            listed.add_option(Option(Content.assemble(left, gap, right)))
        if rows:
            listed.highlighted = self._rows.index(at) if at in self._rows else 0
        else:
            listed.add_option(Option(Content.styled(nothing, "dim"), disabled=True))

    def _chosen(self) -> str:
        at = self.query_one(OptionList).highlighted
        return self._rows[at] if at is not None and at < len(self._rows) else ""

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._query = event.value.strip()
        self.run_worker(self._search(self._query), exclusive=True, group="search", exit_on_error=False)

    async def _search(self, query: str) -> None:
        if not query:
            self._list()
            return
        await asyncio.sleep(PAUSE)
        found = await self.around.attempt(self.around.server.search(query))
        if found is not None:
            self._show([self._found(one, query) for one in found], self._said.nothing_found)

    def _found(self, one: api.FoundView, query: str) -> tuple[str, str, str]:
        view = self.around.sessions.get(one.session)
        title = prose(view.title) if view is not None else ""
        return one.session, f"  {prose(found_in(one.message.text, query))}", title

    def action_to_list(self) -> None:
        """From the words to the list."""
        self.query_one(OptionList).focus()

    @on(Input.Submitted)
    async def _entered(self) -> None:
        await self._open(self._chosen())

    @on(OptionList.OptionSelected)
    async def _selected(self, event: OptionList.OptionSelected) -> None:
        await self._open(self._rows[event.option_index])

    async def _open(self, session: str) -> None:
        if session:
            self.dismiss(None)
            await self.around.open_session(session)

    async def action_export(self) -> None:
        """Write it to a file, here."""
        if session := self._chosen():
            await self.around.commands.export("", session)

    def action_erase(self) -> None:
        """Take everything out of it, once a person has said so."""
        session = self._chosen()
        if not session:
            return
        view = self.around.sessions.get(session)
        title = view.title if view is not None else session

        async def agreed(yes: bool | None) -> None:
            if yes:
                await self._erase(session)

        self.around.push_screen(
            Confirm(self._said.erase, self._said.erase_what.format(title=prose(title) or self._said.untitled)), agreed
        )

    async def _erase(self, session: str) -> None:
        app = self.around
        if app.follower is not None and app.follower.id == session:
            await app.open_session("")
        erased = await app.attempt(_done(app, session))
        if erased:
            app.sessions.pop(session, None)
            app.tell(self._said.erased)
            self._list()


async def _done(app: EverturnApp, session: str) -> bool:
    await app.server.session(session).erase()
    return True
