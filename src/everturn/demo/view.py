"""Turn view of the demo: prints the events of a turn as lines. It only draws, and sends no commands."""

from __future__ import annotations

import json
from typing import Final

from everturn.core.deltas import TurnItem
from everturn.core.events import TurnEvent
from everturn.core.state import TurnState
from everturn.events import (
    CallFinished,
    CallProgress,
    CallStarted,
    GateOpened,
    GateResolved,
    LateResultReceived,
    Phase,
    ReasoningDelta,
    StepInterrupted,
    TextDelta,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
)
from everturn.terminal.text.screen import LineScreen

MIN_TEXT_WIDTH = 26  # columns that a text needs beside the name of its call; with fewer it is on the next line

NOTES: Final = {
    Phase.PREPARING: "your message is in the log",
    Phase.WAITING: "nothing runs until you answer",
    Phase.FINALIZING: "every call gets its one result",
}


class DemoView:
    """Prints a turn. Its state is folded from the events that it is shown, as in any client."""

    def __init__(self, screen: LineScreen, turn: str) -> None:
        self.screen, self.state = screen, TurnState(turn)
        self._is_thinking = False
        self._waiting_since = self._waited = 0.0

    def show(self, shown: TurnItem) -> None:
        """Draw an event or a delta."""
        before = self.state.phase
        if isinstance(shown, TurnEvent):
            self.state.apply(shown)
            self._count_waiting(before, shown.at)
        phase = self.state.phase
        if phase is not before:
            has_no_open_call = phase is Phase.FINALIZING and not self.state.open_calls
            self.screen.begin(phase, "no call is open" if has_no_open_call else NOTES.get(phase, ""))
        if not self._draw_end(shown):
            self._draw(shown)

    def _count_waiting(self, before: Phase, at: float) -> None:
        if before is Phase.WAITING:
            self._waited += at - self._waiting_since
        self._waiting_since = at

    def _draw(self, shown: TurnItem) -> None:
        match shown:
            case TextDelta(text=text):
                self._draw_text(text, is_thinking=False)
            case ReasoningDelta(text=text):
                self._draw_text(text, is_thinking=True)
            case GateOpened(gate=gate):
                self._call(gate.call, "?", "a person is asked before it runs", "ask")
            case GateResolved(call=call, resolution=resolution):
                answer = "allowed once" if resolution.allowed else "not allowed"
                if resolution.result is not None:
                    answer = "done by hand"
                self._call(call, "?", answer + (", with changes" if resolution.arguments else ""), "ask")
            case CallStarted(call=call, arguments=arguments):
                self._call(call, "→", json.dumps(json.loads(arguments), ensure_ascii=False), is_whole=True)
            case CallProgress(call=call, text=text) if call:
                self._call(call, "·", text, "dim")
            case CallFinished(call=call, state="completed", output=output):
                self._call(call, "✓", output.text, "good")
            case CallFinished(call=call, state="cancelled", output=output):
                self._call(call, "×", f"cancelled: {output.text.partition('. ')[0]}", "bad")
            case CallFinished(call=call, state=state, output=output):
                self._call(call, "×", f"{state}: {output.text}", "bad")
            case LateResultReceived(call=call, output=output):
                self._call(call, "+", f"late result: {output.text}", "good")
            case _:
                pass

    def _draw_end(self, shown: TurnItem) -> bool:
        match shown:
            case StepInterrupted():
                self.screen.write(f" {self.screen.sign('…')}", "dim")
            case TurnCompleted(at=at):
                self.screen.line(f"after {self._time(at)}", "good")
            case TurnCancelled(at=at):
                self.screen.line(f"after {self._time(at)}; the turn is over", "bad")
            case TurnFailed(problem=problem):
                self.screen.line(f"{problem.kind}: {problem.text}", "bad")
            case _:
                return False
        return True

    def _time(self, at: float) -> str:
        worked = f"{at - self.state.started - self._waited:.1f} s"
        return worked + (f", without the {self._waited:.1f} s it waited for you" if self._waited >= 0.1 else "")

    def _draw_text(self, text: str, is_thinking: bool) -> None:
        if is_thinking is not self._is_thinking:
            self.screen.end()
            self._is_thinking = is_thinking
        self.screen.write(text, "dim" if is_thinking else "")

    def _call(self, call: str, sign: str, text: str, style: str = "", is_whole: bool = False) -> None:
        """Print a line about a call, aligned with the other calls of its step; two lines on a narrow screen."""
        call_state = self.state.calls[call]
        pad = max(len(other.name) for other in self.state.calls.values() if other.step == call_state.step)
        sign = self.screen.sign(sign)
        head = f"{sign} {call_state.name:<{pad}}  "
        if len(head) + MIN_TEXT_WIDTH > self.screen.text_width:
            self.screen.line(f"{sign} {call_state.name}", style)
            head = " " * len(f"{sign} ")
        self.screen.row(head, text, style, is_whole)
