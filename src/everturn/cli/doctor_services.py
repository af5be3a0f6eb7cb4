"""The addresses that are configured → whether what is meant answers there. A password in one is never shown."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from everturn.cli.doctor_checks import Check, plain
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.config.loading import Loaded

ABOUT: Final = "Services"
PATIENCE: Final = 0.9  # seconds that a service has to answer


def _postgres(one: socket.socket) -> bool:
    one.sendall(struct.pack("!II", 8, 80_877_103))  # whether it speaks TLS: every PostgreSQL has an answer
    return one.recv(1) in (b"S", b"N")


def _nats(one: socket.socket) -> bool:
    return one.recv(5) == b"INFO "


def _health(path: str) -> Callable[[socket.socket], bool]:
    def asked(one: socket.socket) -> bool:
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return one.recv(12).endswith(b" 200")

    return asked


def _anybody(one: socket.socket) -> bool:
    return True


class Service:
    """What is meant by a name: what to call it, its usual port, and how it is known."""

    def __init__(self, title: str, port: int, is_it: Callable[[socket.socket], bool]) -> None:
        self.title, self.port, self.is_it = title, port, is_it


SERVICES: Final[Mapping[str, Service]] = {
    "EVERTURN_DATABASE": Service("PostgreSQL", 5432, _postgres),
    "EVERTURN_RESTATE": Service("Restate", 8080, _health("/restate/health")),
    "EVERTURN_ADMIN": Service("Restate's admin API", 9070, _health("/health")),
    "EVERTURN_NATS": Service("NATS", 4222, _nats),
}
"""The variables that say where a worker finds its services."""

CONFIGURED: Final[Mapping[str, str]] = {
    "[cluster] database": "EVERTURN_DATABASE",
    "[cluster] restate": "EVERTURN_RESTATE",
    "[cluster] admin": "EVERTURN_ADMIN",
    "[cluster] nats": "EVERTURN_NATS",
    "[store] url": "EVERTURN_DATABASE",
    "[telemetry] otlp": "",
}
"""The keys that say it, and what they mean."""


def addresses(loaded: Loaded | None, environment: Mapping[str, str]) -> dict[str, str]:
    """What is configured, by variable or key; a variable beats the key of the same meaning."""
    found = {name: environment[name] for name in SERVICES if environment.get(name)}
    if loaded is None:
        return found
    config = loaded.config
    written = {f"[cluster] {key}": getattr(config.cluster, key) for key in ("database", "restate", "admin", "nats")}
    written |= {"[store] url": config.store.url, "[telemetry] otlp": config.telemetry.otlp}
    for key, text in written.items():
        is_beaten = key.startswith("[cluster]") and CONFIGURED[key] in found
        try:
            address = str.__str__(text.resolved(environment)) if text and not is_beaten else ""
        except ConfigError:  # told with the configuration
            continue
        if "://" in address and not address.startswith("sqlite:"):
            found[key] = address
    return found


def service(name: str, address: str) -> Check:
    """Whether it answers, and is what is meant."""
    known = SERVICES.get(CONFIGURED.get(name, name), Service("somebody", 4318, _anybody))
    mend = f"start it, or take {name} away" if name.startswith("[") else f"start it, or unset {name}"
    if known.is_it is _nats:
        address = address.partition(",")[0]  # of several, whichever is there first
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname or "127.0.0.1", parts.port or known.port
        folder = parse_qs(parts.query).get("host", [""])[0]
    except ValueError:
        return Check(ABOUT, name, "broken", "it is no address", f"set {name} to one, such as host:port")
    place = plain(f"{folder}/.s.PGSQL.{port}" if folder.startswith("/") else f"{host}:{port}")
    is_secret = parts.scheme in ("https", "tls", "wss")  # who is behind it shows only to whoever speaks TLS
    try:
        with _reached(host, port, place if folder.startswith("/") else "") as one:
            is_it = is_secret or known.is_it(one)
    except TimeoutError:
        return Check(ABOUT, name, "broken", f"{known.title} does not answer at {place}", mend)
    except (OSError, UnicodeError):
        return Check(ABOUT, name, "broken", f"nobody answers at {place}", mend)
    if not is_it:
        return Check(ABOUT, name, "broken", f"something else than {known.title} answers at {place}", mend)
    return Check(ABOUT, name, "ok", place if known.is_it is _anybody else f"{known.title} at {place}")


def _reached(host: str, port: int, file: str) -> socket.socket:
    if not file:
        return socket.create_connection((host, port), PATIENCE)
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.settimeout(PATIENCE)
    try:
        one.connect(file)
    except BaseException:
        one.close()
        raise
    return one
