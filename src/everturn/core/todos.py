"""To-dos: the steps of a larger task, as the model writes them with `write_todos`. The newest list replaces all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

WRITE_TODOS: Final = "write_todos"
MAX_TODOS: Final = 50
MAX_TODO_LENGTH: Final = 500
MAX_ARGUMENTS: Final = 100_000  # characters of arguments that are read

TodoStatus = Literal["pending", "in_progress", "completed"]
TODO_STATUSES: Final[tuple[TodoStatus, ...]] = ("pending", "in_progress", "completed")


class Todo(Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a task."""

    content: Annotated[str, Meta(min_length=1, max_length=MAX_TODO_LENGTH)]
    status: TodoStatus


class TodoList(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `write_todos`."""

    todos: Annotated[list[Todo], Meta(max_length=MAX_TODOS)]


_decode = msgspec.json.Decoder(TodoList).decode


def read_todos(tool: str, arguments: str) -> Sequence[Todo] | None:
    """The to-dos that a call writes; None if it is another call, or if its arguments are not such a list."""
    if tool != WRITE_TODOS or len(arguments) > MAX_ARGUMENTS:
        return None
    try:
        return _decode(arguments.encode("utf-8", "replace")).todos
    except msgspec.MsgspecError:
        return None


def summarize_todos(todos: Sequence[Todo]) -> str:
    """One line: how many are completed, and the one that is in progress."""
    done = sum(todo.status == "completed" for todo in todos)
    current = next((todo.content for todo in todos if todo.status == "in_progress"), "")
    count = f"{done}/{len(todos)}"
    return f"{count} · {current}" if current else count
