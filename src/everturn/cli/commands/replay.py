"""`everturn replay`: replays a recorded turn, shows its state at an event, or shows what other rules or prompts would
change."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, cast, get_args

from everturn.cli.output import is_terminal, print_error, show_slow_operation, wants_color
from everturn.cli.run.output import escape_json_line
from everturn.core.deltas import ReasoningDelta, TextDelta, TurnItem
from everturn.core.events import (
    Event,
    GateOpened,
    GateResolved,
    MessageAdded,
    StepFinished,
    StepInterrupted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.messages import Message
from everturn.core.parts import NoticePart, ReasoningPart, TextPart
from everturn.core.rules.policy import SubjectKind
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, EverturnError, UnreadableLog
from everturn.replay.check import find_all_differences
from everturn.replay.compare import differences
from everturn.replay.inspect import find_event_number, inspect_turn, render_inspection
from everturn.replay.play import replay_offline
from everturn.replay.recording import Recording
from everturn.replay.rerun import rerun_with_tools
from everturn.replay.what_if import Change, what_if
from everturn.terminal.lines.turn_view import TurnPrinter
from everturn.terminal.text.screen import LineScreen, escape_and_expand_blanks, escape_unprintable
from everturn.wire import dump_event

SAME: Final = "the same, event for event: {count} events"
NOTHING: Final = "nothing would have been different"
NO_CHANGE: Final = "--diff needs to know what has changed: say --system, --system-file, --permissions or --config"
SEVERAL: Final = "there are {count} files; one can be shown at a time. Leave out --show, --until, --pace and --json"
# A log that was edited by hand breaks in many ways.
BROKEN = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
NO_LOG: Final = "{file} is no log of a session ({error!r}); record it again with `everturn export --turn`"
WORDS: Final = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")
WORD: Final = 0.04  # seconds per word with --pace; and
LONGEST: Final = 1.5  # at most between two events


async def export_turn(store: Store, session: str, turn: str, file: Path) -> None:
    """Write a recording of a turn to a file, with the messages before it and the sessions of its sub-agents.

    Raises:
        UnknownSession, UnknownTurn: there is no such session or turn.
        ConfigError: the turn is not over.
    """
    (await Recording.from_session(store, session, turn)).write(file)


def replay(options: argparse.Namespace) -> int:
    """Run the command, and return the exit code."""
    try:
        if len(options.files) > 1 and (options.show or options.until or options.pace or options.json):
            raise ConfigError(SEVERAL.format(count=len(options.files)))
        if options.diff:
            return _diff(options)
        if len(options.files) > 1:
            return max(_replay_briefly(options, file) for file in options.files)
        recording = Recording.read(options.files[0])
        if options.until:
            return _until(recording, options.until)
        if options.show:
            _show(recording, recording, options)
            return 0
        return _play(recording, options)
    except (ConfigError, UnreadableLog) as error:
        return print_error(str(error), 2)
    except EverturnError as error:  # a log that was edited until it is invalid
        return print_error(f"{options.files[0]} is no log of a session: {error}", 2)
    except BROKEN as error:
        return print_error(NO_LOG.format(file=options.files[0], error=error), 2)


def _play(recording: Recording, options: argparse.Namespace) -> int:
    played, differing = _replay(recording, options)
    if not options.quiet:
        _show(played, recording, options)
    out = sys.stderr if options.json else sys.stdout
    for line in differing:
        print(escape_unprintable(line), file=out)
    if not differing:
        print(SAME.format(count=_count(recording)), file=out)
    return 1 if differing else 0


def _replay_briefly(options: argparse.Namespace, file: str) -> int:
    """Replay one of several files, and print one line for it."""
    try:
        recording = Recording.read(file)
        _, differing = _replay(recording, options)
    except EverturnError as error:
        return print_error(str(error), 2)
    except BROKEN as error:
        return print_error(NO_LOG.format(file=file, error=error), 2)
    more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
    print(
        f"{escape_unprintable(file)}: "
        f"{escape_unprintable(differing[0]) + more if differing else SAME.format(count=_count(recording))}"
    )
    return 1 if differing else 0


def _replay(recording: Recording, options: argparse.Namespace) -> tuple[Recording, list[str]]:
    """Replay the recording, with recorded or real tools, and return the result and the differences."""
    if not options.real_tools:
        with show_slow_operation("playing it again"):
            played = asyncio.run(replay_offline(recording))
        return played, find_all_differences(recording, played)
    from everturn.terminal.text.tool_loader import load_tools

    tools = load_tools(options.real_tools)
    played = asyncio.run(rerun_with_tools(recording, tools=tools, rules=options.permissions or ()))
    return played, differences(recording, played)


def _count(recording: Recording) -> int:
    return len(recording.events) + sum(_count(child) for child in recording.below)


def _until(recording: Recording, where: str) -> int:
    for head, text in render_inspection(inspect_turn(recording, find_event_number(recording, where))):
        print(f"{head:<10}{escape_unprintable(text)}")
    return 0


# Differences --------------------------------------------------------------------------------------------------------


def _diff(options: argparse.Namespace) -> int:
    files: Sequence[str] = options.files
    differing = 0
    for file in files:
        recording = Recording.read(file)
        outcome = what_if(recording, _change(options, recording))
        differing += bool(outcome.lines)
        if len(files) > 1:
            print(f"{escape_unprintable(file)}: {outcome.summary or 'the same'}")
            continue
        for line in outcome.lines or [NOTHING]:
            print(escape_unprintable(line))
    if len(files) > 1:
        print(f"{len(files)} files, {differing} of them would have been different")
    return 1 if differing else 0


def _change(options: argparse.Namespace, recording: Recording) -> Change:
    from everturn.permissions.rules_file import load_rules
    from everturn.terminal.text.tool_loader import load_tools, tools_in

    if options.system is None and not (options.system_file or options.permissions or options.config):
        raise ConfigError(NO_CHANGE)
    change = _configured_change(options, recording) if options.config else Change()
    system = change.system if options.system is None else options.system
    if options.system_file:
        system = _read_text(options.system_file)
    specs = {name: tool.spec for name, tool in tools_in(load_tools(options.tools)).items()}
    rules = load_rules(options.permissions) if options.permissions else change.rules
    return Change(system, rules, change.own_rules, specs, _subjects(options.subject))


def _configured_change(options: argparse.Namespace, recording: Recording) -> Change:
    """Return the rules of a configuration, and the prompt and rules of its agent, as a change."""
    from everturn.config.load import load_config

    loaded = load_config(options.config)
    starts = [event for event in recording.events if isinstance(event, TurnStarted) and event.turn in recording.turns]
    agent = options.agent or (starts[0].options.agent if starts else "")
    if agent and agent not in loaded.config.agents:
        names = ", ".join(loaded.config.agents) or "none"
        raise ConfigError(f"there is no agent {agent!r} in {options.config}; there are: {names}. Name one with --agent")
    system = loaded.systems.get(agent, loaded.config.agents[agent].system) if agent else None
    return Change(system, loaded.rules, loaded.agent_rules.get(agent) if agent else None)


def _read_text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"--system-file {file} cannot be read: {getattr(error, 'strerror', '') or error}") from error


def _subjects(words: Sequence[str]) -> dict[str, SubjectKind]:
    subjects: dict[str, SubjectKind] = {}
    for word in words:
        name, _, kind = word.partition("=")
        if not name or kind not in get_args(SubjectKind):
            kinds = ", ".join(get_args(SubjectKind))
            raise ConfigError(f"--subject {word}: write NAME=KIND, and a kind is one of {kinds}")
        subjects[name] = cast("SubjectKind", kind)
    return subjects


# Rendering ----------------------------------------------------------------------------------------------------------


def _show(recording: Recording, recorded: Recording, options: argparse.Namespace) -> None:
    """Render the turns as a chat would, or print their events."""
    if options.json:
        for event in recording.events:
            line = dump_event(event).decode()
            print(escape_json_line(line) if is_terminal(sys.stdout) else line)
        return
    width = 0 if is_terminal(sys.stdout) else 100
    screen = LineScreen(sys.stdout, wants_color(options), gutter=0, width=width, safe=escape_and_expand_blanks)
    drawing = _ReplayView(screen, options.pace)
    for event in recording.events:
        if isinstance(event, TurnEvent) and event.turn in recorded.turns:
            drawing.draw(event)
    screen.end()


class _ReplayView:
    """Turns on a screen: messages and gate resolutions of people; a `TurnPrinter` renders the rest."""

    def __init__(self, screen: LineScreen, is_slow: bool) -> None:
        self._screen, self._is_slow = screen, is_slow
        self._answers: dict[str, TurnPrinter] = {}
        self._gates: dict[str, Gate] = {}
        self._last = 0.0

    def draw(self, event: TurnEvent) -> None:
        """Render one event."""
        if self._is_slow and self._last:
            time.sleep(min(max(event.at - self._last, 0.0), LONGEST))
        self._last = event.at
        match event:
            case TurnStarted(input=Message() as message) | MessageAdded(message=message):
                self._row(
                    *((">", message.text, "bold") if message.role == "user" else ("·", _notice_text(message), "dim"))
                )
            case GateOpened(gate=gate):
                self._gates[gate.id] = gate
                self._row("?", f"{gate.tool} {gate.arguments}: {gate.why}", "ask")
            case GateResolved(gate=name, resolution=resolution):
                self._row("!", _resolution_text(self._gates.get(name), resolution), "ask")
            case _:
                pass
        answer = self._answers.setdefault(event.turn, TurnPrinter(self._screen, event.turn, self._tell))
        for shown in _with_deltas(event):
            if self._is_slow and isinstance(shown, TextDelta | ReasoningDelta):
                time.sleep(WORD)
            answer.show(shown)
        if isinstance(event, TurnFailed):
            self._row("×", f"{event.problem.kind}: {event.problem.text}", "bad")

    def _row(self, sign: str, text: str, style: str) -> None:
        self._screen.end()
        self._screen.line_prefix = ""
        self._screen.row(f"{self._screen.sign(sign)} ", text, style)

    def _tell(self, text: str) -> None:
        self._row("·", text, "dim")


def _notice_text(message: Message) -> str:
    return " ".join(part.text for part in message.parts if isinstance(part, NoticePart | TextPart))


def _resolution_text(gate: Gate | None, resolution: GateResolution) -> str:
    person = resolution.by or "a person"
    action = "answered" if gate is not None and gate.kind in ("form", "question") else "allowed"
    if resolution.result is not None:
        return f"{person}: {resolution.result}"
    return (
        f"{action} by {person}"
        if resolution.allowed
        else f"denied by {person}{f': {resolution.reason}' if resolution.reason else ''}"
    )


def _with_deltas(event: Event) -> Iterator[TurnItem]:
    """Yield an event; before the end of a step, its text word by word, as deltas."""
    if isinstance(event, StepFinished | StepInterrupted):
        for at, part in enumerate(event.parts):
            if isinstance(part, TextPart | ReasoningPart):
                delta = TextDelta if isinstance(part, TextPart) else ReasoningDelta
                for word in WORDS.findall(part.text):
                    yield delta(event.turn, 0, at, 0, word)
    yield event
