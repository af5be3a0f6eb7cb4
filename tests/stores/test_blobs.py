"""Bytes are kept under their hash, wherever there is room for them, and come back as they were or not at all."""

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.helpers.stores import SQL, opened_sql

from everturn.errors import UnknownMessage, UnreadableLog
from everturn.stores.sql.blobs import CHUNK, ROW_LIMIT
from everturn.stores.sql.sqlite import Sqlite
from everturn.stores.sql.store import SqlStore

SIZES = [0, 1, ROW_LIMIT, ROW_LIMIT + 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5]


def sample_bytes(size: int) -> bytes:
    return bytes(range(256)) * (size // 256) + b"x" * (size % 256)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture(params=SQL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlStore]:
    async with opened_sql(request.param, tmp_path) as store:
        yield store


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_put_comes_back(store: SqlStore, size: int) -> None:
    data = sample_bytes(size)
    name = await store.put_blob(data)
    assert name == hashlib.sha256(data).hexdigest()
    assert await store.blob(name) == data


@pytest.mark.parametrize("kind", ["sqlite", "sqlite without a folder"])
async def test_bytes_that_are_put_again_are_kept_once(kind: str, tmp_path: Path) -> None:
    async with opened_sql(kind, tmp_path) as store:
        for size in SIZES:
            names = await asyncio.gather(*(store.put_blob(sample_bytes(size)) for _ in range(4)))
            assert len({*names, await store.put_blob(sample_bytes(size))}) == 1
    with sqlite3.connect(tmp_path / "store.db") as database:
        assert database.execute("SELECT count(*) FROM blobs").fetchone() == (len(SIZES),)
    database.close()


async def test_what_nobody_put_is_unknown(store: SqlStore) -> None:
    for name in ("0" * 64, "", "../../etc/passwd", "\0"):
        with pytest.raises(UnknownMessage):
            await store.blob(name)


async def test_a_large_blob_is_a_file_beside_the_database_and_a_small_one_is_not(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "store.db")
    await store.put_blob(sample_bytes(ROW_LIMIT))
    assert not (tmp_path / "store.db-blobs").exists()

    name = await store.put_blob(sample_bytes(ROW_LIMIT + 1))
    (file,) = files(tmp_path / "store.db-blobs")
    assert (file.parent.name, file.name.partition(".")[0]) == (name[:2], name)
    assert file.read_bytes() == sample_bytes(ROW_LIMIT + 1)
    await store.aclose()


@pytest.mark.parametrize("damage", ["changed", "shorter", "longer", "gone"])
async def test_a_damaged_file_is_an_error_until_its_bytes_are_put_again(tmp_path: Path, damage: str) -> None:
    store, data = SqlStore.sqlite(tmp_path / "store.db"), sample_bytes(CHUNK)
    name = await store.put_blob(data)
    (file,) = files(tmp_path / "store.db-blobs")
    match damage:
        case "gone":
            file.unlink()
        case "shorter":
            file.write_bytes(data[:-1])
        case "longer":
            file.write_bytes(data + b"x")
        case _:
            file.write_bytes(b"y" + data[1:])
    with pytest.raises(UnreadableLog, match="damaged"):
        await store.blob(name)

    await store.put_blob(data)
    if damage != "changed":  # which nobody sees from its size
        assert await store.blob(name) == data
    await store.aclose()


@pytest.mark.parametrize(
    "damage", ["DELETE FROM chunks WHERE n = 1", "UPDATE chunks SET data = x'00' WHERE n = 0", "DELETE FROM chunks"]
)
async def test_damaged_rows_are_an_error(tmp_path: Path, damage: str) -> None:
    store = SqlStore(Sqlite(tmp_path / "store.db"))
    name = await store.put_blob(sample_bytes(3 * CHUNK))
    await store.aclose()
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute(damage)
    database.close()

    store = SqlStore(Sqlite(tmp_path / "store.db"))
    with pytest.raises(UnreadableLog, match="damaged"):
        await store.blob(name)
    await store.aclose()


async def test_a_blob_whose_writer_died_is_not_there_until_it_is_put_again(tmp_path: Path) -> None:
    store, data = SqlStore(Sqlite(tmp_path / "store.db")), sample_bytes(3 * CHUNK)
    name = await store.put_blob(data)
    await store.aclose()
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("UPDATE blobs SET place = 'writing'")
        database.execute("DELETE FROM chunks WHERE n = 2")
    database.close()

    store = SqlStore(Sqlite(tmp_path / "store.db"))
    with pytest.raises(UnknownMessage):
        await store.blob(name)
    await store.put_blob(data)
    assert await store.blob(name) == data
    await store.aclose()


async def test_a_put_that_is_cancelled_leaves_nothing_that_reads_wrong(store: SqlStore) -> None:
    data = sample_bytes(3 * CHUNK + 5)
    for turns in range(0, 40, 3):
        putting = asyncio.ensure_future(store.put_blob(data + bytes([turns])))
        for _ in range(turns):
            await asyncio.sleep(0)
        putting.cancel()
        await asyncio.wait({putting})
        name = hashlib.sha256(data + bytes([turns])).hexdigest()
        try:
            assert await store.blob(name) == data + bytes([turns])
        except UnknownMessage:
            assert await store.put_blob(data + bytes([turns])) == name
            assert await store.blob(name) == data + bytes([turns])
