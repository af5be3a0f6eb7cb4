"""Tenant cipher: AES-256-GCM with the data key of one tenant.

A sealed value is bound to its place (tenant, table, column and the ids of its row) as associated data: copied to another
place, it does not open. Each session has a subkey of its own, because a key of AES-GCM with random nonces is good for
2**32 values, and a tenant may write more.

    sealed value    0xE5, format (1 byte), id of the data key (4), nonce (12), ciphertext, tag (16)
    sealed text     "enc1." and that in base64
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections import OrderedDict
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from everturn.core.tenants.encryption import SEALED_PREFIX, is_sealed
from everturn.errors import UnreadableLog

TEXT_PREFIX: Final = "enc1."
SUBKEYS_LIMIT: Final = 2048
_NONCE: Final = 12
_HEADER: Final = len(SEALED_PREFIX) + 4

SEALED_BYTES: Final = _HEADER + _NONCE + 16
"""Bytes that a sealed value has more than the value itself."""

_encode = msgspec.json.Encoder().encode

Place = tuple[str | int | None, ...]
"""Table, column and row ids. The first id is that of the session, where there is one."""


class TenantCipher:
    """Encrypts and decrypts for one tenant."""

    __slots__ = ("_data_key", "_header", "_names", "_subkeys", "tenant")

    def __init__(self, tenant: str, data_key: bytes) -> None:
        self.tenant, self._data_key = tenant, data_key
        self._header = SEALED_PREFIX + self._derive("id")[:4]
        self._names = self._derive("names")
        self._subkeys: OrderedDict[str, AESGCM] = OrderedDict()

    def seal(self, value: bytes, place: Place) -> bytes:
        """Encrypt a value for a place."""
        nonce = os.urandom(_NONCE)
        return self._header + nonce + self._subkey(place).encrypt(nonce, value, self._bind(place))

    def open(self, sealed: bytes, place: Place) -> bytes:
        """Decrypt a value that was sealed for this place.

        Raises:
            UnreadableLog: it is not encrypted, another key sealed it, or it was changed or moved here.
        """
        if not is_sealed(sealed):
            raise UnreadableLog(
                f"{_describe(place)} is not encrypted, and [store.encryption] is on; if it was written before that was "
                "turned on, set allow_plaintext = true there"
            )
        if sealed[:_HEADER] != self._header:
            raise UnreadableLog(
                f"{_describe(place)} was encrypted with another key than that of tenant {self.tenant!r}: it was moved "
                "here, or [store.encryption] keyring is not the one of this store"
            )
        nonce = sealed[_HEADER : _HEADER + _NONCE]
        try:
            return self._subkey(place).decrypt(nonce, sealed[_HEADER + _NONCE :], self._bind(place))
        except InvalidTag:
            raise UnreadableLog(
                f"{_describe(place)} does not decrypt: it was changed, or moved here from another row"
            ) from None

    def seal_text(self, value: str, place: Place) -> str:
        """Encrypt a text for a column that holds text. An empty one stays empty."""
        return TEXT_PREFIX + base64.b64encode(self.seal(value.encode(), place)).decode() if value else value

    def open_text(self, sealed: str, place: Place) -> str:
        """Decrypt a text that was sealed for this place.

        Raises:
            UnreadableLog: as `open`.
        """
        if not sealed:
            return sealed
        try:
            value = base64.b64decode(sealed.removeprefix(TEXT_PREFIX), validate=True) if is_sealed_text(sealed) else b""
        except binascii.Error:
            value = b""
        return self.open(value, place).decode()

    def hash_name(self, name: str) -> str:
        """Return a keyed hash of a name that would tell what it names: the hash of a blob or of a conversation."""
        return hmac.digest(self._names, name.encode(), "sha256").hex()

    def _subkey(self, place: Place) -> AESGCM:
        scope = str(place[2])
        if (key := self._subkeys.get(scope)) is None:
            key = self._subkeys[scope] = AESGCM(self._derive("row", scope))
            if len(self._subkeys) > SUBKEYS_LIMIT:
                self._subkeys.popitem(last=False)
        return key

    def _derive(self, *purpose: str) -> bytes:
        return hmac.digest(self._data_key, _encode(["everturn", *purpose]), "sha256")

    def _bind(self, place: Place) -> bytes:
        return _encode((self.tenant, *place))


def is_sealed_text(value: str) -> bool:
    """Return whether a text is encrypted."""
    return value.startswith(TEXT_PREFIX)


def _describe(place: Place) -> str:
    table, column, *row = place
    return f"column {column!r} of table {table!r}, row {'/'.join(map(str, row))!r},"
