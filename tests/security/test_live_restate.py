"""Somebody calls the ingress of Restate with any session, and a worker with a Restate of their own: a wake, and no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from yarl import URL

from everturn.engine.restate import RestateEngine
from tests.helpers.waiting import wait_until
from tests.security.peer_server import Peer, a_peer
from tests.stores.test_postgres import Place
from tools.servers.restate import RestateServer, restate_server

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
SOON = 30.0
MADE_UP = ["made up", "..", "a/b", "x" * 900, "'; DROP TABLE sessions; --", "\u202e", "*", "nul \0"]
DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Watched(RestateEngine):
    """Counts the drives that have ended."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, listen=("127.0.0.1", 0), **more)
        self.driven: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self.failed: list[str] = []  # each would be tried again for months

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        async def noted(session: str) -> None:
            self.begun[session] += 1
            try:
                await drive(session)
            except Exception as error:
                self.failed.append(f"{session!r:.50}: {error!r}")
                raise
            finally:
                self.driven[session] += 1

        await super().serve(noted)

    @property
    def url(self) -> str:
        """Where the worker listens."""
        assert self._worker is not None
        return f"http://127.0.0.1:{self._worker._sock.getsockname()[1]}"


@asynccontextmanager
async def a_cluster(restate: RestateServer, **more: Any) -> AsyncGenerator[tuple[Peer, Watched, Place]]:
    place = Place()
    engine = Watched(restate.ingress, restate.admin, **more)
    try:
        async with a_peer(store=place.store(), engine=engine) as peer:
            yield peer, engine, place
    finally:
        await place.aclose()


async def call(restate: RestateServer, session: str, how: str = "drive/send", **more: Any) -> int:
    """Call the ingress as anybody can who reaches it."""
    url = f"{restate.ingress}/everturn/{quote(session, safe='')}/{how}"
    skipped = () if more else ("Content-Type",)  # Restate refuses a type without a body
    async with aiohttp.ClientSession(skip_auto_headers=skipped) as http:
        async with http.post(URL(url, encoded=True), **more) as answer:
            return answer.status


async def everything(place: Place) -> Any:
    """All rows that say what was said, asked and answered, whoever drives."""
    names = ("events", "gates", "inbox", "messages")
    tables = {row["tablename"] for row in await place.sql(
        f"SELECT tablename FROM pg_tables WHERE schemaname = '{place.schema}'"
    )}  # fmt: skip
    assert "sessions" in tables
    return {
        **{name: await place.sql(f"SELECT count(*) FROM {name}") for name in names if name in tables},
        "sessions": await place.sql("SELECT id FROM sessions ORDER BY id"),
    }


async def test_the_ingress_wakes_a_session_and_changes_none(tmp_path: Path) -> None:
    async with restate_server(tmp_path) as restate, a_cluster(restate) as (peer, engine, place):
        over, waiting = await peer.say("say hello"), await peer.say('call pay {"amount": 5}', "theirs/owner")
        await peer.rest(over)
        await peer.gates(waiting.session, "theirs/owner")
        await wait_until(lambda: engine.driven[waiting.session] == engine.begun[waiting.session] > 0)
        before, logs = await everything(place), await _logs(peer, over.session, waiting.session)
        engine.driven.clear()

        for session in (over.session, waiting.session, *MADE_UP):
            assert await call(restate, session) == 202
        for body in (b"", b"\x00" * 5, b'{"allow": "once", "gate": "g"}'):
            await call(restate, waiting.session, data=body, headers={"content-type": "application/json"})
        for how in ("append", "answer", "__init__", "drive/send/x"):
            assert await call(restate, waiting.session, how) in (400, 404, 405)

        wanted = {over.session, waiting.session, *(name for name in MADE_UP if "\0" not in name)}
        await wait_until(lambda: wanted <= set(engine.driven))
        assert engine.failed == []
        assert await everything(place) == before
        assert await _logs(peer, over.session, waiting.session) == logs
        assert peer.ledger.done == []
        assert (await peer.rest(waiting, "theirs/owner"))["phase"] == "waiting"


async def _logs(peer: Peer, *sessions: str) -> list[Any]:
    return [await peer.house.app.store.events(session) for session in sessions]


async def test_a_worker_called_by_an_unknown_restate_drives_what_was_asked_for_anyway(tmp_path: Path) -> None:
    async with (
        restate_server(tmp_path) as restate,
        restate_server(tmp_path) as stranger,
        a_cluster(restate) as (peer, engine, place),
    ):
        waiting = await peer.say('call pay {"amount": 5}')
        await peer.gates(waiting.session)
        await wait_until(lambda: engine.driven[waiting.session] == engine.begun[waiting.session] > 0)
        before, logs = await everything(place), await _logs(peer, waiting.session)
        engine.driven.clear()

        assert await register(stranger, engine.url) in (200, 201)
        for session in (waiting.session, "made up"):
            assert await call(stranger, session) == 202

        await wait_until(lambda: {waiting.session, "made up"} <= set(engine.driven))
        assert await everything(place) == before
        assert await _logs(peer, waiting.session) == logs
        assert peer.ledger.done == []

        # A step under way is resumed, which is why nobody should reach a worker; the turn still ends well.
        streaming = await peer.say("hang")
        await wait_until(lambda: engine.begun[streaming.session] == 1 and len(peer.model.requests) == 2)
        assert await call(stranger, streaming.session) == 202
        await wait_until(lambda: engine.begun[streaming.session] > 1)
        peer.model.go_on.set()
        assert (await peer.rest(streaming))["phase"] == "completed"


async def register(restate: RestateServer, url: str) -> int:
    async with aiohttp.ClientSession() as http:
        async with http.post(f"{restate.admin}/deployments", json={"uri": url}) as answer:
            return answer.status


async def test_with_an_identity_key_a_worker_obeys_its_own_restate_alone(tmp_path: Path) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem)
    signing = f'request-identity-private-key-pem-file = "{tmp_path / "key.pem"}"'
    async with (
        restate_server(tmp_path, invoker=signing) as restate,
        restate_server(tmp_path) as stranger,
        a_cluster(restate, identity_key=public(key)) as (peer, engine, _),
    ):
        assert (await peer.rest(await peer.say("say hello")))["phase"] == "completed"
        driven = engine.begun.total()
        assert await register(stranger, engine.url) not in (200, 201)
        async with aiohttp.ClientSession() as http:
            for path in ("/discover", "/invoke/everturn/drive"):
                with pytest.raises(aiohttp.ClientError):  # HTTP/1.1 is not spoken
                    await http.post(engine.url + path, data=b"\x00" * 100)
        assert engine.begun.total() == driven


def public(key: ed25519.Ed25519PrivateKey) -> str:
    """The public key as Restate writes it."""
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    number, encoded = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        encoded = DIGITS[digit] + encoded
    return "publickeyv1_" + "1" * (len(raw) - len(raw.lstrip(b"\0"))) + encoded
