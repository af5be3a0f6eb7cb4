"""Status lines of the conversation: the title, the running turn, the cost, and how full the context is."""

from __future__ import annotations

import time

from textual.content import Content
from textual.widgets import Static

from everturn import api
from everturn.core.parts import StepPart, Usage
from everturn.core.state import Phase, TurnState
from everturn.terminal.lines.turn_view import format_cost
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.render.canvas import draw_meter
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.texts.app import AppTexts

SPARE = 4  # columns that always stay empty between left and right


def describe_activity(state: SessionState, texts: AppTexts, now: float) -> str:
    """Describe what is running, in a few words; "" if nothing is."""
    turn = state.running
    if turn is None:
        return ""
    if state.open_gates or turn.phase is Phase.WAITING:
        return texts.waits_here
    running = [call for call in turn.calls.values() if call.state == "running"]
    if running:
        since = min(state.times.get(call.id, (now, 0.0))[0] for call in running)
        seconds = max(0, int(now - since))
        if len(running) == 1:
            return texts.one_runs.format(name=escape_prose(running[0].name), seconds=seconds)
        return texts.many_run.format(count=len(running), seconds=seconds)
    return _streaming(state, turn, texts)


def _streaming(state: SessionState, turn: TurnState, texts: AppTexts) -> str:
    live = state.live.get(turn.id)
    if not live:
        return texts.requests
    return texts.thinks if live[max(live)].kind == "reasoning" else texts.answers


def total_usage(state: SessionState) -> Usage:
    """Return the usage of all turns of a session, in all branches: all of them were paid for."""
    total = Usage()
    for turn in state.turns.values():
        total = total + turn.usage + turn.child_spend.usage
    return total


def context_usage(state: SessionState, models: list[api.ModelView]) -> tuple[int, int]:
    """Return the tokens of the last request of the selected branch, and the size of the context; zeros if unknown."""
    if state.tree.leaf is None or state.tree.leaf in state.tree.deleted:
        return 0, 0
    for message in reversed(state.tree.path(state.tree.leaf)):
        # A failed request has no known usage: the usage before it still holds.
        steps = [part for part in message.parts if isinstance(part, StepPart) and part.usage.input + part.usage.output]
        if message.role == "assistant" and steps:
            usage = steps[-1].usage
            limit = next((model.context for model in models if message.by in (model.badge, model.name)), 0)
            return usage.input + usage.output, limit
    return 0, 0


class StatusLine(Static):
    """A line with a left and a right part; the left part is truncated if there is not enough width."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id, classes="line", markup=False)
        self._left = self._right = Content()

    def put(self, left: Content, right: Content) -> None:
        """Show these parts."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self._draw()

    def on_resize(self) -> None:
        """Draw the line for the new width."""
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
    """Return the agent and model, the cost, and how full the context is."""
    pieces = [piece for piece in (escape_prose(agent), escape_prose(model)) if piece]
    line = [Content.styled(" · ".join(pieces), "$text-muted")]
    if state is not None:
        cost = total_usage(state).cost
        if cost is not None:
            line.append(Content.styled(format_cost(cost), "$text-muted"))
        tokens, limit = context_usage(state, models)
        if limit:
            share = tokens / limit
            style = "$warning" if share > 0.8 else "$text-muted"
            line.append(Content.styled(f"{draw_meter(share)} {share:.0%}", style))
    return Content("  ").join(line)


def running_line(state: SessionState | None, texts: AppTexts) -> Content:
    """Return the status of the running turn."""
    text = "" if state is None else describe_activity(state, texts, time.time())
    return Content.styled(f"● {text}", "$warning" if text == texts.waits_here else "$accent") if text else Content()
