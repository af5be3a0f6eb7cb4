"""Dataset: cases to evaluate, in a folder that people can read and review.

    refunds/
      dataset.toml        checks of every case, and cases with checks of their own
      refund.jsonl        a recording: the log of a session, or of one of its turns

A folder of recordings without a `dataset.toml` is a dataset, too: every recording is a case.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from everturn.chat.ratings import read_ratings
from everturn.core.canonical_json import encode_canonical
from everturn.core.events import GateOpened, GateResolved, TurnStarted
from everturn.core.ratings import Rating
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, UnknownMessage
from everturn.evals.checks import Check, CheckFunction, make_check
from everturn.evals.trajectory import make_trajectory
from everturn.replay.recording import Recording

FILE: Final = "dataset.toml"
REPORTED: Final = "The answer does not have the problem that a person reported: {problems}"
HELPS: Final = "The answer does what the person asked for."
_NAME = re.compile(r"[^A-Za-z0-9_-]+")
UNDER_REVIEW: Final = (
    "{session} has a result that a person has not reviewed yet (gate {gate}): review it, then make the dataset"
)


class Case(Struct, frozen=True):
    """A recording and what must hold when it is run again."""

    name: str
    recording: Recording
    checks: Sequence[Check | CheckFunction] = ()  # none: the calls that act must be the recorded ones
    file: str = ""


class Dataset(Struct, frozen=True):
    """Cases that are evaluated together."""

    name: str
    cases: Sequence[Case]
    checks: Sequence[Check | CheckFunction] = ()  # of every case
    folder: Path | None = None  # where Python checks are looked up

    @classmethod
    def read(cls, path: str | Path) -> Dataset:
        """Read a dataset: a folder, a `dataset.toml`, or one recording.

        Raises:
            ConfigError: it cannot be read; the text names the file.
            UnreadableLog: a recording cannot be read.
        """
        path = Path(path)
        if path.is_dir() and (path / FILE).is_file():
            path = path / FILE
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in (".jsonl", ".zip"))
            if not files:
                raise ConfigError(f"{path} has no recordings (*.jsonl); `everturn eval make` writes some")
            return cls(path.name, [_case_of(file, path) for file in files], (), path)
        if path.suffix == ".toml":
            return _read_toml(path)
        return cls(path.stem, [Case(path.stem, Recording.read(path), (), str(path))], (), path.parent)


def _case_of(file: Path, folder: Path) -> Case:
    name = _NAME.sub("-", file.relative_to(folder).with_suffix("").as_posix())
    return Case(name, Recording.read(file), (), str(file))


def _read_toml(path: Path) -> Dataset:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: the dataset cannot be read: {error}") from error
    if unknown := [key for key in values if key not in ("name", "checks", "cases")]:
        raise ConfigError(f"{path}: there is no key {unknown[0]!r}; there are: name, checks, cases")
    checks = _checks(path, "checks", values.get("checks", ()))
    cases: list[Case] = []
    for number, table in enumerate(cast("Sequence[Mapping[str, Any]]", values.get("cases", ())), 1):
        where = f"cases[{number}]"
        if unknown := [key for key in table if key not in ("name", "recording", "checks")]:
            raise ConfigError(f"{path}: {where} has no {unknown[0]!r}; it has: name, recording, checks")
        if not isinstance(recording := table.get("recording"), str):
            raise ConfigError(f"{path}: {where} needs a recording, the name of a file beside dataset.toml")
        file = path.parent / recording
        name = _NAME.sub("-", str(table.get("name") or file.stem))
        if any(case.name == name for case in cases):
            raise ConfigError(f"{path}: two cases have the name {name!r}")
        cases.append(Case(name, Recording.read(file), _checks(path, where, table.get("checks", ())), str(file)))
    if not cases:
        raise ConfigError(f"{path} has no cases; write [[cases]] with a recording, or leave the file out")
    return Dataset(str(values.get("name", path.parent.name)), cases, checks, path.parent)


def _checks(path: Path, where: str, tables: Sequence[Mapping[str, Any]]) -> list[Check]:
    checks: list[Check] = []
    for number, table in enumerate(tables, 1):
        try:
            checks.append(make_check(table))
        except ConfigError as error:
            raise ConfigError(f"{path}: {where} check {number}: {error}") from None
    return checks


# Made from sessions -------------------------------------------------------------------------------------------------


class RatedTurn(Struct, frozen=True):
    """A turn whose answer people rated, with their reasons."""

    session: str
    turn: str
    reasons: tuple[str, ...] = ()


async def find_rated_turns(store: Store, sessions: Sequence[str], rating: Rating) -> list[RatedTurn]:
    """The turns of sessions whose answers have this rating; a turn that people disagree about is in both lists."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for session in sessions:
        for rated in await read_ratings(store, session):
            try:
                [answer] = await store.path(session, rated.message, 1)
            except UnknownMessage:  # it was deleted
                continue
            if rated.rating == rating and answer.turn:
                reasons = found.get((session, answer.turn), ())
                found[session, answer.turn] = (*reasons, rated.reason) if rated.reason else reasons
    return [RatedTurn(session, turn, reasons) for (session, turn), reasons in found.items()]


