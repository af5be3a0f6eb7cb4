"""A text and an edit → the text after it, in such a way that to do it again changes nothing. Pure.

A call that a crash cut short is run again, and cannot know how far it came. So an edit counts as done when its new text
is there and its old text is not, but for where the new text itself has it; and one whose result would not be seen as
done is refused. What the first run made, no second one changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from everturn.errors import ToolError

MOST_PLACES = 10_000
MOST_WORK = 50_000_000  # characters that are compared to see whether an edit was made before
MOST_NEAR = 2_000  # lines among which one like the missing one is looked for
LONGEST_NEAR = 300  # characters of it


class Edited(Struct, frozen=True):
    """What came of an edit: the text, and in how many places it was changed; in none if that was done before."""

    text: str
    places: int


def edit(text: str, old: str, new: str, *, every: bool = False) -> Edited:
    """Put `new` in the place of `old`, which stands there once; with `every`, wherever it stands.

    Raises:
        ToolError: it is not there, or not once, or the edit could not be repeated safely.
    """
    given = old, new
    old, new = _as_there(text, *given)
    places = _places(text, old)
    if _is_done(text, places, old, new):
        return Edited(text, 0)
    if not places:
        raise ToolError(_missing(text, old))
    if len(places) > 1 and not every:
        lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in places[:5]) + (", …" if len(places) > 5 else "")
        raise ToolError(
            f"old_text stands there {len(places)} times (lines {lines}); give more of the text around the one you mean, "
            "or set `all`"
        )
    after = text.replace(old, new) if every else text[: places[0]] + new + text[places[0] + len(old) :]
    again = _as_there(after, *given)
    left = _places(after, again[0])
    if left and not _is_done(after, left, *again):
        raise ToolError(
            "after this edit old_text would stand there again, made of new_text and what is beside it, so that the edit "
            "could not be told from one that is still to be made; give more of the text around it"
        )
    return Edited(after, text.count(old) if every else 1)


def _as_there(text: str, old: str, new: str) -> tuple[str, str]:
    """Both with the line breaks of the text: a model writes line feeds, and some files have none without a return."""
    if "\r\n" not in text or "\r" in old + new or "\n" in text.replace("\r\n", ""):
        return old, new
    return old.replace("\n", "\r\n"), new.replace("\n", "\r\n")


def _places(text: str, part: str) -> Sequence[int]:
    """Where it stands, also where that overlaps."""
    found: list[int] = []
    at = text.find(part)
    while at >= 0:
        found.append(at)
        if len(found) > MOST_PLACES:
            raise ToolError(
                f"old_text stands there more than {MOST_PLACES:,} times; write the whole file with write_file"
            )
        at = text.find(part, at + 1)
    return found


def _is_done(text: str, places: Sequence[int], old: str, new: str) -> bool:
    """Whether the new text is there, and the old one nowhere but in it."""
    if not new or (not places and new not in text):
        return False
    if not places:
        return True
    inner = _places(new, old)
    if len(places) * len(inner) * len(new) > MOST_WORK:
        raise ToolError("this edit is too repetitive to be made safely; write the whole file with write_file")
    return bool(inner) and all(
        any(at >= shift and text.startswith(new, at - shift) for shift in inner) for at in places
    )


def _missing(text: str, old: str) -> str:
    """Say that the old text is not there, and what comes near to it."""
    said = "old_text does not stand in the file; it must be there exactly, with its spaces and line breaks."
    wanted = next((line for line in old.split("\n") if line.strip()), "")[:LONGEST_NEAR]
    if not wanted:
        return f"{said} Read the file again"
    lines = text.split("\n", MOST_NEAR)[:MOST_NEAR]
    near, best = 0, 0.6
    matcher = SequenceMatcher(b=wanted.strip(), autojunk=False)
    for number, line in enumerate(lines, 1):
        if line == wanted:
            return f"{said} Its first line is line {number}, but what follows there is different. Read the file again"
        matcher.set_seq1(line.strip()[:LONGEST_NEAR])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            near, best = number, ratio
    if not near:
        return f"{said} There is nothing like it. Read the file again"
    return f"{said} The nearest is line {near}: {lines[near - 1][:LONGEST_NEAR]!r}"
