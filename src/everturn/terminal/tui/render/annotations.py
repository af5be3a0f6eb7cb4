"""Annotations: user messages, reasoning, steps, notices, file changes and turn endings, as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from everturn.api import QueuedView
from everturn.core.events import TurnFailed
from everturn.core.messages import Message
from everturn.core.parts import FileChange, FilePart, FilesPart, NoticePart, StepPart, TextPart
from everturn.core.state import Phase, TurnState
from everturn.terminal.lines.turn_view import format_cost
from everturn.terminal.text.visible_text import escape_invisible
from everturn.terminal.tui.render.canvas import Canvas, draw_meter, format_seconds
from everturn.terminal.tui.render.text import (
    GUTTER,
    Line,
    Run,
    add_gutter,
    escape_text,
    gutter_run,
    prefix_lines,
    runs_width,
    split_lines,
    truncate,
    wrap,
)
from everturn.terminal.tui.state import SessionState, StepTimes
from everturn.terminal.tui.texts.chat import ChatTexts, pluralize

MAX_FOLDED_LINES: Final = 40  # lines of a user message that are shown while it is folded
MAX_STREAMED_REASONING: Final = 2_000  # characters of reasoning that are shown while it streams
MAX_REASONING_LINES: Final = 12  # lines of streaming reasoning
MAX_LISTED_FILES: Final = 8  # changed files that are listed while folded
NOTICES: Final = ("late", "max_steps", "limit", "loop", "compaction")


def draw_user_message(message: Message, canvas: Canvas) -> list[Line]:
    """Return a user message, with its attached files."""
    room = canvas.width - GUTTER
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    lines = (
        [line for row in split_lines(text.strip("\n")) for line in wrap([(row, "you")], room)] if text.strip() else []
    )
    if len(lines) > MAX_FOLDED_LINES and not canvas.is_open:
        hidden_count = len(lines) - MAX_FOLDED_LINES
        lines = [*lines[:MAX_FOLDED_LINES], ((pluralize(canvas.texts.more_lines, hidden_count), "dim"),)]
    for part in message.parts:
        if isinstance(part, FilePart):
            lines.append(draw_file(part, room, canvas.texts))
    return add_gutter(lines or [()], "▶", "you-sign")


def draw_file(part: FilePart, room: int, texts: ChatTexts) -> Line:
    """Return a file: its name, media type and size."""
    details = f"  {truncate(part.media_type, min(room // 2, 40))}, {part.size:,} B"
    name = truncate(escape_invisible(part.name or texts.file), room - 2 - runs_width([(details, "")]))
    return (("↓ ", "accent"), (name, ""), (details, "dim"))


def draw_badge(by: str, canvas: Canvas) -> list[Line]:
    """Return the name of the model that answers from here on."""
    return [(gutter_run("◆", "badge"), (truncate(by, canvas.width - GUTTER), "badge"))]


def draw_reasoning(text: str, is_live: bool, canvas: Canvas) -> list[Line]:
    """Return reasoning: its end while it streams, one line afterwards, all of it when unfolded."""
    texts, room = canvas.texts, canvas.width - GUTTER
    if is_live:
        head = texts.thinking + "…"
    else:
        head = pluralize(texts.thought, len(text)) if text.strip() else texts.sealed
    lines: list[Line] = [
        (gutter_run("~", "think"), (truncate(head, room - 2), "think"), (_fold(text, is_live, canvas), "dim"))
    ]
    if is_live or canvas.is_open:
        rows = split_lines((text[-MAX_STREAMED_REASONING:] if is_live else text).strip("\n"))
        drawn = [line for row in rows for line in wrap([(row, "think")], room)] if text.strip() else []
        lines += [(gutter_run("┊", "think"), *line) for line in (drawn[-MAX_REASONING_LINES:] if is_live else drawn)]
    return lines


def _fold(text: str, is_live: bool, canvas: Canvas) -> str:
    return "" if is_live or not text.strip() else " ▾" if canvas.is_open else " ▸"


def draw_step(part: StepPart, times: StepTimes | None, context: int, has_said: bool, canvas: Canvas) -> list[Line]:
    """Return the line after a step: the usage and cost of the request, and how full the model's context is.

    A refused request has no output, and its stream did not break off: the ending of the turn has the reason.
    """
    texts, usage, room = canvas.texts, part.usage, canvas.width - GUTTER
    lines: list[Line] = []
    if times is not None and times.restarts:
        lines += _mark("↻", pluralize(texts.restarted, times.restarts), "warn", room)
    odd = {"length", "content_filter", "refusal", "error", "other"}
    if part.finish in odd and (has_said or part.finish != "error"):
        lines += _mark("!", getattr(texts, part.finish), "warn", room)
    elif part.finish == "cancelled":
        lines += _mark("■", texts.stopped_here, "dim", room)
    facts = [texts.step.replace("{n}", str(part.step))]
    if usage.input:
        cached = f" ({texts.cached.replace('{n}', f'{usage.cached:,}')})" if usage.cached else ""
        facts.append(texts.tokens_in.replace("{n}", f"{usage.input:,}") + cached)
    if usage.output:
        thoughts = f" ({texts.reasoning.replace('{n}', f'{usage.reasoning:,}')})" if usage.reasoning else ""
        facts.append(texts.tokens_out.replace("{n}", f"{usage.output:,}") + thoughts)
    facts += [texts.estimated] if usage.estimated else []
    facts += [format_cost(usage.cost)] if usage.cost else []
    if times is not None and times.began and times.ended > times.began:
        facts.append(format_seconds(times.ended - times.began))
    facts += [texts.closing] if times is not None and times.closing else []
    if context and usage.input + usage.output:
        facts.append(texts.context.replace("{share}", format_meter((usage.input + usage.output) / context)))
    return [*lines, *add_gutter(wrap([(" · ".join(facts), "dim")], room), "─", "dim")]


def format_meter(share: float) -> str:
    """`▰▰▱▱▱▱▱▱ 21%`."""
    return f"{draw_meter(share)} {min(share, 9.99):.0%}"


def draw_notice(part: NoticePart, by: str, canvas: Canvas) -> list[Line]:
    """Return a notice of a plugin or the runtime to the model, distinct from a user message."""
    texts, room = canvas.texts, canvas.width - GUTTER
    kind = next(
        (known for known in NOTICES if part.kind == known or part.kind.startswith((f"{known}:", f"{known}_"))), ""
    )
    author = by or "everturn"
    title = getattr(texts, f"notice_{kind}") if kind else texts.told.replace("{by}", escape_text(author)[:60])
    lines: list[Line] = [
        (gutter_run("i", "notice"), (truncate(title, room - 2), "notice"), (" ▾" if canvas.is_open else " ▸", "dim"))
    ]
    if canvas.is_open:
        rows = [line for row in split_lines(part.text.strip("\n")) for line in wrap([(row, "dim")], room)]
        lines += [(gutter_run("┊", "notice"), *line) for line in rows]
    return lines


def draw_file_changes(part: FilesPart, canvas: Canvas) -> list[Line]:
    """Return the files that a step changed, each with its line counts."""
    texts, room = canvas.texts, canvas.width - GUTTER
    added, removed = sum(change.added for change in part.changes), sum(change.removed for change in part.changes)
    head: list[Run] = [
        (pluralize(texts.files_changed, len(part.changes)), ""),
        (f"  +{added:,}", "good"),
        (f" −{removed:,}", "bad"),
        (f"  {texts.revert}", "dim"),
    ]
    shown = part.changes if canvas.is_open else part.changes[:MAX_LISTED_FILES]
    rows = [_change(change, room, texts) for change in shown]
    if len(shown) < len(part.changes):
        rows.append(((f"… {len(part.changes) - len(shown)}", "dim"),))
    return [*add_gutter(wrap(head, room), "±", "accent"), *[(gutter_run("│", "card-bar"), *row) for row in rows]]


def _change(change: FileChange, room: int, texts: ChatTexts) -> Line:
    kind = {"added": (texts.added, "good"), "deleted": (texts.deleted, "bad"), "modified": ("", "")}[change.kind]
    tail: list[Run] = [(f"  {kind[0]}", kind[1])] if kind[0] else []
    tail += [(f"  +{change.added:,}", "good")] if change.added else []
    tail += [(f" −{change.removed:,}", "bad")] if change.removed and change.kind != "deleted" else []
    return ((truncate(escape_invisible(change.path), room - runs_width(tail)), ""), *tail)


def _mark(sign: str, text: str, style: str, room: int, title: str = "") -> list[Line]:
    runs: list[Run] = [(f"{title}: ", f"{style} strong")] if title else []
    return add_gutter(wrap([*runs, (text, style if not title else "")], room), sign, style)


def draw_status(turn: TurnState, state: SessionState, canvas: Canvas) -> list[Line]:
    """Return what the turn is doing, and for how long."""
    text, is_waiting = describe_state(turn, state, canvas.texts)
    since = canvas.now - turn.started if turn.started and canvas.now > turn.started + 1 else 0.0
    runs: list[Run] = [(text, "ask" if is_waiting else "accent")]
    runs += [(f" · {format_seconds(since, 0)}" if since else "…", "dim")]
    return add_gutter(wrap(runs, canvas.width - GUTTER), "?" if is_waiting else "●", "ask" if is_waiting else "accent")


def describe_state(turn: TurnState, state: SessionState, texts: ChatTexts) -> tuple[str, bool]:
    """Describe the state of a turn, and return whether it waits for a person or a client."""
    gates = [gate for name, gate in turn.gate_details.items() if turn.is_gate_open(name)]
    people = sum(gate.kind != "client" for gate in gates)
    running = sum(call.state == "running" and not call.parent for call in turn.calls.values())
    tools = pluralize(texts.tools_running, running)
    if turn.phase is Phase.FINALIZING:
        return texts.finalizing, False
    if people:
        return pluralize(texts.asks, people) + (f" · {tools}" if running else ""), True
    if gates:
        return texts.for_client, True
    if running:
        return tools, False
    if turn.phase is Phase.WAITING:
        return texts.parked, True
    if turn.phase in (Phase.PREPARING, Phase.IDLE):
        return texts.preparing, False
    if turn.step is not None and turn.step.is_open:
        live = list(state.live.get(turn.id, {}).values())
        times = state.steps.get(turn.id, {}).get(turn.step.number)
        if not live:
            return texts.step_restarted if times is not None and times.restarts else texts.thinking, False
        return {"text": texts.composing, "call": texts.calling, "reasoning": texts.thinking}[live[-1].kind], False
    return texts.deciding, False


def draw_ending(turn: TurnState, state: SessionState, canvas: Canvas) -> list[Line]:
    """Return how a turn ended: each ending in its own words; a normal ending has no lines."""
    return [line for lines in _ends(turn, state, canvas.texts, canvas.width - GUTTER) for line in lines]


NEXT_STEPS: Final = {
    "context": "next_context",
    **dict.fromkeys(("key", "quota", "unknown_model", "request"), "next_model"),
}
"""What to do after a failed turn, by the kind of its problem, if a retry does not help."""


def _sentence(text: str) -> str:
    return text if text.rstrip().endswith((".", "!", "?", "。")) else f"{text}."


def _ends(turn: TurnState, state: SessionState, texts: ChatTexts, room: int) -> Iterator[list[Line]]:
    ended = state.ends.get(turn.id)
    if turn.limit is not None:
        title = texts.limit.replace("{scope}", getattr(texts, f"scope_{turn.limit.scope}"))
        yield _mark("!", turn.limit.text, "warn", room, title)
    elif turn.step is not None and turn.step.closing:
        yield _mark("!", texts.max_steps, "warn", room)
    answers = [(turn.gate_details[name], resolution) for name, resolution in turn.gates.items()]
    if any(gate.kind == "loop" and resolution is not None and not resolution.allowed for gate, resolution in answers):
        yield _mark("↻", texts.loop, "warn", room)
    if turn.phase is Phase.CANCELLED:
        is_hard = turn.ending is not None and turn.ending.hard
        yield _mark("■", texts.stopped_hard if is_hard else texts.stopped, "warn", room)
    if isinstance(ended, TurnFailed):
        problem = ended.problem
        title = (
            texts.deadline if problem.kind == "deadline" else f"{texts.turn_failed} ({escape_text(problem.kind)[:40]})"
        )
        hint = getattr(texts, NEXT_STEPS.get(problem.kind, "try_again"))
        yield _mark("✗", f"{_sentence(problem.text[:4_000])} {hint}", "bad", room, title)
    if turn.still_running:
        yield _mark("●", pluralize(texts.tools_out, len(turn.still_running)), "accent", room)
    late = sum(call.is_late for call in turn.calls.values())
    if late:
        yield _mark("i", pluralize(texts.late_came, late), "notice", room)
    for report in ended.reports if ended is not None else ():
        yield _mark("!", report.text[:4_000], "warn", room, texts.reports)


def draw_queued(message: QueuedView, is_next: bool, canvas: Canvas) -> list[Line]:
    """Return a queued message."""
    texts, room = canvas.texts, canvas.width - GUTTER
    status_text = texts.steers if message.steers else f"{texts.queued}, {texts.next_up}" if is_next else texts.queued
    status_text += f" · {pluralize(texts.queued_files, len(message.files))}" if message.files else ""
    lines: list[Line] = wrap([(truncate(message.text, 3 * room), "dim")], room) if message.text.strip() else [()]
    return prefix_lines([*lines[:3], *wrap([(status_text, "ask")], room)], gutter_run("…", "ask"), gutter_run(" ", ""))
