"""A session goes into a file and comes out of it again, the same; what is no such file is refused."""

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.simulated_driver import Dice, Play
from tests.helpers.stores import opened

from everturn.core.commands import Send
from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    Entry,
    Event,
    FileUploadChanged,
    LeafSelected,
    TurnCancelled,
    TurnEvent,
    TurnFinishing,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import FilePart, Output, TextPart
from everturn.core.store_ports import Store
from everturn.errors import GateClosed, KeyConflict, UnknownMessage, UnknownSession, UnreadableLog
from everturn.stores import export
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.export import export_session, import_session
from everturn.stores.import_check import check_log
from everturn.stores.import_close import CALL_NOT_RUN
from everturn.stores.memory import MemoryStore
from everturn.testing.contracts.samples import (
    NOON,
    answer_gate,
    call_requested_events,
    call_started_events,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.wire import load_event

PICTURE, SOUND = b"a picture" * 100, b"a sound" * 20_000


async def with_picture(store: Store) -> Send:
    blob = await store.put_blob(PICTURE)
    return replace(send_message("k1"), parts=(TextPart("look"), FilePart(blob, "image/png", len(PICTURE))))


async def waiting_session(store: Store) -> None:
    """A turn that waits for a person, and a message behind it that waits for the turn."""
    asked_for = await with_picture(store)
    await store.admit(asked_for)
    events = turn_started_events(command="k1")
    assert isinstance(events[0], TurnStarted)
    message = Message("t.in", None, "user", asked_for.parts or (), turn="t")
    await store.append("s", 0, [replace(events[0], input=message), *events[1:], *gate_opened_events()])
    blob = await store.put_blob(SOUND)
    await store.admit(replace(send_message("k2", turn="t2"), parts=(FilePart(blob, "audio/wav", len(SOUND)),)))


async def finished_session(store: Store) -> None:
    """The same, with both turns over."""
    await waiting_session(store)
    ending, terminal = turn_ended_events()
    settled = CallFinished(turn="t", at=NOON, call="t.call", state="cancelled", output=Output(""))
    await store.append(
        "s", 6, [ending, settled, terminal, *turn_started_events("t2", "t.out", command="k2"), *turn_ended_events("t2")]
    )


async def everything(store: Store, session: str) -> list[object]:
    """What can be read of a session."""
    tree = await store.tree(session)
    return [
        await store.events(session),
        await store.head(session),
        await store.open_turns(session),
        tree,
        await store.path(session, tree.leaf),
        [replace(row, resolution=None) for row in await store.gates(session)],
        [replace(command, session="", tenant="") for command in await store.inbox(session)],
        replace(await store.info(session), id="", tenant=""),
    ]


async def test_what_is_imported_is_what_was_exported(store: Store, tmp_path: Path) -> None:
    await finished_session(store)

    await export_session(store, "s", tmp_path / "s.zip")
    other = MemoryStore()
    assert await import_session(other, tmp_path / "s.zip") == "s"

    assert await everything(other, "s") == await everything(store, "s")
    assert await other.blob(hashlib.sha256(PICTURE).hexdigest()) == PICTURE


async def test_a_turn_that_was_under_way_is_over_where_it_is_imported(store: Store, tmp_path: Path) -> None:
    first = MemoryStore()
    await waiting_session(first)
    await first.admit(answer_gate())
    await export_session(first, "s", tmp_path / "s.zip")

    await import_session(store, tmp_path / "s.zip")

    *before, ending, settled, ended = [entry.event for entry in await store.events("s")]
    assert before == [entry.event for entry in await first.events("s")]
    assert isinstance(ending, TurnFinishing)
    assert ending.outcome == "cancelled"
    assert isinstance(settled, CallFinished)
    assert (settled.call, settled.state) == ("t.call", "cancelled")
    assert settled.output.text == CALL_NOT_RUN
    assert isinstance(ended, TurnCancelled)
    assert not (await store.info("s")).is_awake
    assert await store.gates("s") == await store.inbox("s") == await store.open_turns("s") == []
    assert await store.claim("s", NOON) is None
    with pytest.raises(GateClosed):
        await store.admit(answer_gate("again"))
    with pytest.raises(UnknownMessage):  # only a command that is gone spoke of it
        await store.blob(hashlib.sha256(SOUND).hexdigest())


async def test_one_goes_on_in_an_imported_session_by_saying_something_new(store: Store, tmp_path: Path) -> None:
    first = MemoryStore()
    await waiting_session(first)
    await export_session(first, "s", tmp_path / "s.zip")
    await import_session(store, tmp_path / "s.zip")

    assert (await store.admit(send_message("k3", turn="t3"))).is_new
    claim = await store.claim("s", NOON)
    assert claim is not None
    assert list(claim.turns) == []
    assert (
        await store.append("s", 9, [*turn_started_events("t3", "t.out", command="k3"), *turn_ended_events("t3")]) == 13
    )


async def test_a_result_that_was_to_come_later_does_not_come(store: Store, tmp_path: Path) -> None:
    first = MemoryStore()
    await first.admit(send_message())
    settled = CallFinished(turn="t", at=NOON, call="t.call", state="cancelled", output=Output(""), still_running=True)
    ending, terminal = turn_ended_events()
    await first.append(
        "s", 0, [*turn_started_events(), *call_requested_events(), *call_started_events(), ending, settled]
    )
    await export_session(first, "s", tmp_path / "ending.zip")
    await first.append("s", 8, [terminal])
    await export_session(first, "s", tmp_path / "over.zip")

    for name in ("ending", "over"):
        await import_session(store, tmp_path / f"{name}.zip", name)

        kinds = [type(entry.event) for entry in (await store.events(name))[7:]]
        assert sorted(kind.__name__ for kind in kinds) == ["CallFinished", "LateResultReceived", "TurnCompleted"]
        assert not (await store.info(name)).is_awake


async def test_the_same_session_gives_the_same_bytes(store: Store, tmp_path: Path) -> None:
    await finished_session(store)
    other = MemoryStore()

    await export_session(store, "s", tmp_path / "1.zip")
    await import_session(other, tmp_path / "1.zip")
    await export_session(other, "s", tmp_path / "2.zip")

    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()
    assert sorted(name for name in os.listdir(tmp_path) if ".zip" in name) == ["1.zip", "2.zip"]


async def test_a_session_is_imported_under_another_name_and_for_another_tenant(store: Store, tmp_path: Path) -> None:
    await finished_session(store)
    await export_session(store, "s", tmp_path / "s.zip")

    assert await import_session(store, tmp_path / "s.zip", session="copy", tenant="acme") == "copy"

    assert await everything(store, "copy") == await everything(store, "s")
    with pytest.raises(UnknownSession):
        await store.admit(replace(send_message("x", turn="t9"), session="copy"))
    assert (await store.admit(replace(send_message("x", turn="t9"), session="copy", tenant="acme"))).is_new


async def test_a_session_that_is_there_is_not_written_over(store: Store, tmp_path: Path) -> None:
    await waiting_session(store)
    await export_session(store, "s", tmp_path / "s.zip")
    before = await everything(store, "s")

    with pytest.raises(KeyConflict):
        await import_session(store, tmp_path / "s.zip")

    assert await everything(store, "s") == before


async def test_a_session_that_is_not_there_leaves_no_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UnknownSession):
        await export_session(store, "nobody", tmp_path / "s.zip")
    assert not [name for name in os.listdir(tmp_path) if ".zip" in name]


