"""Signatures of inbound hooks: Standard Webhooks, GitHub (`X-Hub-Signature-256`) and Slack (`v0`). Pure.

Only what is signed counts. GitHub signs the body alone: its `X-GitHub-Delivery` could be changed by whoever replays a
request, so the id of such a delivery is the hash of its body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from everturn.core.webhooks import SECRET_PREFIX, sign_payload
from everturn.errors import HookRefused

Scheme = Literal["standard", "github", "slack"]
TOLERANCE: Final = 300.0  # seconds that a timestamp may be off, before and after now
MAX_ID: Final = 200  # characters of a delivery id
MAX_SIGNATURES: Final = 10  # in one header; a sender that rotates its secret sends two
MIN_SECRET: Final = 16  # bytes
REFUSED: Final = "the delivery is not signed with the secret of this hook, or its timestamp is too old"


def verify_delivery(scheme: Scheme, secrets: Iterable[str], headers: Mapping[str, str], body: bytes, now: float) -> str:
    """Verify a delivery with any of the secrets, and return its id, which is the same when it is sent again.

    Raises:
        HookRefused: its signature or timestamp is missing or wrong. The cause says which, for the operator's log.
    """
    found = {name.lower(): value for name, value in headers.items()}
    match scheme:
        case "standard":
            id, at = found.get("webhook-id", ""), _timestamp(found.get("webhook-timestamp", ""), now)
            if not 0 < len(id) <= MAX_ID or not id.isprintable():
                raise _refused("webhook-id is missing or too long")
            signatures = [
                signature for signature in found.get("webhook-signature", "").split() if signature.startswith("v1,")
            ]
            _compare(signatures, [sign_payload(secret, id, at, body) for secret in secrets], "webhook-signature")
            return id
        case "github":
            signatures = [found.get("x-hub-signature-256", "")]
            _compare(signatures, [sign_github(secret, body) for secret in secrets], "x-hub-signature-256")
        case "slack":
            at = _timestamp(found.get("x-slack-request-timestamp", ""), now)
            signatures = [found.get("x-slack-signature", "")]
            _compare(signatures, [sign_slack(secret, at, body) for secret in secrets], "x-slack-signature")
    return hashlib.sha256(body).hexdigest()


def sign_github(secret: str, body: bytes) -> str:
    """A signature as GitHub sends it: `sha256=` and the HMAC-SHA256 of the body."""
    return f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}"


def sign_slack(secret: str, timestamp: int, body: bytes) -> str:
    """A signature as Slack sends it: `v0=` and the HMAC-SHA256 of `v0:timestamp:body`."""
    return f"v0={hmac.digest(secret.encode(), f'v0:{timestamp}:'.encode() + body, hashlib.sha256).hex()}"


def sign_delivery(scheme: Scheme, secret: str, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a signed delivery: what a sender adds, and `everturn hooks send` for a test."""
    match scheme:
        case "standard":
            signature = sign_payload(secret, id, timestamp, body)
            return {"webhook-id": id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}
        case "github":
            return {"x-github-delivery": id, "x-hub-signature-256": sign_github(secret, body)}
        case "slack":
            signature = sign_slack(secret, timestamp, body)
            return {"x-slack-request-timestamp": str(timestamp), "x-slack-signature": signature}


def secret_problem(scheme: Scheme, secret: str) -> str:
    """Why a text cannot be a secret; "" if it can."""
    data = secret.encode()
    if scheme == "standard":
        try:
            data = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            return "a secret of Standard Webhooks is whsec_ and base64"
    return (
        "" if len(data) >= MIN_SECRET else f"a secret has at least {MIN_SECRET} bytes: `openssl rand -hex 32` makes one"
    )


def _timestamp(text: str, now: float) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise _refused("the timestamp is missing or not a number of seconds")
    if abs(now - int(text)) > TOLERANCE:
        raise _refused(f"the timestamp is {now - int(text):+.0f} s from now; at most {TOLERANCE:.0f} are allowed")
    return int(text)


def _compare(signatures: list[str], expected: list[str], name: str) -> None:
    """Compare in constant time; every pair is compared, whichever fits."""
    if not any(signatures) or len(signatures) > MAX_SIGNATURES:
        raise _refused(f"{name} is missing, or has more than {MAX_SIGNATURES} signatures")
    fits = [hmac.compare_digest(signature.encode(), other.encode()) for signature in signatures for other in expected]
    if not any(fits):
        raise _refused(f"{name} does not match")


def _refused(reason: str) -> HookRefused:
    return HookRefused(REFUSED, reason)
