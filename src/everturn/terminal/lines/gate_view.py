"""Gate view of line mode: prints what asks and why, the exact bytes that would run, and the rule that `always` would
store.

The whole gate is printed, however long. Text from a model or a tool is indented further than our own text, so that it
cannot imitate it.
"""

from __future__ import annotations

import json
import shutil
from typing import Final

from msgspec import Struct

from everturn.core.canonical_json import parse_object
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, GATE_KINDS_WITHOUT_CALL, Gate
from everturn.core.parts import Output
from everturn.core.ports import Tool
from everturn.core.state import limit_of_gate
from everturn.terminal.text.paths import describe_file, safe_name
from everturn.terminal.text.screen import LineScreen
from everturn.terminal.text.visible_text import (
    INDENT,
    count_invisible_in,
    escape_invisible,
    format_arguments,
    print_block,
    print_lines,
    print_message,
    warn_invisible,
)

MAX_NAME_WIDTH = 18  # columns that the names of arguments may take
AROUND = 3  # lines of a screen that the prompt below a question takes
HEADINGS: Final = {
    "call": "{tool} needs approval",
    "egress": "{tool} needs approval: it sends its arguments outside",
    "loop": "{tool} needs approval to repeat",
    "manual": "Your turn: {tool}",
    "result": "Review the result of {tool} before the model reads it",
    "question": "{tool} asks you something",
    "form": "{tool} runs, and asks you something",
    "client": "{tool} waits for a client",
    "limit": "The step limit is reached",
}
FAILED: Final = "Review the error of {tool} before the model reads it"
LIMIT: Final = "may the turn continue, for up to {steps} steps in total?"
CLIENT: Final = "a connected program runs this and returns the result; you can only deny it"
ANSWER_GOES_TO: Final = "your answer goes to: {origin}"
PREVIEW_OUTDATED: Final = "the preview is for the original arguments; with your changes it may do something else"
DIFF: Final = {"+": "good", "-": "bad", "@": "dim"}
ALWAYS: Final = "“always” stores this rule, for this conversation:"
ONE_OF: Final = "“always” stores one of these rules, for this conversation:"


class GatePanel(Struct, frozen=True):
    """A gate as a person sees it: its `place` among several, and what they have edited so far."""

    gate: Gate
    tool: Tool | None = None  # None: this process has no tool of that name
    position: str = ""
    subagent_session: str = ""  # the session of a sub-agent, if that asks
    seconds_left: float = 0.0  # seconds to answer; 0: no limit
    edited: str = ""  # the person's arguments, or the filled-in form
    text: str | None = None  # the result after redaction

    @property
    def is_changed(self) -> bool:
        """Whether the person has edited what was asked."""
        return bool(self.edited) or self.text is not None

    @property
    def offers(self) -> tuple[str, ...]:
        """The rules that `always` may store, exactly as they are stored; only for the call as it was asked."""
        return () if self.is_changed else tuple(escape_invisible(str(rule)) for rule in self.gate.offers)


def draw_gate(screen: LineScreen, panel: GatePanel) -> None:
    """Print a gate in full."""
    gate = panel.gate
    screen.end()
    screen.line_prefix = ""
    asks = FAILED if gate.failed else HEADINGS[gate.kind]
    position = f"{panel.position}: " if panel.position else ""
    screen.row("? ", position + asks.format(tool=escape_invisible(gate.tool)), "ask")
    count = 1
    count += _about(screen, panel)
    if gate.kind == "limit":
        count += print_message(screen, LIMIT.format(steps=limit_of_gate(gate)), "")
    elif gate.kind in ("question", "form"):
        count += print_block(screen, "", gate.arguments)
    else:
        count += print_block(screen, "", gate.why) if gate.kind == "client" and gate.why else 0
        count += _arguments(screen, panel)
    if gate.kind == "form" and panel.edited:
        count += print_block(screen, "your answer, exactly this:", pretty_json(panel.edited))
    if gate.preview:
        count += _preview(screen, panel)
    if gate.output is not None:
        count += _output(screen, gate.output, panel.text)
    count += _offers(screen, panel)
    if panel.seconds_left:
        count += print_message(screen, f"it can be answered for {format_duration(panel.seconds_left)}")
    if count + AROUND > (lines := shutil.get_terminal_size().lines):
        print_message(screen, f"these were {count} lines, and your screen has {lines}: scroll up to read all of them")


