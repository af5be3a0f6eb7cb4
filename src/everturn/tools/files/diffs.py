"""Unified diffs of two texts for an approval, every character as it is. Pure, and bounded.

Lines end at a line feed and nowhere else, so that what looks like one line is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

CONTEXT = 3  # lines around a change
MAX_LINES = 20_000  # of either text; longer texts are only counted
MAX_COMPARED_LINES = 1_000  # lines that are compared with each other; more lines are shown as replaced
MAX_DIFF_LENGTH = 60_000  # characters
_NO_END = "\\ No newline at end of file"

Opcode = tuple[str, int, int, int, int]


def make_unified_diff(old: str | None, new: str | None, path: str, most: int = MAX_DIFF_LENGTH) -> str:
    """The diff; "" where nothing changes. None is a file that does not exist."""
    if old == new:
        return ""
    before, after = old or "", new or ""
    head = [f"--- {'/dev/null' if old is None else f'a/{path}'}", f"+++ {'/dev/null' if new is None else f'b/{path}'}"]
    counts = before.count("\n"), after.count("\n")
    if max(counts) > MAX_LINES:
        return "\n".join((*head, f"[too long to be compared: {counts[0]:,} lines become {counts[1]:,}]"))
    size = 0
    shown: list[str] = []
    rows = _hunks(_lines(before), _lines(after))
    for row in rows:
        size += len(row) + 1
        if size > most:
            left = 1 + sum(1 for _ in rows)
            shown.append(f"[… {left:,} more lines; the arguments hold the whole of what is written …]")
            break
        shown.append(row)
    return "\n".join((*head, *shown))


def count_lines(old: bytes | None, new: bytes | None) -> tuple[int, int]:
    """How many lines were added, and removed."""
    before, after = ((data or b"").decode("utf-8", "replace") for data in (old, new))
    if max(before.count("\n"), after.count("\n")) > MAX_LINES:
        return after.count("\n"), before.count("\n")
    added = removed = 0
    for tag, a, b, c, d in _opcodes(_lines(before), _lines(after)):
        if tag != "equal":
            removed += b - a
            added += d - c
    return added, removed


def _lines(text: str) -> list[str]:
    """The lines with their line ends."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """The edits that turn one into the other. Only the part between a common start and a common end is compared."""
    top = 0
    shorter = min(len(old), len(new))
    while top < shorter and old[top] == new[top]:
        top += 1
    end = 0
    while end < shorter - top and old[-1 - end] == new[-1 - end]:
        end += 1
    a, b = len(old) - end, len(new) - end
    codes: list[Opcode] = [("equal", 0, top, 0, top)] if top else []
    if max(a, b) - top > MAX_COMPARED_LINES:
        codes.append(("replace", top, a, top, b))
    else:
        matcher = SequenceMatcher(None, old[top:a], new[top:b], autojunk=True)
        codes += [(tag, i + top, j + top, k + top, m + top) for tag, i, j, k, m in matcher.get_opcodes()]
    if end:
        codes.append(("equal", a, len(old), b, len(new)))
    return codes


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for group in _groups(_opcodes(old, new)):
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        yield f"@@ -{_range(a, b)} +{_range(c, d)} @@"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from _rows(" ", old[i:j])
            else:
                yield from _rows("-", old[i:j])
                yield from _rows("+", new[k:m])


def _rows(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield mark + line[:-1]
        else:
            yield mark + line
            yield _NO_END


def _range(begin: int, end: int) -> str:
    size = end - begin
    if size == 1:
        return str(begin + 1)
    return f"{begin + 1 if size else begin},{size}"


def _groups(codes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Changes that are close to each other, with context lines."""
    group: list[Opcode] = []
    for at, (tag, i, j, k, m) in enumerate(codes):
        if tag != "equal":
            group.append((tag, i, j, k, m))
            continue
        is_first, is_last = at == 0, at == len(codes) - 1
        if is_first:
            group.append((tag, max(i, j - CONTEXT), j, max(k, m - CONTEXT), m))
        elif is_last:
            group.append((tag, i, min(j, i + CONTEXT), k, min(m, k + CONTEXT)))
        elif j - i > 2 * CONTEXT:
            yield [*group, (tag, i, i + CONTEXT, k, k + CONTEXT)]
            group = [(tag, j - CONTEXT, j, m - CONTEXT, m)]
        else:
            group.append((tag, i, j, k, m))
    if any(tag != "equal" for tag, *_ in group):
        yield group
