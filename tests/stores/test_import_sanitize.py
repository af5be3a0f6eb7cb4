"""What a log may say that anybody may have written: nothing of our folders, of times to come, or of who of us did what."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from everturn.core.events import (
    CallFinished,
    Event,
    FilesChanged,
    FilesReverted,
    GateResolved,
    GrantRevoked,
    LateResultReceived,
    LeafSelected,
    MessageAdded,
    RevertStarted,
    StepFinished,
    TurnCompleted,
    TurnStarted,
)
from everturn.core.gates import GateResolution, Grant
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import FileChange, Output, Usage
from everturn.core.rules.policy import Rule
from everturn.errors import UnreadableLog
from everturn.stores.export import INBOX, LOG, MANIFEST, import_session
from everturn.stores.import_sanitize import sanitize_events
from everturn.stores.memory import MemoryStore
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    call_started_events,
    turn_ended_events,
    turn_started_events,
)
from everturn.wire import dump_event

GONE = (FileChange("a.txt", "deleted"),)
SETTLED = CallFinished(turn="t", at=NOON, call="t.call", state="completed", output=Output(""))
BEGUN = [*turn_started_events(), *call_requested_events(), *call_started_events(), SETTLED]


def changed(root: str, before: str = "b" * 64, after: str = "c" * 64, blobs: tuple[str, ...] = ()) -> FilesChanged:
    return FilesChanged(turn="t", at=NOON, step=1, before=before, after=after, root=root, changes=GONE, blobs=blobs)


def test_trees_of_folders_are_nobodys_and_the_sessions_own_stay() -> None:
    own = [
        changed(""),
        RevertStarted(at=NOON, root="", before="1", after="2", key="k"),
        FilesReverted(at=NOON, root="", before="1", after="2"),
    ]
    others = [replace(event, root="work") for event in own]
    assert sanitize_events([*own, *others], NOON) == [*own, replace(changed("work"), before="", after="")]


@pytest.mark.parametrize("at", [4e12, NOON + 1, 1e308, -5.0, -1e308])
def test_nothing_is_later_than_now_nor_before_there_were_clocks(at: float) -> None:
    (event,) = sanitize_events([LeafSelected(message=None, at=at)], NOON)
    assert event == LeafSelected(message=None, at=NOON if at > 0 else 0.0)
    assert sanitize_events([LeafSelected(message=None, at=7.0)], NOON) == [LeafSelected(message=None, at=7.0)]


def test_nobody_in_it_is_one_of_ours_where_it_is_said_who_brought_it() -> None:
    resolution = GateResolution(True, by="owner-ada")
    grant = Grant("g", Rule("pay", "allow"), by="owner-ada")
    message = Message("m", None, "user", by="owner-ada")
    log: list[Event] = [
        TurnStarted(turn="t", at=NOON, options=TurnOptions(agent="a", by="owner-ada")),
        TurnStarted(turn="t2", at=NOON, input=message),
        MessageAdded(turn="t2", at=NOON, message=message, command="k"),
        MessageAdded(turn="t2", at=NOON, message=replace(message, role="notice", by="notes")),
        GateResolved(turn="t", at=NOON, gate="g", call="c", resolution=resolution, grant=grant),
        GateResolved(turn="t", at=NOON, gate="g", call="c", resolution=replace(resolution, by="everturn")),
        GrantRevoked(at=NOON, grant="g", by="owner-ada"),
    ]
    sanitized = sanitize_events(log, NOON, "eve")
    assert sanitized == [
        TurnStarted(turn="t", at=NOON, options=TurnOptions(agent="a", by="eve")),
        TurnStarted(turn="t2", at=NOON, input=replace(message, by="import:owner-ada"), options=TurnOptions(by="eve")),
        MessageAdded(turn="t2", at=NOON, message=replace(message, by="import:owner-ada"), command="k"),
        MessageAdded(turn="t2", at=NOON, message=replace(message, role="notice", by="notes")),
        GateResolved(
            turn="t",
            at=NOON,
            gate="g",
            call="c",
            resolution=replace(resolution, by="import:owner-ada"),
            grant=replace(grant, by="import:owner-ada"),
        ),
        GateResolved(turn="t", at=NOON, gate="g", call="c", resolution=replace(resolution, by="import:everturn")),
        GrantRevoked(at=NOON, grant="g", by="import:owner-ada"),
    ]
    assert sanitize_events(sanitized, NOON, "eve") == sanitized
    settled, late = sanitize_events(
        [SETTLED, LateResultReceived(turn="t", at=NOON, call="c", output=Output("x"))], NOON, "eve"
    )
    assert isinstance(settled, CallFinished)
    assert isinstance(late, LateResultReceived)
    assert settled.output.untrusted
    assert late.output.untrusted
    assert sanitize_events([SETTLED], NOON) == [SETTLED]
    assert sanitize_events(log, NOON) == log


@pytest.mark.parametrize("used", [Usage(-1), Usage(1, -1), Usage(1, 1, written=-1), Usage(cost=-0.5)])
def test_less_than_nothing_was_never_used(used: Usage) -> None:
    for event in (
        StepFinished(turn="t", at=NOON, step=1, parts=(), finish="stop", usage=used),
        TurnCompleted(turn="t", at=NOON, usage=used),
    ):
        with pytest.raises(UnreadableLog, match="is negative"):
            sanitize_events([event], NOON)


# In a file -------------------------------------------------------------------------------------------------------------


def packed(path: Path, events: Sequence[Event], *blobs: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        manifest = {"format": "everturn.session", "version": 1, "session": "s", "head": len(events), "missing": []}
        out.writestr(MANIFEST, json.dumps(manifest))
        out.writestr(LOG, b"".join(dump_event(event) + b"\n" for event in events))
        out.writestr(INBOX, b"")
        for data in blobs:
            out.writestr(f"blobs/{name_of(data)}", data)
    return path


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def test_a_session_that_is_imported_has_no_trees_of_folders_and_no_times_to_come(tmp_path: Path) -> None:
    events = [replace(event, at=4e12) for event in [*BEGUN, changed("work"), *turn_ended_events()]]
    store = MemoryStore()
    await import_session(store, packed(tmp_path / "s.zip", events), by="eve", now=NOON)
    log = [entry.event for entry in await store.events("s")]
    assert {event.at for event in log} == {NOON}
    assert [(e.root, e.before, e.after) for e in log if isinstance(e, FilesChanged)] == [("work", "", "")]
    info = await store.info("s")
    assert (info.by, info.created, info.touched) == ("eve", NOON, NOON)


async def test_a_tree_in_a_file_names_only_what_is_in_the_file(tmp_path: Path) -> None:
    mine, theirs = b"mine", b"of another tenant"
    store = MemoryStore()
    await store.put_blob(theirs)

    def forged(leaf: bytes) -> Path:
        tree = json.dumps({"a.txt": {"blob": name_of(leaf), "size": len(leaf)}}).encode()
        last = changed("", before="", after=name_of(tree), blobs=(name_of(mine),))
        return packed(tmp_path / "s.zip", [*BEGUN, last, *turn_ended_events()], mine, tree)

    with pytest.raises(UnreadableLog, match="a file in its trees is not listed"):
        await import_session(store, forged(theirs))
    assert await store.sessions() == []
    assert await import_session(store, forged(mine)) == "s"
