"""What is said between and under the messages → lines: persons, thoughts, steps, notices, files, ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from everturn.api import QueuedView
from everturn.core.events import TurnFailed
from everturn.core.messages import Message
from everturn.core.parts import FileChange, FilePart, FilesPart, NoticePart, StepPart, TextPart
from everturn.core.state import Phase, TurnState
from everturn.terminal.answer import dollars
from everturn.terminal.exact import seen
from everturn.tui.drawing.ink import GUTTER, Line, Run, cut, lead, margin, safe, split, under, width_of, wrap
from everturn.tui.drawing.paper import Paper, seconds
from everturn.tui.state import SessionState, StepTimes
from everturn.tui.words.talk import TalkWords, counted

LONG: Final = 40  # lines of a person's message that are shown at once
THOUGHT: Final = 2_000  # characters of a thought that are shown while it comes
FEW: Final = 12  # lines of it
NAMED: Final = 8  # files that are named
NOTICES: Final = ("late", "max_steps", "limit", "loop", "compaction")


def said(message: Message, paper: Paper) -> list[Line]:
    """What a person said, and the files that went with it."""
    room = paper.width - GUTTER
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    lines = [line for row in split(text.strip("\n")) for line in wrap([(row, "you")], room)] if text.strip() else []
    if len(lines) > LONG and not paper.is_open:
        left = len(lines) - LONG
        lines = [*lines[:LONG], ((counted(paper.words.more_lines, left), "dim"),)]
    for part in message.parts:
        if isinstance(part, FilePart):
            lines.append(file(part, room, paper.words))
    return under(lines or [()], "▶", "you-sign")


def file(part: FilePart, room: int, words: TalkWords) -> Line:
    """A file: its name, what it is, how long it is."""
    about = f"  {cut(part.media_type, min(room // 2, 40))}, {part.size:,} B"
    name = cut(seen(part.name or words.file), room - 2 - width_of([(about, "")]))
    return (("↓ ", "accent"), (name, ""), (about, "dim"))


def badge(by: str, paper: Paper) -> list[Line]:
    """Which model speaks from here on."""
    return [(margin("◆", "badge"), (cut(by, paper.width - GUTTER), "badge"))]


def thought(text: str, is_live: bool, paper: Paper) -> list[Line]:
    """Reasoning: the end of it while it comes, a line after, all of it on request."""
    words, room = paper.words, paper.width - GUTTER
    if is_live:
        head = words.thinking + "…"
    else:
        head = counted(words.thought, len(text)) if text.strip() else words.sealed
    lines: list[Line] = [(margin("~", "think"), (cut(head, room - 2), "think"), (_fold(text, is_live, paper), "dim"))]
    if is_live or paper.is_open:
        rows = split((text[-THOUGHT:] if is_live else text).strip("\n"))
        drawn = [line for row in rows for line in wrap([(row, "think")], room)] if text.strip() else []
        lines += [(margin("┊", "think"), *line) for line in (drawn[-FEW:] if is_live else drawn)]
    return lines


def _fold(text: str, is_live: bool, paper: Paper) -> str:
    return "" if is_live or not text.strip() else " ▾" if paper.is_open else " ▸"


def step(part: StepPart, times: StepTimes | None, context: int, has_said: bool, paper: Paper) -> list[Line]:
    """The line between two steps: what the request used, what it cost, and how full the model's context is.

    A request that was refused has said nothing, and no stream of it broke off: the end of its turn tells why.
    """
    words, usage, room = paper.words, part.usage, paper.width - GUTTER
    lines: list[Line] = []
    if times is not None and times.restarts:
        lines += _mark("↻", counted(words.restarted, times.restarts), "warn", room)
    odd = {"length", "content_filter", "refusal", "error", "other"}
    if part.finish in odd and (has_said or part.finish != "error"):
        lines += _mark("!", getattr(words, part.finish), "warn", room)
    elif part.finish == "cancelled":
        lines += _mark("■", words.stopped_here, "dim", room)
    told = [words.step.replace("{n}", str(part.step))]
    if usage.input:
        cached = f" ({words.cached.replace('{n}', f'{usage.cached:,}')})" if usage.cached else ""
        told.append(words.tokens_in.replace("{n}", f"{usage.input:,}") + cached)
    if usage.output:
        thoughts = f" ({words.reasoning.replace('{n}', f'{usage.reasoning:,}')})" if usage.reasoning else ""
        told.append(words.tokens_out.replace("{n}", f"{usage.output:,}") + thoughts)
    told += [words.estimated] if usage.estimated else []
    told += [dollars(usage.cost)] if usage.cost else []
    if times is not None and times.began and times.ended > times.began:
        told.append(seconds(times.ended - times.began))
    told += [words.closing] if times is not None and times.closing else []
    if context and usage.input + usage.output:
        told.append(words.context.replace("{share}", meter((usage.input + usage.output) / context)))
    return [*lines, *under(wrap([(" · ".join(told), "dim")], room), "─", "dim")]


def meter(share: float) -> str:
    """`▰▰▱▱▱▱▱▱ 21%`."""
    full = min(max(round(share * 8), 0), 8)
    return f"{'▰' * full}{'▱' * (8 - full)} {min(share, 9.99):.0%}"


def notice(part: NoticePart, by: str, paper: Paper) -> list[Line]:
    """What a plugin or the runtime told the model: never as a person's words."""
    words, room = paper.words, paper.width - GUTTER
    kind = next((one for one in NOTICES if part.kind == one or part.kind.startswith((f"{one}:", f"{one}_"))), "")
    who = by or "everturn"
    title = getattr(words, f"notice_{kind}") if kind else words.told.replace("{by}", safe(who)[:60])
    lines: list[Line] = [
        (margin("i", "notice"), (cut(title, room - 2), "notice"), (" ▾" if paper.is_open else " ▸", "dim"))
    ]
    if paper.is_open:
        rows = [line for row in split(part.text.strip("\n")) for line in wrap([(row, "dim")], room)]
        lines += [(margin("┊", "notice"), *line) for line in rows]
    return lines


