"""The page that people talk on: what `scripts/web` has built, served as it is. Nothing of it knows who is asking.

What is asked of a browser is strict: scripts, styles and requests from here alone, no markup made of text (Trusted Types),
nobody's frame around it. A checkout in which it was not built has a notice in its place.
"""

from __future__ import annotations

import gzip
import os
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from everturn.server.problems import Refusal
from everturn.server.routing import Asked

HERE: Final = Path(__file__).parent / "web"
ELSEWHERE: Final = "EVERTURN_WEB"
"""The directory of another build, for those who work on the page."""

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
        "worker-src 'none'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
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
LEAST: Final = 512  # bytes that are worth being packed
NO_DEVICES: Final = "camera=(), microphone=(), geolocation=(), usb=(), serial=(), payment=()"
"""What nothing of ours asks a browser for."""

FOR_EVER: Final = "public, max-age=31536000, immutable"


class File(Struct, frozen=True):
    """A file of the page."""

    data: bytes
    packed: bytes  # b"": not worth it
    kind: str


def build() -> Path:
    """The directory in which the page was built, or would have been."""
    return Path(os.environ.get(ELSEWHERE) or HERE)


class Pages:
    """The files of a build, by their names; each is read when it is first asked for, and once."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = (root or build()).resolve()
        self._read = cache(self._open)

    @property
    def is_built(self) -> bool:
        """Whether there is a page."""
        return (self._root / "index.html").is_file()

    def front(self, asked: Asked, with_provider: bool) -> Response:
        """The page itself. `with_provider`: whoever is not logged in is shown the way by their provider."""
        found = self._read("index.html")
        if with_provider:
            data = found.data.replace(b"<head>", b'<head><meta name="everturn-oidc" content="yes">', 1)
            found = File(data, b"", found.kind)
        return _said(asked, found, {"content-security-policy": POLICY, "permissions-policy": NO_DEVICES})

    async def asset(self, asked: Asked) -> Response:
        """A script, a style, a picture. Its name has the hash of what is in it, so it never changes."""
        name = asked.ids["name"]
        path = (self._root / "assets" / name).resolve()
        if path.parent != self._root / "assets" or path.suffix not in TYPES or not path.is_file():
            raise Refusal("unknown")
        return _said(asked, self._read(f"assets/{name}"), {"cache-control": FOR_EVER})

    def _open(self, name: str) -> File:
        path = self._root / name
        data = path.read_bytes()
        kind = TYPES[path.suffix]
        is_text = path.suffix not in (".png", ".woff2")
        return File(data, gzip.compress(data, 9, mtime=0) if is_text and len(data) > LEAST else b"", kind)


def _said(asked: Asked, file: File, headers: dict[str, str]) -> Response:
    takes_packed = "gzip" in asked.request.headers.get("accept-encoding", "").lower()
    if not file.packed:
        return Response(file.data, headers=headers, media_type=file.kind)
    headers = {**headers, "vary": "accept-encoding"}
    if takes_packed:
        return Response(file.packed, headers={**headers, "content-encoding": "gzip"}, media_type=file.kind)
    return Response(file.data, headers=headers, media_type=file.kind)
