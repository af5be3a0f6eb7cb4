"""Annotations: user messages, reasoning, steps, notices, file changes and turn endings, as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from everturn.api import QueuedView
from everturn.core.events import RequestRetried, TurnFailed
from everturn.core.messages import Message
from everturn.core.parts import (
    CompactionPart,
    ContextPart,
    FileChange,
    FilePart,
    FilesPart,
    NoticePart,
    ProviderToolPart,
    StepPart,
    SummaryPart,
    TextPart,
    Usage,
)
from everturn.core.phases import Phase
from everturn.core.state import TurnState
from everturn.localization import format_text
from everturn.terminal.lines.turn_view import format_cost
from everturn.terminal.text.compaction import format_sizes
from everturn.terminal.text.visible_text import escape_invisible
from everturn.terminal.tui.render.canvas import Canvas, format_seconds
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
    wrap_prose,
)
from everturn.terminal.tui.state import SessionState, StepTimes
from everturn.terminal.tui.texts.chat import ChatTexts

ODD_ENDS: Final = ("length", "content_filter", "refusal", "error", "other")
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
        [line for row in split_lines(text.strip("\n")) for line in wrap_prose([(row, "you")], room)]
        if text.strip()
        else []
    )
    if len(lines) > MAX_FOLDED_LINES and not canvas.is_open:
        hidden_count = len(lines) - MAX_FOLDED_LINES
        lines = [*lines[:MAX_FOLDED_LINES], ((format_text(canvas.texts.more_lines, n=hidden_count), "dim"),)]
    for part in message.parts:
        if isinstance(part, FilePart):
            lines.append(draw_file(part, room, canvas.texts))
        elif isinstance(part, ContextPart):
            lines += draw_context(part, room, canvas)
    return add_gutter(lines or [()], "▶", "you-sign")


def draw_file(part: FilePart, room: int, texts: ChatTexts) -> Line:
    """Return a file: its name, media type and size."""
    details = f"  {truncate(part.media_type, min(room // 2, 40))}, {part.size:,} B"
    name = truncate(escape_invisible(part.name or texts.file), room - 2 - runs_width([(details, "")]))
    return (("↓ ", "accent"), (name, ""), (details, "dim"))


def draw_context(part: ContextPart, room: int, canvas: Canvas) -> list[Line]:
    """Return attached context: its kind, title and size, and its text where the message is unfolded."""
    names = {"selection": canvas.texts.selection, "page": canvas.texts.page, "note": canvas.texts.note}
    kind = truncate(escape_invisible(names.get(part.kind, part.kind)), min(room // 3, 30))
    details = f"  {len(part.text):,}"
    title = truncate(escape_invisible(part.title or part.source), max(room - len(kind) - len(details) - 5, 1))
    lines: list[Line] = [(("❝ ", "accent"), (kind, "accent"), (f" {title}", ""), (details, "dim"))]
    if canvas.is_open:
        lines += [line for row in split_lines(part.text.strip("\n")) for line in wrap([(row, "dim")], room)]
    return lines


def draw_provider_tool(part: ProviderToolPart, canvas: Canvas) -> list[Line]:
    """Return a tool that the provider ran: its name, what it was asked and its state; its result when unfolded."""
    texts, room = canvas.texts, canvas.width - GUTTER
    states = {
        "called": texts.provider_called,
        "completed": texts.provider_completed,
        "failed": texts.provider_failed,
    }
    fold = _fold(part.text, False, canvas)
    room -= runs_width([(fold, "")]) + 1
    name = truncate(escape_invisible(part.name), max(room // 3, 1))
    state = truncate(f"  {states[part.state]}", max(room - runs_width([(name, "")]), 1))
    left = room - runs_width([(name, ""), (state, "")]) - 1
    title = f" {truncate(escape_invisible(part.title), left)}" if part.title and left > 1 else ""
    line: Line = (gutter_run("⌕", "accent"), (name, "accent"), (title, ""), (state, "dim"), (fold, "dim"))
    if not canvas.is_open:
        return [line]
    rows = split_lines(part.text.strip("\n"))
    drawn = [each for row in rows for each in wrap([(row, "dim")], room)] if part.text.strip() else []
    return [line, *((gutter_run("┊", "think"), *each) for each in drawn)]


def draw_badge(by: str, canvas: Canvas) -> list[Line]:
    """Return the name of the model that answers from here on."""
    return [(gutter_run("◆", "badge"), (truncate(by, canvas.width - GUTTER), "badge"))]


def draw_reasoning(text: str, is_live: bool, canvas: Canvas) -> list[Line]:
    """Return reasoning: its end while it streams, one line afterwards, all of it when unfolded."""
    texts, room = canvas.texts, canvas.width - GUTTER
    if is_live:
        head = texts.thinking + "…"
    else:
        head = format_text(texts.thought, n=len(text)) if text.strip() else texts.sealed
    lines: list[Line] = [
        (gutter_run("~", "think"), (truncate(head, room - 2), "think"), (_fold(text, is_live, canvas), "dim"))
    ]
    if is_live or canvas.is_open:
        rows = split_lines((text[-MAX_STREAMED_REASONING:] if is_live else text).strip("\n"))
        drawn = [line for row in rows for line in wrap_prose([(row, "think")], room)] if text.strip() else []
        lines += [(gutter_run("┊", "think"), *line) for line in (drawn[-MAX_REASONING_LINES:] if is_live else drawn)]
    return lines


def _fold(text: str, is_live: bool, canvas: Canvas) -> str:
    return "" if is_live or not text.strip() else " ▾" if canvas.is_open else " ▸"


class TurnSummary(Struct, frozen=True):
    """What the steps of an answer took together."""

    steps: int
    usage: Usage
    seconds: float = 0.0  # from the first request to the last answer


def draw_step(
    part: StepPart, times: StepTimes | None, has_said: bool, summary: TurnSummary | None, canvas: Canvas
) -> list[Line]:
    """Return what was unusual about a step, and after the last one the usage, cost and duration of all.

    A refused request has no output, and its stream did not break off: the ending of the turn has the reason.
    """
    texts, room = canvas.texts, canvas.width - GUTTER
    lines: list[Line] = []
    if times is not None and times.restarts:
        lines += _mark("↻", format_text(texts.restarted, n=times.restarts), "warn", room)
    if times is not None and times.retries:
        lines += _mark("↻", format_text(texts.retried, n=times.retries), "dim", room)
    if _is_odd(part, has_said):
        lines += _mark("!", getattr(texts, part.finish), "warn", room)
    elif part.finish == "cancelled":
        lines += _mark("■", texts.stopped_here, "dim", room)
    if part.model and summary is None:
        lines += _mark("↻", texts.written_by.replace("{model}", escape_text(part.model)[:60]), "dim", room)
    if summary is None or (part.finish == "error" and not summary.usage.input):
        return lines  # of a refused request there is nothing to count
    usage = summary.usage
    facts = [format_text(texts.steps, n=summary.steps)] if summary.steps > 1 else []
    if part.model:
        facts.append(texts.written_by.replace("{model}", escape_text(part.model)[:60]))
    if usage.input:
        cached = f" ({texts.cached.replace('{n}', f'{usage.cached:,}')})" if usage.cached else ""
        facts.append(texts.tokens_in.replace("{n}", f"{usage.input:,}") + cached)
    if usage.output:
        thoughts = f" ({texts.reasoning.replace('{n}', f'{usage.reasoning:,}')})" if usage.reasoning else ""
        facts.append(texts.tokens_out.replace("{n}", f"{usage.output:,}") + thoughts)
    facts += [texts.estimated] if usage.estimated else []
    facts += [format_cost(usage.cost)] if usage.cost else []
    facts += [format_seconds(summary.seconds)] if summary.seconds > 0 else []
    facts += [texts.closing] if times is not None and times.closing else []
    return [*lines, *add_gutter(wrap([(" · ".join(facts), "dim")], room), "─", "dim")] if facts else lines


def _is_odd(part: StepPart, has_said: bool) -> bool:
    """Whether a step ended otherwise than by an answer or calls."""
    return part.finish in ODD_ENDS and not part.continues and (has_said or part.finish != "error")


def is_step_drawn(part: StepPart, times: StepTimes | None, has_said: bool, summary: TurnSummary | None) -> bool:
    """Whether there is something to say about a step."""
    is_repeated = times is not None and bool(times.restarts or times.retries)
    return (
        summary is not None or is_repeated or _is_odd(part, has_said) or part.finish == "cancelled" or bool(part.model)
    )


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
        rows = [line for row in split_lines(part.text.strip("\n")) for line in wrap_prose([(row, "dim")], room)]
        lines += [(gutter_run("┊", "notice"), *line) for line in rows]
    return lines


def draw_compaction(part: CompactionPart, canvas: Canvas) -> list[Line]:
    """Return a compaction: the sizes before and after it, what was replaced, and the summary if it is open."""
    texts, room = canvas.texts, canvas.width - GUTTER
    is_summary = isinstance(part, SummaryPart)
    if is_summary:
        count = format_text(texts.summarised if part.text else texts.left_out, n=part.messages)
    else:
        count = format_text(texts.results_cleared, n=len(part.calls))
    text = part.text if is_summary else ""
    head: list[Run] = [(f"{texts.compacted.replace('{sizes}', format_sizes(part))}{texts.comma}{count}", "notice")]
    head += [(" ▾" if canvas.is_open else " ▸", "dim")] if text else []
    hints = [texts.show, texts.undo] if text and not canvas.is_open else [texts.undo]
    lines = add_gutter(wrap([*head, (f"  {' · '.join(hints)}", "dim")], room), "≡", "notice")
    if text and canvas.is_open:
        about = [texts.summary_by.replace("{model}", escape_text(part.by)[:60])] if is_summary and part.by else []
        about += [texts.summary_focus.replace("{focus}", escape_text(part.focus))] if is_summary and part.focus else []
        rows = [line for row in split_lines(text.strip("\n")) for line in wrap_prose([(row, "dim")], room)]
        rows += wrap([(" · ".join(about), "dim")], room) if about else []
        lines += [(gutter_run("┊", "notice"), *line) for line in rows]
    return lines


def draw_file_changes(part: FilesPart, canvas: Canvas) -> list[Line]:
    """Return the files that a step changed, each with its line counts."""
    texts, room = canvas.texts, canvas.width - GUTTER
    added, removed = sum(change.added for change in part.changes), sum(change.removed for change in part.changes)
    head: list[Run] = [
        (format_text(texts.files_changed, n=len(part.changes)), ""),
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
    return add_gutter(wrap_prose([*runs, (text, style if not title else "")], room), sign, style)


def draw_status(turn: TurnState, state: SessionState, canvas: Canvas) -> list[Line]:
    """Return what the turn is doing, and for how long."""
    text, is_waiting = describe_state(turn, state, canvas.texts, canvas.now)
    since = canvas.now - turn.started if turn.started and canvas.now > turn.started + 1 else 0.0
    runs: list[Run] = [(text, "ask" if is_waiting else "accent")]
    runs += [(f" · {format_seconds(since, 0)}" if since else "…", "dim")]
    return add_gutter(wrap(runs, canvas.width - GUTTER), "?" if is_waiting else "●", "ask" if is_waiting else "accent")


def describe_state(turn: TurnState, state: SessionState, texts: ChatTexts, now: float) -> tuple[str, bool]:
    """Describe the state of a turn, and return whether it waits for a person or a client."""
    gates = [gate for name, gate in turn.gate_details.items() if turn.is_gate_open(name)]
    children = {session for call in turn.calls.values() for session, _ in call.children.values()}
    gates += [view.gate for view in state.subagent_gates if view.session in children]
    kinds = [gate.kind for gate in gates if gate.kind != "client"]
    people = len(kinds)
    running = sum(call.state == "running" and not call.parent for call in turn.calls.values())
    tools = format_text(texts.tools_running, n=running)
    if turn.compaction is not None:
        return texts.summarizing, False
    if turn.phase is Phase.FINALIZING:
        return texts.finalizing, False
    if people:
        are_questions = all(kind in ("question", "form") for kind in kinds)
        text = format_text(texts.questions if are_questions else texts.asks, n=people)
        return text + (f" · {tools}" if running else ""), True
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
        if not live and (wait := state.waits.get(turn.id)):
            return f"{wait[0].upper()}{escape_text(wait[1:])[:200]}", False
        if not live and times is not None and times.retry is not None:
            return describe_retry(times.retry, texts, now), False
        if not live:
            return texts.step_restarted if times is not None and times.restarts else texts.thinking, False
        return {"text": texts.composing, "call": texts.calling, "reasoning": texts.thinking}[live[-1].kind], False
    return texts.deciding, False


def describe_retry(retry: RequestRetried, texts: ChatTexts, now: float) -> str:
    """Describe the retry of a request: how long it still waits, and why."""
    seconds = retry.at + retry.seconds - now
    text = texts.fallback if retry.model else texts.retrying if seconds >= 1 else texts.retrying_now
    values = {"{seconds}": format_seconds(seconds, 0), "{n}": str(retry.attempt), "{all}": str(retry.attempts)}
    values |= {"{model}": escape_text(retry.model)[:60], "{reason}": escape_text(retry.problem.text)[:200]}
    for name, value in values.items():
        text = text.replace(name, value)
    return text


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
        title = texts.denied_and_stopped if turn.limit.limit == "denied" else title
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
        yield _mark("●", format_text(texts.tools_out, n=len(turn.still_running)), "accent", room)
    late = sum(call.is_late for call in turn.calls.values())
    if late:
        yield _mark("i", format_text(texts.late_came, n=late), "notice", room)
    for report in ended.reports if ended is not None else ():
        yield _mark("!", report.text[:4_000], "warn", room, texts.reports)


def draw_queued(message: QueuedView, is_next: bool, canvas: Canvas) -> list[Line]:
    """Return a queued message."""
    texts, room = canvas.texts, canvas.width - GUTTER
    status_text = texts.steers if message.steers else f"{texts.queued}, {texts.next_up}" if is_next else texts.queued
    status_text += f" · {format_text(texts.queued_files, n=len(message.files))}" if message.files else ""
    lines: list[Line] = wrap([(truncate(message.text, 3 * room), "dim")], room) if message.text.strip() else [()]
    return prefix_lines([*lines[:3], *wrap([(status_text, "ask")], room)], gutter_run("…", "ask"), gutter_run(" ", ""))
