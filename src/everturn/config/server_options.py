"""Server options: how the server listens, and its limits."""

from __future__ import annotations

from msgspec import Struct

from everturn.access.auth.options import OidcOptions


class ServerOptions(Struct, frozen=True):
    """Where the server listens, the names it is known by, and its limits."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any that is free
    public_url: str = ""  # the URL for browsers behind a proxy; https makes cookies secure
    hosts: tuple[str, ...] = ()  # further accepted values of the Host header, beside its own address
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks of reverse proxies whose X-Forwarded-For counts
    origins: tuple[str, ...] = ()  # other origins that may call it with a token; never with a cookie
    title: str = "Everturn"  # of the web UI
    accent: str = (
        ""  # the colour of buttons and links in the web UI, as #0f766e; made darker or lighter until it is readable
    )
    logo: str = ""  # an SVG or PNG file that the web UI shows beside its title
    token_file: str = ""  # the file of the local operator's token; "": beside the store
    oidc: OidcOptions | None = None
    headers: int = 64 * 1024  # bytes of a request's headers
    body: int = 8 * 1024 * 1024  # bytes of a request's body; uploads have their own limit
    connections: int = 20_000  # open at once
    header_time: float = 8.0  # seconds to send the headers of a request
    body_time: float = 30.0  # seconds without progress of a body
    idle: float = 60.0  # seconds that a connection may be idle between two requests
    keep_alive: float = 15.0  # seconds between two keep-alives of an idle stream
    merge: float = 0.05  # seconds over which pieces of text are merged
    drain: float = 25.0  # seconds for a graceful shutdown
    login: float = 14 * 86_400.0  # seconds for which a browser stays logged in
