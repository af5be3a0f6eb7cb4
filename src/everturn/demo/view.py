"""What a turn shows → lines on a screen. It knows no commands: whoever watches may only look."""

from __future__ import annotations

import json
from typing import Final

from everturn import (
    CallProgress,
    CallSettled,
    CallStarted,
    GateAnswered,
    GateOpened,
    LateArrived,
    Phase,
    ReasoningDelta,
    StepInterrupted,
    TextDelta,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
)
from everturn.core.deltas import Shown
from everturn.core.events import TurnEvent
from everturn.core.state import TurnState
from everturn.terminal.screen import Screen

ROOM = 26  # columns a text needs beside the name of its call; with less it stands below

NOTES: Final = {
    Phase.PREPARING: "your message is in the log",
    Phase.WAITING: "nothing runs until you answer",
    Phase.FINALIZING: "every call gets its one result",
}


class View:
    """Draws a turn. Its state is the fold of the events it was shown, as everybody's is."""

    def __init__(self, screen: Screen, turn: str) -> None:
        self.screen, self.state = screen, TurnState(turn)
        self._is_thinking = False
        self._parked = self._waited = 0.0

    def show(self, shown: Shown) -> None:
        """Draw an event or a delta."""
        before = self.state.phase
        if isinstance(shown, TurnEvent):
            self.state.apply(shown)
            self._count_waiting(before, shown.at)
        phase = self.state.phase
        if phase is not before:
            is_settled = phase is Phase.FINALIZING and not self.state.open_calls
            self.screen.begin(phase, "no call is open" if is_settled else NOTES.get(phase, ""))
        if not self._draw_end(shown):
            self._draw(shown)

    def _count_waiting(self, before: Phase, at: float) -> None:
        if before is Phase.WAITING:
            self._waited += at - self._parked
        self._parked = at

    def _draw(self, shown: Shown) -> None:
        match shown:
            case TextDelta(text=text):
                self._say(text, is_thinking=False)
            case ReasoningDelta(text=text):
                self._say(text, is_thinking=True)
            case GateOpened(gate=gate):
                self._call(gate.call, "?", "a person is asked before it runs", "ask")
            case GateAnswered(call=call, verdict=verdict):
                answer = "allowed once" if verdict.allowed else "not allowed"
                if verdict.result is not None:
                    answer = "done by hand"
                self._call(call, "?", answer + (", with changes" if verdict.arguments else ""), "ask")
            case CallStarted(call=call, arguments=arguments):
                self._call(call, "→", json.dumps(json.loads(arguments), ensure_ascii=False), is_whole=True)
            case CallProgress(call=call, text=text):
                self._call(call, "·", text, "dim")
            case CallSettled(call=call, state="completed", output=output):
                self._call(call, "✓", output.text, "good")
            case CallSettled(call=call, state="cancelled", output=output):
                self._call(call, "×", f"cancelled: {output.text.partition('. ')[0]}", "bad")
            case CallSettled(call=call, state=state, output=output):
                self._call(call, "×", f"{state}: {output.text}", "bad")
            case LateArrived(call=call, output=output):
                self._call(call, "+", f"late result: {output.text}", "good")
            case _:
                pass

    def _draw_end(self, shown: Shown) -> bool:
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

    def _say(self, text: str, is_thinking: bool) -> None:
        if is_thinking is not self._is_thinking:
            self.screen.end()
            self._is_thinking = is_thinking
        self.screen.write(text, "dim" if is_thinking else "")

    def _call(self, call: str, sign: str, text: str, style: str = "", is_whole: bool = False) -> None:
        """A line about a call, aligned with those of the calls beside it; where that is too narrow, two lines."""
        made = self.state.calls[call]
        pad = max(len(other.name) for other in self.state.calls.values() if other.step == made.step)
        sign = self.screen.sign(sign)
        head = f"{sign} {made.name:<{pad}}  "
        if len(head) + ROOM > self.screen.room:
            self.screen.line(f"{sign} {made.name}", style)
            head = " " * len(f"{sign} ")
        self.screen.row(head, text, style, is_whole)
