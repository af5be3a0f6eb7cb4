"""What there is of a session → the lines around it: what it is called, what runs, what it took, who is not heard."""

from __future__ import annotations

import time

from textual.content import Content
from textual.widgets import Static

from everturn import api
from everturn.core.parts import StepPart, Usage
from everturn.core.state import Phase, TurnState
from everturn.terminal.answer import dollars
from everturn.terminal.screen import prose
from everturn.tui.state import SessionState
from everturn.tui.words.app import AppWords

SPARE = 4  # columns that always stay free between left and right
METER = 8  # columns of the bar


def underway(state: SessionState, words: AppWords, now: float) -> str:
    """What goes on, in a few words; "" when nothing does."""
    turn = state.running
    if turn is None:
        return ""
    if state.open_gates or turn.phase is Phase.WAITING:
        return words.waits_here
    running = [call for call in turn.calls.values() if call.state == "running"]
    if running:
        since = min(state.times.get(call.id, (now, 0.0))[0] for call in running)
        seconds = max(0, int(now - since))
        if len(running) == 1:
            return words.one_runs.format(name=prose(running[0].name), seconds=seconds)
        return words.many_run.format(count=len(running), seconds=seconds)
    return _streaming(state, turn, words)


def _streaming(state: SessionState, turn: TurnState, words: AppWords) -> str:
    live = state.live.get(turn.id)
    if not live:
        return words.requests
    return words.thinks if live[max(live)].kind == "reasoning" else words.answers


def used(state: SessionState) -> Usage:
    """What all turns of a session took, in all branches: it was paid for."""
    total = Usage()
    for turn in state.turns.values():
        total = total + turn.usage + turn.below.usage
    return total


def context(state: SessionState, models: list[api.ModelView]) -> tuple[int, int]:
    """How many tokens the last request of the selected branch had, and how many fit; zeros where nobody knows."""
    if state.tree.leaf is None or state.tree.leaf in state.tree.deleted:
        return 0, 0
    for message in reversed(state.tree.path(state.tree.leaf)):
        # A request that failed used nothing that anybody knows of: what was known before still holds.
        steps = [part for part in message.parts if isinstance(part, StepPart) and part.usage.input + part.usage.output]
        if message.role == "assistant" and steps:
            usage = steps[-1].usage
            most = next((one.context for one in models if message.by in (one.badge, one.name)), 0)
            return usage.input + usage.output, most
    return 0, 0


def meter(part: float) -> str:
    """A bar: as much of it is full."""
    full = max(0, min(METER, round(part * METER)))
    return "▰" * full + "▱" * (METER - full)


class Edges(Static):
    """A line with something at its left end and something at its right; the left is cut where there is no room."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id, classes="line", markup=False)
        self._left = self._right = Content()

    def put(self, left: Content, right: Content) -> None:
        """Show this."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self._draw()

    def on_resize(self) -> None:
        """Fit it in anew."""
        self._draw()

    def _draw(self) -> None:
        room = self.size.width
        if not room:
            return
        right = self._right.truncate(room, ellipsis=True)
        left = self._left.truncate(max(0, room - right.cell_length - SPARE), ellipsis=True)
        gap = max(0, room - left.cell_length - right.cell_length)
        self.update(Content.assemble(left, " " * gap, right))


def status_line(state: SessionState | None, agent: str, model: str, models: list[api.ModelView]) -> Content:
    """Who answers; what it took; how full the context is."""
    pieces = [piece for piece in (prose(agent), prose(model)) if piece]
    line = [Content.styled(" · ".join(pieces), "$text-muted")]
    if state is not None:
        cost = used(state).cost
        if cost is not None:
            line.append(Content.styled(dollars(cost), "$text-muted"))
        tokens, most = context(state, models)
        if most:
            share = tokens / most
            style = "$warning" if share > 0.8 else "$text-muted"
            line.append(Content.styled(f"{meter(share)} {share:.0%}", style))
    return Content("  ").join(line)


def running_line(state: SessionState | None, words: AppWords) -> Content:
    """What goes on."""
    text = "" if state is None else underway(state, words, time.time())
    return Content.styled(f"● {text}", "$warning" if text == words.waits_here else "$accent") if text else Content()
