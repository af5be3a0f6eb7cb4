"""Turn view of line mode: prints the events of a turn as an answer. It only draws, and sends no commands.

On a terminal an answer begins with the model's badge, reasoning has a bar at its side, and messages of the runtime
begin with a sign. A file or pipe receives the model's text and nothing else. A file that the model made is one row;
`attachments` saves its bytes.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from everturn import FilePart
from everturn.core.context.context_size import compaction_of
from everturn.core.deltas import TurnItem
from everturn.core.events import (
    CallResumed,
    CallSuspended,
    CompactionFailed,
    CompactionStarted,
    FilesChanged,
    MessageAdded,
    Problem,
    RequestRetried,
    StepStarted,
    SubagentStarted,
    TurnEvent,
)
from everturn.core.parts import FilesPart, Finish, ProviderToolPart, StreamedPart, TextPart, Usage
from everturn.core.state import TurnState
from everturn.events import (
    AnswerStarted,
    CallFinished,
    CallProgress,
    CallStarted,
    LateResultReceived,
    ReasoningDelta,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    TextDelta,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
)
from everturn.terminal.text.compaction import format_sizes
from everturn.terminal.text.file_changes import summarize_changes
from everturn.terminal.text.paths import describe_file, safe_name
from everturn.terminal.text.screen import LineScreen, escape_prose
from everturn.terminal.text.visible_text import INDENT

OUTCOME_UNKNOWN: Final = "it was started, and whether it took effect is not known"
MAX_PROGRESS_ROWS: Final = 20  # progress rows of one call; printed lines cannot be replaced here
MAX_INDENT_DEPTH: Final = 4  # levels of nested calls that are indented; deeper ones share the last level
CUT_OFF: Final[dict[Finish, str]] = {
    "length": "the answer is cut off at the output limit of the model; ask it to continue",
    "content_filter": "the provider's filter stopped the answer; say it differently",
    "refusal": "the model declined to answer; say it differently",
}


def describe_retry(event: RequestRetried) -> str:
    """Describe the retry of a model request."""
    if event.model:
        return f"asking {event.model} instead: {event.problem.text}"
    wait = f"retrying in {event.seconds:.0f} s" if event.seconds >= 1 else "retrying"
    return f"{wait} (attempt {event.attempt} of {event.attempts}): {event.problem.text}"


class TextRenderer(Protocol):
    """Renders the text of an answer (Markdown) instead of printing it as it is."""

    def feed(self, text: str) -> None:
        """Take a piece of the streamed text."""
        ...

    def end(self) -> None:
        """Print the rest of the text: other output follows."""
        ...


class TurnPrinter:
    """Prints a turn while it runs, and keeps its outcome. `tell` prints what must not be missed, even into a pipe."""

    def __init__(
        self,
        screen: LineScreen,
        turn: str,
        tell: Callable[[str], None],
        is_bare: bool = False,
        typeset: TextRenderer | None = None,
    ) -> None:
        self.state = TurnState(turn)
        self.problem: Problem | None = None
        self.is_cancelled = False
        self.has_text = False
        self.files: list[FilePart] = []
        self._progress: Counter[str] = Counter()
        self._labels: dict[str, str] = {}  # call -> what it waits for
        self._is_waiting = False  # for a rate limit, and it was said
        self._printed_changes: set[tuple[int, str]] = set()  # steps and roots whose changes were printed
        self._screen, self._tell, self._is_bare = screen, tell, is_bare
        self._typeset = typeset

    def show(self, shown: TurnItem) -> None:
        """Print an event or a delta."""
        if isinstance(shown, TurnEvent):
            self.state.apply(shown)
        if not self._draw_end(shown) and not self._draw_compaction(shown):
            self._draw(shown)

    def _draw(self, shown: TurnItem) -> None:
        match shown:
            case TextDelta(text=text):
                self._draw_text(text)
            case ReasoningDelta(text=text):
                self._draw_reasoning(text)
            case AnswerStarted(message=message):
                self._badge(message.by)
            case CallStarted(call=call, arguments=arguments):
                self._call(call, "→", json.dumps(json.loads(arguments), ensure_ascii=False))
            case CallFinished(call=call, state="completed", output=output):
                self._call(call, *(("×", output.text, "warn") if output.exit_status else ("✓", output.text, "good")))
            case CallFinished(call=call, state="outcome_unknown", output=output):
                self._notify(f"{self.state.calls[call].name}: {OUTCOME_UNKNOWN}: {output.text}")
            case CallFinished(call=call, state=state, output=output):
                self._call(call, "×", f"{state}: {output.text}", "bad")
            case _:
                self._draw_call_update(shown)

    def _draw_call_update(self, shown: TurnItem) -> None:
        """Print what happens to a call between its start and its result, and after it."""
        match shown:
            case CallSuspended():
                self._draw_suspension(shown)
            case CallResumed(call=call) if self._labels.get(call):
                pass
            case CallResumed(call=call):
                self._call(call, "→", "goes on", "dim")
            case SubagentStarted(call=call, session=session):
                self._call(call, "→", f"a sub-agent: {session}", "dim")
            case CallProgress(call="", text=text):  # of the model request: what it waits for
                if text and not self._is_waiting:
                    self._notify(text)
                self._is_waiting = bool(text)
            case CallProgress(call=call, text=text) if call in self.state.calls:
                self._progress[call] += 1
                if self._progress[call] <= MAX_PROGRESS_ROWS:
                    self._call(call, "·", text, "dim")
            case FilesChanged(root=root) if root:  # changes of the step before; virtual files are reported one by one
                self._draw_changes(root)
            case LateResultReceived(call=call, output=output):
                self._call(call, "+", f"late: {output.text}", "good")
            case _:
                pass

    def _draw_compaction(self, shown: TurnItem) -> bool:
        match shown:
            case MessageAdded(message=message) if (compaction := compaction_of(message)) is not None:
                self._notify(f"compacted {format_sizes(compaction)} tokens")
            case CompactionStarted():
                self._notify("earlier messages are being summarised")
            case CompactionFailed(problem=problem):
                self._notify(f"earlier messages could not be summarised: {problem.text}")
            case _:
                return False
        return True

    def _draw_end(self, shown: TurnItem) -> bool:
        match shown:
            case StepStarted():
                self._draw_changes()
            case StepRestarted():
                self._notify("the answer starts again")
            case RequestRetried():
                self._notify(describe_retry(shown))
            case StepFinished(parts=parts, finish=finish, model=model, continues=continues):
                if not continues or any(
                    isinstance(part, FilePart | ProviderToolPart) for part in parts
                ):  # a continued text is one text
                    self._draw_files(parts)
                self._draw_sources(parts)
                if model:
                    self._notify(f"written by {model}")
                if finish in CUT_OFF and not continues:
                    self._notify(CUT_OFF[finish])
            case StepInterrupted(parts=parts):
                if not self._is_bare and any(not isinstance(part, FilePart | ProviderToolPart) for part in parts):
                    if self._typeset is not None:
                        self._typeset.end()
                    self._screen.write(f" {self._screen.sign('…')}", "dim")
                self._draw_files(parts)
            case TurnCompleted(usage=usage) | TurnCancelled(usage=usage) | TurnFailed(usage=usage):
                self.is_cancelled = isinstance(shown, TurnCancelled)
                self.problem = shown.problem if isinstance(shown, TurnFailed) else None
                self._draw_changes()
                self._draw_summary(usage)
            case _:
                return False
        return True

    def _draw_text(self, text: str) -> None:
        if self._screen.line_prefix:  # reasoning came before
            self._end()
        if not self.has_text:
            text = text.lstrip()
        self.has_text = self.has_text or bool(text)
        if self._typeset is not None:
            self._typeset.feed(text)
        else:
            self._screen.write(text)

    def _draw_reasoning(self, text: str) -> None:
        if self._is_bare:
            return
        if not self._screen.line_prefix:
            self._end()
            self._screen.line_prefix = f"{self._screen.sign('│')} "
        self._screen.write(text, "dim")

    def _badge(self, name: str) -> None:
        if not self._is_bare:
            self._screen.line(f"{name}>", "dim")

    def _draw_summary(self, usage: Usage) -> None:
        if self.is_cancelled:
            self._notify(
                "cancelled" + ("; the text so far stays in the conversation" if self.has_text or self.files else "")
            )
        elif self.state.options.compact is not None:
            if self.problem is None and not self.state.compactions:
                self._notify("there is too little to compact yet")
        elif self.problem is None and not (self.has_text or self.files):
            self._notify("the model said nothing")
        if (summary := format_usage(usage)) and not self._is_bare:
            self._notify(summary)

    def _draw_suspension(self, event: CallSuspended) -> None:
        """Print what a call waits for: one row for all waits with the same label, because a call that polls has many."""
        call, known = event.call, self.state.calls[event.call].waits
        label = next((known[name].label for name in event.waits if known[name].label), "")
        awaited = "an answer" if event.gates else "calls of its own" if event.calls else "a sub-agent"
        if event.waits:
            is_external = any(known[name].kind == "external" for name in event.waits)
            awaited = label or ("an external result" if is_external else "a time")
        if not label or self._labels.get(call) != label:
            self._call(call, "…", f"waits for {awaited}", "dim")
        self._labels[call] = label

    def _call(self, call: str, sign: str, text: str, style: str = "") -> None:
        """Print a row about a call; a nested call is indented further than the call that made it."""
        if not self._is_bare:
            self._end()
            depth, parent = 0, self.state.calls[call].parent
            while parent:
                depth, parent = depth + 1, self.state.calls[parent].parent
            head = f"{' ' * INDENT * min(depth, MAX_INDENT_DEPTH)}{self._screen.sign(sign)} {self.state.calls[call].name}  "
            self._screen.row(head, text, style, is_whole=False)

    def _draw_changes(self, root: str | None = None) -> None:
        """Print a row for the files that a step has changed, once it is over; all of them, or those of one root."""
        for message in self.state.messages.values():
            for part in message.parts:
                if not isinstance(part, FilesPart) or root not in (None, part.root):
                    continue
                if (part.step, part.root) not in self._printed_changes:
                    self._printed_changes.add((part.step, part.root))
                    if not self._is_bare:
                        self._end()
                        minus = self._screen.sign("−").strip()
                        self._screen.row(
                            f"{self._screen.sign('±')} ", summarize_changes(part.changes, minus), is_whole=False
                        )

    def _draw_files(self, parts: Sequence[StreamedPart]) -> None:
        self._end()
        for file in parts:
            if isinstance(file, ProviderToolPart) and not self._is_bare:
                about = f"{file.name} {file.title}".strip()
                self._screen.row(f"{self._screen.sign('↓')} ", f"{escape_prose(about)}: {file.state}", is_whole=False)
            if isinstance(file, FilePart):
                self.files.append(file)
                if not self._is_bare:
                    self._screen.row(f"{self._screen.sign('↓')} ", describe_file(safe_name(file), file), is_whole=False)

    def _draw_sources(self, parts: Sequence[StreamedPart]) -> None:
        """Print the sources of a text under it, each once: what was streamed cannot get numbers any more."""
        citations = [citation for part in parts if isinstance(part, TextPart) for citation in part.citations]
        if citations and not self._is_bare:
            self._end()
            for title, source in dict.fromkeys((citation.title, citation.source) for citation in citations):
                self._screen.row(
                    f"{self._screen.sign('·')} ", escape_prose(" ".join(f"{title} {source}".split())), is_whole=False
                )

    def _notify(self, text: str) -> None:
        self._end()
        self._tell(text)

    def _end(self) -> None:
        if self._typeset is not None:
            self._typeset.end()
        self._screen.end()
        self._screen.line_prefix = ""


def format_usage(usage: Usage) -> str:
    """Format the usage of an answer: tokens and, if known, the cost; empty if nothing was counted."""
    texts: list[str] = []
    if usage.input or usage.output:
        cached = f" ({usage.cached} cached)" if usage.cached else ""
        thought = f" ({usage.reasoning} reasoning)" if usage.reasoning else ""
        texts.append(f"{usage.input} tokens in{cached}, {usage.output} out{thought}")
    if usage.cost is not None:
        texts.append(format_cost(usage.cost))
    return ", ".join(texts)


def format_cost(cost: float) -> str:
    """Format a cost with enough digits to show two significant ones."""
    digits = 2 if cost <= 0 else max(2, 1 - math.floor(math.log10(cost)))
    return f"${cost:.{digits}f}"
