"""A recording → whether it can be played again; and what was played → what is different from it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from everturn.core.canonical import digest
from everturn.core.events import CallJudged, CallStarted, StepInterrupted, TurnFailed, TurnStarted
from everturn.errors import ConfigError
from everturn.stores.checking import check_log
from everturn.testing.replay.comparing import differences
from everturn.testing.replay.recording import OVER, Recording

CANNOT: Final = "this recording cannot be played again: {why} (`--show` shows it as it was)"
EDITED: Final = "event {at} ({kind}) is not what was recorded: the file was edited"


def compared(recording: Recording, played: Recording, ignore: Collection[str] = ()) -> list[str]:
    """What is different, in the session and in those of its sub-turns; what was edited is told first."""
    found: list[str] = []
    olds, news = flat(recording), flat(played)
    for old in olds:
        where = "" if old is recording else f"{old.session}: "
        new = next((one for one in news if one.session == old.session), Recording((), old.session))
        found += [where + EDITED.format(at=at, kind=type(old.events[at - 1]).__name__) for at in old.edited]
        found += [where + line for line in (*unbound(old), *differences(old, new, ignore))]
    return found


def unbound(recording: Recording) -> list[str]:
    """Calls whose arguments are not those to which their permission was bound."""
    judged = {one.call: one for one in recording.events if isinstance(one, CallJudged) and one.allowed}
    found: list[str] = []
    starts = [one for one in recording.events if isinstance(one, CallStarted) and one.call in judged]
    for one in starts:
        about = (one.turn, one.call, "call", one.tool, judged[one.call].identity, one.arguments, None)
        if digest(recording.tenant or "local", recording.session, *about) != one.hash:
            found.append(f"{one.call} ({one.tool}): its arguments are not those that were allowed: the file was edited")
    # Where all are wrong it is the names that are not known: a bare log does not say whose it is.
    return [] if len(found) == len(starts) and not recording.tenant else found


def check(recording: Recording) -> None:
    """See that a recording can be played again, before anything is.

    Raises:
        ConfigError: it cannot, and why.
        UnreadableLog: it cannot have happened the first time.
    """
    for one in flat(recording):
        one.check_over()
        told = {event.problem for event in one.events if isinstance(event, StepInterrupted) and event.problem}
        for event in one.events:
            if isinstance(event, OVER) and event.reports and event.turn in one.turns:
                raise ConfigError(CANNOT.format(why=f"a plugin failed, and is not here: {event.reports[0].text}"))
            if not isinstance(event, TurnFailed) or event.turn not in one.turns or event.problem in told:
                continue
            if event.problem.kind != "deadline":
                raise ConfigError(CANNOT.format(why=f"it did not fail in the model: {event.problem.text}"))
        for event in one.events if one is recording else ():
            if isinstance(event, TurnStarted) and event.options.above is not None:
                raise ConfigError(CANNOT.format(why="it is a sub-turn; record the session above it"))
        check_log(one.events)


def flat(recording: Recording) -> list[Recording]:
    """A recording and all below it."""
    return [recording, *(deeper for one in recording.below for deeper in flat(one))]