def files(part: FilesPart, paper: Paper) -> list[Line]:
    """Which files a step changed, each with its lines."""
    words, room = paper.words, paper.width - GUTTER
    added, removed = sum(one.added for one in part.changes), sum(one.removed for one in part.changes)
    head: list[Run] = [
        (counted(words.files_changed, len(part.changes)), ""),
        (f"  +{added:,}", "good"),
        (f" −{removed:,}", "bad"),
        (f"  {words.revert}", "dim"),
    ]
    shown = part.changes if paper.is_open else part.changes[:NAMED]
    rows = [_change(one, room, words) for one in shown]
    if len(shown) < len(part.changes):
        rows.append(((f"… {len(part.changes) - len(shown)}", "dim"),))
    return [*under(wrap(head, room), "±", "accent"), *[(margin("│", "card-bar"), *row) for row in rows]]


def _change(one: FileChange, room: int, words: TalkWords) -> Line:
    kind = {"added": (words.added, "good"), "deleted": (words.deleted, "bad"), "modified": ("", "")}[one.kind]
    tail: list[Run] = [(f"  {kind[0]}", kind[1])] if kind[0] else []
    tail += [(f"  +{one.added:,}", "good")] if one.added else []
    tail += [(f" −{one.removed:,}", "bad")] if one.removed and one.kind != "deleted" else []
    return ((cut(seen(one.path), room - width_of(tail)), ""), *tail)


def _mark(sign: str, text: str, style: str, room: int, title: str = "") -> list[Line]:
    runs: list[Run] = [(f"{title}: ", f"{style} strong")] if title else []
    return under(wrap([*runs, (text, style if not title else "")], room), sign, style)


def status(turn: TurnState, state: SessionState, paper: Paper) -> list[Line]:
    """What is going on, and for how long."""
    text, is_waiting = standing(turn, state, paper.words)
    since = paper.now - turn.started if turn.started and paper.now > turn.started + 1 else 0.0
    runs: list[Run] = [(text, "ask" if is_waiting else "accent")]
    runs += [(f" · {seconds(since, 0)}" if since else "…", "dim")]
    return under(wrap(runs, paper.width - GUTTER), "?" if is_waiting else "●", "ask" if is_waiting else "accent")


