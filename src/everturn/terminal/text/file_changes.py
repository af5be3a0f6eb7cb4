"""File changes as text: one line that names changed files, and the steps of a conversation that changed some. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everturn.core.messages import Message
from everturn.core.parts import FileChange, FilesPart
from everturn.terminal.text.visible_text import escape_invisible

MAX_FILES_NAMED = 8  # files that a line names; the others are counted


def summarize_changes(changes: Sequence[FileChange], minus: str = "−") -> str:
    """Return a line such as `3 files: a.py +3 −1, b.py new +8, c.py gone`."""
    names = ", ".join(describe_change(change, minus) for change in changes[:MAX_FILES_NAMED])
    rest = f", and {len(changes) - MAX_FILES_NAMED} more" if len(changes) > MAX_FILES_NAMED else ""
    return f"{count_files(len(changes))}: {names}{rest}"


def count_files(number: int) -> str:
    """Return a number of files with its noun."""
    return f"{number} {'file' if number == 1 else 'files'}"


def describe_change(change: FileChange, minus: str = "−") -> str:
    """Describe the change to one file; its path is escaped and quoted, so that it cannot imitate our own words."""
    name = escape_invisible(change.path)
    words = [f'"{name}"' if " " in name or "," in name else name]
    words += {"added": ["new"], "deleted": ["gone"], "modified": []}[change.kind]
    words += [f"+{change.added}"] if change.added else []
    words += [f"{minus}{change.removed}"] if change.removed and change.kind != "deleted" else []
    return " ".join(words)


def steps_with_changes(messages: Iterable[Message]) -> list[FilesPart]:
    """Return the steps that changed files, in the order of the messages; people number them from 1."""
    return [part for message in messages for part in message.parts if isinstance(part, FilesPart) and part.changes]
