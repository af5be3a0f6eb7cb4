"""What a turn shows → an answer on the screen. It knows no commands: whoever draws may only look.

On a terminal an answer begins with the model's badge, thoughts have a line at their side, and what the runtime has to
say begins with a sign. Into a file or a pipe goes what the model said, and nothing else. A file that the model made is a row; its
bytes are for others to keep.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from everturn import (
    AnswerOpened,
    CallProgress,
    CallSettled,
    CallStarted,
    FilePart,
    LateArrived,
    ReasoningDelta,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    TextDelta,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
)
from everturn.core.deltas import Shown
from everturn.core.events import CallBelow, CallPaused, CallResumed, FilesChanged, Problem, StepStarted, TurnEvent
from everturn.core.parts import FilesPart, Finish, StreamedPart, Usage
from everturn.core.state import TurnState
from everturn.terminal.changes import changed
from everturn.terminal.exact import STEP
from everturn.terminal.paths import about, safe_name
from everturn.terminal.screen import Screen

UNKNOWN: Final = "it was begun, and nobody knows whether it took effect"
MOST_PROGRESS: Final = 20  # rows that a call may have for what it says on the way; lines cannot be taken back here
DEEPEST: Final = 4  # calls of calls that are set off; those below them stand with them
CUT_OFF: Final[dict[Finish, str]] = {
    "length": "the answer is cut off: the model may not write more at once; ask it to go on",
    "content_filter": "the provider's filter stopped the answer; say it differently",
    "refusal": "the model declined to answer; say it differently",
}


class Typesets(Protocol):
    """Whoever makes more of a text than its letters."""

    def feed(self, text: str) -> None:
        """Take in what has come."""
        ...

    def end(self) -> None:
        """Print what is left: something else is to stand under it."""
        ...


class Answer:
    """Draws a turn as it happens, and keeps what it came to; `tell` says what nobody may miss, wherever that is."""

    def __init__(
        self,
        screen: Screen,
        turn: str,
        tell: Callable[[str], None],
        is_bare: bool = False,
        typeset: Typesets | None = None,
    ) -> None:
        self.state = TurnState(turn)
        self.problem: Problem | None = None
        self.is_cancelled = False
        self.has_said = False
        self.files: list[FilePart] = []
        self._progress: Counter[str] = Counter()
        self._told: set[tuple[int, str]] = set()  # steps and roots whose changes were drawn
        self._screen, self._tell, self._is_bare = screen, tell, is_bare
        self._typeset = typeset

    def show(self, shown: Shown) -> None:
        """Draw an event or a delta."""
        if isinstance(shown, TurnEvent):
            self.state.apply(shown)
        if not self._draw_end(shown):
            self._draw(shown)

    def _draw(self, shown: Shown) -> None:
        match shown:
            case TextDelta(text=text):
                self._say(text)
            case ReasoningDelta(text=text):
                self._think(text)
            case AnswerOpened(message=message):
                self._badge(message.by)
            case CallStarted(call=call, arguments=arguments):
                self._call(call, "→", json.dumps(json.loads(arguments), ensure_ascii=False))
            case CallSettled(call=call, state="completed", output=output):
                self._call(call, "✓", output.text, "good")
            case CallSettled(call=call, state="outcome_unknown", output=output):
                self._mark(f"{self.state.calls[call].name}: {UNKNOWN}: {output.text}")
            case CallSettled(call=call, state=state, output=output):
                self._call(call, "×", f"{state}: {output.text}", "bad")
            case _:
                self._draw_aside(shown)

    def _draw_aside(self, shown: Shown) -> None:
        """What becomes of a call between its start and its result, and after it."""
        match shown:
            case CallPaused(call=call, gates=gates, calls=calls):
                what = "an answer" if gates else "calls of its own" if calls else "a turn below this one"
                self._call(call, "…", f"waits for {what}", "dim")
            case CallResumed(call=call):
                self._call(call, "→", "goes on", "dim")
            case CallBelow(call=call, session=session):
                self._call(call, "→", f"a turn below this one: {session}", "dim")
            case CallProgress(call=call, text=text) if call in self.state.calls:
                self._progress[call] += 1
                if self._progress[call] <= MOST_PROGRESS:
                    self._call(call, "·", text, "dim")
            case FilesChanged(root=root) if root:  # of the step before; those of the session come one by one
                self._draw_changes(root)
            case LateArrived(call=call, output=output):
                self._call(call, "+", f"late: {output.text}", "good")
            case _:
                pass

    def _draw_end(self, shown: Shown) -> bool:
        match shown:
            case StepStarted():
                self._draw_changes()
            case StepRestarted():
                self._mark("the answer starts again")
            case StepFinished(parts=parts, finish=finish):
                self._draw_files(parts)
                if finish in CUT_OFF:
                    self._mark(CUT_OFF[finish])
            case StepInterrupted(parts=parts):
                if not self._is_bare and any(not isinstance(part, FilePart) for part in parts):
                    if self._typeset is not None:
                        self._typeset.end()
                    self._screen.write(f" {self._screen.sign('…')}", "dim")
                self._draw_files(parts)
            case TurnCompleted(usage=usage) | TurnCancelled(usage=usage) | TurnFailed(usage=usage):
                self.is_cancelled = isinstance(shown, TurnCancelled)
                self.problem = shown.problem if isinstance(shown, TurnFailed) else None
                self._draw_changes()
                self._sum_up(usage)
            case _:
                return False
        return True

    def _say(self, text: str) -> None:
        if self._screen.lead:  # it was thinking
            self._end()
        if not self.has_said:
            text = text.lstrip()
        self.has_said = self.has_said or bool(text)
        if self._typeset is not None:
            self._typeset.feed(text)
        else:
            self._screen.write(text)

    def _think(self, text: str) -> None:
        if self._is_bare:
            return
        if not self._screen.lead:
            self._end()
            self._screen.lead = f"{self._screen.sign('│')} "
        self._screen.write(text, "dim")

    def _badge(self, name: str) -> None:
        if not self._is_bare:
            self._screen.line(f"{name}>", "dim")

    def _sum_up(self, usage: Usage) -> None:
        if self.is_cancelled:
            self._mark(
                "cancelled" + ("; what came so far stays in the conversation" if self.has_said or self.files else "")
            )
        elif self.problem is None and not (self.has_said or self.files):
            self._mark("the model said nothing")
        if (counted := tally(usage)) and not self._is_bare:
            self._mark(counted)

    def _call(self, call: str, sign: str, text: str, style: str = "") -> None:
        """A row about a call; one that a tool has made stands further to the right than the tool's own."""
        if not self._is_bare:
            self._end()
            depth, above = 0, self.state.calls[call].parent
            while above:
                depth, above = depth + 1, self.state.calls[above].parent
            head = f"{' ' * STEP * min(depth, DEEPEST)}{self._screen.sign(sign)} {self.state.calls[call].name}  "
            self._screen.row(head, text, style, is_whole=False)

    def _draw_changes(self, root: str | None = None) -> None:
        """A row for the files that a step has changed, once it is over; all of them, or those beneath a root."""
        for message in self.state.messages.values():
            for part in message.parts:
                if not isinstance(part, FilesPart) or root not in (None, part.root):
                    continue
                if (part.step, part.root) not in self._told:
                    self._told.add((part.step, part.root))
                    if not self._is_bare:
                        self._end()
                        minus = self._screen.sign("−").strip()
                        self._screen.row(f"{self._screen.sign('±')} ", changed(part.changes, minus), is_whole=False)

    def _draw_files(self, parts: Sequence[StreamedPart]) -> None:
        self._end()
        for file in parts:
            if isinstance(file, FilePart):
                self.files.append(file)
                if not self._is_bare:
                    self._screen.row(f"{self._screen.sign('↓')} ", about(safe_name(file), file), is_whole=False)

    def _mark(self, text: str) -> None:
        self._end()
        self._tell(text)

    def _end(self) -> None:
        if self._typeset is not None:
            self._typeset.end()
        self._screen.end()
        self._screen.lead = ""


def tally(usage: Usage) -> str:
    """What an answer took: tokens and, where it is known, money; nothing where nobody counted."""
    counted: list[str] = []
    if usage.input or usage.output:
        cached = f" ({usage.cached} cached)" if usage.cached else ""
        thought = f" ({usage.reasoning} reasoning)" if usage.reasoning else ""
        counted.append(f"{usage.input} tokens in{cached}, {usage.output} out{thought}")
    if usage.cost is not None:
        counted.append(dollars(usage.cost))
    return ", ".join(counted)


def dollars(cost: float) -> str:
    """An amount, with as many digits as it takes to see two that count."""
    digits = 2 if cost <= 0 else max(2, 1 - math.floor(math.log10(cost)))
    return f"${cost:.{digits}f}"
