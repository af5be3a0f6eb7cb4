"""A pinned address and a certificate for the name: both are held to. Certificates are made by openssl."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
from tests.helpers.loopback_servers import Names, listening, moved

from everturn.egress import EgressPolicy, FetchLimits, fetch
from everturn.errors import AddressRefused, FetchFailed

pytestmark = pytest.mark.live
SHORT = FetchLimits(total=20, idle=10, connect=10)


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a server that is site.example.com, and of a client that believes it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(),
            *("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=site.example.com"),
            *("-addext", "subjectAltName=DNS:site.example.com"),
        ],
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))


async def test_the_certificate_is_that_of_the_name_at_the_address_that_was_judged(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = contexts
    sni_names: list[str | None] = []
    server.sni_callback = lambda _, name, __: sni_names.append(name)
    async with listening(server) as listeners:
        port = listeners.port
        names = Names(site_example_com=[["127.0.0.1"]], other_example_com=[["127.0.0.1"]])
        guard = EgressPolicy(allow=[f"site.example.com:{port}", f"other.example.com:{port}"], resolve=names)
        page = await fetch(guard, f"https://site.example.com:{port}/", limits=SHORT, tls=client)
        assert (page.body, sni_names) == (b"here is 127.0.0.1", ["site.example.com"])
        for name, context in (("other", client), ("site", None)):
            with pytest.raises(FetchFailed, match="has no valid TLS certificate") as caught:
                await fetch(guard, f"https://{name}.example.com:{port}/", limits=SHORT, tls=context)
            assert caught.value.kind == "tls"
        assert len(listeners.asked) == 1


async def test_a_redirect_from_https_to_http_is_refused(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, client = contexts
    async with listening(server) as listeners:
        port = listeners.port
        guard = EgressPolicy(allow=[f"site.example.com:{port}"], resolve=Names(site_example_com=[["127.0.0.1"]]))
        listeners.answers["/"] = moved(f"http://site.example.com:{port}/x")
        with pytest.raises(AddressRefused, match="from https to http"):
            await fetch(guard, f"https://site.example.com:{port}/", limits=SHORT, tls=client)
        assert listeners.total == 1