async def make_rated_dataset(
    store: Store, sessions: Sequence[str], folder: str | Path, rating: Rating = "down"
) -> list[Path]:
    """Write the rated answers of sessions as a dataset, a case for each turn; return its files.

    A turn that was rated up gets checks for what it did. One that was rated down gets a check by a judge: that the
    answer is better in what people gave as their reasons.

    Raises:
        ConfigError: there is no such rating, a result is under review, or the folder has such a case.
    """
    turns = await find_rated_turns(store, sessions, rating)
    if not turns:
        raise ConfigError(f"no answer of these sessions is rated {rating}")
    recordings = [await Recording.from_session(store, rated.session, rated.turn) for rated in turns]
    return _write_dataset(recordings, folder, [(rating, rated.reasons) for rated in turns])


async def make_dataset(store: Store, sessions: Sequence[str], folder: str | Path, turn: str = "") -> list[Path]:
    """Write sessions as a dataset that people can read and edit; return its files.

    Every case gets checks for what its recording did: each call that acts with its arguments, and who was asked.
    A `dataset.toml` that exists is extended.

    Raises:
        ConfigError: a turn is not over, a result is under review, or the folder has such a case.
        UnknownSession, UnknownTurn: there is no such session or turn.
    """
    recordings = [await Recording.from_session(store, session, turn) for session in sessions]
    unrated: list[tuple[Rating, tuple[str, ...]]] = [("", ()) for _ in recordings]
    return _write_dataset(recordings, folder, unrated)


def _write_dataset(
    recordings: Sequence[Recording], folder: str | Path, ratings: Sequence[tuple[Rating, tuple[str, ...]]]
) -> list[Path]:
    folder = Path(folder)
    for recording in recordings:
        recording.check_over()
        if gate := _open_review(recording):
            raise ConfigError(UNDER_REVIEW.format(session=recording.session, gate=gate))
    index = folder / FILE
    text = index.read_text(encoding="utf-8") if index.is_file() else f"name = {_quote(folder.name)}\n"
    # The ratings of a session are of several turns; without them it is one case.
    names = [
        f"{recording.session}-{recording.turn}" if rating else recording.session
        for recording, (rating, _) in zip(recordings, ratings, strict=True)
    ]
    files = [folder / f"{_NAME.sub('-', name)}.jsonl" for name in names]
    if taken := [file for file in files if file.exists()]:
        raise ConfigError(f"{taken[0]} exists; move it away, or choose another folder")
    for recording, file, (rating, reasons) in zip(recordings, files, ratings, strict=True):
        recording.write(file)
        text += "\n" + (
            describe_case(recording, file.name) if rating != "down" else _problem(recording, file.name, reasons)
        )
    index.write_text(text, encoding="utf-8")
    return [index, *files]


def _open_review(recording: Recording) -> str:
    resolved = {event.gate for event in recording.events if isinstance(event, GateResolved)}
    gates = (event.gate for event in recording.events if isinstance(event, GateOpened))
    return next((gate.id for gate in gates if gate.kind == "result" and gate.id not in resolved), "")


def describe_case(recording: Recording, file: str) -> str:
    """Write a case of a recording as TOML, with a comment that says what was asked, and checks for what it did."""
    trajectory = make_trajectory(recording)
    lines = _head(recording, file)
    for call in trajectory.actions:
        lines += ["", "[[cases.checks]]", 'kind = "called"', f"tool = {_quote(call.tool)}"]
        lines += [f"arguments = {to_toml(call.arguments)}"] if _is_short(call.arguments) else []
        if call.decision == "ask":
            lines += ["", "[[cases.checks]]", 'kind = "gate_asked"', f"tool = {_quote(call.tool)}"]
    if not trajectory.actions:
        lines += ["", "[[cases.checks]]", 'kind = "same_calls"']
    return "\n".join(lines) + "\n"


def _problem(recording: Recording, file: str, reasons: Sequence[str]) -> str:
    """Write a case whose answer was rated down: a judge checks that another answer is no worse, or solves the problems."""
    lines = [*_head(recording, file), "", "[[cases.checks]]", 'kind = "judge"']
    if reasons:
        problems = "; ".join(_printable(reason) for reason in reasons)
        lines.append(f"rubric = {_quote(REPORTED.format(problems=problems))}")
    else:
        lines += [f"rubric = {_quote(HELPS)}", "compare = true"]
    return "\n".join(lines) + "\n"


def _head(recording: Recording, file: str) -> list[str]:
    starts = [event.input for event in recording.events if isinstance(event, TurnStarted)]
    questions = [message.text for message in starts if message is not None]
    lines = ["[[cases]]", *(f"# {_printable(text)[:80]}" for text in questions[-1:])]
    return [*lines, f"name = {_quote(Path(file).stem)}", f"recording = {_quote(file)}"]


def _is_short(arguments: Mapping[str, Any]) -> bool:
    try:
        tomllib.loads(f"arguments = {to_toml(arguments)}")
    except tomllib.TOMLDecodeError:  # TOML has no null
        return False
    return len(encode_canonical(arguments)) <= 200


def _printable(text: str) -> str:
    return "".join(char for char in " ".join(text.split()) if char.isprintable())


def to_toml(value: Any) -> str:
    """Write a JSON value as an inline TOML value."""
    if isinstance(value, Mapping):
        pairs = (f"{_quote(key)} = {to_toml(item)}" for key, item in cast("Mapping[str, Any]", value).items())
        return "{ " + ", ".join(pairs) + " }" if value else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(to_toml(item) for item in cast("list[Any]", value)) + "]"
    return encode_canonical(value)  # TOML writes texts, numbers and booleans as JSON does


def _quote(text: str) -> str:
    return encode_canonical(text).replace("\x7f", "\\u007f")
