"""AWS Signature Version 4: signs the body and headers of a request for a service in a region.

docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. Pure; tests compare it with botocore's.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from everturn.transport import HttpRequest

ALGORITHM: Final = "AWS4-HMAC-SHA256"
# Proxies may change them, so they are not signed; botocore does not sign them, either.
_UNSIGNED: Final = frozenset({"accept-encoding", "authorization", "connection", "expect", "user-agent"})


class AwsCredentials(Struct, frozen=True):
    """Credentials of AWS; `token` belongs to those that expire."""

    access_key: str
    secret_key: str
    token: str = ""


def sign_request(
    request: HttpRequest, credentials: AwsCredentials, service: str, region: str, now: datetime
) -> HttpRequest:
    """Return the request with its signature; `now` is in UTC."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {**request.headers, "x-amz-date": stamp}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    canonical, signed = _canonical_request(replace(request, headers=headers))
    text = f"{ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    headers["authorization"] = (
        f"{ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={signed}, Signature={key.hex()}"
    )
    return replace(request, headers=headers)


def _canonical_request(request: HttpRequest) -> tuple[str, str]:
    """Return the request as it is signed, and the names of the signed headers. Its URL has no query."""
    parts = urlsplit(request.url)
    headers = _signed_headers(request.headers, parts.netloc)
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    path = quote(parts.path or "/", safe="/~")  # once more: what is encoded in the path is encoded twice here
    return f"POST\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(request.body).hexdigest()}", names


def _signed_headers(headers: Mapping[str, str], netloc: str) -> dict[str, str]:
    host = netloc.rpartition("@")[2].removesuffix(":443")
    named = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    return dict(sorted((name, value) for name, value in {**named, "host": host}.items() if name not in _UNSIGNED))


__all__ = ["AwsCredentials", "sign_request"]
