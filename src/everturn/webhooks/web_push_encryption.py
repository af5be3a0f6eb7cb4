"""Web Push: encrypts a message for a browser (RFC 8291, aes128gcm) and authorizes its request (VAPID, RFC 8292).

It needs `cryptography`, which the extras `server` and `encryption` bring; it is imported when it is first needed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import importlib.util
import os
from typing import Final
from urllib.parse import urlsplit

import msgspec

from everturn.errors import ConfigError

PADDED: Final = 1024  # bytes of every message before encryption, so that its length says nothing
TOKEN_SECONDS: Final = 12 * 3600  # for which an authorization holds; a push service allows a day
POINT: Final = 65  # bytes of an uncompressed point of P-256
AUTH: Final = 16  # bytes of the secret of a subscription
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256


def is_available() -> bool:
    """Whether `cryptography` is installed."""
    return importlib.util.find_spec("cryptography") is not None


def encode_base64url(data: bytes) -> str:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Decode base64 for URLs.

    Raises:
        ConfigError: it is none.
    """
    try:
        return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError("keys: they are base64url, as the browser gives them") from None


def check_keys(p256dh: str, auth: str) -> None:
    """Check the keys of a subscription.

    Raises:
        ConfigError: they are not those of a browser.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode_base64url(p256dh))
    except ValueError:
        raise ConfigError("p256dh: it is not a public key on the curve P-256") from None
    if len(decode_base64url(auth)) != AUTH:
        raise ConfigError(f"auth: it has {AUTH} bytes")


class VapidKey:
    """The key by which push services know this server, derived from one of its signing keys."""

    def __init__(self, signing_key: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        digest = hashlib.sha512(b"everturn web push\0" + signing_key).digest()
        self._key = ec.derive_private_key(int.from_bytes(digest) % (_ORDER - 1) + 1, ec.SECP256R1())
        point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.public = encode_base64url(point)

    def authorization(self, endpoint: str, now: float, subject: str) -> str:
        """The `Authorization` header of a request to a push service."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        parts = urlsplit(endpoint)
        claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": int(now) + TOKEN_SECONDS, "sub": subject}
        head = encode_base64url(msgspec.json.encode({"typ": "JWT", "alg": "ES256"}))
        signed = f"{head}.{encode_base64url(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = encode_base64url(r.to_bytes(32) + s.to_bytes(32))
        return f"vapid t={signed}.{signature}, k={self.public}"


def encrypt_message(text: bytes, p256dh: str, auth: str) -> bytes:
    """Encrypt a message for a subscription: the body of a request with `content-encoding: aes128gcm`.

    Raises:
        ConfigError: it is too long, or the keys are not those of a browser.
    """
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    if len(text) >= PADDED:
        raise ConfigError(f"a push message has at most {PADDED - 1} bytes")
    receiver, secret = decode_base64url(p256dh), decode_base64url(auth)
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), receiver)
    except ValueError:
        raise ConfigError("p256dh: it is not a public key on the curve P-256") from None
    own = ec.generate_private_key(ec.SECP256R1())
    sender = own.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    shared, salt = own.exchange(ec.ECDH(), public), os.urandom(16)
    material = _hkdf(secret, shared, b"WebPush: info\0" + receiver + sender, 32)
    key = _hkdf(salt, material, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _hkdf(salt, material, b"Content-Encoding: nonce\0", 12)
    padded = text + b"\2" + b"\0" * (PADDED - 1 - len(text))
    record = AESGCM(key).encrypt(nonce, padded, None)
    return salt + (PADDED + 16).to_bytes(4) + bytes([POINT]) + sender + record


def _hkdf(salt: bytes, material: bytes, info: bytes, length: int) -> bytes:
    """HKDF with SHA-256, for at most 32 bytes."""
    extracted = hmac.digest(salt, material, "sha256")
    return hmac.digest(extracted, info + b"\1", "sha256")[:length]
