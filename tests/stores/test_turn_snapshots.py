"""Snapshots of long turns: a snapshot and the events after it fold to the same as all events, or it is ignored."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from benchmarks.long_logs import turn_events
from hypothesis import assume, given, settings
from msgspec.structs import replace
from tests.helpers.simulated_driver import Dice, dice
from tests.helpers.stores import opened
from tests.turn.foreign_logs import foreign_log

from everturn import turn_snapshot, wire
from everturn.core.decide import decide
from everturn.core.events import Entry, Event, LateResultReceived, TurnEvent
from everturn.core.parts import Output
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import TurnSnapshot
from everturn.core.tree import MessageTree
from everturn.running.ledger import Ledger
from everturn.stores.sql import append
from everturn.stores.sql.database import Statement
from everturn.stores.sql.projections import SessionProjection, dump_live_turn, load_live_turn
from everturn.stores.sql.store import SqlStore
from everturn.testing import MemoryBus, MemoryStore
from everturn.testing.contracts.samples import send_message
from everturn.turn_snapshot import SNAPSHOT_EVENTS, fold_fingerprint, load_snapshot, take_snapshot

LOGS = sorted((Path(__file__).parents[1] / "golden").glob("v*/*.jsonl"))


def turns_of(entries: Sequence[Entry]) -> list[list[Entry]]:
    turns: dict[str, list[Entry]] = {}
    for entry in entries:
        if isinstance(entry.event, TurnEvent):
            turns.setdefault(entry.event.turn, []).append(entry)
    return list(turns.values())


def project(entries: Sequence[Entry]) -> SessionProjection:
    return SessionProjection.from_entries("local", entries[-1].seq, None, "", "", entries)


def plain(projection: SessionProjection) -> object:
    """A projection without what may differ: whether a message is still the object that was added."""
    turns = {turn: replace(live, messages={}) for turn, live in projection.turns.items()}
    names = {turn: list(live.messages) for turn, live in projection.turns.items()}
    tree = projection.tree
    return turns, names, tree.messages, tree.children, tree.calls, tree.writing, projection.head


def check_every_position(entries: Sequence[Entry]) -> int:
    """Check one turn; returns the number of positions."""
    whole = fold(entry.event for entry in entries)
    checked = 0
    for at in range(1, len(entries)):
        before = fold(entry.event for entry in entries[:at])
        snapshot = take_snapshot(before, entries[at - 1].seq)
        if snapshot is None:
            assert before.phase.is_terminal
            continue
        state = load_snapshot(snapshot)
        assert state == before
        assert state is not None
        assert state.step is None or all(state.calls[call.id] is call for call in state.step.calls)
        assert decide(state, ("a", "b")) == decide(before, ("a", "b"))
        live = project(entries[:at]).turns[state.id]
        folded = [(state, load_live_turn(dump_live_turn(live), state))]
        resumed = SessionProjection.from_entries("local", entries[-1].seq, None, "", "", entries[at:], folded)
        assert plain(resumed) == plain(project(entries))
        state = load_snapshot(snapshot)
        assert state is not None
        for entry in entries[at:]:
            state.apply(cast("TurnEvent", entry.event))
        assert state == whole
        checked += 1
    return checked


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_at_every_position_of_a_golden_log_a_snapshot_and_the_rest_are_the_whole(path: Path) -> None:
    checked = [check_every_position(entries) for entries in turns_of(wire.load_log(path.read_bytes()))]
    assert sum(checked) > 2


@given(dice)
@settings(max_examples=60)
def test_at_every_position_of_a_random_turn_a_snapshot_and_the_rest_are_the_whole(dice: Dice) -> None:
    log = foreign_log(dice)
    assume(log)
    check_every_position([Entry(seq, wire.load_event(wire.dump_event(event))) for seq, event in enumerate(log, 1)])


async def long_turn(store: SqlStore | MemoryStore, steps: int = 60) -> list[Event]:
    """Write an open turn through a ledger, as a driver does."""
    await store.admit(send_message("k0", "s", "t0"))
    claim = await store.claim("s", 1.0)
    assert claim is not None
    ledger = Ledger("s", claim, store, MemoryBus(), lambda session, state, phase: None)
    events = turn_events(0, steps, 2, is_over=False)
    for start in range(0, len(events), 8):
        await ledger.commit(events[start : start + 8])
    return events


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.live)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlStore | MemoryStore]:
    async with opened(request.param, tmp_path) as backend:
        yield cast("SqlStore", backend)


async def state_of(store: SqlStore | MemoryStore) -> tuple[TurnState, int, int]:
    """The turn as a new driver finds it, and how many turns were folded from a snapshot, and how many events were read."""
    if isinstance(store, SqlStore):
        store._projections.clear()
    claim = await store.claim("s", 1.0)
    assert claim is not None
    folded = len(claim.folded)
    (state,) = claim.fold_turns()
    return state, folded, sum(map(len, claim.turns))


async def test_a_new_driver_reads_the_snapshot_and_what_came_after_it(store: SqlStore | MemoryStore) -> None:
    events = await long_turn(store)
    state, folded, read = await state_of(store)
    assert (state, folded) == (fold(events), 1)
    assert read < SNAPSHOT_EVENTS < len(events)
    # Another one goes on, and ends the turn.
    claim = await store.claim("s", 1.0)
    assert claim is not None
    ledger = Ledger("s", claim, store, MemoryBus(), lambda session, state, phase: None)
    for adopted in claim.fold_turns():
        ledger.adopt(adopted)
    rest = turn_events(0, 200, 2)[len(events) :]
    for start in range(0, len(rest), 8):
        await ledger.commit(rest[start : start + 8])
    tree = MessageTree()
    for entry in await store.events("s"):
        tree.apply(entry.event)
    assert await store.path("s", "t0.out") == tree.path("t0.out")
    assert await snapshots_in(store) == []
    spent = await store.spent(session="s")
    assert (spent.steps, spent.calls) == (201, 400)


async def snapshots_in(store: SqlStore | MemoryStore) -> list[TurnSnapshot]:
    if isinstance(store, MemoryStore):
        return list(store._sessions["s"].snapshots.values())

    def operation() -> append.Operation[list[TurnSnapshot]]:
        rows = yield append.Query(append.LIVE_TAILS, ("s",))
        return [TurnSnapshot(turn, seq, code, body) for is_event, seq, body, turn, code, _ in rows if not is_event]

    return await store._database.read(operation)


@pytest.mark.parametrize("change", ["code", "body", "seq"])
async def test_a_snapshot_of_other_code_or_with_other_bytes_is_ignored_with_one_line_in_the_log(
    change: str, store: SqlStore | MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    events = await long_turn(store)
    (snapshot,) = await snapshots_in(store)
    if change == "code":
        monkeypatch.setattr(turn_snapshot, "fold_fingerprint", lambda: "the next release")
    else:
        await damage(store, snapshot, change)
    with caplog.at_level(logging.INFO, "everturn"):
        state, folded, read = await state_of(store)
    assert (state, folded, read) == (fold(events), 0, len(events))
    assert len([record for record in caplog.records if "snapshot" in record.message]) == 1
    if isinstance(store, SqlStore):
        head = await store.head("s")
        await store.append("s", head, turn_events(0, 60, 2)[len(events) :])
        assert await all_rows(store) == []


async def damage(store: SqlStore | MemoryStore, snapshot: TurnSnapshot, change: str) -> None:
    at = len(snapshot.body) // 2
    body = snapshot.body[:at] + bytes([snapshot.body[at] ^ 1]) + snapshot.body[at + 1 :]
    if isinstance(store, MemoryStore):
        other = replace(snapshot, body=body) if change == "body" else replace(snapshot, seq=snapshot.seq - 1)
        store._sessions["s"].snapshots["t0"] = other
        return
    text = {
        "body": ("UPDATE turn_snapshots SET state = ?", "UPDATE turn_snapshots SET state = $1"),
        "seq": ("UPDATE turn_snapshots SET seq = ?", "UPDATE turn_snapshots SET seq = $1"),
    }[change]
    value = body if change == "body" else snapshot.seq - 1

    def operation(_: bool) -> append.Operation[None]:
        yield append.Query(Statement(f"damage {change}", *text), (value,))

    await store._database.write(operation, "s")


async def all_rows(store: SqlStore) -> list[str]:
    sqlite, postgres = (
        "SELECT turn FROM turn_snapshots WHERE session = ?",
        (
            "SELECT p.n, s.turn FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)"
            " JOIN turn_snapshots s ON s.session = p.session"
        ),
    )

    def operation() -> append.Operation[list[str]]:
        rows = yield append.Query(Statement("all snapshots", sqlite, postgres, returns=True), ("s",))
        return [row[0] for row in rows]

    return await store._database.read(operation)


def test_no_changed_byte_of_a_snapshot_changes_the_state() -> None:
    state = fold(turn_events(0, 3, 2, is_over=False))
    snapshot = take_snapshot(state, 30)
    assert snapshot is not None
    for at in range(0, len(snapshot.body), 7):
        for bit in (1, 32, 128):
            body = snapshot.body[:at] + bytes([snapshot.body[at] ^ bit]) + snapshot.body[at + 1 :]
            assert load_snapshot(replace(snapshot, body=body)) is None
    assert load_snapshot(replace(snapshot, body=b"")) is None
    assert load_snapshot(replace(snapshot, turn="t1")) is None
    assert load_snapshot(snapshot) == state


def test_the_fingerprint_changes_with_any_file_of_the_fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "everturn"
    for name in ("core/state.py", "core/rules/policy.py", "stores/sql/projections.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("first")
    monkeypatch.setattr("importlib.resources.files", lambda name: package)
    seen: list[str] = []
    for name in ("", "core/state.py", "core/rules/policy.py", "stores/sql/projections.py"):
        if name:
            (package / name).write_text("second")
        seen.append(fold_fingerprint.__wrapped__())
    assert len(set(seen)) == 4
    assert fold_fingerprint.__wrapped__() == seen[-1]


async def test_a_short_turn_has_no_snapshot(store: SqlStore | MemoryStore) -> None:
    await long_turn(store, 10)
    assert await snapshots_in(store) == []


async def test_a_ledger_that_began_a_log_knows_which_indexes_it_has() -> None:
    store = MemoryStore()
    await store.admit(send_message("k0", "s", "t0"))
    claim = await store.claim("s", 1.0)
    assert claim is not None
    ledger = Ledger("s", claim, store, MemoryBus(), lambda session, state, phase: None)
    assert ledger.may_have_indexed("late")  # only the store knows
    ledger.start_empty()
    assert not ledger.may_have_indexed("late")
    await ledger.commit([LateResultReceived(turn="t9", at=1.0, call="t9-1-1", output=Output("late"))])
    assert ledger.may_have_indexed("late")
    assert not ledger.may_have_indexed("result")
