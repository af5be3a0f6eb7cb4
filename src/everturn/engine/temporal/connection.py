"""Temporal connection: the address of a Temporal frontend, and the client of this process for it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import cache
from pathlib import Path

from msgspec import Struct
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, TLSConfig

from everturn.errors import ConfigError, EngineUnavailable

CONNECT_TIMEOUT = timedelta(seconds=5)


class TemporalAddress(Struct, frozen=True):
    """Where Temporal is: `temporal://host:port`, or `tls://host:port`, with PEM files for a CA and a client certificate.

    An API key is for Temporal Cloud, and needs TLS.
    """

    url: str = "temporal://127.0.0.1:7233"
    namespace: str = "default"
    api_key: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def target(self) -> str:
        """The address as `host:port`.

        Raises:
            ConfigError: the URL is no address of Temporal.
        """
        scheme, separator, target = self.url.rpartition("://")
        host, _, port = target.rstrip("/").rpartition(":")
        if (separator and scheme not in ("temporal", "tls")) or not host or not port.isdecimal():
            raise ConfigError(
                f"{self.url!r} is not an address of Temporal; it looks like temporal://127.0.0.1:7233, or tls://host:7233"
            )
        if scheme != "tls" and (self.api_key or self.ca or self.certificate):
            raise ConfigError(f"a certificate or an API key of Temporal needs TLS; write tls://{host}:{port}")
        return f"{host}:{port}"

    def tls(self) -> TLSConfig | bool:
        """The settings of TLS; False: none.

        Raises:
            ConfigError: a file cannot be read.
        """
        if not self.url.startswith("tls://"):
            return False
        return TLSConfig(
            server_root_ca_cert=_read(self.ca), client_cert=_read(self.certificate), client_private_key=_read(self.key)
        )


def _read(path: str) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; it must be a PEM file for Temporal") from error


@cache
def _runtime() -> Runtime:
    """Ours: the default one reports every worker to the server each minute, and describes the machine."""
    return Runtime(
        telemetry=TelemetryConfig(logging=None), worker_heartbeat_interval=None, disable_environment_info=True
    )


class TemporalConnection:
    """The client of this process, opened when it is first used."""

    def __init__(self, address: TemporalAddress) -> None:
        self.address, self._target = address, address.target
        self._client: Client | None = None
        self._lock = asyncio.Lock()

    async def client(self) -> Client:
        """Return the client.

        Raises:
            EngineUnavailable: Temporal does not answer.
        """
        async with self._lock:
            if self._client is None:
                address = self.address
                try:
                    self._client = await Client.connect(
                        self._target,
                        namespace=address.namespace,
                        api_key=address.api_key or None,
                        tls=address.tls(),
                        connect_timeout=CONNECT_TIMEOUT,
                        runtime=_runtime(),
                    )
                except (RuntimeError, RPCError) as error:
                    raise EngineUnavailable(self.problem(error)) from error
            return self._client

    def problem(self, error: BaseException) -> str:
        """What to check after an error."""
        return (
            f"Temporal at {self._target} does not answer ({_first_line(error)}); see that its frontend runs there, and "
            f"that it has the namespace {self.address.namespace!r}"
        )


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0][:300]
