"""Keyrings: in a folder and in PostgreSQL, a key is made once, wrapped again, and destroyed for good."""

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tests.helpers.stores import POSTGRES, URL

from everturn.errors import ConfigError, TenantKeyDestroyed
from everturn.stores.encryption.keyring import open_keyring

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@pytest.fixture(params=["folder", POSTGRES])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "keyring")
        return
    schema = f"everturn_{uuid.uuid4().hex[:16]}"
    connection: Any = await asyncpg.connect(URL)
    await connection.execute(f"CREATE SCHEMA {schema}")
    yield f"{URL}?schema={schema}"
    await connection.execute(f"DROP SCHEMA {schema} CASCADE")
    await connection.close()


async def test_a_key_is_made_once_rewrapped_and_destroyed_for_good(place: str):
    first, other, both = (open_keyring(place, keys) for keys in ([OLD], [OLD], [NEW, OLD]))
    await first.check()  # nothing is there yet, and nothing is made
    ids = await asyncio.gather(first.id(), other.id())
    assert ids[0] == ids[1]
    keys = await asyncio.gather(*(ring.data_key("acme") for ring in (first, other)))
    assert keys[0] == keys[1] != await first.data_key("other")
    assert await first.describe() == ({first.newest_master: 2}, 0)

    assert await both.rewrap() == 3
    assert await both.data_key("acme") == keys[0]
    with pytest.raises(ConfigError, match=r"not in \[store.encryption\] master_keys"):
        await first.check()

    assert await both.destroyed(["acme", "other"]) == set()
    assert await both.destroy("acme", 1.0)
    assert not await both.destroy("acme", 2.0)
    assert await both.destroyed(["acme", "other"]) == {"acme"}
    with pytest.raises(TenantKeyDestroyed):
        await first.data_key("acme")
    assert await both.rewrap() == 0
    assert await both.describe() == ({both.newest_master: 1}, 1)
    for ring in (first, other, both):
        await ring.aclose()
