"""Memory screen: the memory files of the person, to read, edit, create and delete them."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import DataTable, Input, Static

from everturn import api
from everturn.core.memory.user_memory import NO_FILE
from everturn.errors import EverturnError
from everturn.terminal.text.visible_text import escape_invisible
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.gates.keys import Key, KeyBar
from everturn.terminal.tui.gates.rows import Row, message_rows, text_rows
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.gates.table import Cells, RowTable
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.host import get_app, get_host
from everturn.terminal.tui.texts.memory import get_memory_texts


class MemoryScreen(ClosingScreen[None]):
    """A list of the files, and the text of the file that the cursor is on."""

    DEFAULT_CSS = """
    MemoryScreen #head { padding: 1 2; height: auto; text-style: bold; }
    MemoryScreen RowTable { margin: 0 1; height: auto; max-height: 40%; }
    MemoryScreen ScrolledRows { margin: 1 1 0 1; padding: 0 1; border-top: solid $panel; }
    MemoryScreen #note { padding: 0 2; height: auto; color: $text-warning; text-style: bold; }
    MemoryScreen KeyBar { padding: 0 2; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"press('{key}')", show=False) for key in "endyt"),
        Binding("enter", "press('e')", show=False),
        Binding("escape,q", "press('escape')", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.files: api.MemoryList | None = None
        self.file: api.MemoryFileView | None = None
        self.problem = ""
        self._to_delete = ""

    def compose(self) -> ComposeResult:
        """A heading, the list, the text, the keys."""
        self.words = texts = get_memory_texts(get_host(self).language)
        yield Static(texts.title, id="head", markup=False)
        yield RowTable((texts.path, texts.size, texts.mark))
        yield ScrolledRows(id="about")
        yield Static(id="note", markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        """Load the files."""
        self.query_one(RowTable).focus()
        self._draw()
        self._refresh()

    def on_resize(self) -> None:
        """Draw the rows for the new width."""
        self.call_after_refresh(self._draw)

    def _refresh(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="look")

    async def _read(self) -> None:
        server = get_host(self).server
        try:
            self.files, self.problem = await server.memory_files(), ""
            self._draw()
            chosen = self.chosen
            self.file = await server.read_memory(chosen) if chosen else None
        except EverturnError as error:
            self.problem = escape_invisible(str(error))
        self._draw()

    @property
    def chosen(self) -> str:
        """The path of the file that the cursor is on."""
        return self.query_one(RowTable).chosen

    def _draw(self) -> None:
        if not self.is_attached:
            return
        texts, table = self.words, self.query_one(RowTable)
        files = self.files.files if self.files is not None else []
        rows: dict[str, Cells] = {
            file.path: (escape_invisible(file.path), f"{file.size:,}", texts.untrusted if file.untrusted else "")
            for file in files
        }
        table.display = bool(rows)
        table.fill(rows)
        self.query_one(ScrolledRows).set_rows(self._rows, is_new=False)
        note = texts.sure.format(escape_invisible(self._to_delete)) if self._to_delete else self.problem
        self.query_one("#note", Static).update(Content(f"! {note}" if note else ""))
        self.query_one(KeyBar).offer(self._keys())

    def _rows(self, width: int) -> list[Row]:
        if self.files is None or not self.files.files:
            return list(message_rows(self.words.loading if self.files is None else self.words.none, width))
        used = sum(file.size for file in self.files.files)
        rows: list[Row] = list(
            message_rows(self.words.used.format(used=f"{used:,}", limit=f"{self.files.limit:,}"), width, "dim")
        )
        if self.file is None or self.file.file.path != self.chosen:
            return [*rows, *message_rows(self.words.loading, width)]
        if self.file.file.untrusted:
            rows += message_rows(self.words.untrusted_hint, width, "warn", "!")
        return [*rows, (), *text_rows([escape_invisible(line) for line in self.file.text.split("\n")], width)]

    def _keys(self) -> list[Key]:
        texts, keys = self.words, list[Key]()
        if self._to_delete:
            keys.append(("y", texts.k_sure))
        elif self.file is not None and self.file.file.path == self.chosen:
            keys += [("e", texts.k_edit), ("d", texts.k_delete)]
            keys += [("t", texts.k_trust)] if self.file.file.untrusted else []
        if not self._to_delete:
            keys.append(("n", texts.k_new))
        return [*keys, ("escape", texts.k_back)]

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Another file: a pending confirmation does not apply to it."""
        event.stop()
        if self._to_delete and self._to_delete != self.chosen:
            self._to_delete = ""
        if self.chosen and (self.file is None or self.file.file.path != self.chosen):
            self._refresh()
        self._draw()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter on a row edits the file."""
        event.stop()
        self.action_press("e")

    def action_press(self, key: str) -> None:
        """Handle a key, or a click on its hint."""
        if key == "escape" and self._to_delete:
            self._to_delete = ""
        elif key == "escape":
            self.dismiss()
            return
        elif key not in dict(self._keys()):
            return
        elif key == "d":
            self._to_delete = self.chosen
        elif key == "y":
            deleted, self._to_delete = self._to_delete, ""
            self.run_worker(self._delete(deleted), group="do")
        elif key == "t" and self.file is not None:
            self.run_worker(self._trust(self.file), group="do")
        else:
            get_app(self).push_screen(MemoryEditor(self.file if key == "e" else None), self._saved)
        self._draw()

    def _saved(self, path: str | None) -> None:
        if path:
            get_host(self).show_message(self.words.saved.format(escape_invisible(path)))
            self.file = None
        self._refresh()

    async def _delete(self, path: str) -> None:
        host = get_host(self)
        try:
            await host.server.delete_memory(path)
        except EverturnError as error:
            host.show_message(str(error), "error")
        else:
            host.show_message(self.words.deleted.format(escape_invisible(path)))
        self.file = None
        self._refresh()

    async def _trust(self, file: api.MemoryFileView) -> None:
        """Remove the mark of a file as it was shown."""
        info, host = file.file, get_host(self)
        self.file = await host.attempt(host.server.write_memory(info.path, file.text, base=info.hash, untrusted=False))
        self._refresh()


class MemoryEditor(ClosingScreen[str]):
    """Edits a file, or a new one; a file that was changed meanwhile is not overwritten."""

    DEFAULT_CSS = """
    MemoryEditor Input { margin: 1 1 0 1; }
    MemoryEditor TextView { margin: 1 1; }
    MemoryEditor KeyBar { padding: 0 2; margin: 0 0 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "press('ctrl+s')", show=False, priority=True),
        Binding("escape", "press('escape')", show=False, priority=True),
    ]

    def __init__(self, file: api.MemoryFileView | None) -> None:
        super().__init__()
        self._file = file

    def compose(self) -> ComposeResult:
        """The path, the text, the keys."""
        self.words = texts = get_memory_texts(get_host(self).language)
        path = self._file.file.path if self._file is not None else ""
        yield Input(path, placeholder=texts.path_hint, disabled=self._file is not None)
        yield TextView(self._file.text if self._file is not None else "")
        yield KeyBar()

    def on_mount(self) -> None:
        """Focus what is to be written first."""
        self.query_one(KeyBar).offer([("ctrl+s", self.words.k_save), ("escape", self.words.k_back)])
        (self.query_one(Input) if self._file is None else self.query_one(TextView)).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes from the path to the text."""
        event.stop()
        self.query_one(TextView).focus()

    def action_press(self, key: str) -> None:
        """Save, or leave without saving."""
        if key == "escape":
            self.dismiss()
        else:
            self.run_worker(self._save(), exclusive=True)

    async def _save(self) -> None:
        host, path = get_host(self), self.query_one(Input).value.strip()
        base = self._file.file.hash if self._file is not None else NO_FILE
        text = self.query_one(TextView).text
        if await host.attempt(host.server.write_memory(path, text, base=base)) is not None:
            self.dismiss(path)
