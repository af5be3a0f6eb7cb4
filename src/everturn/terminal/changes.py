"""Files that changed → a line that says which, and the steps of a conversation that changed some. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everturn.core.messages import Message
from everturn.core.parts import FileChange, FilesPart
from everturn.terminal.exact import seen

FIRST = 8  # files that a line names


def changed(changes: Sequence[FileChange], minus: str = "−") -> str:
    """`3 files: a.py +3 −1, b.py new +8, c.py gone`."""
    named = ", ".join(change_of(change, minus) for change in changes[:FIRST])
    rest = f", and {len(changes) - FIRST} more" if len(changes) > FIRST else ""
    return f"{count_of(len(changes))}: {named}{rest}"


def count_of(number: int) -> str:
    """So many files."""
    return f"{number} {'file' if number == 1 else 'files'}"


def change_of(change: FileChange, minus: str = "−") -> str:
    """What became of one file. A name may be anything, and cannot look like what we say of it."""
    name = seen(change.path)
    words = [f'"{name}"' if " " in name or "," in name else name]
    words += {"added": ["new"], "deleted": ["gone"], "modified": []}[change.kind]
    words += [f"+{change.added}"] if change.added else []
    words += [f"{minus}{change.removed}"] if change.removed and change.kind != "deleted" else []
    return " ".join(words)


def steps_of(messages: Iterable[Message]) -> list[FilesPart]:
    """The steps that changed files, in the order of the messages; their numbers are those a person says, from 1."""
    return [part for message in messages for part in message.parts if isinstance(part, FilesPart) and part.changes]
