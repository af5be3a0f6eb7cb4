"""What a log speaks of and what it says of permissions: blobs wherever they are named, grants, calls that were judged."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.helpers.stores import opened

from everturn.core.commands import LateResult
from everturn.core.events import (
    CallFinished,
    Event,
    FilesChanged,
    FilesReverted,
    GateOpened,
    LateResultReceived,
    NestedCallRequested,
    PermissionDecided,
    RevertStarted,
    TurnCancelled,
)
from everturn.core.gates import Gate
from everturn.core.parts import FilePart, Output
from everturn.core.store_ports import Store
from everturn.errors import GateClosed, UnknownMessage, UnreadableLog
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.export import export_session, import_session
from everturn.stores.import_check import check_log
from everturn.stores.memory import MemoryStore
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    call_started_events,
    claim_call,
    client_call_events,
    gate_opened_events,
    gate_resolved_with_grant,
    send_message,
    turn_ended_events,
    turn_started_events,
)

WHOLE, PRIVATE, PICTURE = "a" * 64, "b" * 64, "c" * 64
OUTPUT = Output("…", blob=WHOLE, private=PRIVATE, attachments=(FilePart(PICTURE, "image/png", 1),))


def review(output: Output | None) -> GateOpened:
    """A person is to read a result before the model does."""
    return GateOpened(
        turn="t", at=NOON, gate=Gate("t.gate", "t", "t.call", "mail", "{}", "h", kind="result", output=output)
    )


def test_every_blob_of_an_output_is_found_wherever_the_output_is():
    for record in (
        CallFinished(turn="t", call="c", state="completed", output=OUTPUT),
        LateResultReceived(turn="t", call="c", output=OUTPUT),
        LateResult(key="k", session="s", turn="t", call="c", output=OUTPUT),
        review(OUTPUT),
    ):
        assert referenced_blobs(record) == [WHOLE, PRIVATE, PICTURE]
    assert referenced_blobs(review(None)) == referenced_blobs(review(Output("all of it"))) == []


def test_the_trees_of_a_sessions_own_files_are_blobs_and_those_of_a_folder_are_not():
    changed = FilesChanged(turn="t", step=1, before=WHOLE, after=PRIVATE, blobs=(PICTURE,))
    reverted = FilesReverted(root="", before=PRIVATE, after=WHOLE)

    assert referenced_blobs(changed) == [WHOLE, PRIVATE, PICTURE]
    assert referenced_blobs(replace(changed, before="", blobs=())) == [PRIVATE]
    assert referenced_blobs(reverted) == [PRIVATE, WHOLE]
    assert referenced_blobs(RevertStarted(root="", before=PRIVATE, after=WHOLE, key="r")) == [PRIVATE, WHOLE]
    for event in (changed, reverted, RevertStarted(root="", before=PRIVATE, after=WHOLE, key="r")):
        assert referenced_blobs(replace(event, root="/home/ada")) == []


async def test_the_files_of_a_session_go_with_it_and_what_is_said_of_a_folder_does_not(store: Store, tmp_path: Path):
    first = MemoryStore()
    await first.admit(send_message())
    names = [await first.put_blob(data) for data in (b"a tree", b"another", b"a file")]
    changes: list[Event] = [
        FilesChanged(turn="t", at=NOON, step=1, before="", after=names[0], blobs=(names[2],)),
        FilesChanged(turn="t", at=NOON, step=1, before=names[0], after=names[1]),
        FilesChanged(turn="t", at=NOON, step=1, before="c" * 40, after="d" * 40, root="/home/ada"),
    ]
    ended = [CallFinished(turn="t", at=NOON, call="t.call", state="completed", output=Output("")), *turn_ended_events()]
    await first.append(
        "s", 0, [*turn_started_events(), *call_requested_events(), *call_started_events(), *changes, *ended]
    )
    await export_session(first, "s", tmp_path / "s.zip")

    await import_session(store, tmp_path / "s.zip", "copy")

    assert [await store.blob(name) for name in names] == [b"a tree", b"another", b"a file"]
    assert await store.recorded_trees("copy") == {"": names[1]}
    assert await first.recorded_trees("s") == {"": names[1], "/home/ada": "d" * 40}
    with pytest.raises(UnknownMessage):
        await store.blob("d" * 40)


async def test_a_call_that_waits_for_a_client_is_over_where_it_is_imported(store: Store, tmp_path: Path):
    first = MemoryStore()
    await first.admit(send_message())
    nested = NestedCallRequested(turn="t", at=NOON, call="t.made", parent="t.call", name="look", arguments="{}")
    before = [*call_requested_events(), *call_started_events(), nested]
    await first.append("s", 0, [*turn_started_events(), *before, *client_call_events()[len(before) - 1 :]])
    await first.admit(claim_call())
    await export_session(first, "s", tmp_path / "s.zip")

    await import_session(store, tmp_path / "s.zip")

    *_, finished, other, ended = [entry.event for entry in await store.events("s")]
    assert [(event.call, event.state) for event in (finished, other) if isinstance(event, CallFinished)] == [
        ("t.call", "cancelled"),
        ("t.made", "cancelled"),
    ]
    assert isinstance(ended, TurnCancelled)
    assert await store.gates("s") == await store.inbox("s") == []
    assert (await store.info("s")).due == 0.0
    with pytest.raises(GateClosed):
        await store.admit(claim_call())


def test_a_log_is_refused_in_which_a_call_starts_that_was_not_allowed():
    judged, begun = call_started_events()
    assert isinstance(judged, PermissionDecided)
    before = [*turn_started_events(), *call_requested_events()]

    check_log([*before, judged, begun])
    for wrong in ([begun], [replace(judged, allowed=False), begun], [replace(judged, hash="other"), begun]):
        with pytest.raises(UnreadableLog, match=r"event [56] cannot have happened"):
            check_log([*before, *wrong])


async def test_what_a_gate_showed_goes_with_its_session(store: Store, tmp_path: Path):
    private = await store.put_blob(b"what only the person may read")
    await store.admit(send_message())
    await store.append(
        "s",
        0,
        [
            *turn_started_events(),
            *call_requested_events(),
            *call_started_events(),
            review(Output("[1]", private=private)),
        ],
    )

    await export_session(store, "s", tmp_path / "s.zip")
    async with opened("memory", tmp_path) as other:
        await import_session(other, tmp_path / "s.zip")

        assert (await other.events("s"))[:7] == await store.events("s")
        assert await other.gates("s") == []
        assert await other.blob(private) == b"what only the person may read"


async def test_a_session_takes_no_grants_along(store: Store, tmp_path: Path):
    await store.admit(send_message())
    await store.append("s", 0, [*turn_started_events(), *gate_opened_events(), gate_resolved_with_grant("")])
    await export_session(store, "s", tmp_path / "granted.zip")

    await import_session(store, tmp_path / "granted.zip", "copy", "eve")

    assert [grant.id for grant in await store.grants("s", NOON)] == ["t.gate"]
    assert await store.grants("copy", NOON) == []
