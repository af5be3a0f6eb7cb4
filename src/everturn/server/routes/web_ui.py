"""Web UI files: serves what `scripts/web` has built, as it is, to authenticated and anonymous callers alike.

The Content-Security-Policy is strict: scripts, styles and requests from this server alone, no markup made of text
(Trusted Types), no embedding in a frame. A checkout in which the web UI was not built serves a notice instead.
"""

from __future__ import annotations

import gzip
import os
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from everturn.core.tenants.user_records import PasswordSupport
from everturn.server.brand import Branding
from everturn.server.errors import RequestError
from everturn.server.route import HttpRequestContext

BUILD_DIRECTORY: Final = Path(__file__).parent.parent / "web"
BUILD_VARIABLE: Final = "EVERTURN_WEB"
"""The environment variable with the directory of another build, for development of the web UI."""

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "media-src 'self' blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "worker-src 'self'",  # push-worker.js
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types everturn-push",  # for the address of that worker, which is a constant
    )
)
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
MIN_COMPRESS_BYTES: Final = 512  # bytes; shorter files are not worth compressing
NO_DEVICES: Final = "camera=(), microphone=(), geolocation=(), usb=(), serial=(), payment=()"
"""The Permissions-Policy: the devices that our pages never use."""

WITH_MICROPHONE: Final = NO_DEVICES.replace("microphone=()", "microphone=(self)")
"""Where dictation is configured."""


PUSH_WORKER: Final = "push-worker.js"
IMMUTABLE: Final = "public, max-age=31536000, immutable"


class AssetFile(Struct, frozen=True):
    """A file of the web UI."""

    data: bytes
    packed: bytes  # gzip; b"": not worth it
    kind: str


def build_directory() -> Path:
    """The directory of the built web UI, whether it was built or not."""
    return Path(os.environ.get(BUILD_VARIABLE) or BUILD_DIRECTORY)


class WebAssets:
    """The files of a build, by name; each is read once, when it is first requested."""

    def __init__(self, branding: Branding, root: Path | None = None) -> None:
        self._branding = branding
        self._root = (root or build_directory()).resolve()
        self._read = cache(self._open)

    @property
    def is_built(self) -> bool:
        """Whether the web UI was built."""
        return (self._root / "index.html").is_file()

    def front(
        self,
        context: HttpRequestContext,
        with_provider: bool,
        passwords: PasswordSupport = "off",
        *,
        is_anonymous: bool = False,
    ) -> Response:
        """The HTML of the web UI. `with_provider` tells it to offer login with the OpenID Connect provider, `passwords`
        with a password; `is_anonymous` to show the login at once, without a request that would fail.
        """
        has_dictation = context.server_context.audio.transcription is not None
        file = self._read("index.html")
        tags = '<meta name="everturn-oidc" content="yes">' if with_provider else ""
        if passwords != "off":
            tags += f'<meta name="everturn-passwords" content="{passwords}">'
        if is_anonymous:
            tags += '<meta name="everturn-anonymous" content="yes">'
        title = f"<title>{escape(self._branding.title)}</title>"
        data = file.data.replace(b"<title>Everturn</title>", f"{tags}{title}{self._branding.head()}".encode(), 1)
        return _respond(
            context,
            AssetFile(data, b"", file.kind),
            {"content-security-policy": POLICY, "permissions-policy": WITH_MICROPHONE if has_dictation else NO_DEVICES},
        )

    async def asset(self, context: HttpRequestContext) -> Response:
        """A script, a style or an image. Its name contains the hash of its content, so it never changes."""
        name = context.ids["name"]
        path = (self._root / "assets" / name).resolve()
        if path.parent != self._root / "assets" or path.suffix not in TYPES or not path.is_file():
            raise RequestError("unknown")
        return _respond(context, self._read(f"assets/{name}"), {"cache-control": IMMUTABLE})

    async def push_worker(self, context: HttpRequestContext) -> Response:
        """The service worker for push notifications. It is checked again at every update: its name never changes."""
        if not (self._root / PUSH_WORKER).is_file():
            raise RequestError("unknown")
        headers = {"cache-control": "no-cache", "content-security-policy": "default-src 'none'"}
        return _respond(context, self._read(PUSH_WORKER), headers)

    def _open(self, name: str) -> AssetFile:
        path = self._root / name
        data = path.read_bytes()
        kind = TYPES[path.suffix]
        is_text = path.suffix not in (".png", ".woff2")
        return AssetFile(
            data, gzip.compress(data, 9, mtime=0) if is_text and len(data) > MIN_COMPRESS_BYTES else b"", kind
        )


def _respond(context: HttpRequestContext, file: AssetFile, headers: dict[str, str]) -> Response:
    takes_packed = "gzip" in context.request.headers.get("accept-encoding", "").lower()
    if not file.packed:
        return Response(file.data, headers=headers, media_type=file.kind)
    headers = {**headers, "vary": "accept-encoding"}
    if takes_packed:
        return Response(file.packed, headers={**headers, "content-encoding": "gzip"}, media_type=file.kind)
    return Response(file.data, headers=headers, media_type=file.kind)
