"""What nobody needs goes, what somebody wants gone is gone, and nothing else is lost."""

import asyncio
import hashlib
import os
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.helpers.stores import SQL, opened_sql

from everturn.core.commands import Cancel, Send
from everturn.core.events import CallFinished, Event, LateResultReceived, TitleSet, TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import FilePart, Output, TextPart
from everturn.errors import KeyConflict, SessionBusy, Stale, UnknownMessage, UnknownSession
from everturn.stores.sql.blobs import CHUNK, ROW_LIMIT
from everturn.stores.sql.retention import TRIM_AFTER, RetentionResult, stored_command, trim_command
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import (
    NOON,
    answer_gate,
    gate_opened_events,
    late_result_command,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.wire import dump_command

DAY = 86_400.0
SMALL, LARGE = b"small " * 10, b"large " * ROW_LIMIT


@pytest.fixture(params=SQL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlStore]:
    async with opened_sql(request.param, tmp_path, may_be_used=False) as store:
        yield store


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def talk(store: SqlStore, session: str, text: str, *blobs: str, turn: str = "t", title: str = "") -> None:
    """A turn from its beginning to its end."""
    parts = (TextPart(text), *(FilePart(blob, "image/png", 1) for blob in blobs))
    await store.admit(replace(send_message(turn, session, turn), parts=parts))
    first, answer = turn_started_events(turn, (await store.info(session)).leaf, text, turn)
    assert isinstance(first, TurnStarted)
    message = Message(f"{turn}.in", first.parent, "user", parts, turn=turn)
    events: list[Event] = [replace(first, input=message), answer, *turn_ended_events(turn)]
    if title:
        events.insert(-1, TitleSet(turn=turn, title=title))
    await store.append(session, await store.head(session), events)


# Erasing ------------------------------------------------------------------------------------------------------------


async def test_an_erased_session_is_gone_and_its_name_is_not_given_again(store: SqlStore) -> None:
    await talk(store, "s", "hello", title="A title")
    await talk(store, "other", "hello")
    await store.erase("s")

    for reading in (
        store.events("s"),
        store.head("s"),
        store.tree("s"),
        store.path("s", None),
        store.info("s"),
        store.inbox("s"),
        store.open_turns("s"),
        store.gates("s"),
        store.claim("s", NOON),
    ):
        with pytest.raises(UnknownSession, match="was erased"):
            await reading
    with pytest.raises(UnknownSession, match="was erased"):
        await store.admit(send_message("new", turn="t9"))
    with pytest.raises((UnknownSession, Stale)):
        await store.append("s", 4, turn_ended_events())
    with pytest.raises(KeyConflict):
        await store.restore("s", "local", turn_started_events())
    assert [info.id for info in await store.sessions()] == ["other"]
    assert [session for session, _ in await store.search("hello")] == ["other"]
    assert len(await store.events("other")) == 4


async def test_another_tenant_does_not_learn_that_there_was_a_session(store: SqlStore) -> None:
    await talk(store, "s", "hello")
    await store.erase("s")
    with pytest.raises(UnknownSession, match="there is no session"):
        await store.admit(replace(send_message("new"), tenant="eve"))


async def test_erasing_again_is_quiet_and_what_never_was_is_unknown(store: SqlStore) -> None:
    await talk(store, "s", "hello")
    await store.erase("s")
    await store.erase("s")
    with pytest.raises(UnknownSession):
        await store.erase("nobody")


async def test_a_session_with_work_to_do_is_not_erased(store: SqlStore) -> None:
    await store.admit(send_message())
    with pytest.raises(SessionBusy):  # a command nobody has acted on
        await store.erase("s")
    await store.append("s", 0, [*turn_started_events(), *gate_opened_events()])
    with pytest.raises(SessionBusy):  # a turn that waits for a person
        await store.erase("s")
    await store.admit(answer_gate())
    assert len(await store.events("s")) == 6

    settled = CallFinished(turn="t", call="t.call", state="cancelled", output=Output("cancelled"), still_running=True)
    ending, end = turn_ended_events(command="a")
    await store.append("s", 6, [ending, settled, end])
    with pytest.raises(SessionBusy):  # a tool that is still out
        await store.erase("s")
    await store.admit(late_result_command("l"))
    arrived = LateResultReceived(turn="t", call="t.call", output=Output("late"), command="l")
    await store.append("s", 9, [arrived])
    await store.erase("s")


async def test_a_driver_that_is_overtaken_by_an_erasure_writes_no_more(store: SqlStore) -> None:
    await store.admit(send_message())
    claim = await store.claim("s", NOON)
    assert claim is not None
    await store.append("s", 0, [*turn_started_events(), *turn_ended_events()], claim.epoch)
    await store.erase("s")
    with pytest.raises((UnknownSession, Stale)):
        await store.append("s", 4, turn_started_events("t2", "t.out"), claim.epoch)


CANARY = "xylophonecanary"


async def test_nothing_of_an_erased_session_is_left_in_any_file(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "store.db")
    for number in range(30):  # neighbours, so that pages are shared and split
        await talk(store, f"n{number}", f"a neighbour {number} " * 20)
        large = await store.put_blob(f"{CANARY} {number}".encode() * 8000)
        small = await store.put_blob(f"{CANARY} {number}".encode() * 4)
        text = f"{CANARY} {number} " * (1 + 7 * number)
        await talk(store, "s", text, large, small, turn=f"t{number}", title=f"{CANARY} {number}")
        await talk(store, f"n{number}", f"the neighbour again {number} " * 30, turn="t2")
    assert any(CANARY.encode() in file.read_bytes() for file in files(tmp_path))

    await store.erase("s")
    report = await store.run_maintenance(time.time() + 2 * DAY)

    assert (report.blobs, report.files) == (60, 0)
    assert [file.name for file in files(tmp_path) if CANARY.encode() in file.read_bytes()] == []
    assert len(await store.search("neighbour")) == 50
    await store.aclose()
    assert [file.name for file in files(tmp_path) if CANARY.encode() in file.read_bytes()] == []


@pytest.mark.parametrize("seed", [1, 4])
async def test_no_copy_of_an_erased_session_is_left_where_pages_were_divided(tmp_path: Path, seed: int) -> None:
    # With these two, writing zeros over what is deleted leaves a copy behind; only a new file has none.
    dice, store = random.Random(seed), SqlStore.sqlite(tmp_path / "store.db")
    for number in range(120):
        session = dice.choice(["s", "s", "n0", "n1", "n2", "n3", "n4"])
        word = f"{CANARY}{number}" if session == "s" else f"neigh{number}"
        text = f"{word} " * dice.choice([1, 2, 5, 20, 100, 400, 1000])
        await talk(store, session, text, turn=f"t{number}", title=word)

    await store.erase("s")
    await store.run_maintenance(time.time())

    assert [file.name for file in files(tmp_path) if CANARY.encode() in file.read_bytes()] == []
    await store.aclose()


async def test_a_store_that_was_closed_after_an_erasure_is_cleaned_by_the_next_process(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "store.db")
    await talk(store, "s", f"{CANARY} " * 50, title=CANARY)
    await talk(store, "n", "a neighbour")
    await store.erase("s")
    await store.aclose()

    store = SqlStore.sqlite(tmp_path / "store.db")
    await store.run_maintenance(time.time())
    assert [file.name for file in files(tmp_path) if CANARY.encode() in file.read_bytes()] == []
    await store.aclose()


async def test_sessions_that_were_idle_for_too_long_are_erased_and_those_that_wait_are_not(store: SqlStore) -> None:
    for number in range(5):
        await talk(store, f"old{number}", "hello")
    await store.admit(send_message(session="waits"))
    await store.append("waits", 0, [*turn_started_events(), *gate_opened_events()])
    await store.admit(send_message(session="new", at=NOON + 50 * DAY))
    await store.append(
        "new", 0, [replace(event, at=NOON + 50 * DAY) for event in (*turn_started_events(), *turn_ended_events())]
    )

    report = await store.run_maintenance(NOON + 60 * DAY, idle=30 * DAY)

    assert report.sessions == 5
    assert sorted(info.id for info in await store.sessions()) == ["new", "waits"]
    assert (await store.run_maintenance(NOON + 60 * DAY, idle=30 * DAY)).sessions == 0


# Blobs ---------------------------------------------------------------------------------------------------------------


async def test_blobs_that_nobody_mentions_go_after_a_while(store: SqlStore, tmp_path: Path) -> None:
    referenced = [await store.put_blob(data + b"kept") for data in (SMALL, LARGE)]
    gone = [await store.put_blob(data) for data in (SMALL, LARGE)]
    await talk(store, "s", "look", *referenced)

    assert (await store.run_maintenance(time.time() + 0.5 * DAY)).blobs == 0
    report = await store.run_maintenance(time.time() + 2 * DAY)

    assert (report.blobs, report.bytes) == (2, len(SMALL) + len(LARGE))
    for name in gone:
        with pytest.raises(UnknownMessage):
            await store.blob(name)
    assert [hashlib.sha256(await store.blob(name)).hexdigest() for name in referenced] == referenced
    assert len(files(tmp_path / "store.db-blobs")) in (0, 1)


async def test_many_orphans_go_in_one_cleaning(store: SqlStore) -> None:
    for number in range(450):
        await store.put_blob(str(number).encode())
    assert (await store.run_maintenance(time.time() + 2 * DAY)).blobs == 450


async def test_a_blob_that_waits_in_the_inbox_stays(store: SqlStore) -> None:
    name = await store.put_blob(LARGE)
    await store.admit(replace(send_message(), parts=(FilePart(name, "image/png", 1),)))
    assert (await store.run_maintenance(time.time() + 100 * DAY)).blobs == 0
    assert await store.blob(name) == LARGE


async def test_a_blob_of_two_sessions_stays_until_both_are_erased(store: SqlStore) -> None:
    name = await store.put_blob(LARGE)
    for session in ("a", "b"):
        await talk(store, session, "look", name)
    await store.erase("a")
    assert (await store.run_maintenance(time.time() + 2 * DAY)).blobs == 0
    await store.erase("b")
    assert (await store.run_maintenance(time.time() + 2 * DAY)).blobs == 1


@pytest.mark.parametrize("data", [SMALL, LARGE, b"z" * (CHUNK + 1)], ids=["row", "one", "two"])
async def test_a_blob_that_is_put_during_cleanup_is_there(store: SqlStore, data: bytes) -> None:
    for _ in range(30):
        await store.put_blob(data)
        # Whoever cleans believes it is a day and a moment later: what was put before may go, what is put now may too,
        # but whoever has put it and mentions it must find it.
        names, _ = await asyncio.gather(
            asyncio.gather(*(store.put_blob(data) for _ in range(3))), store.run_maintenance(time.time(), orphans=0.0)
        )
        await store.put_blob(data)
        assert await store.blob(names[0]) == data


async def test_a_file_that_is_no_blob_is_taken_away_when_it_is_old(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "store.db")
    name = await store.put_blob(LARGE)
    await talk(store, "s", "look", name)
    (file,) = files(tmp_path / "store.db-blobs")
    long_ago = time.time() - 2 * DAY
    somebody_elses = file.with_name("notes.txt")
    for stray in ("notes.txt", f"{name}.partial", f"{name}.0123456789ab"):
        file.with_name(stray).write_bytes(b"left behind")
        os.utime(file.with_name(stray), (long_ago, long_ago))
    file.with_name(f"{name}.young").write_bytes(b"being written")
    os.utime(file, (long_ago, long_ago))

    assert (await store.run_maintenance(time.time())).files == 2
    assert await store.blob(name) == LARGE
    assert set(files(tmp_path / "store.db-blobs")) == {file, file.with_name(f"{name}.young"), somebody_elses}
    await store.aclose()


# Commands -------------------------------------------------------------------------------------------------------------


async def test_a_command_that_was_acted_on_is_cut_down_and_its_repeat_gets_the_same_receipt(store: SqlStore) -> None:
    text = "a long story " * 100
    first = send_message("k", text=text)
    await store.admit(first)
    await store.append("s", 0, [*turn_started_events(), *turn_ended_events()])
    await store.admit(send_message("k2", turn="t2", text=text, at=NOON))

    assert (await store.run_maintenance(NOON + TRIM_AFTER / 2)).commands == 0
    assert (await store.run_maintenance(NOON + 2 * TRIM_AFTER)).commands == 1  # the other still waits
    assert (await store.run_maintenance(NOON + 2 * TRIM_AFTER)).commands == 0

    again = await store.admit(replace(first, turn="another", message="another", at=NOON + 3 * DAY))
    assert (again.is_new, again.command) == (False, first)
    with pytest.raises(KeyConflict):
        await store.admit(replace(first, parts=(TextPart("another story"),)))
    assert [command.key for command in await store.inbox("s")] == ["k2"]


def test_a_command_is_known_again_whole_and_cut_down() -> None:
    first = send_message("k", text="hello")
    same = replace(first, at=NOON + 5, turn="other", message="other")
    options = replace(first.options, params={"a": 1, "b": {"c": 2, "d": 3}})
    swapped = replace(first.options, params={"b": {"d": 3, "c": 2}, "a": 1})
    for keep in (dump_command, trim_command):
        assert stored_command(keep(first), same) == first
        assert stored_command(keep(replace(first, options=options)), replace(same, options=swapped)).key == "k"
        for other in (
            replace(first, parts=(TextPart("bye"),)),
            replace(first, parent="x"),
            replace(first, options=options),
            Cancel(key="k", session="s", turn="t"),
        ):
            with pytest.raises(KeyConflict):
                stored_command(keep(first), other)
    steering = replace(first, steers=True, joins="t0")
    for keep in (dump_command, trim_command):
        assert (
            stored_command(keep(steering), replace(steering, at=NOON + 5, turn="other", message="other", joins=""))
            == steering
        )
        with pytest.raises(KeyConflict):
            stored_command(keep(steering), first)
    cancel = Cancel(key="c", session="s", turn="t", at=NOON)
    assert stored_command(trim_command(cancel), replace(cancel, at=0.0)) == cancel
    assert isinstance(stored_command(trim_command(first), same), Send)


async def test_a_clean_store_is_left_as_it_is(store: SqlStore) -> None:
    assert await store.run_maintenance(NOON) == RetentionResult()