def _about(screen: LineScreen, panel: GatePanel) -> int:
    gate, count = panel.gate, 0
    if gate.why and gate.kind not in GATE_KINDS_OF_RUNNING_TOOL:  # for those kinds `why` is the tool's question itself
        count += print_message(screen, f"because: {gate.why}")
    if panel.subagent_session:
        count += print_message(screen, f"asked in a sub-agent: {panel.subagent_session}")
    is_form = gate.kind == "form"
    if panel.tool is not None and not is_form and not (origin := panel.tool.spec.origin).startswith("function"):
        count += print_message(screen, f"the tool is from: {origin}")
    if gate.kind == "form":
        origin = panel.tool.spec.origin if panel.tool is not None else ""
        count += print_message(
            screen, ANSWER_GOES_TO.format(origin=gate.tool if origin.startswith("function") else origin or gate.tool)
        )
    elif gate.kind == "client":
        count += print_message(screen, CLIENT)
    elif panel.tool is None and gate.kind not in (*GATE_KINDS_WITHOUT_CALL, "result"):
        count += print_message(
            screen, "there is no tool of this name here, so it would fail; --tools brings one", "bad"
        )
    return count


def _arguments(screen: LineScreen, panel: GatePanel) -> int:
    text = panel.edited or panel.gate.arguments
    tool = None if panel.gate.kind in GATE_KINDS_WITHOUT_CALL else panel.tool
    rows = format_arguments(text, None if tool is None else tool.spec.schema)
    if panel.gate.kind == "result":
        head = "arguments used"
    elif panel.edited:
        head = "arguments with your changes"
    else:
        head = "arguments"
    if not rows:
        return print_message(screen, "arguments used: none" if panel.gate.kind == "result" else "without arguments", "")
    count = print_message(screen, f"{head}:", "")
    pad = min(max(len(name) for name, _ in rows), MAX_NAME_WIDTH) + 2 * INDENT + 2
    for name, lines in rows:
        count += print_lines(screen, f"{' ' * 2 * INDENT}{name}  ", lines, pad=pad)
    return count + warn_invisible(screen, count_invisible_in(parse_object(text) or text))


def pretty_json(answer: str) -> str:
    """Return an answer as indented JSON; whitespace does not change what is sent."""
    return json.dumps(json.loads(answer), ensure_ascii=False, indent=2)


def _preview(screen: LineScreen, panel: GatePanel) -> int:
    if panel.edited:
        return print_message(screen, PREVIEW_OUTDATED, "bad")
    return print_block(screen, "which would do this:", panel.gate.preview.removesuffix("\n"), _in_diff)


def _in_diff(line: str) -> str:
    return "bold" if line.startswith(("+++ ", "--- ")) else DIFF.get(line[:1], "")


def _output(screen: LineScreen, output: Output, text: str | None) -> int:
    shown = output.text if text is None else text
    size = shown.count("\n") + 1
    head = "the model would read" if text is None else "with your changes, the model would read"
    count = print_block(screen, f"{head}{f', {size} lines' if size > 1 else ''}:", shown)
    if output.blob and text is None:
        count += print_message(
            screen, "this is an excerpt; once it is sent, the model may read the rest as well", "bad"
        )
    for file in output.attachments if text is None else ():
        count += print_message(screen, f"and a file: {describe_file(safe_name(file), file)}", "")
    return count


def _offers(screen: LineScreen, panel: GatePanel) -> int:
    if not (offers := panel.offers):
        return 0
    count = print_message(screen, ALWAYS if len(offers) == 1 else ONE_OF)
    for number, offer in enumerate(offers, 1):
        head = " " * 2 * INDENT + (f"{number}  " if len(offers) > 1 else "")
        count += print_lines(screen, head, [offer])
    return count


def format_duration(seconds: float) -> str:
    """Format a duration, short."""
    seconds = round(seconds)
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return "1 second" if seconds == 1 else f"{seconds} seconds"
