"""Branches: the samples of a case as sibling answers in one session, beside the recorded answer.

The session is a copy of the recording. In it, each sample is what "regenerate" would have made: another answer to the
same message. So the web UI and the terminal compare them as they compare any answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from everturn.core.events import AnswerStarted, Event, GateOpened, MessageAdded, TitleSet, TurnEvent, TurnStarted
from everturn.core.store_ports import Store
from everturn.evals.dataset import Case, Dataset
from everturn.evals.evaluate import SAMPLES
from everturn.replay.recording import Recording


async def write_branches(store: Store, dataset: Dataset, folder: str | Path) -> list[str]:
    """Write the cases of an evaluation that was kept in a folder into a store, one session each; return the sessions.

    Raises:
        KeyConflict: the store has such a session already.
    """
    sessions: list[str] = []
    for case in dataset.cases:
        samples = read_samples(case, Path(folder) / SAMPLES)
        if samples:
            session = f"eval-{case.name}"
            await store.restore(session, "local", join_branches(case.recording, samples))
            sessions.append(session)
    return sessions


def join_branches(recording: Recording, samples: Sequence[tuple[int, str, Recording]]) -> list[Event]:
    """Return the log of a recording with more answers: samples as (number, turn, log)."""
    events = list(recording.events)
    for number, turn, log in samples:
        started = next(event for event in events if isinstance(event, TurnStarted) and event.turn == turn)
        message = started.parent if started.input is None else started.input.id
        events += [
            _as_rerun(event, message) for event in _renamed(log, turn, number) if not isinstance(event, TitleSet)
        ]
    return events


def read_samples(case: Case, folder: Path) -> list[tuple[int, str, Recording]]:
    """Return the samples of a case that a folder of a run has: their numbers, turns and logs."""
    samples: list[tuple[int, str, Recording]] = []
    for place, turn in enumerate(case.recording.turns, 1):
        for file in folder.glob(f"{case.name}.*.{place}.jsonl"):
            number = file.name.removeprefix(f"{case.name}.").split(".")[0]
            if number.isdigit():
                samples.append((int(number), turn, Recording.read(file)))
    return sorted(samples, key=lambda sample: sample[:2])


def _renamed(log: Recording, turn: str, number: int) -> Iterator[Event]:
    """Yield the events of a turn under ids of their own: those of the recording are taken."""
    events = tuple(event for event in log.events if isinstance(event, TurnEvent) and event.turn == turn)
    names = {turn, *(event.gate.id for event in events if isinstance(event, GateOpened))}
    names |= {event.message.id for event in events if isinstance(event, AnswerStarted | MessageAdded)}
    # Ids that contain the turn's are renamed with it.
    own = [name for name in names if name == turn or turn not in name]
    places = {name: f"{name}_eval{number}" for name in own}
    yield from replace(log, events=events, below=()).with_paths_replaced(places).events


def _as_rerun(event: Event, message: str | None) -> Event:
    return replace(event, input=None, parent=message) if isinstance(event, TurnStarted) else event
