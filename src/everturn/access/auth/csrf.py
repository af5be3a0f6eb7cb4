"""CSRF tokens: a login's browser sends one with every request that changes something. Pure.

A foreign web page can make the browser send its cookie, but cannot read this token.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from everturn.core.canonical_json import encode_canonical
from everturn.core.tenants.accounts import Principal


def csrf_of(secret: bytes, principal: Principal) -> str:
    """The CSRF token of a login. It is derived from the login alone, so it ends with it."""
    return hmac.digest(
        secret, encode_canonical(["csrf", principal.tenant, principal.credential]).encode(), sha256
    ).hex()


def is_csrf(secret: bytes, principal: Principal, token: str) -> bool:
    """Whether this is the CSRF token of the login."""
    return hmac.compare_digest(csrf_of(secret, principal).encode(), token.encode("utf-8", "replace"))
