"""Temporal behind TLS: the server's certificate is verified, and a client certificate is presented.

The development server has no TLS, so a small proxy in front of it ends the encryption.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from everturn.engine.temporal import TemporalAddress, TemporalEngine
from everturn.errors import EngineUnavailable
from tools.servers.temporal import temporal_server

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


def make_certificate(folder: Path, name: str) -> tuple[str, str]:
    """A certificate for the loopback that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / f"{name}.pem", folder / f"{name}-key.pem"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(public), str(private)


@asynccontextmanager
async def encrypted(port: int, certificate: tuple[str, str], client_ca: str) -> AsyncGenerator[int]:
    """A port that ends TLS, and asks for a client certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*certificate)
    context.set_alpn_protocols(["h2"])

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
        server.close()


async def test_a_session_is_driven_over_tls_with_a_client_certificate(tmp_path: Path) -> None:
    server_files, ours, theirs = (make_certificate(tmp_path, name) for name in ("server", "ours", "theirs"))
    driven = asyncio.Event()

    async def drive(session: str) -> None:
        driven.set()

    async with temporal_server(tmp_path) as server, encrypted(server.port, server_files, ours[0]) as port:
        url = f"tls://127.0.0.1:{port}"
        engine = TemporalEngine(TemporalAddress(url, ca=server_files[0], certificate=ours[0], key=ours[1]))
        await engine.serve(drive)
        await engine.wake("s")
        await asyncio.wait_for(driven.wait(), 60)

        async def is_refused(address: TemporalAddress) -> None:
            stranger = TemporalEngine(address, drives=False)
            with pytest.raises(EngineUnavailable, match="does not answer"):
                await stranger.wake("s")
            await stranger.aclose()

        # At once: each takes as long as a connection may take.
        await asyncio.gather(
            is_refused(TemporalAddress(url, ca=theirs[0], certificate=ours[0], key=ours[1])),
            is_refused(TemporalAddress(url, ca=server_files[0], certificate=theirs[0], key=theirs[1])),
            is_refused(TemporalAddress(f"temporal://127.0.0.1:{port}")),
        )
        await engine.aclose()
