"""The frame in which a page runs code that a model wrote: one file, and the policy that walls it in.

Whatever runs there has no origin, no network and no storage. Its one script is known by its hash: with `'self'` in the
place of that, code could load whatever this server answers with. Anybody may have the file, since there is nothing in it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Final

from starlette.responses import Response

from everturn.server.pages import NO_DEVICES, build
from everturn.server.problems import Refusal
from everturn.server.routing import Asked, Route

PATH: Final = "/sandbox/frame.html"
_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def policy(page: bytes) -> str:
    """What a browser is to hold the frame to: it may run its own script and Workers made of text, and reach nothing."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in _SCRIPT.findall(page)
    )
    return "; ".join(
        (
            "sandbox allow-scripts",
            "default-src 'none'",
            f"script-src {hashes} blob: 'unsafe-eval'",
            "worker-src blob:",
            "connect-src 'none'",
            "frame-ancestors 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def frame(page: bytes) -> Response:
    """The frame, as it has to be served."""
    headers = {
        "content-security-policy": policy(page),
        "x-frame-options": "SAMEORIGIN",
        "cache-control": "no-store",
        "permissions-policy": NO_DEVICES,
    }
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


def routes(root: Path | None = None) -> list[Route]:
    """The route of the frame; `root` is the directory of a build."""

    @cache
    def page() -> bytes:
        within = root or build()
        try:
            return (within / "sandbox" / "frame.html").read_bytes()
        except FileNotFoundError:
            raise Refusal("unknown") from None  # the page was not built

    async def give(asked: Asked) -> Response:
        return frame(page())

    return [
        Route(
            method="GET",
            path=PATH,
            name="sandbox",
            needs=None,
            about="The frame in which a page runs code.",
            handler=give,
            gives="bytes",
            media=("text/html",),
            is_cheap=True,
            tag="about",
        )
    ]
