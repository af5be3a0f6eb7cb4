"""Cards of tool calls: name and state on one line, what must not be missed, and all details when unfolded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from everturn.core.canonical_json import parse_object
from everturn.core.events import PermissionDecided
from everturn.core.parts import Output, ToolPart
from everturn.core.todos import Todo, read_todos
from everturn.localization import format_text
from everturn.terminal.text.visible_text import format_arguments
from everturn.terminal.tui.render.canvas import Canvas, format_seconds
from everturn.terminal.tui.render.code import (
    add_card_bar,
    card_text_width,
    draw_changes,
    draw_diff,
    draw_exact,
    is_diff,
)
from everturn.terminal.tui.render.text import (
    GUTTER,
    MEASURE,
    Line,
    Run,
    escape_text,
    gutter_run,
    prefix_lines,
    runs_width,
    split_lines,
    truncate,
    wrap,
)
from everturn.terminal.tui.render.text import wrap_anywhere as folded
from everturn.terminal.tui.render.todos import draw_todos
from everturn.terminal.tui.texts.chat import ChatTexts

MAX_BRIEF: Final = 120  # characters of the arguments in the head line
EXCERPT_LINES: Final = 3  # lines of a result, and of progress
MAX_STREAMED: Final = 600  # characters of arguments that are shown while they stream
MAX_INDENT_DEPTH: Final = 4  # levels of nested calls that are indented; deeper ones share the last level
MAX_PARSED: Final = 200_000  # characters of arguments that are parsed for an excerpt
OWN_KINDS: Final = ("files", "code", "builtin")  # origins of tools that come with the assistant
LONG: Final = 1.0  # seconds from which on the duration of a call of our own tools is shown
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
"""A sign and a style for each state; its name is on the right, so colour is not needed to tell them apart."""


class Card(Struct, frozen=True):
    """Everything that a card is drawn from."""

    part: ToolPart
    decision: PermissionDecided | None = None
    is_detached: bool = False  # its tool continues after the call ended
    has_subagents: bool = False  # it has run sub-agents
    is_live: bool = False  # its arguments are streaming
    is_over: bool = False  # the turn has ended: a pending call will not run
    times: tuple[float, float] = (0.0, 0.0)
    progress: tuple[str, ...] = ()
    preview: str = ""
    asks: str = ""  # "gate", or "below" for one of a sub-agent
    is_shown: bool = False  # the dialog of that gate is on the screen
    is_client: bool = False
    waits_for: str = ""  # what it says that it waits for
    depth: int = 0
    is_superseded: bool = False  # a later call has written the to-do list anew

    @property
    def state(self) -> str:
        """One of `SIGNS`."""
        return "writing" if self.is_live else self.part.state


def draw_card(card: Card, canvas: Canvas) -> list[Line]:
    """Return the lines of a card."""
    texts, depth = canvas.texts, 2 * min(card.depth, MAX_INDENT_DEPTH)
    inner = card_text_width(canvas.width, depth)
    lines = [_head(card, canvas, depth), *add_card_bar(list(_alerts(card, inner, texts)), depth)]
    if card.is_live:
        text = card.part.arguments[-MAX_STREAMED:]
        lines += add_card_bar(list(draw_exact(text, inner, "dim", 6)), depth) if text.strip() else []
    elif not canvas.is_open and not card.is_superseded and (todos := _todos(card.part)):
        lines += add_card_bar(list(draw_todos(todos, inner)), depth)
    elif canvas.is_open:
        lines += add_card_bar(list(_details(card, inner, texts)), depth)
    elif not card.is_superseded:
        lines += add_card_bar(list(_brief(card, inner, texts)), depth)
    return lines


def _head(card: Card, canvas: Canvas, depth: int) -> Line:
    """`✓ send_mail  ann@example.org                        MCP mail · done · 1.2 s`."""
    sign, style = SIGNS[card.state]
    word = getattr(canvas.texts, card.state)
    if card.state == "pending" and card.is_over:
        sign, word = "■", canvas.texts.never
    status = card.part.output.exit_status if card.state == "completed" and card.part.output is not None else 0
    if status:  # the call is done, and its program failed
        sign, style, word = "!", "warn", canvas.texts.exited.replace("{code}", str(status))
    took = _took(card, canvas.now)
    where = describe_executor(card, canvas.texts)
    right: list[Run] = [(f"{where} · ", "dim")] if where and canvas.width > 60 else []
    right += [(word, style), *([(f" · {took}", "dim")] if took else [])]
    if card.state == "completed" and not status and _kind(card) in OWN_KINDS:  # the sign is enough
        right = [(took, "dim")] if took and card.times[1] - card.times[0] >= LONG else []
    fold = "▾" if canvas.is_open else "▸"
    space = card_text_width(canvas.width, depth) - runs_width(right) - 2
    name = truncate(card.part.name, max(space - 2, 6))
    space -= runs_width([(name, "")]) + 2
    title = card.part.output.title if card.part.output is not None else ""
    excerpt = truncate(title or arguments_excerpt(card.part.arguments, card.part.used), space - 1) if space > 8 else ""
    left: list[Run] = [(" " * depth, ""), (name, "strong"), ("  ", ""), (excerpt, "dim")]
    edge = min(canvas.width, MEASURE + GUTTER)  # on a wide screen the state stays near the name
    gap = max(edge - 5 - runs_width(left) - runs_width(right), 1)
    head: Line = (gutter_run(sign, style), *left, (" " * gap, ""), *right, (f" {fold}", "dim"))
    return folded(head, canvas.width)[0]


def _todos(part: ToolPart) -> Sequence[Todo] | None:
    """Return the to-dos that a call has written, or will write."""
    is_shown = part.state in ("pending", "running", "completed")
    return read_todos(part.name, part.used or part.arguments) if is_shown else None


def _took(card: Card, now: float) -> str:
    began, ended = card.times
    if not began or (not ended and card.part.state not in ("running", "waiting", "reviewing")):
        return ""
    return format_seconds(max((ended or now) - began, 0.0))


def _kind(card: Card) -> str:
    """The kind of the origin of a result: files, code, mcp and so on."""
    return card.part.output.origin.partition(":")[0] if card.part.output is not None else ""


def describe_executor(card: Card, texts: ChatTexts) -> str:
    """Return where a tool runs."""
    output = card.part.output
    origin = (output.origin if output is not None else "") or ("client" if card.is_client else "")
    kind, _, name = origin.partition(":")
    named = {"mcp": texts.mcp, "code": texts.sandbox}
    if kind in named:
        return named[kind].replace("{name}", escape_text(name)[:20])
    known = {
        "function": texts.function,
        "client": texts.client,
        "files": texts.files,
        "web": texts.web,
        "agent": texts.agent,
        "builtin": texts.builtin,
    }
    return known.get(kind, escape_text(origin)[:20])


def arguments_excerpt(text: str, used: str = "") -> str:
    """Return an excerpt of the arguments: the first requested one that is a text, with the value that was used."""
    if len(text) + len(used) > MAX_PARSED:
        return ""
    requested = parse_object(text) or {}
    used_arguments = (parse_object(used) or {}) if used else requested
    ordered = [used_arguments.get(name, "") for name in (*requested, *used_arguments)]
    first = next((value for value in ordered if isinstance(value, str) and value.strip()), "")
    return first_line(first)[:MAX_BRIEF]


def is_changed(part: ToolPart) -> bool:
    """Return whether a call ran with other arguments than requested; another order of the same ones does not count."""
    if not part.used or len(part.used) + len(part.arguments) > MAX_PARSED:
        return bool(part.used)
    return parse_object(part.used) != parse_object(part.arguments)


def first_line(text: str) -> str:
    """Return the first line that is not empty."""
    return text.strip()[:300].split("\n", 1)[0]


def _alerts(card: Card, width: int, texts: ChatTexts) -> Iterator[Line]:
    """Return what must be shown of a call even while it is folded."""
    part, ran = card.part, card.decision.tool if card.decision is not None else ""
    if card.asks:
        own, below = (texts.shown_gate, texts.shown_below) if card.is_shown else (texts.open_gate, texts.open_below)
        yield from wrap([(own if card.asks == "gate" else below, "ask strong")], width)
    if ran and ran != part.name:
        yield from wrap([(texts.repaired.replace("{asked}", part.name).replace("{ran}", ran), "warn")], width)
    if part.is_edited:
        yield from wrap([(texts.edited, "warn")], width)
    why = {"outcome_unknown": texts.unknown_why, "withheld": texts.withheld_why}
    if part.state == "waiting" and not card.asks and not card.has_subagents:
        label = escape_text(card.waits_for)
        why["waiting"] = texts.waiting_for.replace("{label}", label) if label else texts.waiting_why
    if part.state in why:
        yield from wrap([(why[part.state], "warn")], width)
    if card.is_detached:
        yield from wrap([(texts.out_why, "warn")], width)
    if part.late is not None:
        yield from wrap([(f"{texts.late}: ", "warn"), (first_line(part.late.title or part.late.text), "")], width)


def _brief(card: Card, width: int, texts: ChatTexts) -> Iterator[Line]:
    """Return a few lines of the progress or of the result."""
    part = card.part
    if part.output is None:
        for row in card.progress[-EXCERPT_LINES:] if part.state in ("running", "waiting") else ():
            yield (("· ", "dim"), (truncate(row, width - 2), "dim"))
        return
    if part.state in ("failed", "denied", "cancelled"):
        text = texts.incomplete if part.output.text.startswith(INCOMPLETE) else first_line(part.output.text)
        yield from wrap([(text, "bad" if part.state != "cancelled" else "dim")], width) if text else []
        return
    rows = [row for row in split_lines(part.output.text[:2_000]) if row.strip()]
    flags = _flags(part.output, texts)
    if flags:
        yield ((truncate(" · ".join(flags), width), "warn"),)
    if _kind(card) == "files" and not is_diff(part.output.text):
        return  # what was read, listed or found is for the model
    if is_diff(part.output.text):
        yield from draw_diff("\n".join(rows[:8]), width)
        rows = rows[8:]
    else:
        yield from (((truncate(row, width), "dim"),) for row in rows[:EXCERPT_LINES])
        rows = rows[EXCERPT_LINES:]
    if rows:
        yield ((format_text(texts.more_lines, n=len(rows)), "dim"),)


def _flags(output: Output, texts: ChatTexts) -> list[str]:
    flags = [
        (texts.code.replace("{code}", escape_text(output.code)[:40]), bool(output.code)),
        (texts.untrusted, output.untrusted),
        (texts.private, bool(output.private)),
        (texts.sensitive, output.sensitive),
        (texts.redacted, output.redacted),
    ]
    return [text for text, applies in flags if applies]


def _title(text: str) -> Line:
    return ((text, "strong"),)


def _details(card: Card, width: int, texts: ChatTexts) -> Iterator[Line]:
    """Return everything about a call, to the letter."""
    part, permission = card.part, card.decision
    if permission is not None:
        decision = texts.denied if not permission.allowed else texts.by_person if permission.gate else texts.by_rule
        yield from wrap(
            [
                (f"{decision}: " if permission.rule or permission.gate else f"{texts.why}: ", ""),
                (permission.why, "dim"),
            ],
            width,
        )
    if is_changed(part):
        yield _title(texts.edited if part.is_edited else texts.changed)
        yield (("- ", "bad"), (texts.asked, "dim"), ("  + ", "good"), (texts.used, "dim"))
        yield from draw_changes(_pretty(part.arguments), _pretty(part.used), width)
    yield _title(texts.arguments)
    yield from _arguments(part.used or part.arguments, width)
    yield from _change(card, width, texts)
    if card.progress:
        yield _title(f"{texts.progress} ({len(card.progress)})")
        for row in card.progress[-50:]:
            yield from prefix_lines(draw_exact(row, width - 2, "dim", 10), ("· ", "dim"), ("  ", ""))
    if part.output is not None:
        yield _title(texts.result)
        yield from _output(part.output, width, texts)
    if part.late is not None:
        yield _title(texts.late)
        yield from wrap([(texts.late_why, "dim")], width)
        yield from _output(part.late, width, texts)


def _pretty(text: str) -> str:
    return "\n".join(f"{name}: {line}" for name, lines in format_arguments(text[:60_000]) for line in lines)


def _arguments(text: str, width: int) -> Iterator[Line]:
    """Return the arguments by name, with every character visible."""
    for name, rows in format_arguments(text[:60_000]):
        head: Run = (f"{name}: " if name else "", "accent")
        if name and (len(rows) > 1 or runs_width([head]) > width // 2):
            yield (head,)
            head = ("  ", "")
        pad: Run = (" " * runs_width([head]), "")
        for index, row in enumerate(rows[:400]):
            yield from prefix_lines(draw_exact(row, width - runs_width([head])), pad if index else head, pad)


def _change(card: Card, width: int, texts: ChatTexts) -> Iterator[Line]:
    """Return the change that a call makes: from the preview of its tool, or from its arguments."""
    if is_diff(card.preview):
        yield _title(texts.change)
        yield from draw_diff(card.preview, width)
        return
    arguments_used = parse_object(card.part.used or card.part.arguments) or {}
    old, new = arguments_used.get("old_text"), arguments_used.get("new_text")
    if isinstance(old, str) and isinstance(new, str):
        yield _title(texts.change)
        yield from draw_changes(old, new, width)


def _output(output: Output, width: int, texts: ChatTexts) -> Iterator[Line]:
    flags = _flags(output, texts)
    if flags:
        yield from wrap([(" · ".join(flags), "warn")], width)
    if not output.text:
        yield ((texts.nothing, "dim"),)
    elif is_diff(output.text):
        yield from draw_diff(output.text, width)
    else:
        yield from draw_exact(output.text, width)
    for file in output.attachments:
        yield from wrap([("↓ ", "accent"), (file.name or file.media_type, ""), (f"  {file.size:,} B", "dim")], width)
    if output.blob:
        yield from wrap([(texts.excerpt, "dim")], width)
