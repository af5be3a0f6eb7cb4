"""Table widget: plain-text rows with a cursor that stays on its row when rows come and go."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import DataTable

Cells = tuple[str | Text, ...]


class RowTable(DataTable[Text]):
    """A table of texts without markup; each row has a name."""

    DEFAULT_CSS = """
    RowTable { height: 1fr; background: $background; scrollbar-size-vertical: 1; }
    RowTable > .datatable--header { text-style: bold; color: $text-muted; background: $background; }
    RowTable > .datatable--cursor, RowTable:focus > .datatable--cursor { background: $primary 20%; color: $foreground; text-style: bold; }
    """

    def __init__(self, heads: Sequence[str], id: str | None = None) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False, cell_padding=1)
        self._heads = heads
        self.names: list[str] = []
        self._shown: dict[str, Cells] = {}

    def on_mount(self) -> None:
        """Add the columns."""
        for head in self._heads:
            self.add_column(Text(head), key=head)

    def fill(self, rows: dict[str, Cells]) -> None:
        """Show these rows; the cursor stays on its row, or moves to the row that took its place."""
        if rows == self._shown:
            return
        index, chosen = self.cursor_row, self.chosen
        self.clear()
        for name, cells in rows.items():
            self.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells), key=name)
        self.names, self._shown = list(rows), dict(rows)
        if self.names:
            self.move_cursor(
                row=self.names.index(chosen) if chosen in rows else min(index, len(rows) - 1), animate=False
            )

    @property
    def chosen(self) -> str:
        """The name of the row that the cursor is on; "" if there is none."""
        return self.names[self.cursor_row] if 0 <= self.cursor_row < len(self.names) else ""
