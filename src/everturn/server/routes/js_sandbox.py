"""Sandboxed frames: the HTML files in which the web UI runs code that a model wrote, and draws its HTML, SVG and diagrams.

Both have no origin, no network and no storage. Each policy names the frame's one script by its hash: with `'self'` instead,
code could load any response of this server. The files are public, since they contain no data.
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
PREVIEW_PATH: Final = "/sandbox/preview.html"
_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def sandbox_csp(page: bytes) -> str:
    """The Content-Security-Policy of the frame: it may run its own script and Workers made from text, and reach nothing."""
    return "; ".join(
        (
            "sandbox allow-scripts",
            "default-src 'none'",
            f"script-src {_script_hashes(page)} blob: 'unsafe-eval'",
            "worker-src blob:",
            "connect-src 'none'",
            "frame-ancestors 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def preview_csp(page: bytes) -> str:
    """The Content-Security-Policy of the preview frame: its own script, and the diagram library, which the frame makes a
    `blob:` of. No script, handler or `javascript:` link in the markup runs; styles and pictures in the text itself show.
    """
    return "; ".join(
        (
            "sandbox allow-scripts",
            "default-src 'none'",
            f"script-src {_script_hashes(page)} blob:",
            "style-src 'unsafe-inline'",
            "img-src data:",
            "font-src data:",
            "connect-src 'none'",
            "frame-ancestors 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _script_hashes(page: bytes) -> str:
    return " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in _SCRIPT.findall(page)
    )


def frame_response(page: bytes, policy: str) -> Response:
    """The response with a frame and its headers."""
    headers = {
        "content-security-policy": policy,
        "x-frame-options": "SAMEORIGIN",
        "cache-control": "no-store",
        "permissions-policy": NO_DEVICES,
    }
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")


def sandbox_routes(root: Path | None = None) -> list[Route]:
    """The routes of the frames; `root` is the directory of a build."""

    @cache
    def page(name: str) -> bytes:
        directory = root or build_directory()
        try:
            return (directory / "sandbox" / name).read_bytes()
        except FileNotFoundError:
            raise RequestError("unknown") from None  # the web UI was not built

    async def serve_frame(context: HttpRequestContext) -> Response:
        return frame_response(page("frame.html"), sandbox_csp(page("frame.html")))

    async def serve_preview(context: HttpRequestContext) -> Response:
        return frame_response(page("preview.html"), preview_csp(page("preview.html")))

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
        ),
        Route(
            method="GET",
            path=PREVIEW_PATH,
            name="preview",
            needs=None,
            about="The sandbox frame in which the web UI draws HTML, SVG and diagrams of models; none of their scripts run.",
            handler=serve_preview,
            gives="bytes",
            media=("text/html",),
            is_cheap=True,
            tag="about",
        ),
    ]
