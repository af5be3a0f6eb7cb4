"""Files come in by a handle that nobody can make up, and go out only where a session of the tenant speaks of them."""

from __future__ import annotations

import hashlib
import json
import string
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn import api
from everturn.access.access import Access
from everturn.access.context.agents import TenantLimits
from everturn.access.conversations.upload_handles import (
    decode_handle,
    encode_handle,
    sanitize_file_name,
    sanitize_media_type,
)
from everturn.core.parts import FilePart
from everturn.errors import ConfigError, UnknownFile, UnknownSession, UnreadableLog
from everturn.stores.registry import get_store
from tests.helpers.tenants import a_house, over, somebody, start_session

SECRET = b"s" * 32
names = st.text(max_size=200)
parts = st.builds(FilePart, st.text("0123456789abcdef", max_size=64), names, st.integers(0, 2**40), names)


# Handles ---------------------------------------------------------------------------------------------------------------


@given(part=parts, tenant=names)
def test_a_handle_is_read_as_the_file_it_was_made_for(part: FilePart, tenant: str) -> None:
    assert decode_handle(SECRET, tenant, encode_handle(SECRET, tenant, part)) == part


@given(first=parts, other=parts, tenants=st.tuples(names, names))
def test_no_two_files_of_any_tenants_share_a_handle(first: FilePart, other: FilePart, tenants: tuple[str, str]) -> None:
    """Nothing can be moved from one field into the next: the list is encoded as a whole."""
    if (first, tenants[0]) != (other, tenants[1]):
        assert encode_handle(SECRET, tenants[0], first) != encode_handle(SECRET, tenants[1], other)
    if tenants[0] != tenants[1]:
        with pytest.raises(UnknownFile):
            decode_handle(SECRET, tenants[1], encode_handle(SECRET, tenants[0], first))


@given(part=parts, at=st.integers(0, 10_000), char=st.characters())
def test_a_handle_that_was_changed_anywhere_is_none(part: FilePart, at: int, char: str) -> None:
    handle = encode_handle(SECRET, "ada", part)
    at %= len(handle)
    changed = handle[:at] + char + handle[at + 1 :]
    if changed != handle:
        with pytest.raises(UnknownFile):
            decode_handle(SECRET, "ada", changed)


def test_a_file_has_one_handle_only() -> None:
    """The last character of each half has bits that mean nothing: with others in them it would be read as the same."""
    alphabet = string.ascii_letters + string.digits + "-_"
    for size in range(3):
        handle = encode_handle(SECRET, "ada", FilePart("0" * size, "text/plain", 1))
        body, mac = handle.split(".")
        spelt = {f"{body[:-1]}{char}.{mac}" for char in alphabet} | {f"{body}.{mac[:-1]}{char}" for char in alphabet}
        for other in spelt | {handle.removeprefix("evf_"), handle + "=", f"{body}=.{mac}", handle + "\n"}:
            if other != handle:
                with pytest.raises(UnknownFile):
                    decode_handle(SECRET, "ada", other)


@given(text=st.text("ab1", min_size=5, max_size=9), cuts=st.tuples(*[st.integers(0, 5)] * 4))
def test_a_signature_is_good_for_one_file_however_its_fields_are_cut(text: str, cuts: tuple[int, ...]) -> None:
    """What is one text when its fields are joined is two files, and neither has the other's signature."""
    (a, b), (c, d) = sorted(cuts[:2]), sorted(cuts[2:])
    first, other = FilePart(text[:a], text[a:b], 1, text[b:]), FilePart(text[:c], text[c:d], 1, text[d:])
    body, mac = encode_handle(SECRET, "ada", first).split(".")[0], encode_handle(SECRET, "ada", other).split(".")[1]
    if first != other:
        with pytest.raises(UnknownFile):
            decode_handle(SECRET, "ada", f"{body}.{mac}")
    moved = encode_handle(SECRET, "ada" + text[:a], FilePart(text[a:], "", 1)).split(".")[1]
    if a:
        with pytest.raises(UnknownFile):
            decode_handle(SECRET, "ada", f"{encode_handle(SECRET, 'ada', FilePart(text, '', 1)).split('.')[0]}.{moved}")


