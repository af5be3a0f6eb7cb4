"""MCP servers screen: the status of each server, exactly what trusting it trusts, and trust, retry and login."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import DataTable, Static

from everturn import api
from everturn.core.tenants.accounts import is_at_least
from everturn.errors import EverturnError
from everturn.terminal.text.visible_text import count_invisible, escape_invisible
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.gates.keys import Key, KeyBar
from everturn.terminal.tui.gates.rows import Row, label_rows, message_rows, text_rows
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.gates.table import RowTable
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.inbox import truncate_columns
from everturn.terminal.tui.texts.mcp_servers import McpServersTexts
from everturn.terminal.tui.texts.mcp_servers import get_mcp_texts as words_in

REFRESH_INTERVAL: Final = 2.0  # seconds between two refreshes
LABEL_COLUMNS: Final = 10  # columns of the labels


class ServersScreen(ClosingScreen[None]):
    """MCP servers: a list, and the details of the server that the cursor is on."""

    DEFAULT_CSS = """
    ServersScreen #head { padding: 1 2; height: auto; text-style: bold; }
    ServersScreen RowTable { margin: 0 1; height: auto; max-height: 40%; }
    ServersScreen ScrolledRows { margin: 1 1 0 1; padding: 0 1; border-top: solid $panel; }
    ServersScreen #note { padding: 0 2; height: auto; color: $text-warning; text-style: bold; }
    ServersScreen KeyBar { padding: 0 2; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press('{key}')", show=False) for key in "tyrl"),
        Binding("escape,q", "press('escape')", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.servers: list[api.McpView] | None = None
        self.problem = ""
        self.address: dict[str, str] = {}  # server -> login URL
        self._to_confirm: api.McpView | None = None  # the server to be trusted after a confirmation, as it was shown

    def compose(self) -> ComposeResult:
        """A heading, the list, the details, the keys."""
        self.words = texts = words_in(get_host(self).language)
        yield Static(texts.title, id="head", markup=False)
        yield RowTable((texts.name, texts.state, texts.tools, texts.reason))
        yield ScrolledRows(id="about")
        yield Static(id="note", markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        """Load the servers, and keep refreshing them."""
        self.query_one(RowTable).focus()
        self._draw()
        self._refresh_servers()
        self.set_interval(REFRESH_INTERVAL, self._refresh_servers)

    def on_resize(self) -> None:
        """Draw the rows for the new width."""
        self.call_after_refresh(self._draw)

    def _refresh_servers(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="look")

    async def _read(self) -> None:
        try:
            self.servers, self.problem = await get_host(self).server.mcp_servers(), ""
        except EverturnError as error:
            self.problem = escape_invisible(str(error))
        if self._to_confirm is not None and self.chosen != self._to_confirm:
            self._to_confirm = None  # the server is not what was shown any more
        self._draw()

    @property
    def chosen(self) -> api.McpView | None:
        """The server that the cursor is on."""
        name = self.query_one(RowTable).chosen
        return next((server for server in self.servers or () if server.name == name), None)

    def _draw(self) -> None:
        if not self.is_attached:
            return
        texts, table = self.words, self.query_one(RowTable)
        rows = {
            server.name: (
                escape_invisible(server.name),
                getattr(texts, server.state),
                str(len(server.tools)),
                truncate_columns(escape_invisible(server.reason), max(self.size.width - 50, 10)),
            )
            for server in self.servers or ()
        }
        table.display = bool(rows)
        table.fill(rows)
        self.query_one(ScrolledRows).set_rows(self._rows, is_new=False)
        note = (
            texts.sure.format(escape_invisible(self._to_confirm.name)) if self._to_confirm is not None else self.problem
        )
        self.query_one("#note", Static).update(Content(f"! {note}" if note else ""))
        self.query_one(KeyBar).offer(self._keys())

    def _rows(self, width: int) -> list[Row]:
        chosen = self.chosen
        if chosen is None:
            return list(message_rows(self.words.loading if self.servers is None else self.words.none, width))
        rows = server_rows(chosen, self.words, width)
        if chosen.state != "ready" and not self._is_operator:
            rows += message_rows(self.words.operator, width, "dim")
        if address := self.address.get(chosen.name, ""):
            rows += [
                (),
                *message_rows(self.words.log_in_at, width, "head"),
                *text_rows([escape_invisible(address)], width),
            ]
            rows += message_rows(self.words.log_in_hint, width, "dim")
        return rows

    @property
    def _is_operator(self) -> bool:
        return is_at_least(get_host(self).me.role, "operator")

    def _keys(self) -> list[Key]:
        texts, server, keys = self.words, self.chosen, list[Key]()
        if server is not None and self._is_operator:
            is_new = (
                server.state == "untrusted" or bool(server.changes) or any(tool.is_changed for tool in server.tools)
            )
            if self._to_confirm is not None:
                keys.append(("y", texts.k_sure))
            elif is_new and server.hash:
                keys.append(("t", texts.k_trust))
            keys += [("l", texts.k_login)] if server.can_log_in else []
            keys.append(("r", texts.k_retry))
        return [*keys, ("escape", texts.k_back)]

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another server: a pending confirmation does not apply to it."""
        event.stop()
        if self._to_confirm is not None and self.chosen is not None and self.chosen.name != self._to_confirm.name:
            self._to_confirm = None
        self._draw()

    def action_press(self, key: str) -> None:
        """Handle a key, or a click on its hint."""
        server = self.chosen
        if key == "escape" and self._to_confirm is not None:
            self._to_confirm = None
        elif key == "escape":
            self.dismiss()
            return
        elif server is None or key not in dict(self._keys()):
            return
        elif key == "t":
            self._to_confirm = server
        elif key == "y" and self._to_confirm is not None:
            trusted, self._to_confirm = self._to_confirm, None
            self._do(get_host(self).server.trust_mcp(trusted), self.words.trusted.format(escape_invisible(server.name)))
        elif key == "r":
            self._do(
                get_host(self).server.retry_mcp(server.name), self.words.asked.format(escape_invisible(server.name))
            )
        elif key == "l":
            self.run_worker(self._log_in(server.name), exclusive=True, group="login")
        self._draw()

    def _do(self, request: Awaitable[None], success: str) -> None:
        self.run_worker(self._done(request, success), group="do")

    async def _done(self, request: Awaitable[None], success: str) -> None:
        try:
            await request
        except EverturnError as error:
            get_host(self).show_message(str(error), "error")
        else:
            get_host(self).show_message(success)
        self._refresh_servers()

    async def _log_in(self, name: str) -> None:
        address = await get_host(self).attempt(get_host(self).server.login_mcp(name))
        if address:
            self.address[name] = address
        self._refresh_servers()


def server_rows(server: api.McpView, texts: McpServersTexts, width: int) -> list[Row]:
    """Return the details of a server; text from the server is escaped."""
    rows: list[Row] = []
    if server.state != "ready":
        is_own = server.login == "user" and server.state == "needs_login"
        hint = texts.next_own_login if is_own else getattr(texts, f"next_{server.state}")
        rows += message_rows(hint, width, "warn", "!")
    for text in (server.reason, *server.problems, server.login_problem):
        rows += message_rows(escape_invisible(text), width, "bad", "!") if text else ()
    if server.is_logging_in:
        rows += message_rows(texts.waiting, width, "dim", "…")
    if server.hash:
        is_trusted = server.state == "ready" and not server.changes
        rows += [(), *message_rows(texts.is_trusted if is_trusted else texts.trusts, width, "head")]
    details = [(getattr(texts, server.transport), server.runs), (texts.hands, ", ".join(server.variables))]
    details += [
        (texts.calls, server.title),
        *((texts.changes, change) for change in server.changes),
        (texts.hash, server.hash),
    ]
    for head, text in details:
        rows += label_rows(head, escape_invisible(text), width, LABEL_COLUMNS) if text else ()
    rows += [
        (),
        *message_rows(f"{texts.tools}: {len(server.tools)}" if server.tools else texts.no_tools, width, "head"),
    ]
    pad = min(max((cell_len(escape_invisible(tool.name)) + 2 for tool in server.tools), default=0), max(18, width // 3))
    for tool in server.tools:
        lines = [escape_invisible(line) for line in tool.description.split("\n")] if tool.description else [""]
        rows += text_rows(lines, width, escape_invisible(tool.name), pad, marks=count_invisible(tool.description) > 0)
        rows += message_rows(texts.changed_mark, width, "warn", "    !") if tool.is_changed else ()
    return rows
