"""`[store.encryption]`: the server, `everturn admin keys` and `everturn doctor` with an encrypted store."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.stores.test_backup import cli, files_below

from everturn.cli.doctor.store import check_encryption
from everturn.config.build import open_server
from everturn.config.encryption import encrypt_store
from everturn.config.load import load_config
from everturn.errors import ConfigError, TenantKeyDestroyed
from everturn.stores import SqlStore, get_store

T = TypeVar("T")
WORD = "quizzicalheron"
KEYS = [base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]


def write_config(folder: Path, *keys: str, more: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    names = ", ".join(f'"${{env:MASTER_{key}}}"' for key in keys)
    encryption = f'[store.encryption]\nkeyring = "keyring"\nmaster_keys = [{names}]\n{more}' if keys else ""
    file = folder / "everturn.toml"
    file.write_text(f'[store]\nurl = "talks.db"\n{encryption}\n[agents.helper]\nmodel = "offline:demo"\n')
    return file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASTER_1", KEYS[0])
    monkeypatch.setenv("MASTER_2", KEYS[1])
    return tmp_path / "server"


async def serve(file: Path) -> None:
    """A server that is told something, and stops."""
    async with open_server(load_config(str(file))) as context:
        for tenant in ("acme", "other"):
            app: Any = context.app
            chat = app.chat(f"of {tenant}", tenant=tenant)
            await (await chat.send(f"Hello, says {WORD}"))


async def in_thread(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)  # a check runs in a thread, with a loop of its own


def open_configured(file: Path) -> SqlStore:
    store = get_store(str(file.parent / "talks.db"))
    assert isinstance(store, SqlStore)
    encrypt_store(store, load_config(str(file)), {"MASTER_1": KEYS[0], "MASTER_2": KEYS[1]})
    return store


async def test_a_configured_server_writes_nothing_in_plain(folder: Path):
    file = write_config(folder, "1")
    await serve(file)
    written = b"".join(path.read_bytes() for path in files_below(folder))
    assert b"of acme" in written
    assert WORD.encode() not in written
    code, out, _ = await cli("sessions", "--config", str(file), "--tenant", "acme")
    assert (code, WORD in out) == (0, True)

    with pytest.raises(ConfigError, match=r"no \[store.encryption\]"):
        await serve(write_config(folder))
    for words in (("sessions",), ("ps",), ("admin", "keys", "list")):  # nothing is read or written without the keys
        code, _, errors = await cli(
            *words, "--store", str(folder / "talks.db"), "--config", str(folder / "everturn.toml")
        )
        assert (code, "no [store.encryption]" in errors) == (2, True), words
    with pytest.raises(ConfigError, match=r"\[store.encryption\] master_keys"):
        await serve(write_config(folder, "2"))


async def test_the_master_key_is_rotated_by_a_command(folder: Path):
    await serve(write_config(folder, "1"))
    file = str(write_config(folder, "2", "1"))
    assert "encryption unwraps   2 tenants" in (await cli("admin", "keys", "list", "--config", file))[1]
    code, out, _ = await cli("admin", "keys", "rewrap", "--config", file)
    assert (code, "rewrapped: 3 keys" in out) == (0, True)
    assert "encryption wraps     2 tenants" in (await cli("admin", "keys", "list", "--config", file))[1]
    await serve(write_config(folder, "2"))


async def test_a_destroyed_key_is_asked_for_audited_and_gone(folder: Path):
    file = write_config(folder, "1")
    await serve(file)
    code, out, errors = await cli("admin", "keys", "destroy", "--tenant", "acme", "--yes", "--config", str(file))
    assert (code, errors) == (0, "")
    assert "nothing that it wrote can be read" in out
    _, out, _ = await cli("admin", "keys", "destroy", "--tenant", "acme", "--yes", "--config", str(file))
    assert "destroyed before" in out
    assert "encryption destroyed 1 tenant" in (await cli("admin", "keys", "list", "--config", str(file)))[1]

    store: Any = open_configured(file)
    with pytest.raises(TenantKeyDestroyed, match="'acme'"):
        await store.events("of acme")
    assert await store.events("of other")
    assert [record.did for record in await store.accounts.audit("acme")] == ["keys.destroy"] * 2
    await store.aclose()
    code, out, _ = await cli("admin", "erase", "--tenant", "acme", "--all-users", "--yes", "--config", str(file))
    assert (code, "erased: 1 session" in out) == (0, True)


async def test_keys_of_a_store_without_encryption_are_refused(folder: Path):
    file = str(write_config(folder))
    await serve(Path(file))
    for words in (("rewrap",), ("destroy", "--tenant", "acme", "--yes")):
        code, _, errors = await cli("admin", "keys", *words, "--config", file)
        assert (code, "[store.encryption]" in errors) == (2, True)


def test_doctor_says_whether_the_key_opens(folder: Path):
    known = {"MASTER_1": KEYS[0], "MASTER_2": KEYS[1]}

    def states(*keys: str, more: str = "") -> tuple[str, str]:
        loaded = load_config(str(write_config(folder, *keys, more=more)))
        (check,) = check_encryption(loaded, known, "talks.db")
        return check.state, check.detail

    assert states() == ("absent", "off: what is stored is plain text")
    assert states("1") == ("ok", "on, and the master key opens the keyring")
    assert not (folder / "keyring").exists()  # a check creates nothing


async def test_doctor_finds_a_master_key_that_does_not_open_the_keyring(folder: Path):
    await serve(write_config(folder, "1"))
    known = {"MASTER_1": KEYS[0], "MASTER_2": KEYS[1]}
    (check,) = await in_thread(lambda: check_encryption(load_config(str(write_config(folder, "2"))), known, "x"))
    assert check.state == "broken"
    assert "[store.encryption] master_keys" in check.detail
    (check,) = await in_thread(lambda: check_encryption(load_config(str(write_config(folder, "2", "1"))), known, "x"))
    assert check.state == "ok"


async def test_a_provider_of_ones_own_is_named_in_the_configuration(folder: Path):
    file = write_config(folder, "1")
    (folder / "vault.py").write_text(PROVIDER)
    file.write_text(
        '[store]\nurl = "talks.db"\n[store.encryption]\nprovider = "vault.py:make_provider"\n'
        '[agents.helper]\nmodel = "offline:demo"\n'
    )
    await serve(file)
    assert WORD.encode() not in (folder / "talks.db").read_bytes()


PROVIDER = """
class Vault:
    async def id(self): return "vault"
    async def data_key(self, tenant): return tenant.encode().ljust(32, b"-")
    async def destroyed(self, tenants): return set()
    async def destroy(self, tenant, at): return True
    async def rewrap(self): return 0
    async def aclose(self): pass

def make_provider():
    return Vault()
"""


async def test_before_the_first_tenant_the_list_says_which_master_key_wraps(folder: Path):
    file = write_config(folder, "1")
    store: Any = open_configured(file)
    await store.check_encryption()
    await store.aclose()
    assert (
        "encryption wraps     0 tenants, master key " in (await cli("admin", "keys", "list", "--config", str(file)))[1]
    )
