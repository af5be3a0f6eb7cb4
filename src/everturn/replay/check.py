"""Replay checks: whether a recording can be replayed, and all differences between a recording and its replay."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from everturn.core.canonical_json import hash_values
from everturn.core.events import CallStarted, PermissionDecided, StepInterrupted, Terminal, TurnFailed, TurnStarted
from everturn.errors import ConfigError
from everturn.replay.compare import differences
from everturn.replay.recording import Recording
from everturn.stores.import_check import check_log

CANNOT: Final = "this recording cannot be played again: {why} (`--show` shows it as it was)"
EDITED: Final = "event {at} ({kind}) is not what was recorded: the file was edited"


def find_all_differences(recording: Recording, played: Recording, ignore: Collection[str] = ()) -> list[str]:
    """List the differences in the session and in those of its sub-agents; edits of the file come first."""
    lines: list[str] = []
    recorded_sessions, played_sessions = flatten_recordings(recording), flatten_recordings(played)
    for recorded_session in recorded_sessions:
        prefix = "" if recorded_session is recording else f"{recorded_session.session}: "
        played_session = next(
            (candidate for candidate in played_sessions if candidate.session == recorded_session.session),
            Recording((), recorded_session.session),
        )
        lines += [
            prefix + EDITED.format(at=at, kind=type(recorded_session.events[at - 1]).__name__)
            for at in recorded_session.edited
        ]
        lines += [
            prefix + line
            for line in (
                *find_edited_arguments(recorded_session),
                *differences(recorded_session, played_session, ignore),
            )
        ]
    return lines


def find_edited_arguments(recording: Recording) -> list[str]:
    """List the calls whose arguments differ from those to which their permission was bound."""
    decisions = {
        event.call: event for event in recording.events if isinstance(event, PermissionDecided) and event.allowed
    }
    lines: list[str] = []
    starts = [event for event in recording.events if isinstance(event, CallStarted) and event.call in decisions]
    for event in starts:
        bound_fields = (
            event.turn,
            event.call,
            "call",
            event.tool,
            decisions[event.call].identity,
            event.arguments,
            None,
        )
        if hash_values(recording.tenant or "local", recording.session, *bound_fields) != event.hash:
            lines.append(
                f"{event.call} ({event.tool}): its arguments are not those that were allowed: the file was edited"
            )
    # If all differ, the tenant is missing: a bare log does not name it.
    return [] if len(lines) == len(starts) and not recording.tenant else lines


def check_replayable(recording: Recording) -> None:
    """Check that a recording can be replayed, before anything runs.

    Raises:
        ConfigError: it cannot be replayed; the text says why.
        UnreadableLog: the log is inconsistent.
    """
    for session in flatten_recordings(recording):
        session.check_over()
        model_problems = {
            event.problem for event in session.events if isinstance(event, StepInterrupted) and event.problem
        }
        for event in session.events:
            if isinstance(event, Terminal) and event.reports and event.turn in session.turns:
                raise ConfigError(CANNOT.format(why=f"a plugin failed, and is not here: {event.reports[0].text}"))
            if not isinstance(event, TurnFailed) or event.turn not in session.turns or event.problem in model_problems:
                continue
            if event.problem.kind != "deadline":
                raise ConfigError(CANNOT.format(why=f"it did not fail in the model: {event.problem.text}"))
        for event in session.events if session is recording else ():
            if isinstance(event, TurnStarted) and event.options.lineage is not None:
                raise ConfigError(CANNOT.format(why="it is a sub-agent run; record the session above it"))
        check_log(session.events)


def flatten_recordings(recording: Recording) -> list[Recording]:
    """Return a recording and all recordings of its sub-agents."""
    return [recording, *(descendant for child in recording.below for descendant in flatten_recordings(child))]
