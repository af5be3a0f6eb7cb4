"""Service check: whether the configured services answer at their addresses, and accept our login. Passwords in addresses are never shown."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from everturn.cli.doctor.checks import DoctorCheck, make_printable
from everturn.cli.doctor.service_logins import NO_JETSTREAM, POOLED, nats_problem, postgres_problem
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.config.load import LoadedConfig

ABOUT: Final = "Services"
PATIENCE: Final = 0.9  # seconds for a service to answer
FIXES: Final[Mapping[str, str]] = {
    POOLED: "name the server itself, or a pooler in session mode",
    NO_JETSTREAM: "start it with --jetstream",
}
LOGIN_FIX: Final = "correct the user, the password or the database in the address"


def _postgres(connection: socket.socket) -> bool:
    connection.sendall(struct.pack("!II", 8, 80_877_103))  # SSLRequest: every PostgreSQL answers it
    return connection.recv(1) in (b"S", b"N")


def _nats(connection: socket.socket) -> bool:
    return connection.recv(5) == b"INFO "


def _health(path: str) -> Callable[[socket.socket], bool]:
    def is_healthy(connection: socket.socket) -> bool:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return connection.recv(12).endswith(b" 200")

    return is_healthy


def _any_listener(connection: socket.socket) -> bool:
    return True


def _grpc(connection: socket.socket) -> bool:
    # The preface of HTTP/2 and empty settings, which a server answers with its own.
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
    return connection.recv(9)[3:4] == b"\x04"


class ServiceCheck:
    """How to recognise a service: its name, its default port, and a test over an open connection."""

    def __init__(self, title: str, port: int, is_it: Callable[[socket.socket], bool]) -> None:
        self.title, self.port, self.matches = title, port, is_it


SERVICES: Final[Mapping[str, ServiceCheck]] = {
    "EVERTURN_DATABASE": ServiceCheck("PostgreSQL", 5432, _postgres),
    "EVERTURN_RESTATE": ServiceCheck("Restate", 8080, _health("/restate/health")),
    "EVERTURN_ADMIN": ServiceCheck("Restate's admin API", 9070, _health("/health")),
    "EVERTURN_TEMPORAL": ServiceCheck("Temporal", 7233, _grpc),
    "EVERTURN_NATS": ServiceCheck("NATS", 4222, _nats),
}
"""Environment variable with the address of a service → how to recognise that service."""

CONFIGURED: Final[Mapping[str, str]] = {
    "[cluster] database": "EVERTURN_DATABASE",
    "[cluster] restate": "EVERTURN_RESTATE",
    "[cluster] admin": "EVERTURN_ADMIN",
    "[cluster] temporal": "EVERTURN_TEMPORAL",
    "[cluster] nats": "EVERTURN_NATS",
    "[store] url": "EVERTURN_DATABASE",
    "[telemetry] otlp": "",
}
"""Configuration key with an address → the variable of the same meaning; "": any listener will do."""


def collect_addresses(loaded: LoadedConfig | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the configured addresses, by variable or key; a variable wins over the key of the same meaning."""
    result = {name: environment[name] for name in SERVICES if environment.get(name)}
    if loaded is None:
        return result
    config = loaded.config
    keys = ("database", "restate", "admin", "temporal", "nats")
    configured = {f"[cluster] {key}": getattr(config.cluster, key) for key in keys}
    configured |= {"[store] url": config.store.url, "[telemetry] otlp": config.telemetry.otlp}
    for key, text in configured.items():
        is_beaten = key.startswith("[cluster]") and CONFIGURED[key] in result
        try:
            address = str.__str__(text.resolved(environment)) if text and not is_beaten else ""
        except ConfigError:  # reported by the check of the configuration
            continue
        if "://" in address and not address.startswith("sqlite:"):
            result[key] = address
    return result


def check_service(name: str, address: str) -> DoctorCheck:
    """Check that a service answers at its address, and is the expected one."""
    known = SERVICES.get(CONFIGURED.get(name, name), ServiceCheck("somebody", 4318, _any_listener))
    fix = f"start it, or take {name} away" if name.startswith("[") else f"start it, or unset {name}"
    if known.matches is _nats:
        address = address.partition(",")[0]  # of several, the first one
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname or "127.0.0.1", parts.port or known.port
        folder = parse_qs(parts.query).get("host", [""])[0]
    except ValueError:
        return DoctorCheck(ABOUT, name, "broken", "it is not a valid address", f"set {name} to one, such as host:port")
    location = make_printable(f"{folder}/.s.PGSQL.{port}" if folder.startswith("/") else f"{host}:{port}")
    # What listens behind TLS cannot be recognised without a handshake.
    is_encrypted = parts.scheme in ("https", "tls", "wss")
    try:
        with _connect(host, port, location if folder.startswith("/") else "") as connection:
            is_it = is_encrypted or known.matches(connection)
    except TimeoutError:
        return DoctorCheck(ABOUT, name, "broken", f"{known.title} does not answer at {location}", fix)
    except (OSError, UnicodeError):
        return DoctorCheck(ABOUT, name, "broken", f"no server answers at {location}", fix)
    if not is_it:
        return DoctorCheck(ABOUT, name, "broken", f"something else than {known.title} answers at {location}", fix)
    problem = ""
    if known.matches is _postgres:
        problem = postgres_problem(address)
    elif known.matches is _nats and not is_encrypted:
        problem = nats_problem(parts, lambda: _connect(host, port, ""))
    if problem:
        return DoctorCheck(
            ABOUT, name, "broken", f"{known.title} at {location} {problem}", FIXES.get(problem, LOGIN_FIX)
        )
    return DoctorCheck(
        ABOUT, name, "ok", location if known.matches is _any_listener else f"{known.title} at {location}"
    )


def _connect(host: str, port: int, file: str) -> socket.socket:
    if not file:
        return socket.create_connection((host, port), PATIENCE)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE)
    try:
        connection.connect(file)
    except BaseException:
        connection.close()
        raise
    return connection
