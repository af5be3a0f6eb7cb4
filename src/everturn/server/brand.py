"""Branding of the web UI: its title, its accent colour and its logo, as `[server]` says.

The colour is adjusted until texts have the contrast of WCAG AA (4.5 : 1) in the light and in the dark theme.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

from starlette.responses import Response

from everturn.config.server_options import ServerOptions
from everturn.errors import ConfigError
from everturn.server.errors import RequestError
from everturn.server.route import HttpRequestContext

Color = tuple[int, int, int]

CONTRAST: Final = 4.5
LOGO_LIMIT: Final = 256 * 1024
LOGO_TYPES: Final = {".png": "image/png", ".svg": "image/svg+xml"}
ACCENT: Final = "#0f766e"  # as in web/src/styles/tokens.css
WHITE: Final = (255, 255, 255)
BLACK: Final = (0, 0, 0)
LIGHT: Final = ((255, 255, 255), (250, 249, 247), (242, 241, 238))  # surface, bg and raised, as in tokens.css
DARK: Final = ((27, 29, 32), (20, 21, 23), (37, 40, 44))
CACHE: Final = "public, max-age=300"
LOGO_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # an SVG that is opened by itself


class Branding:
    """What a server adds to the web UI, read once.

    Raises:
        ConfigError: the logo cannot be read, is too large, or is neither PNG nor SVG.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.title = options.title
        self._accent = options.accent
        self._logo, self._logo_type = _read_logo(options.logo) if options.logo else (b"", "")

    def head(self) -> str:
        """The elements of the page's head."""
        parts = [f'<meta name="everturn-title" content="{escape(self.title)}">']
        if self._logo:
            parts.append('<meta name="everturn-logo" content="yes">')
        if self._accent:
            parts.append('<link rel="stylesheet" href="/branding.css">')
        return "".join(parts)

    async def style(self, context: HttpRequestContext) -> Response:
        """The accent colour as custom properties of CSS."""
        text = accent_style(self._accent) if self._accent else ""
        return Response(text, headers={"cache-control": CACHE}, media_type="text/css")

    async def logo(self, context: HttpRequestContext) -> Response:
        """The logo."""
        if not self._logo:
            raise RequestError("unknown")
        headers = {"cache-control": CACHE, "content-security-policy": LOGO_POLICY}
        return Response(self._logo, headers=headers, media_type=self._logo_type)

    async def manifest(self, context: HttpRequestContext) -> Response:
        """The manifest with which browsers install the web UI as an app."""
        icon = {"src": "/branding/logo", "type": self._logo_type} if self._logo else {"src": "/assets/everturn.svg"}
        value = {
            "name": self.title,
            "short_name": self.title[:12].rstrip(),
            "id": "/",
            "start_url": "/",
            "scope": "/",
            "display": "standalone",
            "background_color": "#faf9f7",
            "theme_color": format_color(_readable(parse_color(self._accent or ACCENT), LIGHT, BLACK)),
            "icons": [{"sizes": "any", "type": "image/svg+xml", **icon}],
        }
        headers = {"cache-control": CACHE}
        return Response(json.dumps(value, ensure_ascii=False), headers=headers, media_type="application/json")


def _read_logo(path: str) -> tuple[bytes, str]:
    file = Path(path).expanduser()
    kind = LOGO_TYPES.get(file.suffix.lower())
    if kind is None:
        raise ConfigError(f"server.logo: {path} is neither .svg nor .png")
    try:
        with file.open("rb") as opened:
            data = opened.read(LOGO_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"server.logo: {path} cannot be read: {error.strerror}") from None
    if len(data) > LOGO_LIMIT:
        raise ConfigError(f"server.logo: {path} is larger than {LOGO_LIMIT // 1024} KB")
    return data, kind


def accent_style(accent: str) -> str:
    """CSS that sets the accent colour in both themes."""
    color = parse_color(accent)
    soft_light, soft_dark = _mix(color, WHITE, 0.88), _mix(color, DARK[1], 0.78)
    light = _readable(color, (*LIGHT, soft_light), BLACK)
    dark = _readable(color, (*DARK, soft_dark), WHITE)
    pairs = {
        "accent": (light, dark),
        "on-accent": (_text_on(light), _text_on(dark)),
        "accent-soft": (soft_light, soft_dark),
    }
    lines = (f"--{name}:light-dark({format_color(one)},{format_color(other)})" for name, (one, other) in pairs.items())
    return f":root:root{{{';'.join(lines)}}}"


def parse_color(text: str) -> Color:
    """Return the colour of `#rrggbb`."""
    value = int(text.removeprefix("#"), 16)
    return value >> 16, value >> 8 & 255, value & 255


def format_color(color: Color) -> str:
    """Return a colour as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def contrast(left: Color, right: Color) -> float:
    """Return the contrast ratio of two colours by WCAG 2."""
    high, low = sorted((_luminance(left), _luminance(right)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (
        value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4 for value in color
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _readable(color: Color, backgrounds: Sequence[Color], end: Color) -> Color:
    """Return a colour, mixed with black or white until it is readable on all backgrounds."""
    steps = (_mix(color, end, step / 100) for step in range(101))
    return next(mixed for mixed in steps if all(contrast(mixed, behind) >= CONTRAST for behind in backgrounds))


def _mix(color: Color, other: Color, share: float) -> Color:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(color, other, strict=True))
    return red, green, blue


def _text_on(color: Color) -> Color:
    return max((WHITE, (6, 32, 29), BLACK), key=lambda text: contrast(text, color))
