"""Readiness: `/readyz` asks the store, the engine and the bus; a probe says which of them the node needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.app import App
from everturn.bus.nats.bus import NatsBus
from everturn.engine.restate import RestateEngine
from everturn.server.app import Application
from everturn.testing import MemoryStore, ScriptedModel
from tests.helpers.nats_server import BINARY, NatsServer, free_port
from tests.helpers.server_app import ask, make, make_house
from tests.helpers.waiting import wait_until


@pytest.fixture(autouse=True)
def _every_request_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.server.routes.public.READY_CACHE", 0.0)


async def lines(app: Application) -> list[str]:
    answer = await ask(app, "GET", "/readyz")
    assert answer.status == 200
    return answer.body.decode().splitlines()


async def test_what_is_in_this_process_answers() -> None:
    app = make(await make_house())
    assert await lines(app) == ["ok", "store: ok", "engine: ok", "bus: ok"]
    assert (await ask(app, "GET", "/readyz?require=store,engine,bus")).status == 200
    assert (await ask(app, "GET", "/readyz?require=nats")).status == 422


async def test_a_restate_that_is_away_is_told_and_fails_the_probe_that_requires_it() -> None:
    away = f"http://127.0.0.1:{free_port()}"
    engine = RestateEngine(away, away, listen=None)
    async with App(ScriptedModel(), store=MemoryStore(), engine=engine) as runtime:
        app = make(await make_house(runtime))
        assert await lines(app) == ["ok", "store: ok", "engine: does not answer", "bus: ok"]
        refused = await ask(app, "GET", "/readyz?require=engine,bus")
        assert (refused.status, refused.code) == (503, "busy")
        assert "the engine does not answer" in refused.body.decode()
        assert (await ask(app, "GET", "/readyz?require=bus")).status == 200


@pytest.mark.live
@pytest.mark.skipif(BINARY is None, reason="there is no nats-server here")
async def test_a_nats_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    server.start()
    bus = await NatsBus.connect(server.url)
    try:
        async with App(ScriptedModel(), store=MemoryStore(), bus=bus) as runtime:
            app = make(await make_house(runtime))

            async def has_status(status: int) -> bool:
                return (await ask(app, "GET", "/readyz?require=bus")).status == status

            await wait_until(lambda: has_status(200))
            server.stop()
            await wait_until(lambda: has_status(503))
            assert "bus: does not answer" in await lines(app)
            server.start()
            await wait_until(lambda: has_status(200))
    finally:
        await bus.aclose()
        server.stop()
