"""Idempotent text edits: replaces a piece of text so that repeating the edit changes nothing. Pure.

A call that a crash interrupted is run again, and cannot know how far it came. So an edit counts as done when its new
text is in the file and its old text is not, except inside the new text; and an edit whose result would not be
recognized as done is refused. A second run changes nothing that the first one wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from everturn.errors import ToolError

MAX_OCCURRENCES = 10_000
MAX_COMPARED_LENGTH = 50_000_000  # characters that are compared to find out whether an edit was made before
MAX_SIMILAR_LINES = 2_000  # lines that are searched for one similar to the missing one
MAX_SIMILAR_LENGTH = 300  # characters of it


class EditResult(Struct, frozen=True):
    """The result of an edit: the text, and the number of places that changed; 0 if the edit was made before."""

    text: str
    replacements: int


def apply_edit(text: str, old: str, new: str, *, every: bool = False) -> EditResult:
    """Replace `old`, which occurs once, by `new`; with `every`, replace all occurrences.

    Raises:
        ToolError: `old` does not occur, or more than once, or the edit could not be repeated safely.
    """
    requested = old, new
    old, new = _as_there(text, *requested)
    places = _places(text, old)
    if _is_done(text, places, old, new):
        return EditResult(text, 0)
    if not places:
        raise ToolError(_missing(text, old))
    if len(places) > 1 and not every:
        lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in places[:5]) + (", …" if len(places) > 5 else "")
        raise ToolError(
            f"old_text occurs {len(places)} times (lines {lines}); give more of the text around the one you mean, "
            "or set `all`"
        )
    after = text.replace(old, new) if every else text[: places[0]] + new + text[places[0] + len(old) :]
    again = _as_there(after, *requested)
    left = _places(after, again[0])
    if left and not _is_done(after, left, *again):
        raise ToolError(
            "after this edit, new_text and the text around it would contain old_text again, so a repeated edit "
            "could not be recognised; give more of the text around it"
        )
    return EditResult(after, text.count(old) if every else 1)


def _as_there(text: str, old: str, new: str) -> tuple[str, str]:
    """Both texts with the line ends of the file: a model writes LF, and some files have only CR LF."""
    if "\r\n" not in text or "\r" in old + new or "\n" in text.replace("\r\n", ""):
        return old, new
    return old.replace("\n", "\r\n"), new.replace("\n", "\r\n")


def _places(text: str, part: str) -> Sequence[int]:
    """The offsets of all occurrences, overlapping ones included."""
    offsets: list[int] = []
    at = text.find(part)
    while at >= 0:
        offsets.append(at)
        if len(offsets) > MAX_OCCURRENCES:
            raise ToolError(
                f"old_text occurs more than {MAX_OCCURRENCES:,} times; write the whole file with write_file"
            )
        at = text.find(part, at + 1)
    return offsets


def _is_done(text: str, places: Sequence[int], old: str, new: str) -> bool:
    """Whether the new text is there, and the old text only inside of it."""
    if not new or (not places and new not in text):
        return False
    if not places:
        return True
    inner = _places(new, old)
    if len(places) * len(inner) * len(new) > MAX_COMPARED_LENGTH:
        raise ToolError("this edit is too repetitive to be made safely; write the whole file with write_file")
    return bool(inner) and all(
        any(at >= shift and text.startswith(new, at - shift) for shift in inner) for at in places
    )


def _missing(text: str, old: str) -> str:
    """The message that the old text does not occur, with the most similar line."""
    message = "old_text does not stand in the file; it must be there exactly, with its spaces and line breaks."
    wanted = next((line for line in old.split("\n") if line.strip()), "")[:MAX_SIMILAR_LENGTH]
    if not wanted:
        return f"{message} Read the file again"
    lines = text.split("\n", MAX_SIMILAR_LINES)[:MAX_SIMILAR_LINES]
    near, best = 0, 0.6
    matcher = SequenceMatcher(b=wanted.strip(), autojunk=False)
    for number, line in enumerate(lines, 1):
        if line == wanted:
            return (
                f"{message} Its first line is line {number}, but what follows there is different. Read the file again"
            )
        matcher.set_seq1(line.strip()[:MAX_SIMILAR_LENGTH])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            near, best = number, ratio
    if not near:
        return f"{message} There is nothing like it. Read the file again"
    return f"{message} The nearest is line {near}: {lines[near - 1][:MAX_SIMILAR_LENGTH]!r}"
