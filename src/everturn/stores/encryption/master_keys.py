"""Master keys: wrap the data keys of tenants with AES-256-GCM. The first wraps, all unwrap.

A wrapped key names its master key by a fingerprint, and is bound to its tenant.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Sequence
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from everturn.core.tenants.encryption import DATA_KEY_BYTES
from everturn.errors import ConfigError

SETTING: Final = "[store.encryption] master_keys"
MAKE_ONE: Final = "make one with `openssl rand -base64 32`"
_NONCE: Final = 12


class MasterKeys:
    """A list of master keys, newest first.

    Raises:
        ConfigError: there is none, or one is not 32 bytes in base64.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ConfigError(f"{SETTING} is empty: a keyring needs a master key; {MAKE_ONE}")
        self._keys: dict[str, AESGCM] = {}
        for number, key in enumerate(keys, 1):
            data = _decode(key, number)
            self._keys[hmac.digest(data, b"everturn master key", "sha256").hex()[:16]] = AESGCM(data)
        self.newest = next(iter(self._keys))

    def wrap(self, data_key: bytes, name: str) -> tuple[str, bytes]:
        """Wrap a key for a name; return the fingerprint of the master key and the wrapped key."""
        nonce = os.urandom(_NONCE)
        return self.newest, nonce + self._keys[self.newest].encrypt(nonce, data_key, _bind(name))

    def unwrap(self, fingerprint: str, wrapped: bytes, name: str) -> bytes:
        """Unwrap a key.

        Raises:
            ConfigError: its master key is not configured, or it was changed.
        """
        master = self._keys.get(fingerprint)
        if master is None:
            raise ConfigError(
                f"the keyring has keys of master key {fingerprint}, which is not in {SETTING} "
                f"(there: {', '.join(self._keys)}): add it behind the others; rotate with `everturn admin keys rewrap`"
            )
        try:
            return master.decrypt(wrapped[:_NONCE], wrapped[_NONCE:], _bind(name))
        except InvalidTag:
            raise ConfigError(
                f"a key in the keyring ({name!r}) does not open with its master key: it was changed, or moved here from "
                "another tenant; restore the keyring ([store.encryption] keyring)"
            ) from None


def _decode(key: str, number: int) -> bytes:
    try:
        data = base64.b64decode(key.strip(), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != DATA_KEY_BYTES:
        raise ConfigError(f"{SETTING}: key {number} is not {DATA_KEY_BYTES} bytes in base64; {MAKE_ONE}")
    return data


def _bind(name: str) -> bytes:
    return msgspec.json.encode(["everturn data key", name])
