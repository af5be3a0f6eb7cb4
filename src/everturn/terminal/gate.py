"""A gate → lines on a screen: what asks and why, the very bytes that would run, and what `always` would store.

Everything is there, however long. Whatever a model or a tool wrote stands further to the right than what we say of it,
and cannot look like it.
"""

from __future__ import annotations

import json
import shutil
from typing import Final

from msgspec import Struct

from everturn.core.asking import WITHIN, Gate
from everturn.core.canonical import parse_object
from everturn.core.parts import Output
from everturn.core.ports import Tool
from everturn.terminal.exact import STEP, arguments, block, hidden_in, say, seen, warn, write
from everturn.terminal.paths import about, safe_name
from everturn.terminal.screen import Screen

WIDEST = 18  # columns that the names of arguments may take
AROUND = 3  # lines of a screen that are taken by what stands below a question
ASKS: Final = {
    "call": "{tool} asks to run",
    "egress": "{tool} asks to run, and what it is given leaves the house",
    "loop": "{tool} asks to run once more",
    "hand": "{tool} is for you to do",
    "result": "{tool} has run, and the model waits to read what came of it",
    "question": "{tool} asks you something",
    "form": "{tool} runs, and asks you something",
    "client": "{tool} waits for a client",
}
FAILED: Final = "{tool} has failed, and the model waits to read why"
CLIENT: Final = "a program that is connected does this and says what came of it; you can only deny it"
TOLD: Final = "your answer goes to: {origin}"
WAS_SHOWN: Final = (
    "what it would do was shown for the arguments as they were; with your changes it may do something else"
)
DIFF: Final = {"+": "good", "-": "bad", "@": "dim"}
ALWAYS: Final = "always would store this rule, for this conversation:"
ONE_OF: Final = "always would store one of these rules, for this conversation:"


class Asked(Struct, frozen=True):
    """A gate as it is put to a person: as the `place`th of several, and with what they have made of it so far."""

    gate: Gate
    tool: Tool | None = None  # None: there is none of this name here
    place: str = ""
    below: str = ""  # the session that asks, where it is another one
    left: float = 0.0  # seconds to answer; 0: no end
    edited: str = ""  # the arguments they want instead, or what they have filled in
    text: str | None = None  # what they leave of a result

    @property
    def is_changed(self) -> bool:
        """Whether it is not any more what was asked."""
        return bool(self.edited) or self.text is not None

    @property
    def offers(self) -> tuple[str, ...]:
        """The rules that `always` may store, exactly as they are stored; for what was asked, and nothing else."""
        return () if self.is_changed else tuple(seen(str(rule)) for rule in self.gate.offers)


def draw(screen: Screen, asked: Asked) -> None:
    """Draw a question, all of it."""
    gate = asked.gate
    screen.end()
    screen.lead = ""
    asks = FAILED if gate.failed else ASKS[gate.kind]
    place = f"{asked.place}: " if asked.place else ""
    screen.row("? ", place + asks.format(tool=seen(gate.tool)), "ask")
    count = 1
    count += _about(screen, asked)
    if gate.kind in ("question", "form"):
        count += block(screen, "", gate.arguments)
    else:
        count += block(screen, "", gate.why) if gate.kind == "client" and gate.why else 0
        count += _arguments(screen, asked)
    if gate.kind == "form" and asked.edited:
        count += block(screen, "your answer, exactly this:", filled(asked.edited))
    if gate.preview:
        count += _preview(screen, asked)
    if gate.output is not None:
        count += _output(screen, gate.output, asked.text)
    count += _offers(screen, asked)
    if asked.left:
        count += say(screen, f"it can be answered for {lasting(asked.left)}")
    if count + AROUND > (lines := shutil.get_terminal_size().lines):
        say(screen, f"these were {count} lines, and your screen has {lines}: scroll up to read all of them")


def _about(screen: Screen, asked: Asked) -> int:
    gate, count = asked.gate, 0
    if gate.why and gate.kind not in WITHIN:  # of those it is the question itself, in the words of the tool
        count += say(screen, f"because: {gate.why}")
    if asked.below:
        count += say(screen, f"asked in a turn below this one: {asked.below}")
    is_told = gate.kind == "form"
    if asked.tool is not None and not is_told and not (origin := asked.tool.spec.origin).startswith("function"):
        count += say(screen, f"the tool is from: {origin}")
    if gate.kind == "form":
        origin = asked.tool.spec.origin if asked.tool is not None else ""
        count += say(screen, TOLD.format(origin=gate.tool if origin.startswith("function") else origin or gate.tool))
    elif gate.kind == "client":
        count += say(screen, CLIENT)
    elif asked.tool is None and gate.kind not in ("question", "result"):
        count += say(screen, "there is no tool of this name here, so it would fail; --tools brings one", "bad")
    return count


def _arguments(screen: Screen, asked: Asked) -> int:
    text = asked.edited or asked.gate.arguments
    rows = arguments(text)
    if asked.gate.kind == "result":
        head = "it ran with"
    elif asked.edited:
        head = "with your changes, exactly these arguments"
    else:
        head = "with exactly these arguments"
    if not rows:
        return say(screen, "it ran without arguments" if asked.gate.kind == "result" else "without arguments", "")
    count = say(screen, f"{head}:", "")
    pad = min(max(len(name) for name, _ in rows), WIDEST) + 2 * STEP + 2
    for name, lines in rows:
        count += write(screen, f"{' ' * 2 * STEP}{name}  ", lines, pad=pad)
    return count + warn(screen, hidden_in(parse_object(text) or text))


def filled(answer: str) -> str:
    """What was filled in, as the JSON that is sent; a blank more or less changes nothing in it."""
    return json.dumps(json.loads(answer), ensure_ascii=False, indent=2)


def _preview(screen: Screen, asked: Asked) -> int:
    if asked.edited:
        return say(screen, WAS_SHOWN, "bad")
    return block(screen, "which would do this:", asked.gate.preview.removesuffix("\n"), _in_diff)


def _in_diff(line: str) -> str:
    return "bold" if line.startswith(("+++ ", "--- ")) else DIFF.get(line[:1], "")


def _output(screen: Screen, output: Output, text: str | None) -> int:
    left = output.text if text is None else text
    size = left.count("\n") + 1
    head = "the model would read" if text is None else "with your changes, the model would read"
    count = block(screen, f"{head}{f', {size} lines' if size > 1 else ''}:", left)
    if output.blob and text is None:
        count += say(screen, "this is an excerpt; once it is sent, the model may read the rest as well", "bad")
    for file in output.attachments if text is None else ():
        count += say(screen, f"and a file: {about(safe_name(file), file)}", "")
    return count


def _offers(screen: Screen, asked: Asked) -> int:
    if not (offers := asked.offers):
        return 0
    count = say(screen, ALWAYS if len(offers) == 1 else ONE_OF)
    for number, offer in enumerate(offers, 1):
        head = " " * 2 * STEP + (f"{number}  " if len(offers) > 1 else "")
        count += write(screen, head, [offer])
    return count


def lasting(seconds: float) -> str:
    """A time in words, short."""
    seconds = round(seconds)
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return "1 second" if seconds == 1 else f"{seconds} seconds"
