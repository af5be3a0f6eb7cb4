"""JavaScript sandbox frame: the HTML file in which the web UI runs code that a model wrote, and its Content-Security-Policy.

Code in the frame has no origin, no network and no storage. The policy names the frame's one script by its hash: with
`'self'` instead, code could load any response of this server. The file is public, since it contains no data.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Final

from starlette.responses import Response

from everturn.server.errors import RequestError
from everturn.server.route import HttpRequestContext, Route
from everturn.server.routes.web_ui import NO_DEVICES, build_directory

PATH: Final = "/sandbox/frame.html"
_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def sandbox_csp(page: bytes) -> str:
    """The Content-Security-Policy of the frame: it may run its own script and Workers made from text, and reach nothing."""
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


def sandbox_response(page: bytes) -> Response:
    """The response with the frame and its headers."""
    headers = {
        "content-security-policy": sandbox_csp(page),
        "x-frame-options": "SAMEORIGIN",
        "cache-control": "no-store",
        "permissions-policy": NO_DEVICES,
    }
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


def sandbox_routes(root: Path | None = None) -> list[Route]:
    """The route of the frame; `root` is the directory of a build."""

    @cache
    def page() -> bytes:
        directory = root or build_directory()
        try:
            return (directory / "sandbox" / "frame.html").read_bytes()
        except FileNotFoundError:
            raise RequestError("unknown") from None  # the web UI was not built

    async def serve_frame(context: HttpRequestContext) -> Response:
        return sandbox_response(page())

    return [
        Route(
            method="GET",
            path=PATH,
            name="sandbox",
            needs=None,
            about="The sandbox frame in which the web UI runs code.",
            handler=serve_frame,
            gives="bytes",
            media=("text/html",),
            is_cheap=True,
            tag="about",
        )
    ]