async def test_a_blob_that_was_not_there_is_not_asked_for(tmp_path: Path) -> None:
    store, other = MemoryStore(), MemoryStore()
    await finished_session(store)
    store._blobs.clear()
    await export_session(store, "s", tmp_path / "s.zip")

    await import_session(other, tmp_path / "s.zip")

    assert await everything(other, "s") == await everything(store, "s")


# Any session -------------------------------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """A few turns, one below another or beside it; the last may be anywhere on its way."""
    log: list[Event] = []
    ends: list[str | None] = [None]
    for number in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from(ends))
        play = Play(Dice(draw(st.binary(min_size=64, max_size=128))), f"t{number}", parent).to_end()
        events: Sequence[TurnEvent] = play.log
        if draw(st.booleans()):
            events = events[: draw(st.integers(1, len(events)))]
        log += events
        ends += [event.message.id for event in events if isinstance(event, AnswerStarted)]
        if draw(st.booleans()):
            log.append(LeafSelected(message=draw(st.sampled_from(ends))))
    return log


KINDS = st.sampled_from(["memory", "sqlite"])


@settings(max_examples=60, deadline=None)
@given(logs(), KINDS, KINDS)
async def test_any_session_comes_out_as_it_went_in_and_is_over(log: list[Event], before: str, after: str) -> None:
    with TemporaryDirectory() as source, TemporaryDirectory() as two:
        async with opened(before, Path(source)) as store, opened(after, Path(two)) as other:
            await store.restore("s", "local", log)
            await store.admit(await with_picture(store))
            await export_session(store, "s", Path(source) / "s.zip")
            await import_session(other, Path(source) / "s.zip")
            found = await other.events("s")
            expected = [event for event in log if not isinstance(event, FileUploadChanged)]  # an import drops uploads
            assert found[: len(expected)] == [Entry(seq, event) for seq, event in enumerate(expected, 1)]
            assert all(
                turn.phase.is_terminal and not turn.still_running
                for turn in check_log([entry.event for entry in found])
            )
            assert not (await other.info("s")).is_awake
            assert await other.gates("s") == await other.inbox("s") == await other.open_turns("s") == []
            if not await store.open_turns("s") and len(found) == len(log):
                assert (await everything(other, "s"))[:4] == (await everything(store, "s"))[:4]


