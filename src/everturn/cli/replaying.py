"""`everturn replay`: a file → the turn in it once more, how it stood somewhere, or what would have been different."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, cast, get_args

from everturn.cli.run_outputs import harmless
from everturn.cli.saying import complain, is_terminal, long_wait, wants_color
from everturn.core.asking import Gate, Verdict
from everturn.core.deltas import ReasoningDelta, Shown, TextDelta
from everturn.core.events import (
    Event,
    GateAnswered,
    GateOpened,
    MessageAdded,
    StepFinished,
    StepInterrupted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import NoticePart, ReasoningPart, TextPart
from everturn.core.policy import SubjectKind
from everturn.core.ports import Store
from everturn.errors import ConfigError, EverturnError, UnreadableLog
from everturn.terminal.answer import Answer
from everturn.terminal.screen import Screen, printable, typeset
from everturn.testing.replay.checking import compared
from everturn.testing.replay.comparing import differences
from everturn.testing.replay.looking import place_of, stand, told
from everturn.testing.replay.performing import perform
from everturn.testing.replay.playing import again
from everturn.testing.replay.recording import Recording
from everturn.testing.replay.what_if import Change, what_if
from everturn.wire import dump

SAME: Final = "the same, event for event: {count} events"
NOTHING: Final = "nothing would have been different"
NO_CHANGE: Final = "--diff needs to know what has changed: say --system, --system-file, --permissions or --config"
SEVERAL: Final = "there are {count} files; one can be shown at a time. Leave out --show, --until, --pace and --json"
# A log that was edited by hand breaks in many ways.
BROKEN = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
NO_LOG: Final = "{file} is no log of a session ({error!r}); record it again with `everturn export --turn`"
WORDS: Final = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")
WORD: Final = 0.04  # seconds for a word, at the pace at which people read; and
LONGEST: Final = 1.5  # the most between two events


async def export_turn(store: Store, session: str, turn: str, file: Path) -> None:
    """Write a turn to a file, with what lay before it and the sessions of its sub-turns.

    Raises:
        UnknownSession, UnknownTurn: it is not there.
        ConfigError: it is not over.
    """
    (await Recording.take(store, session, turn)).write(file)


def replay(options: argparse.Namespace) -> int:
    """Do what the command line asks, and return the exit code."""
    try:
        if len(options.files) > 1 and (options.show or options.until or options.pace or options.json):
            raise ConfigError(SEVERAL.format(count=len(options.files)))
        if options.diff:
            return _diff(options)
        if len(options.files) > 1:
            return max(_brief(options, file) for file in options.files)
        recording = Recording.read(options.files[0])
        if options.until:
            return _until(recording, options.until)
        if options.show:
            _show(recording, recording, options)
            return 0
        return _play(recording, options)
    except (ConfigError, UnreadableLog) as error:
        return complain(str(error), 2)
    except EverturnError as error:  # a log that was edited until it makes no sense
        return complain(f"{options.files[0]} is no log of a session: {error}", 2)
    except BROKEN as error:
        return complain(NO_LOG.format(file=options.files[0], error=error), 2)


def _play(recording: Recording, options: argparse.Namespace) -> int:
    played, found = _again(recording, options)
    if not options.quiet:
        _show(played, recording, options)
    out = sys.stderr if options.json else sys.stdout
    for line in found:
        print(printable(line), file=out)
    if not found:
        print(SAME.format(count=_count(recording)), file=out)
    return 1 if found else 0


def _brief(options: argparse.Namespace, file: str) -> int:
    """A line for one of several files."""
    try:
        recording = Recording.read(file)
        _, found = _again(recording, options)
    except EverturnError as error:
        return complain(str(error), 2)
    except BROKEN as error:
        return complain(NO_LOG.format(file=file, error=error), 2)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    print(f"{printable(file)}: {printable(found[0]) + more if found else SAME.format(count=_count(recording))}")
    return 1 if found else 0


def _again(recording: Recording, options: argparse.Namespace) -> tuple[Recording, list[str]]:
    """Play it, from the recording or on real tools, and compare."""
    if not options.real_tools:
        with long_wait("playing it again"):
            played = asyncio.run(again(recording))
        return played, compared(recording, played)
    from everturn.terminal.loading import load_tools

    given = load_tools(options.real_tools)
    played = asyncio.run(perform(recording, tools=given, rules=options.permissions or ()))
    return played, differences(recording, played)


def _count(recording: Recording) -> int:
    return len(recording.events) + sum(_count(one) for one in recording.below)


def _until(recording: Recording, where: str) -> int:
    for head, text in told(stand(recording, place_of(recording, where))):
        print(f"{head:<10}{printable(text)}")
    return 0


# What would have been different --------------------------------------------------------------------------------------


def _diff(options: argparse.Namespace) -> int:
    files: Sequence[str] = options.files
    differing = 0
    for file in files:
        recording = Recording.read(file)
        found = what_if(recording, _change(options, recording))
        differing += bool(found.lines)
        if len(files) > 1:
            print(f"{printable(file)}: {found.summary or 'the same'}")
            continue
        for line in found.lines or [NOTHING]:
            print(printable(line))
    if len(files) > 1:
        print(f"{len(files)} files, {differing} of them would have been different")
    return 1 if differing else 0


def _change(options: argparse.Namespace, recording: Recording) -> Change:
    from everturn.permissions.reading import load_rules
    from everturn.terminal.loading import load_tools, tools_in

    if options.system is None and not (options.system_file or options.permissions or options.config):
        raise ConfigError(NO_CHANGE)
    change = _configured(options, recording) if options.config else Change()
    system = change.system if options.system is None else options.system
    if options.system_file:
        system = _text(options.system_file)
    specs = {name: tool.spec for name, tool in tools_in(load_tools(options.tools)).items()}
    rules = load_rules(options.permissions) if options.permissions else change.rules
    return Change(system, rules, change.own_rules, specs, _subjects(options.subject))


def _configured(options: argparse.Namespace, recording: Recording) -> Change:
    """The rules of a configuration, and the prompt and the rules of an agent."""
    from everturn.config.loading import load

    loaded = load(options.config)
    started = [one for one in recording.events if isinstance(one, TurnStarted) and one.turn in recording.turns]
    agent = options.agent or (started[0].options.agent if started else "")
    if agent and agent not in loaded.config.agents:
        there = ", ".join(loaded.config.agents) or "none"
        raise ConfigError(f"there is no agent {agent!r} in {options.config}; there are: {there}. Say --agent")
    system = loaded.systems.get(agent, loaded.config.agents[agent].system) if agent else None
    return Change(system, loaded.rules, loaded.agent_rules.get(agent) if agent else None)


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"--system-file {file} cannot be read: {getattr(error, 'strerror', '') or error}") from error


def _subjects(words: Sequence[str]) -> dict[str, SubjectKind]:
    found: dict[str, SubjectKind] = {}
    for word in words:
        name, _, kind = word.partition("=")
        if not name or kind not in get_args(SubjectKind):
            kinds = ", ".join(get_args(SubjectKind))
            raise ConfigError(f"--subject {word}: write NAME=KIND, and a kind is one of {kinds}")
        found[name] = cast("SubjectKind", kind)
    return found


# Drawing -------------------------------------------------------------------------------------------------------------


def _show(recording: Recording, recorded: Recording, options: argparse.Namespace) -> None:
    """Draw the turns as a chat would, or print their events."""
    if options.json:
        for event in recording.events:
            line = dump(event).decode()
            print(harmless(line) if is_terminal(sys.stdout) else line)
        return
    width = 0 if is_terminal(sys.stdout) else 100
    screen = Screen(sys.stdout, wants_color(options), gutter=0, width=width, safe=typeset)
    drawing = _Drawing(screen, options.pace)
    for event in recording.events:
        if isinstance(event, TurnEvent) and event.turn in recorded.turns:
            drawing.draw(event)
    screen.end()


class _Drawing:
    """Turns on a screen: what people said and answered, and what `Answer` draws of the rest."""

    def __init__(self, screen: Screen, is_slow: bool) -> None:
        self._screen, self._is_slow = screen, is_slow
        self._answers: dict[str, Answer] = {}
        self._gates: dict[str, Gate] = {}
        self._last = 0.0

    def draw(self, event: TurnEvent) -> None:
        """Draw an event."""
        if self._is_slow and self._last:
            time.sleep(min(max(event.at - self._last, 0.0), LONGEST))
        self._last = event.at
        match event:
            case TurnStarted(input=Message() as said) | MessageAdded(message=said):
                self._row(*((">", said.text, "bold") if said.role == "user" else ("·", _noticed(said), "dim")))
            case GateOpened(gate=gate):
                self._gates[gate.id] = gate
                self._row("?", f"{gate.tool} {gate.arguments}: {gate.why}", "ask")
            case GateAnswered(gate=name, verdict=verdict):
                self._row("!", _answered(self._gates.get(name), verdict), "ask")
            case _:
                pass
        answer = self._answers.setdefault(event.turn, Answer(self._screen, event.turn, self._tell))
        for shown in _streamed(event):
            if self._is_slow and isinstance(shown, TextDelta | ReasoningDelta):
                time.sleep(WORD)
            answer.show(shown)
        if isinstance(event, TurnFailed):
            self._row("×", f"{event.problem.kind}: {event.problem.text}", "bad")

    def _row(self, sign: str, text: str, style: str) -> None:
        self._screen.end()
        self._screen.lead = ""
        self._screen.row(f"{self._screen.sign(sign)} ", text, style)

    def _tell(self, text: str) -> None:
        self._row("·", text, "dim")


def _noticed(message: Message) -> str:
    return " ".join(part.text for part in message.parts if isinstance(part, NoticePart | TextPart))


def _answered(gate: Gate | None, verdict: Verdict) -> str:
    who = verdict.by or "a person"
    what = "answered" if gate is not None and gate.kind in ("form", "question") else "allowed"
    if verdict.result is not None:
        return f"{who}: {verdict.result}"
    return (
        f"{what} by {who}" if verdict.allowed else f"denied by {who}{f': {verdict.reason}' if verdict.reason else ''}"
    )


def _streamed(event: Event) -> Iterator[Shown]:
    """An event, and before the end of a step what was shown of it while it came, word by word."""
    if isinstance(event, StepFinished | StepInterrupted):
        for at, part in enumerate(event.parts):
            if isinstance(part, TextPart | ReasoningPart):
                delta = TextDelta if isinstance(part, TextPart) else ReasoningDelta
                for word in WORDS.findall(part.text):
                    yield delta(event.turn, 0, at, 0, word)
    yield event
