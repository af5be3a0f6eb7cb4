"""Status lines of the conversation: the title, the running turn, the cost, and how full the context is."""

from __future__ import annotations

import time
from typing import Final

from textual.content import Content
from textual.widgets import Static

from everturn.core.phases import Phase
from everturn.core.state import TurnState
from everturn.localization import format_text
from everturn.terminal.lines.turn_view import format_cost
from everturn.terminal.text.context import WARN_AT, format_gauge
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.host import Language
from everturn.terminal.tui.render.canvas import draw_meter
from everturn.terminal.tui.state import SessionState
from everturn.terminal.tui.texts.app import AppTexts
from everturn.terminal.tui.texts.folder import get_folder_texts

SPARE = 4  # columns that always stay empty between left and right
MIN_METER_WIDTH = 100  # columns of a screen from which on a meter is drawn


def describe_activity(state: SessionState, texts: AppTexts, now: float) -> str:
    """Describe what is running, in a few words; "" if nothing is."""
    turn = state.running
    if turn is None:
        return ""
    if turn.compaction is not None:
        return texts.summarizes
    gates = state.open_gates
    if state.subagent_gates or any(gate.kind != "client" for gate in gates):
        return texts.waits_here
    if gates or turn.phase is Phase.WAITING:  # for a program, and not for a person
        return texts.waits_elsewhere
    running = [call for call in turn.calls.values() if call.state == "running"]
    if running:
        since = min(state.times.get(call.id, (now, 0.0))[0] for call in running)
        seconds = max(0, int(now - since))
        if len(running) == 1:
            return texts.one_runs.format(name=escape_prose(running[0].name), seconds=seconds)
        return format_text(texts.many_run, count=len(running), seconds=seconds)
    return _streaming(state, turn, texts)


def _streaming(state: SessionState, turn: TurnState, texts: AppTexts) -> str:
    live = state.live.get(turn.id)
    if not live:
        return texts.requests
    return texts.thinks if live[max(live)].kind == "reasoning" else texts.answers


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


def status_line(state: SessionState | None, agent: str, model: str) -> Content:
    """Return the agent and model, and the cost."""
    pieces = [piece for piece in (escape_prose(agent), escape_prose(model)) if piece]
    line = [Content.styled(" · ".join(pieces), "$text-muted")]
    if state is not None and (cost := state.cost) is not None:
        line.append(Content.styled(format_cost(cost), "$text-muted"))
    return Content("  ").join(line)


MODE_STYLES: Final = {"plan": "$accent bold", "ask": "$text-muted bold", "auto_edit": "$warning bold"}


def mode_label(mode: str, language: Language, running: str | None = None) -> Content:
    """Return the name of the permission mode of the next message, behind that of the running turn if it is another."""
    names = get_folder_texts(language).modes
    label = Content.styled(f"[{names[mode]}]", MODE_STYLES[mode])
    if running is None or running == mode:
        return label
    return Content.assemble(Content.styled(f"[{names[running]}]", MODE_STYLES[running]), (" → ", "$text-muted"), label)


def context_gauge(state: SessionState | None, width: int) -> Content:
    """Return how full the context of the selected branch is, with a meter if there is room for one."""
    report = None if state is None else state.context
    if report is None:
        return Content()
    share = report.share
    style = "$text-muted" if share is None or share < WARN_AT else "$warning" if share < 1 else "$error"
    meter = f"{draw_meter(share)} " if share is not None and width >= MIN_METER_WIDTH else ""
    return Content.styled(f"{meter}{format_gauge(report)}", style)


def running_line(state: SessionState | None, texts: AppTexts) -> Content:
    """Return the status of the running turn."""
    text = "" if state is None else describe_activity(state, texts, time.time())
    return Content.styled(f"● {text}", "$warning" if text == texts.waits_here else "$accent") if text else Content()
