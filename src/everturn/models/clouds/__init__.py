"""Clouds: where the models of Azure OpenAI, Vertex AI and Amazon Bedrock are, and how requests to them are authorized.

A model of a vendor has one URL and one key. In a cloud the URL names a resource, a project or a region, and a request
can also carry a token that expires within the hour, or a signature. The credentials that a machine has go only to the
cloud's own host, or to the endpoint that the cloud's own environment variable names: a `base_url`, which may come from
a configuration file, gets the key that was given for it, or none.

- `azure`: Azure OpenAI: API key or Microsoft Entra ID
- `vertex`: Vertex AI: Application Default Credentials
- `bedrock`: Amazon Bedrock: API key or signatures
- `aws_signature`: AWS Signature Version 4
- `tokens`: access tokens: fetched in a thread, cached, and refreshed before they expire

Nothing here is imported before a model of a cloud is named, and no package of a cloud before its first request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from everturn.errors import ConfigError
from everturn.models.profile import Profile
from everturn.transport import HttpRequest

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class RequestSigner(Protocol):
    """Authorizes requests with the credentials that this machine has."""

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """Return the request with its credentials.

        Raises:
            ModelError: there are none, or they cannot be refreshed; kind `key`.
        """
        ...

    def secrets(self) -> Sequence[str]:
        """The secrets that the last requests carried, which an error must not repeat."""
        ...

    def forget(self) -> None:
        """The server refused the credentials: do not reuse a cached token."""
        ...


class CloudServer(Struct, frozen=True):
    """The server of a model in a cloud.

    `base_url` is for messages and rate limits, `url` returns the address for a path of the wire format. With a
    `signer`, no key is needed; `is_home` says whether the credentials of this machine may be sent there.
    """

    base_url: str
    url: Callable[[str], str]
    is_home: bool
    key_scheme: tuple[str, str] = ("authorization", "Bearer ")  # the header for a key, and the prefix of its value
    signer: RequestSigner | None = None


def open_cloud(profile: Profile, model: str, base_url: str, has_key: bool, environ: Mapping[str, str]) -> CloudServer:
    """Return the server of a model. `base_url` is what the caller gave; "": the cloud's own.

    Raises:
        ConfigError: the environment does not say where the model is, or has no credentials; the message says what to
            set.
    """
    if profile.cloud == "azure":
        from everturn.models.clouds.azure import open_azure as open_server
    elif profile.cloud == "bedrock":
        from everturn.models.clouds.bedrock import open_bedrock as open_server
    else:
        from everturn.models.clouds.vertex import open_vertex as open_server
    return open_server(profile, model, base_url.rstrip("/"), has_key, environ)


def checked_label(text: str, variable: str) -> str:
    """Return a region or location, which becomes a part of a host name.

    Raises:
        ConfigError: it is none; it could lead the credentials to another host.
    """
    if not _LABEL.fullmatch(text):
        raise ConfigError(f"{variable} is {text!r}, which is not the name of a region; it looks like us-east1")
    return text


__all__ = ["CloudServer", "RequestSigner", "checked_label", "open_cloud"]
