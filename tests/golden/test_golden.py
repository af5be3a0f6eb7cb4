"""Logs of every released version, read by this one: a turn that began there can go on here."""

import typing
from pathlib import Path

import pytest
from tests.golden.make import make

from everturn import wire
from everturn.core.events import Event, LogEvent, TurnEvent
from everturn.core.phases import Phase
from everturn.core.state import fold
from everturn.core.tree import MessageTree

GOLDEN = Path(__file__).parent
LOGS = sorted(GOLDEN.glob("v*/*.jsonl"))
OURS = sorted(GOLDEN.glob(f"v{wire.VERSION}/*.jsonl"))

DONE, FAILED, CANCELLED = Phase.COMPLETED, Phase.ERROR, Phase.CANCELLED
PHASES = {
    "plain": [DONE, DONE],
    "reasoning": [DONE],
    "gate_edited": [DONE],
    "denied": [DONE],
    "granted": [DONE, DONE],
    "limited": [DONE],
    "cancelled": [CANCELLED],
    "error": [FAILED],
    "max_steps": [DONE],
    "late": [CANCELLED, DONE],
    "fork": [DONE, DONE, DONE, DONE],
    "restarted": [DONE],
    "retried": [DONE],
    "reached_out": [DONE],
    "reviewed": [DONE],
    "steered": [DONE, DONE],
    "refused": [DONE, DONE, DONE],
    "handed_over": [DONE],
    "durable_tool": [DONE],
    "imported": [DONE],
    "switched": [DONE, DONE],
    "instructed": [DONE, DONE],
    "organized": [DONE, DONE],
    "rated": [DONE],
    "uploaded": [DONE, DONE],
    "compacted": [DONE, FAILED, DONE, DONE],
}


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_golden_log_is_read_and_every_turn_in_it_ends_as_it_did(path: Path):
    entries = wire.load_log(path.read_bytes())
    turns: dict[str, list[Event]] = {}
    tree = MessageTree()
    for entry in entries:
        tree.apply(entry.event)
        if isinstance(entry.event, TurnEvent):
            turns.setdefault(entry.event.turn, []).append(entry.event)
    states = [fold(events) for events in turns.values()]

    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert [state.phase for state in states] == PHASES[path.stem]
    for state in states:
        assert {name: tree.messages[name] for name in state.messages} == state.messages
    assert tree.title


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_a_golden_log_of_this_version_is_written_byte_for_byte_as_it_was(path: Path):
    assert wire.dump_log(wire.load_log(path.read_bytes())) == path.read_bytes()


def test_the_golden_logs_of_this_version_hold_every_type_of_event():
    events = [entry.event for path in OURS for entry in wire.load_log(path.read_bytes())]

    assert {type(event) for event in events} == set(typing.get_args(LogEvent))


def test_golden_logs_can_be_made_and_are_never_written_again(tmp_path: Path):
    make(tmp_path, [])
    names = sorted(path.name for path in tmp_path.rglob("*.jsonl"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}

    with pytest.raises(SystemExit, match="never written again"):
        make(tmp_path, [])

    assert names == sorted(f"{name}.jsonl" for name in PHASES)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
