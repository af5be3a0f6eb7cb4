"""Signatures of reasoning: makes the opaque values with which a provider signs it, and recognizes its own.

A signature covers the text beside it. Encrypted reasoning carries a digest of its text instead, because the text is not
sent back. Both are bound to the model that made them, as with real providers.
"""

from __future__ import annotations

import hmac
from functools import lru_cache

_SECRET = b"everturn.testing.provider"


def _mac(model: str, text: str) -> str:
    return hmac.digest(_SECRET, f"{model}\0{text}".encode(), "sha256").hex()


@lru_cache(maxsize=4096)
def sign(model: str, text: str) -> str:
    """The signature of a thinking block."""
    return "sig-" + _mac(model, text)


def seal_reasoning(kind: str, model: str, text: str) -> str:
    """An opaque value in place of reasoning: kind `enc` in responses, `red` in messages."""
    digest = _mac("", text)[:16]
    return f"{kind}-{digest}-{_sealed(kind, model, digest)}"


def is_sealed(kind: str, model: str, value: str) -> bool:
    """Whether this provider made the value, for this model."""
    found, _, rest = value.partition("-")
    digest, _, mac = rest.partition("-")
    return found == kind and mac == _sealed(kind, model, digest)


@lru_cache(maxsize=4096)
def _sealed(kind: str, model: str, digest: str) -> str:
    return _mac(model, f"{kind}\0{digest}")
