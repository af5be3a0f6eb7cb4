"""Encryption of the secrets in settings: AES-256-GCM with a key that is not in the database (decision 0220).

The key comes from the first of these that there is:

    [store.encryption]      the data key of the installation, from the keyring or the key management service
    [auth] signing_keys     derived from the first; the others still open what they sealed
    a store in a file       a key in a file of its own beside it, which only its owner can read; made on first use

A sealed secret is bound to its place as associated data, a setting to its scope, kind and name: copied to another row, it
does not open.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from everturn.config.build import signing_keys
from everturn.config.load import LoadedConfig
from everturn.config.secrets import SecretStr
from everturn.core.tenants.settings import INSTALLATION, Setting
from everturn.errors import ConfigError

MISSING_KEY: Final = (
    "there is no key to encrypt secrets with: set signing_keys under [auth] in everturn.toml (make one with "
    "`openssl rand -base64 32`), or turn on [store.encryption]"
)
_FORMAT: Final = b"\x01"
_NONCE: Final = 12
_HEADER: Final = 5


class SecretBox:
    """Seals with the first key, and opens with all."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        derived = [hmac.digest(key, b"everturn settings", "sha256") for key in keys]
        self._ciphers = {_FORMAT + hmac.digest(key, b"id", "sha256")[:4]: AESGCM(key) for key in derived}
        self._first = next(iter(self._ciphers))

    def seal(self, secret: str, setting: Setting) -> bytes:
        """Encrypt the secret of a setting."""
        return self.encrypt(secret, _place(setting))

    def open(self, setting: Setting) -> str:
        """Decrypt the secret of a setting.

        Raises:
            ConfigError: its key is not configured any more, or it was changed or moved here.
        """
        secret = self.decrypt(setting.secret, _place(setting))
        if secret is None:
            raise ConfigError(
                f"the secret of {setting.kind} {setting.name!r} does not decrypt: the key that it was encrypted with is "
                "gone, or the row was changed; enter it again"
            )
        return SecretStr(secret)

    def encrypt(self, secret: str, place: Sequence[str]) -> bytes:
        """Encrypt a text for a place: copied to another place, it does not decrypt."""
        nonce = os.urandom(_NONCE)
        return self._first + nonce + self._ciphers[self._first].encrypt(nonce, secret.encode(), _bind(place))

    def decrypt(self, sealed: bytes, place: Sequence[str]) -> str | None:
        """Decrypt; None: its key is not configured any more, or it was changed or moved here."""
        from cryptography.exceptions import InvalidTag

        cipher = self._ciphers.get(sealed[:_HEADER])
        if cipher is None:
            return None
        nonce = sealed[_HEADER : _HEADER + _NONCE]
        try:
            return cipher.decrypt(nonce, sealed[_HEADER + _NONCE :], _bind(place)).decode()
        except InvalidTag:
            return None


async def open_secret_box(
    loaded: LoadedConfig, environ: Mapping[str, str], store: Any, file: Path | None = None
) -> SecretBox:
    """Return the encryption of this installation; `file` is that of the key, for a store in a file.

    Raises:
        ConfigError: there is no key; the text names the setting.
    """
    if find_spec("cryptography") is None:
        raise ConfigError("cryptography is not installed; `pip install 'everturn[encryption]'`")
    provider = getattr(store, "key_provider", None)
    if provider is not None:
        return SecretBox([await provider.data_key(INSTALLATION)])
    if loaded.config.auth.signing_keys:
        return SecretBox([key.encode() for key in signing_keys(loaded, environ)])
    if file is not None:
        return SecretBox([_key_of(file)])
    raise ConfigError(MISSING_KEY)


def _key_of(file: Path) -> bytes:
    """Return the key in a file, which is made when there is none."""
    from everturn.mcp.private_file import read_private

    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as made:
            made.write(os.urandom(32).hex())
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(f"{file} cannot be created: {error.strerror}; set signing_keys under [auth]") from None
    data = read_private(file)
    if data is None or len(data.strip()) < 64:
        raise ConfigError(f"{file} contains no key; move it away, and enter the secrets of the settings again")
    return data.strip()


def _place(setting: Setting) -> tuple[str, ...]:
    return "setting", setting.scope, setting.kind, setting.name


def _bind(place: Sequence[str]) -> bytes:
    return msgspec.json.encode(list(place))