@pytest.mark.parametrize("text", ["", ".", "..", "evf_", "evf_.", "evf_a.b", "x" * 1000, "evf_\ud800.x", "evf_ä.ö"])
def test_what_is_no_handle_is_no_file(text: str) -> None:
    with pytest.raises(UnknownFile):
        decode_handle(SECRET, "ada", text)


@given(name=st.text(max_size=400))
def test_a_name_is_short_can_be_seen_and_has_no_folders(name: str) -> None:
    plain = sanitize_file_name(name)
    assert plain.isprintable()
    assert len(plain.encode()) <= 240
    assert not {"/", "\\"} & set(plain)
    part = FilePart("0" * 64, "a" * 61 + "/" + "b" * 81, 2**40, plain)
    assert len(encode_handle(SECRET, "ada", part)) <= 1000


def test_a_type_is_a_type() -> None:
    assert sanitize_media_type("Text/HTML; charset=utf-8") == "text/html"
    for text in ("", "x", "text/", "a/b\r\nx: y", "application/octet-stream", "text/plain,text/html", "a b/c"):
        assert sanitize_media_type(text) == ""


# In and out ------------------------------------------------------------------------------------------------------------


async def test_a_file_is_sent_and_read_again_in_its_tenant_only() -> None:
    async with a_house() as house:
        ada, bob = Access(house, somebody("ada")), Access(house, somebody("bob"))
        mine = await ada.files.upload(b"hello", "text/plain", "../../etc/notes.txt")
        assert (mine.part.name, mine.part.media_type, mine.part.size) == ("notes.txt", "text/plain", 5)
        with pytest.raises(UnknownFile):
            await start_session(bob, "look", files=[mine.file])
        # The same bytes at another tenant's are another file, though they are the same blob.
        theirs = await bob.files.upload(b"hello", "text/plain", "notes.txt")
        assert theirs.part.blob == mine.part.blob
        assert theirs.file != mine.file
        sent = await start_session(ada, "look", files=[mine.file])
        assert await ada.files.read(sent.session, mine.part.blob) == b"hello"
        other = await start_session(bob, "hello")
        with pytest.raises(UnknownFile):
            await bob.files.read(other.session, mine.part.blob)
        await over(ada, sent)
        assert await Access(house, somebody("ada", "viewer")).files.read(sent.session, mine.part.blob) == b"hello"


async def test_a_blob_is_read_only_where_the_session_speaks_of_it() -> None:
    async with a_house() as house:
        ada = Access(house, somebody("ada", "owner"))
        loose = await ada.files.upload(b"never sent", "", "")
        sent = await start_session(ada, "hello")
        for blob in (loose.part.blob, "0" * 64, "\0", "", "x" * 3000, "' OR 1=1 --"):
            with pytest.raises(UnknownFile, match=r"^there is no such file$"):
                await ada.files.read(sent.session, blob)


async def test_a_file_is_neither_empty_nor_larger_than_agreed() -> None:
    async with a_house(limits=TenantLimits(requests=0, uploads=10)) as house:
        ada = Access(house, somebody())
        with pytest.raises(ConfigError, match="at most 10 bytes"):
            await ada.files.upload(b"x" * 11, "", "")
        with pytest.raises(ConfigError, match="empty"):
            await ada.files.upload(b"", "", "")


# Moving ----------------------------------------------------------------------------------------------------------------


async def test_a_session_is_moved_to_another_tenant_under_a_new_name(tmp_path: Path) -> None:
    async with a_house() as house:
        ada, bob = Access(house, somebody("ada")), Access(house, somebody("bob"))
        file = await ada.files.upload(b"hello", "text/plain", "notes.txt")
        sent = await start_session(ada, "look", files=[file.file])
        await over(ada, sent)
        await ada.sessions.export(sent.session, tmp_path / "out.zip")
        views = [await bob.sessions.import_file(tmp_path / "out.zip") for _ in range(2)]
        assert len({sent.session, *(view.id for view in views)}) == 3
        texts = [message.text for message in (await bob.sessions.messages(views[0].id)).messages]
        assert texts == ["look", "Done."]
        assert await bob.files.read(views[0].id, file.part.blob) == b"hello"
        assert len((await ada.sessions.list()).sessions) == 1


