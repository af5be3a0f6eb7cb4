"""The MCP servers that tools come from → how each is, exactly what is trusted by trusting it, and what can be done."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import DataTable, Static

from everturn import api
from everturn.core.accounts import is_at_least
from everturn.errors import EverturnError
from everturn.terminal.exact import hidden, seen
from everturn.tui.base import host
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.gates.keys import Key, Keys
from everturn.tui.gates.roll import Roll
from everturn.tui.gates.rows import Row, pair, say, write
from everturn.tui.gates.table import Table
from everturn.tui.inbox import short
from everturn.tui.words.servers import ServersWords
from everturn.tui.words.servers import words as words_in

EVERY: Final = 2.0  # seconds between two looks
PAD: Final = 10  # columns of what stands before what is known


class ServersScreen(ClosingScreen[None]):
    """MCP servers: a list, and all there is to know of the one that the cursor is on."""

    DEFAULT_CSS = """
    ServersScreen #head { padding: 1 2; height: auto; text-style: bold; }
    ServersScreen Table { margin: 0 1; height: auto; max-height: 40%; }
    ServersScreen Roll { margin: 1 1 0 1; padding: 0 1; border-top: solid $panel; }
    ServersScreen #note { padding: 0 2; height: auto; color: $text-warning; text-style: bold; }
    ServersScreen Keys { padding: 0 2; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press('{key}')", show=False) for key in "tyrl"),
        Binding("escape,q", "press('escape')", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.servers: list[api.McpView] | None = None
        self.problem = ""
        self.address: dict[str, str] = {}  # where to log in to which
        self._sure: api.McpView | None = None  # what is about to be trusted, as it was shown

    def compose(self) -> ComposeResult:
        """A head, the list, what is known, the keys."""
        self.words = words = words_in(host(self).language)
        yield Static(words.title, id="head", markup=False)
        yield Table((words.name, words.state, words.tools, words.reason))
        yield Roll(id="about")
        yield Static(id="note", markup=False)
        yield Keys()

    def on_mount(self) -> None:
        """Look, and go on looking."""
        self.query_one(Table).focus()
        self._draw()
        self._look()
        self.set_interval(EVERY, self._look)

    def on_resize(self) -> None:
        """Reasons have more room, or less."""
        self.call_after_refresh(self._draw)

    def _look(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="look")

    async def _read(self) -> None:
        try:
            self.servers, self.problem = await host(self).server.mcp_servers(), ""
        except EverturnError as error:
            self.problem = seen(str(error))
        if self._sure is not None and self.chosen != self._sure:
            self._sure = None  # it is not what was shown any more
        self._draw()

    @property
    def chosen(self) -> api.McpView | None:
        """The server that the cursor is on."""
        name = self.query_one(Table).chosen
        return next((one for one in self.servers or () if one.name == name), None)

    def _draw(self) -> None:
        if not self.is_attached:
            return
        words, table = self.words, self.query_one(Table)
        rows = {
            one.name: (
                seen(one.name),
                getattr(words, one.state),
                str(len(one.tools)),
                short(seen(one.reason), max(self.size.width - 50, 10)),
            )
            for one in self.servers or ()
        }
        table.display = bool(rows)
        table.fill(rows)
        self.query_one(Roll).lay(self._rows, is_new=False)
        note = words.sure.format(seen(self._sure.name)) if self._sure is not None else self.problem
        self.query_one("#note", Static).update(Content(f"! {note}" if note else ""))
        self.query_one(Keys).offer(self._keys())

    def _rows(self, width: int) -> list[Row]:
        chosen = self.chosen
        if chosen is None:
            return list(say(self.words.loading if self.servers is None else self.words.none, width))
        rows = about(chosen, self.words, width)
        if chosen.state != "ready" and not self._is_operator:
            rows += say(self.words.operator, width, "dim")
        if address := self.address.get(chosen.name, ""):
            rows += [(), *say(self.words.log_in_at, width, "head"), *write([seen(address)], width)]
            rows += say(self.words.log_in_hint, width, "dim")
        return rows

    @property
    def _is_operator(self) -> bool:
        return is_at_least(host(self).me.role, "operator")

    def _keys(self) -> list[Key]:
        words, one, keys = self.words, self.chosen, list[Key]()
        if one is not None and self._is_operator:
            is_new = one.state == "untrusted" or bool(one.changes) or any(tool.is_changed for tool in one.tools)
            if self._sure is not None:
                keys.append(("y", words.k_sure))
            elif is_new and one.hash:
                keys.append(("t", words.k_trust))
            keys += [("l", words.k_login)] if one.can_log_in else []
            keys.append(("r", words.k_retry))
        return [*keys, ("escape", words.k_back)]

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another one: nothing of what was about to be done holds for it."""
        event.stop()
        if self._sure is not None and self.chosen is not None and self.chosen.name != self._sure.name:
            self._sure = None
        self._draw()

    def action_press(self, key: str) -> None:
        """A key, or a click on one."""
        one = self.chosen
        if key == "escape" and self._sure is not None:
            self._sure = None
        elif key == "escape":
            self.dismiss()
            return
        elif one is None or key not in dict(self._keys()):
            return
        elif key == "t":
            self._sure = one
        elif key == "y" and self._sure is not None:
            trusted, self._sure = self._sure, None
            self._do(host(self).server.trust_mcp(trusted), self.words.trusted.format(seen(one.name)))
        elif key == "r":
            self._do(host(self).server.retry_mcp(one.name), self.words.asked.format(seen(one.name)))
        elif key == "l":
            self.run_worker(self._log_in(one.name), exclusive=True, group="login")
        self._draw()

    def _do(self, doing: Awaitable[None], told: str) -> None:
        self.run_worker(self._done(doing, told), group="do")

    async def _done(self, doing: Awaitable[None], told: str) -> None:
        try:
            await doing
        except EverturnError as error:
            host(self).tell(str(error), "error")
        else:
            host(self).tell(told)
        self._look()

    async def _log_in(self, name: str) -> None:
        address = await host(self).attempt(host(self).server.login_mcp(name))
        if address:
            self.address[name] = address
        self._look()


def about(server: api.McpView, words: ServersWords, width: int) -> list[Row]:
    """All there is to know of a server; what it says of itself is written out."""
    rows: list[Row] = []
    if server.state != "ready":
        rows += say(getattr(words, f"next_{server.state}"), width, "warn", "!")
    for text in (server.reason, *server.problems, server.login_problem):
        rows += say(seen(text), width, "bad", "!") if text else ()
    if server.is_logging_in:
        rows += say(words.waiting, width, "dim", "…")
    if server.hash:
        is_trusted = server.state == "ready" and not server.changes
        rows += [(), *say(words.is_trusted if is_trusted else words.trusts, width, "head")]
    told = [(getattr(words, server.transport), server.runs), (words.hands, ", ".join(server.variables))]
    told += [
        (words.calls, server.title),
        *((words.changes, change) for change in server.changes),
        (words.hash, server.hash),
    ]
    for head, text in told:
        rows += pair(head, seen(text), width, PAD) if text else ()
    rows += [(), *say(f"{words.tools}: {len(server.tools)}" if server.tools else words.no_tools, width, "head")]
    pad = min(max((cell_len(seen(tool.name)) + 2 for tool in server.tools), default=0), max(18, width // 3))
    for tool in server.tools:
        lines = [seen(line) for line in tool.description.split("\n")] if tool.description else [""]
        rows += write(lines, width, seen(tool.name), pad, marks=hidden(tool.description) > 0)
        rows += say(words.changed_mark, width, "warn", "    !") if tool.is_changed else ()
    return rows
