"""A gate → lines on a screen: what asks and why, the very bytes that would run, and what `always` would store.

Everything is there, however long. Whatever a model or a tool wrote stands further to the right than what we say of it,
and cannot look like it.
"""

from __future__ import annotations

import shutil
from typing import Final

from msgspec import Struct

from everturn.core.asking import Gate
from everturn.core.canonical import parse_object
from everturn.core.parts import Output
from everturn.core.ports import Tool
from everturn.terminal.exact import STEP, arguments, hidden, hidden_in, seen, wrapped, write
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
}
FAILED: Final = "{tool} has failed, and the model waits to read why"
ALWAYS: Final = "always would store this rule, for this conversation:"
ONE_OF: Final = "always would store one of these rules, for this conversation:"


class Asked(Struct, frozen=True):
    """A gate as it is put to a person: as the `place`th of several, and with what they have made of it so far."""

    gate: Gate
    tool: Tool | None = None  # None: there is none of this name here
    place: str = ""
    below: str = ""  # the session that asks, where it is another one
    left: float = 0.0  # seconds to answer; 0: no end
    edited: str = ""  # the arguments they want instead
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
    if gate.kind == "question":
        count += _block(screen, "", gate.arguments)
    else:
        count += _arguments(screen, asked)
    if gate.output is not None:
        count += _output(screen, gate.output, asked.text)
    count += _offers(screen, asked)
    if asked.left:
        count += _say(screen, f"it can be answered for {lasting(asked.left)}")
    if count + AROUND > (lines := shutil.get_terminal_size().lines):
        _say(screen, f"these were {count} lines, and your screen has {lines}: scroll up to read all of them")


def _say(screen: Screen, text: str, style: str = "dim") -> int:
    """Say something in our own words."""
    screen.row(" " * STEP, seen(text), style)
    return len(list(wrapped(text, screen.room - STEP)))


def _about(screen: Screen, asked: Asked) -> int:
    gate, count = asked.gate, 0
    if gate.why:
        count += _say(screen, f"because: {gate.why}")
    if asked.below:
        count += _say(screen, f"asked in a turn below this one: {asked.below}")
    if asked.tool is not None and not (origin := asked.tool.spec.origin).startswith("function"):
        count += _say(screen, f"the tool is from: {origin}")
    if asked.tool is None and gate.kind not in ("question", "result"):
        count += _say(screen, "there is no tool of this name here, so it would fail; --tools brings one", "bad")
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
        return _say(screen, "it ran without arguments" if asked.gate.kind == "result" else "without arguments", "")
    count = _say(screen, f"{head}:", "")
    pad = min(max(len(name) for name, _ in rows), WIDEST) + 2 * STEP + 2
    for name, lines in rows:
        count += write(screen, f"{' ' * 2 * STEP}{name}  ", lines, pad=pad)
    return count + _warn(screen, hidden_in(parse_object(text) or text))


def _block(screen: Screen, head: str, text: str) -> int:
    lines = text.split("\n")
    count = _say(screen, head, "") if head else 0
    return count + write(screen, " " * 2 * STEP, [seen(line) for line in lines]) + _warn(screen, hidden(text))


def _warn(screen: Screen, found: int) -> int:
    if not found:
        return 0
    are = "character cannot be seen, and is" if found == 1 else "characters cannot be seen, and are"
    return _say(screen, rf"{found} {are} written out, as \u202e or \x1b", "bad")


def _output(screen: Screen, output: Output, text: str | None) -> int:
    left = output.text if text is None else text
    size = left.count("\n") + 1
    head = "the model would read" if text is None else "with your changes, the model would read"
    count = _block(screen, f"{head}{f', {size} lines' if size > 1 else ''}:", left)
    if output.blob and text is None:
        count += _say(screen, "this is an excerpt; once it is sent, the model may read the rest as well", "bad")
    for file in output.attachments if text is None else ():
        count += _say(screen, f"and a file: {about(safe_name(file), file)}", "")
    return count


def _offers(screen: Screen, asked: Asked) -> int:
    if not (offers := asked.offers):
        return 0
    count = _say(screen, ALWAYS if len(offers) == 1 else ONE_OF)
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
