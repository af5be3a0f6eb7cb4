"""A tool call → a card: what it is and how it stands on one line, what must be said of it, and all of it on request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from everturn.core.canonical import parse_object
from everturn.core.events import CallJudged
from everturn.core.parts import Output, ToolPart
from everturn.terminal.exact import arguments
from everturn.tui.drawing.code import boxed, changes, diff, exact, is_diff, room
from everturn.tui.drawing.ink import Line, Run, cut, lead, margin, safe, split, width_of, wrap
from everturn.tui.drawing.ink import fold as folded
from everturn.tui.drawing.paper import Paper, seconds
from everturn.tui.words.talk import TalkWords, counted

BRIEF: Final = 120  # characters of the arguments that stand in the head
EXCERPT: Final = 3  # lines of a result, and of what a tool says on the way
STREAMED: Final = 600  # characters of arguments that are shown while they come
DEEPEST: Final = 4  # calls of calls that are set off; those below stand with them
LONGEST_READ: Final = 200_000  # characters of arguments that are read for a word of them
INCOMPLETE: Final = '{"status":"incomplete",'

SIGNS: Final[dict[str, tuple[str, str]]] = {
    "writing": ("…", "accent"),
    "pending": ("○", "dim"),
    "asking": ("?", "ask"),
    "running": ("●", "accent"),
    "waiting": ("◦", "accent"),
    "reviewing": ("?", "ask"),
    "completed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "denied": ("⊘", "bad"),
    "withheld": ("◌", "warn"),
    "cancelled": ("■", "warn"),
    "outcome_unknown": ("‽", "warn"),
}
"""A sign and a style for each state; the word for it stands on the right, so neither has to be seen in colour."""


class Card(Struct, frozen=True):
    """All that a card is drawn from."""

    part: ToolPart
    judged: CallJudged | None = None
    is_out: bool = False  # its tool runs on without it
    has_below: bool = False  # it has had sub-turns run
    is_live: bool = False  # its arguments still come
    is_over: bool = False  # the turn is: what did not run will not
    times: tuple[float, float] = (0.0, 0.0)
    progress: tuple[str, ...] = ()
    preview: str = ""
    asks: str = ""  # "gate" or "below"
    is_client: bool = False
    depth: int = 0

    @property
    def state(self) -> str:
        """One of `SIGNS`."""
        return "writing" if self.is_live else self.part.state


def draw(card: Card, paper: Paper) -> list[Line]:
    """The lines of a card."""
    words, depth = paper.words, 2 * min(card.depth, DEEPEST)
    inner = room(paper.width, depth)
    lines = [_head(card, paper, depth), *boxed(list(_said(card, inner, words)), depth)]
    if card.is_live:
        text = card.part.arguments[-STREAMED:]
        lines += boxed(list(exact(text, inner, "dim", 6)), depth) if text.strip() else []
    elif paper.is_open:
        lines += boxed(list(_details(card, inner, words)), depth)
    else:
        lines += boxed(list(_brief(card, inner, words)), depth)
    return lines


def _head(card: Card, paper: Paper, depth: int) -> Line:
    """`✓ send_mail  ann@example.org                        MCP mail · done · 1.2 s`."""
    sign, style = SIGNS[card.state]
    word = getattr(paper.words, card.state)
    if card.state == "pending" and card.is_over:
        sign, word = "■", paper.words.never
    took = _took(card, paper.now)
    where = executor(card, paper.words)
    right: list[Run] = [(f"{where} · ", "dim")] if where and paper.width > 60 else []
    right += [(word, style), *([(f" · {took}", "dim")] if took else [])]
    fold = "▾" if paper.is_open else "▸"
    space = room(paper.width, depth) - width_of(right) - 2
    name = cut(card.part.name, max(space - 2, 6))
    space -= width_of([(name, "")]) + 2
    title = card.part.output.title if card.part.output is not None else ""
    about = cut(title or brief_of(card.part.arguments, card.part.used), space - 1) if space > 8 else ""
    left: list[Run] = [(" " * depth, ""), (name, "strong"), ("  ", ""), (about, "dim")]
    gap = max(paper.width - 5 - width_of(left) - width_of(right), 1)
    head: Line = (margin(sign, style), *left, (" " * gap, ""), *right, (f" {fold}", "dim"))
    return folded(head, paper.width)[0]


def _took(card: Card, now: float) -> str:
    began, ended = card.times
    if not began or (not ended and card.part.state not in ("running", "waiting", "reviewing")):
        return ""
    return seconds(max((ended or now) - began, 0.0))


def executor(card: Card, words: TalkWords) -> str:
    """Where a tool runs."""
    output = card.part.output
    origin = (output.origin if output is not None else "") or ("client" if card.is_client else "")
    kind, _, name = origin.partition(":")
    named = {"mcp": words.mcp, "code": words.sandbox}
    if kind in named:
        return named[kind].replace("{name}", safe(name)[:20])
    known = {
        "function": words.function,
        "client": words.client,
        "files": words.files,
        "web": words.web,
        "agent": words.agent,
        "builtin": words.builtin,
    }
    return known.get(kind, safe(origin)[:20])


def brief_of(text: str, used: str = "") -> str:
    """A word or two of the arguments: the first text among them as they were asked for, as it was used."""
    if len(text) + len(used) > LONGEST_READ:
        return ""
    asked = parse_object(text) or {}
    given = (parse_object(used) or {}) if used else asked
    ordered = [given.get(name, "") for name in (*asked, *given)]
    first = next((one for one in ordered if isinstance(one, str) and one.strip()), "")
    return first_line(first)[:BRIEF]


def is_changed(part: ToolPart) -> bool:
    """Whether a call ran with other arguments than it was asked for, and not only with the same ones in another order."""
    if not part.used or len(part.used) + len(part.arguments) > LONGEST_READ:
        return bool(part.used)
    return parse_object(part.used) != parse_object(part.arguments)


def first_line(text: str) -> str:
    """The first line that says something."""
    return text.strip()[:300].split("\n", 1)[0]


def _said(card: Card, width: int, words: TalkWords) -> Iterator[Line]:
    """What must be said of a call even where nobody opens it."""
    part, ran = card.part, card.judged.tool if card.judged is not None else ""
    if card.asks:
        yield from wrap([(words.open_gate if card.asks == "gate" else words.open_below, "ask strong")], width)
    if ran and ran != part.name:
        yield from wrap([(words.repaired.replace("{asked}", part.name).replace("{ran}", ran), "warn")], width)
    if part.is_edited:
        yield from wrap([(words.edited, "warn")], width)
    why = {"outcome_unknown": words.unknown_why, "withheld": words.withheld_why}
    if part.state == "waiting" and not card.asks and not card.has_below:
        why["waiting"] = words.waiting_why
    if part.state in why:
        yield from wrap([(why[part.state], "warn")], width)
    if card.is_out:
        yield from wrap([(words.out_why, "warn")], width)
    if part.late is not None:
        yield from wrap([(f"{words.late}: ", "warn"), (first_line(part.late.title or part.late.text), "")], width)


def _brief(card: Card, width: int, words: TalkWords) -> Iterator[Line]:
    """A few lines of what a call says, or of what came of it."""
    part = card.part
    if part.output is None:
        for row in card.progress[-EXCERPT:] if part.state in ("running", "waiting") else ():
            yield (("· ", "dim"), (cut(row, width - 2), "dim"))
        return
    if part.state in ("failed", "denied", "cancelled"):
        text = words.incomplete if part.output.text.startswith(INCOMPLETE) else first_line(part.output.text)
        yield from wrap([(text, "bad" if part.state != "cancelled" else "dim")], width) if text else []
        return
    rows = [row for row in split(part.output.text[:2_000]) if row.strip()]
    flags = _flags(part.output, words)
    if flags:
        yield ((cut(" · ".join(flags), width), "warn"),)
    if is_diff(part.output.text):
        yield from diff("\n".join(rows[:8]), width)
        rows = rows[8:]
    else:
        yield from (((cut(row, width), "dim"),) for row in rows[:EXCERPT])
        rows = rows[EXCERPT:]
    if rows:
        yield ((counted(words.more_lines, len(rows)), "dim"),)


def _flags(output: Output, words: TalkWords) -> list[str]:
    flags = [
        (words.code.replace("{code}", safe(output.code)[:40]), bool(output.code)),
        (words.untrusted, output.untrusted),
        (words.private, bool(output.private)),
        (words.sensitive, output.sensitive),
        (words.redacted, output.redacted),
    ]
    return [text for text, is_so in flags if is_so]


def _title(text: str) -> Line:
    return ((text, "strong"),)


def _details(card: Card, width: int, words: TalkWords) -> Iterator[Line]:
    """All there is to know of a call, to the letter."""
    part, judged = card.part, card.judged
    if judged is not None:
        how = words.denied if not judged.allowed else words.by_person if judged.gate else words.by_rule
        yield from wrap(
            [(f"{how}: " if judged.rule or judged.gate else f"{words.why}: ", ""), (judged.why, "dim")], width
        )
    if is_changed(part):
        yield _title(words.edited if part.is_edited else words.changed)
        yield (("- ", "bad"), (words.asked, "dim"), ("  + ", "good"), (words.used, "dim"))
        yield from changes(_pretty(part.arguments), _pretty(part.used), width)
    yield _title(words.arguments)
    yield from _arguments(part.used or part.arguments, width)
    yield from _change(card, width, words)
    if card.progress:
        yield _title(f"{words.progress} ({len(card.progress)})")
        for row in card.progress[-50:]:
            yield from lead(exact(row, width - 2, "dim", 10), ("· ", "dim"), ("  ", ""))
    if part.output is not None:
        yield _title(words.result)
        yield from _output(part.output, width, words)
    if part.late is not None:
        yield _title(words.late)
        yield from wrap([(words.late_why, "dim")], width)
        yield from _output(part.late, width, words)


def _pretty(text: str) -> str:
    return "\n".join(f"{name}: {line}" for name, lines in arguments(text[:60_000]) for line in lines)


def _arguments(text: str, width: int) -> Iterator[Line]:
    """The arguments by name, every character of them to be seen."""
    for name, rows in arguments(text[:60_000]):
        head: Run = (f"{name}: " if name else "", "accent")
        if name and (len(rows) > 1 or width_of([head]) > width // 2):
            yield (head,)
            head = ("  ", "")
        pad: Run = (" " * width_of([head]), "")
        for at, row in enumerate(rows[:400]):
            yield from lead(exact(row, width - width_of([head])), pad if at else head, pad)


def _change(card: Card, width: int, words: TalkWords) -> Iterator[Line]:
    """What a call changes: as its tool showed it before, or as its arguments say."""
    if is_diff(card.preview):
        yield _title(words.change)
        yield from diff(card.preview, width)
        return
    given = parse_object(card.part.used or card.part.arguments) or {}
    old, new = given.get("old_text"), given.get("new_text")
    if isinstance(old, str) and isinstance(new, str):
        yield _title(words.change)
        yield from changes(old, new, width)


def _output(output: Output, width: int, words: TalkWords) -> Iterator[Line]:
    flags = _flags(output, words)
    if flags:
        yield from wrap([(" · ".join(flags), "warn")], width)
    if not output.text:
        yield ((words.nothing, "dim"),)
    elif is_diff(output.text):
        yield from diff(output.text, width)
    else:
        yield from exact(output.text, width)
    for file in output.attachments:
        yield from wrap([("↓ ", "accent"), (file.name or file.media_type, ""), (f"  {file.size:,} B", "dim")], width)
    if output.blob:
        yield from wrap([(words.excerpt, "dim")], width)
