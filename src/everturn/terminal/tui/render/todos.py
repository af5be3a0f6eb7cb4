"""To-do lists: the steps of a task with a sign for each status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from everturn.core.todos import Todo, TodoStatus
from everturn.terminal.tui.render.text import Line, prefix_lines, wrap

SIGNS: Final[dict[TodoStatus, tuple[str, str, str]]] = {
    "completed": ("✓", "good", "dim"),
    "in_progress": ("▸", "accent", "strong"),
    "pending": ("○", "dim", ""),
}
"""A sign, its style, and the style of the text."""


def draw_todos(todos: Sequence[Todo], width: int) -> Iterator[Line]:
    """Return the lines of a list."""
    for todo in todos:
        sign, style, text_style = SIGNS[todo.status]
        content = " ".join(todo.content.split())
        yield from prefix_lines(wrap([(content, text_style)], width - 2), (f"{sign} ", style), ("  ", ""))
