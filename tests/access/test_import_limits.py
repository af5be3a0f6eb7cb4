"""Files that are made to be brought in: a few kilobytes that cost a lot are refused before they do, and nobody waits."""

from __future__ import annotations

import asyncio
import io
import struct
import threading
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everturn.access.access import Access
from everturn.access.conversations import session_archive
from everturn.errors import UnreadableLog
from everturn.stores import export
from everturn.stores.export import ENTRIES_LIMIT, INBOX, LOG, MANIFEST
from tests.helpers.tenants import a_house, over, somebody, start_session


def crowded(entries: int) -> bytes:
    """A zip with a directory of so many entries, and nothing else."""
    buffer = io.BytesIO(b"PK\3\4" + struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"a")
    start = buffer.seek(0, io.SEEK_END)
    fields = struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 33, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0)
    buffer.write(b"".join(b"PK\1\2%b%07x" % (fields, at) for at in range(entries)))
    end = buffer.tell()
    buffer.write(b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, entries, entries, end - start, start))
    buffer.write(b"PK\6\7" + struct.pack("<IQI", 0, end, 1))
    buffer.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 65535, 65535, 0xFFFFFFFF, 0xFFFFFFFF, 0))
    return buffer.getvalue()


def packed(file: Path, head: int, log: bytes) -> Path:
    manifest = {"format": "everturn.session", "version": 1, "session": "s", "head": head}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, msgspec.json.encode(manifest))
        archive.writestr(LOG, log)
        archive.writestr(INBOX, b"")
    return file


@pytest.mark.parametrize("entries", [ENTRIES_LIMIT + 1, 350_000])
async def test_a_directory_that_is_too_long_is_not_taken_apart(
    entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zip_infos: list[Any] = []
    real = zipfile.ZipInfo.__init__

    def counted(self: Any, *args: Any, **more: Any) -> None:
        zip_infos.append(self)
        real(self, *args, **more)

    file = tmp_path / "many.zip"
    file.write_bytes(crowded(entries))
    monkeypatch.setattr(zipfile.ZipInfo, "__init__", counted)
    async with a_house() as house:
        with pytest.raises(UnreadableLog):
            await Access(house, somebody("ada", "member")).sessions.import_file(file)
    assert not zip_infos


async def test_a_log_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    async with a_house() as house:
        member = Access(house, somebody("ada", "member"))
        with pytest.raises(UnreadableLog, match="too long"):
            await member.sessions.import_file(
                packed(tmp_path / "a.zip", session_archive.IMPORT_EVENTS_LIMIT + 1, b"{}\n")
            )
        with pytest.raises(UnreadableLog, match="too long"):
            await member.sessions.import_file(
                packed(tmp_path / "b.zip", 1, b" " * (session_archive.IMPORT_BYTES_LIMIT + 1))
            )


async def test_of_a_log_that_is_longer_than_it_says_no_more_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []
    real = export.load_event

    def counted(line: bytes) -> Any:
        read.append(line)
        return real(line)

    monkeypatch.setattr(export, "load_event", counted)
    line = b'{"type":"LeafSelected","at":1.0,"leaf":null}\n'
    async with a_house() as house:
        with pytest.raises(UnreadableLog):
            await Access(house, somebody("ada", "member")).sessions.import_file(
                packed(tmp_path / "a.zip", 3, line * 5000)
            )
    assert len(read) <= 4


async def test_the_loop_takes_nothing_apart_and_tries_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: dict[str, int] = {}
    opened, tried = export.open_zip, export.MemoryStore

    def opening(file: Any) -> Any:
        where["open"] = threading.get_ident()
        return opened(file)

    def trying() -> Any:
        where["try"] = threading.get_ident()
        return tried()

    async with a_house() as house:
        member = Access(house, somebody("ada", "member"))
        sent = await start_session(member, "look")
        await over(member, sent)
        await member.sessions.export(sent.session, tmp_path / "out.zip")
        for module in (export, session_archive):
            monkeypatch.setattr(module, "open_zip", opening)
        monkeypatch.setattr(export, "MemoryStore", trying)
        async with asyncio.timeout(20):
            await member.sessions.import_file(tmp_path / "out.zip")
    assert set(where) == {"open", "try"}
    assert threading.get_ident() not in where.values()
