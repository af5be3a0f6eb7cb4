"""NATS addresses: lists and TLS are understood or refused, and never half understood."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.cluster.nats_address import is_encrypted, nats_servers
from everturn.config.build import configured_cluster
from everturn.config.load import load_config
from everturn.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("nats://a:4222", ["nats://a:4222"]),
        ("nats://a,nats://b:1", ["nats://a", "nats://b:1"]),
        ("a:1, b:2", ["nats://a:1", "nats://b:2"]),
        ("tls://u:p@a,tls://b", ["tls://u:p@a", "tls://b"]),
    ],
)
def test_a_list_of_servers_is_read(text: str, servers: list[str]) -> None:
    assert nats_servers(text) == servers
    assert is_encrypted(servers) == text.startswith("tls")


@pytest.mark.parametrize(
    "text", ["", ",", "http://a", "nats://", "nats://a:x", "nats://a,tls://b", "nats://a nats://b"]
)
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"nats|NATS"):
        nats_servers(text)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        nats_servers("http://user:secret@a")
    assert "secret" not in str(refused.value)


def written(folder: Path, text: str) -> str:
    path = folder / "everturn.toml"
    path.write_text(f"[cluster]\n{text}", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nats = 'nats://a,http://b'", "is not the address of a NATS server"),
        ("nats = 'nats://a,tls://b'", "some of these"),
        ("nats = 'nats://a'\nnats_ca = 'ca.pem'", "this is for TLS"),
        ("nats = 'tls://a'\nnats_key = 'key.pem'", "needs its certificate"),
        ("nats = 'nats://a,nats://user:secret@b'", "a password"),
        ("identity_key = 'secret'", "publickeyv1_"),
        ("live_bytes = 10", "live_bytes"),
        ("loop_timeout = -1", "loop_timeout"),
    ],
)
def test_a_configuration_that_would_not_be_honoured_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_config(written(tmp_path, text))


def test_what_is_configured_reaches_the_cluster(tmp_path: Path) -> None:
    text = """nats = 'tls://a,tls://user:${env:P}@b'
nats_ca = 'ca.pem'
nats_certificate = 'cert.pem'
nats_key = 'key.pem'
identity_key = 'publickeyv1_x'
live_bytes = 2097152
loop_timeout = 9.5"""

    cluster = configured_cluster(load_config(written(tmp_path, text)), {}, {"P": "secret"})

    assert nats_servers(cluster.nats) == ["tls://a", "tls://user:secret@b"]
    assert (cluster.nats_ca, cluster.nats_certificate, cluster.nats_key) == ("ca.pem", "cert.pem", "key.pem")
    assert (cluster.identity_key, cluster.live_bytes, cluster.loop_timeout) == ("publickeyv1_x", 2**21, 9.5)
