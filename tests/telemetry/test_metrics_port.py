"""The port of a worker: counts for Prometheus, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request

import pytest

from everturn.errors import ConfigError
from everturn.telemetry.metrics import TEXT_FORMAT
from everturn.telemetry.metrics_port import MetricsPort
from everturn.telemetry.setup import TelemetryOptions, open_telemetry
from tests.telemetry.strict_prometheus import read


def get(address: str, path: str = "/metrics") -> tuple[int, str, bytes]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read()


async def test_a_worker_tells_its_counts_until_it_ends() -> None:
    seen = open_telemetry(TelemetryOptions(expose="127.0.0.1:0"))
    assert seen.metrics_port is not None
    status, kind, body = await asyncio.to_thread(get, seen.metrics_port.address)
    assert (status, kind) == (200, TEXT_FORMAT)
    assert "everturn_turns_underway" in read(body)
    assert (await asyncio.to_thread(get, seen.metrics_port.address, "/api/sessions"))[0] == 404
    await seen.aclose()
    with pytest.raises(OSError, match="refused"):
        get(seen.metrics_port.address)


def test_workers_of_one_machine_are_told_the_same_address_and_have_a_port_each() -> None:
    first = MetricsPort("127.0.0.1:0")
    two = MetricsPort(first.address)
    try:
        assert int(two.address.rpartition(":")[2]) > int(first.address.rpartition(":")[2])
        assert get(two.address)[0] == 200
    finally:
        first.close()
        two.close()


def test_a_reader_that_sends_nonsense_or_goes_away_harms_nobody() -> None:
    exposed = MetricsPort("127.0.0.1:0")
    try:
        host, _, port = exposed.address.rpartition(":")
        for data in (b"\x00" * 100_000, b"GET /metrics", b"GET " + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n", b""):
            with socket.create_connection((host, int(port)), timeout=5) as rude:
                rude.sendall(data)
        assert get(exposed.address)[0] == 200
    finally:
        exposed.close()


@pytest.mark.parametrize("listen", ["9464", "127.0.0.1:", "127.0.0.1:99999", "256.0.0.1:0"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ConfigError, match="telemetry"):
        MetricsPort(listen)
