"""The address of a client behind reverse proxies: believed from trusted proxies alone, and never further than they saw."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.config.server_options import ServerOptions
from everturn.errors import ConfigError
from everturn.server.forwarded import read_networks, with_client_address
from everturn.server.rate_limit import BURST
from tests.helpers.server_app import make, make_house

PROXIES = read_networks(["10.0.0.0/24", "2001:db8::5"])


def client_of(peer: str, *forwarded: str) -> str:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return with_client_address({"client": (peer, 5), "headers": headers}, PROXIES)["client"][0]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),  # no proxy: anybody can send the header
        ("10.0.0.5", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.5", [], "10.0.0.5"),
        ("10.0.0.5", ["203.0.113.9, 198.51.100.7"], "198.51.100.7"),  # the first one was sent by the client
        ("10.0.0.5", ["203.0.113.9", "198.51.100.7, 10.0.0.6"], "198.51.100.7"),  # two proxies
        ("10.0.0.5", ["198.51.100.7, nonsense"], "10.0.0.5"),
        ("10.0.0.5", ["198.51.100.7, nonsense, 10.0.0.6"], "10.0.0.6"),
        ("2001:db8::5", ["2001:db8:1::9"], "2001:db8:1::9"),
        ("::ffff:10.0.0.5", ["198.51.100.7"], "198.51.100.7"),
    ],
)
def test_the_client_is_the_last_address_that_no_trusted_proxy_has(peer: str, forwarded: list[str], client: str) -> None:
    assert client_of(peer, *forwarded) == client


def test_a_name_is_no_trusted_proxy() -> None:
    with pytest.raises(ConfigError, match=r"10\.0\.0\.5"):
        read_networks(["proxy.example.org"])


async def asked_from(app: Any, address: str) -> int:
    """The status of a request without a credential, which a trusted proxy passes on."""
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    headers = [(b"host", b"127.0.0.1:8000"), (b"x-forwarded-for", address.encode())]
    scope = {"type": "http", "method": "GET", "path": "/api/me", "raw_path": b"/api/me", "query_string": b""}
    server = {"client": ("10.0.0.5", 5), "server": ("127.0.0.1", 8000), "scheme": "http", "headers": headers}
    await app({**scope, **server, "http_version": "1.1"}, receive, send)
    return statuses[0]


@pytest.mark.parametrize(("trusted", "other"), [(("10.0.0.5",), 401), ((), 429)])
async def test_behind_a_trusted_proxy_each_client_has_its_own_attempts(trusted: tuple[str, ...], other: int) -> None:
    app = make(await make_house(), options=ServerOptions(trusted_proxies=trusted))
    app._anonymous_limit._now = lambda: 1.0
    for _ in range(int(BURST)):
        await asked_from(app, "198.51.100.7")
    assert await asked_from(app, "198.51.100.7") == 429
    assert await asked_from(app, "198.51.100.8") == other