def standing(turn: TurnState, state: SessionState, words: TalkWords) -> tuple[str, bool]:
    """How a turn stands in words, and whether it waits for somebody."""
    gates = [gate for name, gate in turn.asked.items() if turn.is_asked(name)]
    people = sum(gate.kind != "client" for gate in gates)
    running = sum(call.state == "running" and not call.parent for call in turn.calls.values())
    tools = counted(words.tools_running, running)
    if turn.phase is Phase.FINALIZING:
        return words.finalizing, False
    if people:
        return counted(words.asks, people) + (f" · {tools}" if running else ""), True
    if gates:
        return words.for_client, True
    if running:
        return tools, False
    if turn.phase is Phase.WAITING:
        return words.parked, True
    if turn.phase in (Phase.PREPARING, Phase.IDLE):
        return words.preparing, False
    if turn.step is not None and turn.step.is_open:
        live = list(state.live.get(turn.id, {}).values())
        times = state.steps.get(turn.id, {}).get(turn.step.number)
        if not live:
            return words.step_restarted if times is not None and times.restarts else words.thinking, False
        return {"text": words.composing, "call": words.calling, "reasoning": words.thinking}[live[-1].kind], False
    return words.deciding, False


def end(turn: TurnState, state: SessionState, paper: Paper) -> list[Line]:
    """How a turn ended, honestly: each end in its own words. One that ended well says nothing."""
    return [line for lines in _ends(turn, state, paper.words, paper.width - GUTTER) for line in lines]


NEXT: Final = {
    "context": "next_context",
    **dict.fromkeys(("key", "quota", "unknown_model", "request"), "next_model"),
}
"""What to do about a failed turn, by the kind of its problem, where asking again does not help."""


def _sentence(text: str) -> str:
    return text if text.rstrip().endswith((".", "!", "?", "。")) else f"{text}."


def _ends(turn: TurnState, state: SessionState, words: TalkWords, room: int) -> Iterator[list[Line]]:
    ended = state.ends.get(turn.id)
    if turn.limit is not None:
        title = words.limit.replace("{scope}", getattr(words, f"scope_{turn.limit.scope}"))
        yield _mark("!", turn.limit.text, "warn", room, title)
    elif turn.step is not None and turn.step.closing:
        yield _mark("!", words.max_steps, "warn", room)
    answers = [(turn.asked[name], verdict) for name, verdict in turn.gates.items()]
    if any(gate.kind == "loop" and verdict is not None and not verdict.allowed for gate, verdict in answers):
        yield _mark("↻", words.loop, "warn", room)
    if turn.phase is Phase.CANCELLED:
        is_hard = turn.ending is not None and turn.ending.hard
        yield _mark("■", words.stopped_hard if is_hard else words.stopped, "warn", room)
    if isinstance(ended, TurnFailed):
        problem = ended.problem
        title = words.deadline if problem.kind == "deadline" else f"{words.turn_failed} ({safe(problem.kind)[:40]})"
        then = getattr(words, NEXT.get(problem.kind, "try_again"))
        yield _mark("✗", f"{_sentence(problem.text[:4_000])} {then}", "bad", room, title)
    if turn.out:
        yield _mark("●", counted(words.tools_out, len(turn.out)), "accent", room)
    late = sum(call.is_late for call in turn.calls.values())
    if late:
        yield _mark("i", counted(words.late_came, late), "notice", room)
    for report in ended.reports if ended is not None else ():
        yield _mark("!", report.text[:4_000], "warn", room, words.reports)


def queued(one: QueuedView, is_next: bool, paper: Paper) -> list[Line]:
    """A message that waits."""
    words, room = paper.words, paper.width - GUTTER
    told = words.steers if one.steers else f"{words.queued}, {words.next_up}" if is_next else words.queued
    told += f" · {counted(words.queued_files, len(one.files))}" if one.files else ""
    lines: list[Line] = wrap([(cut(one.text, 3 * room), "dim")], room) if one.text.strip() else [()]
    return lead([*lines[:3], *wrap([(told, "ask")], room)], margin("…", "ask"), margin(" ", ""))