# Hostile files ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def entries(tmp_path: Path) -> dict[str, bytes]:
    """What a good file holds."""
    store = MemoryStore()
    await waiting_session(store)
    await export_session(store, "s", tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path: Path, entries: dict[str, bytes], packed: bool = False) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            is_packed = packed or not name.startswith("blobs/")
            archive.writestr(name, data, zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED)
    return path


async def refused(file: Path) -> str:
    """Import a file into an empty store, and see that it is refused and nothing was written."""
    store = MemoryStore()
    with pytest.raises(UnreadableLog) as error:
        await import_session(store, file)
    assert await store.sessions() == []
    assert store._blobs == {}
    return str(error.value)


def blobs(entries: dict[str, bytes]) -> list[str]:
    return [name for name in entries if name.startswith("blobs/")]


def manifest(entries: dict[str, bytes], **changes: object) -> dict[str, bytes]:
    return {**entries, "manifest.json": json.dumps({**json.loads(entries["manifest.json"]), **changes}).encode()}


async def test_a_file_packed_by_another_program_is_taken(entries: dict[str, bytes], tmp_path: Path) -> None:
    assert await import_session(MemoryStore(), pack(tmp_path / "x.zip", entries)) == "s"


Change = Callable[[dict[str, bytes]], dict[str, bytes]]
HOSTILE: dict[str, tuple[str, Change]] = {
    "no log": ("no log.jsonl", lambda e: {name: data for name, data in e.items() if name != "log.jsonl"}),
    "no manifest": ("no manifest.json", lambda e: {name: data for name, data in e.items() if name != "manifest.json"}),
    "a way out": ("unknown entry", lambda e: {**e, "../../etc/passwd": b"x"}),
    "a blob with a way out": ("unknown entry", lambda e: {**e, f"blobs/../{'a' * 61}": b"x"}),
    "a folder": ("unknown entry", lambda e: {**e, "blobs/": b""}),
    "another blob": ("not those", lambda e: {**e, f"blobs/{hashlib.sha256(b'x').hexdigest()}": b"x"}),
    "other bytes": ("do not match", lambda e: {**e, blobs(e)[0]: b"x" + e[blobs(e)[0]][1:]}),
    "a blob less": ("not those", lambda e: {name: data for name, data in e.items() if name != blobs(e)[0]}),
    "an event less": ("should have", lambda e: {**e, "log.jsonl": e["log.jsonl"].partition(b"\n")[2]}),
    "half an event": ("not an event", lambda e: {**e, "log.jsonl": e["log.jsonl"][:-20]}),
    "events twice": (
        "cannot have happened",
        lambda e: manifest({**e, "log.jsonl": e["log.jsonl"] * 2}, head=12),
    ),
    "a newer event": ("upgrade", lambda e: {**e, "log.jsonl": e["log.jsonl"].replace(b'"v":1', b'"v":9')}),
    "a newer format": ("upgrade", lambda e: manifest(e, version=2)),
    "another format": ("not a", lambda e: manifest(e, format="docx")),
    "a head that is not there": ("should have", lambda e: manifest(e, head=7)),
    "no JSON": ("not an exported", lambda e: {**e, "manifest.json": b"\xff"}),
    "a deep manifest": ("not an exported", lambda e: {**e, "manifest.json": b"[" * 100_000}),
    "another session's command": (
        "another session",
        lambda e: {**e, "inbox.jsonl": e["inbox.jsonl"].replace(b'"session":"s"', b'"session":"z"')},
    ),
    "no command": ("cannot be read", lambda e: {**e, "inbox.jsonl": b"{}\n"}),
    "a gate of another turn": (
        "another turn",
        lambda e: {**e, "log.jsonl": e["log.jsonl"].replace(b'"id":"t.gate","turn":"t"', b'"id":"t.gate","turn":"z"')},
    ),
    "a circle": (
        "no message",
        lambda e: {**e, "log.jsonl": e["log.jsonl"].replace(b'"parent":"t.in"', b'"parent":"t.out"')},
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_file_that_is_not_right_is_refused_and_says_why(
    kind: str, entries: dict[str, bytes], tmp_path: Path
) -> None:
    says, change = HOSTILE[kind]
    assert says in await refused(pack(tmp_path / "x.zip", change(entries)))


async def test_a_blob_that_is_packed_is_refused(entries: dict[str, bytes], tmp_path: Path) -> None:
    assert "blobs must not be" in await refused(pack(tmp_path / "x.zip", entries, packed=True))


async def test_an_entry_that_is_there_twice_is_refused(entries: dict[str, bytes], tmp_path: Path) -> None:
    file = pack(tmp_path / "x.zip", entries)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(file, "a") as archive:
        archive.writestr("log.jsonl", b"")
    assert "twice" in await refused(file)


async def test_a_log_that_unpacks_to_more_than_fits_is_refused_by_its_claim(
    entries: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ENTRY_LIMIT", 1_000_000)
    file = pack(tmp_path / "x.zip", {**entries, "log.jsonl": b" " * 10_000_000})
    assert file.stat().st_size < 500_000
    assert "claims 10,000,000 bytes" in await refused(file)


async def test_a_claim_that_is_too_small_is_found_out(entries: dict[str, bytes], tmp_path: Path) -> None:
    file = pack(tmp_path / "x.zip", {**entries, "log.jsonl": b" " * 10_000_000})
    data = file.read_bytes()
    file.write_bytes(data.replace((10_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little")))
    await refused(file)


@pytest.mark.parametrize("kind", ["empty", "text", "half", "without its end"])
async def test_a_file_that_is_no_zip_is_refused(kind: str, entries: dict[str, bytes], tmp_path: Path) -> None:
    file = pack(tmp_path / "x.zip", entries)
    whole = file.read_bytes()
    cut = {"empty": b"", "text": b"hello", "half": whole[: len(whole) // 2], "without its end": whole[:-1]}
    file.write_bytes(cut[kind])
    await refused(file)


@settings(max_examples=150, deadline=None)
@given(st.data())
async def test_a_file_with_a_damaged_byte_is_refused_or_means_the_same(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        store, other, file = MemoryStore(), MemoryStore(), Path(name) / "s.zip"
        await waiting_session(store)
        await export_session(store, "s", file)
        await import_session(store, file, "same")
        same = await everything(store, "same")
        whole = bytearray(file.read_bytes())
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
        file.write_bytes(whole)
        try:
            imported = await import_session(other, file)
        except UnreadableLog:
            assert await other.sessions() == []
        else:
            assert await everything(other, imported) == same


async def test_a_session_of_an_older_version_is_read_by_its_upgrades(entries: dict[str, bytes], tmp_path: Path) -> None:
    golden = sorted((Path(__file__).parent.parent / "golden" / "v1").glob("*.jsonl"))
    assert golden
    for log in golden:
        lines = log.read_bytes()
        store = MemoryStore()
        gone = sorted(
            {name for line in lines.splitlines() for name in referenced_blobs(load_event(line))}
        )  # a golden log is only a log
        file = pack(
            tmp_path / "x.zip",
            manifest(
                {"manifest.json": entries["manifest.json"], "log.jsonl": lines, "inbox.jsonl": b""},
                head=len(lines.splitlines()),
                missing=gone,
            ),
        )
        await import_session(store, file)
        uploads = lines.count(b'"type":"FileUploadChanged"')  # an import drops them
        assert await store.head("s") == len(lines.splitlines()) - uploads