def rewritten(source: Path, target: Path, change: dict[str, str], missing: list[str]) -> None:
    """An exported session, forged: with other texts in its log, and blobs that it says it had not."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == "log.jsonl":
                for before, after in change.items():
                    assert before.encode() in data
                    data = data.replace(before.encode(), after.encode())
            if entry.filename == "manifest.json":
                data = json.dumps({**json.loads(data), "missing": missing}).encode()
            if not entry.filename.startswith("blobs/"):
                new.writestr(entry.filename, data)


async def test_a_forged_session_does_not_speak_of_what_another_tenant_keeps(tmp_path: Path) -> None:
    async with a_house() as house:
        ada, bob = Access(house, somebody("ada", "owner")), Access(house, somebody("bob", "owner"))
        theirs = await bob.files.upload(b"a secret of bob's", "text/plain", "secret.txt")
        sent = await start_session(bob, "look", files=[theirs.file])
        await over(bob, sent)
        mine = await ada.files.upload(b"hello", "text/plain", "notes.txt")
        bait = await start_session(ada, "look", files=[mine.file])
        await over(ada, bait)
        await ada.sessions.export(bait.session, tmp_path / "bait.zip")
        change = {mine.part.blob: theirs.part.blob, '"size":5': f'"size":{theirs.part.size}'}
        rewritten(tmp_path / "bait.zip", tmp_path / "forged.zip", change, [theirs.part.blob])
        with pytest.raises(UnreadableLog, match="files that it does not contain"):
            await ada.sessions.import_file(tmp_path / "forged.zip")
        assert hashlib.sha256(b"a secret of bob's").hexdigest() == theirs.part.blob
        assert len((await ada.sessions.list()).sessions) == 1


async def test_what_says_it_is_a_sub_turn_of_somebody_elses_is_not_taken(tmp_path: Path) -> None:
    async with a_house() as house:
        ada = Access(house, somebody("ada", "owner"))
        sent = await start_session(ada, "hello")
        await over(ada, sent)
        await ada.sessions.export(sent.session, tmp_path / "out.zip")
        lineage = '"lineage":{"session":"theirs","turn":"t","by":["theirs","t","c"]},"agent":"helper"'
        rewritten(tmp_path / "out.zip", tmp_path / "forged.zip", {'"agent":"helper"': lineage}, [])
        with pytest.raises(UnreadableLog, match="sub-agent run"):
            await ada.sessions.import_file(tmp_path / "forged.zip")
        assert len((await ada.sessions.list()).sessions) == 1


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip", b"\0" * 1000])
async def test_what_is_no_session_is_not_taken(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    async with a_house() as house:
        with pytest.raises(UnreadableLog):
            await Access(house, somebody()).sessions.import_file(tmp_path / "x.zip")


async def test_it_is_all_the_same_on_sqlite(tmp_path: Path) -> None:
    store = get_store(str(tmp_path / "house.db"))
    async with a_house(store) as house:
        ada, bob = Access(house, somebody("ada", "owner")), Access(house, somebody("bob", "owner"))
        file = await ada.files.upload(b"hello", "text/plain", "notes.txt")
        sent = await ada.sessions.start(api.NewSession(text="whois", files=[file.file]), "k")
        assert not (await ada.sessions.start(api.NewSession(text="whois", files=[file.file]), "k")).is_new
        await over(ada, sent)
        assert await ada.files.read(sent.session, file.part.blob) == b"hello"
        assert [session.id for session in (await ada.sessions.list()).sessions] == [sent.session]
        assert not (await bob.sessions.list()).sessions
        assert not (await bob.sessions.search("whois")).results
        assert (await ada.sessions.search("whois")).results[0].session == sent.session
        for session in ("\0", "\ud800", "'; DROP TABLE sessions;--", "x" * 900):
            for blob in ("\0", "'", "x"):
                with pytest.raises(UnknownSession):
                    await ada.files.read(session, blob)
        for text in ("\0", "\ud800", '" OR *', "NEAR(", "%_", "'; DROP TABLE sessions;--", "-", '"'):
            assert isinstance((await ada.sessions.search(text)).results, list)
        await ada.sessions.export(sent.session, tmp_path / "out.zip")
        assert (await bob.sessions.import_file(tmp_path / "out.zip")).id != sent.session
        assert (await ada.accounts.usage()).total.steps == 2
    await store.aclose()
