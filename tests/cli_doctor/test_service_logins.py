"""The service check logs in: a server that listens and refuses us, or lacks what we need of it, is broken."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from tests.helpers.nats_server import BINARY, free_port
from tests.helpers.stores import URL
from tests.helpers.waiting import wait_until_sync

from everturn.cli.doctor import services
from everturn.cli.doctor.service_logins import NO_JETSTREAM


@contextmanager
def nats_server(*options: str) -> Generator[int]:
    port = free_port()
    assert BINARY is not None
    command = [BINARY, "-a", "127.0.0.1", "-p", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"127.0.0.1:{port}"
        wait_until_sync(lambda: "no server answers" not in services.check_service("EVERTURN_NATS", address).detail)
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.mark.live
@pytest.mark.skipif(BINARY is None, reason="there is no nats-server here")
def test_nats_refuses_a_wrong_password_and_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("nats"))
    with nats_server("--user", "ada", "--pass", "r1ght", "-js", "-sd", folder) as port:
        for login in ("", "ada:wr0ng@", "token@"):
            check = services.check_service("EVERTURN_NATS", f"nats://{login}127.0.0.1:{port}")
            assert (check.state, check.fix) == ("broken", services.LOGIN_FIX)
            assert "refuses the login: Authorization Violation" in check.detail
            assert "wr0ng" not in str(check)
        check = services.check_service("EVERTURN_NATS", f"nats://ada:r1ght@127.0.0.1:{port}")
        assert (check.state, check.detail) == ("ok", f"NATS at 127.0.0.1:{port}")


@pytest.mark.live
@pytest.mark.skipif(BINARY is None, reason="there is no nats-server here")
def test_nats_without_jetstream_is_broken() -> None:
    with nats_server() as port:
        check = services.check_service("EVERTURN_NATS", f"nats://127.0.0.1:{port}")
        assert (check.state, check.fix) == ("broken", "start it with --jetstream")
        assert NO_JETSTREAM in check.detail


@pytest.mark.live
def test_postgresql_refuses_a_database_that_is_not_there() -> None:
    address = urlsplit(URL)
    check = services.check_service("[store] url", URL)
    assert check.state == "ok"
    wrong = address._replace(path="/there_is_no_such_database").geturl()
    check = services.check_service("[store] url", wrong)
    assert (check.state, check.fix) == ("broken", services.LOGIN_FIX)
    assert 'refuses the login: database "there_is_no_such_database" does not exist' in check.detail
