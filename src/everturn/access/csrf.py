"""A login → the token that its browser sends along with whatever changes something. Pure.

A page of somebody else can make the browser send its cookie, but cannot read this.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from everturn.core.accounts import Principal
from everturn.core.canonical import canonical


def csrf_of(secret: bytes, principal: Principal) -> str:
    """The token of a login: bound to it alone, so that it ends with it."""
    return hmac.digest(secret, canonical(["csrf", principal.tenant, principal.credential]).encode(), sha256).hex()


def is_csrf(secret: bytes, principal: Principal, token: str) -> bool:
    """Whether this is the token of a login."""
    return hmac.compare_digest(csrf_of(secret, principal).encode(), token.encode("utf-8", "replace"))
