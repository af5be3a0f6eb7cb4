"""How the server serves, as configured."""

from __future__ import annotations

from msgspec import Struct

from everturn.access.options import OidcOptions


class ServerOptions(Struct, frozen=True):
    """Where the server listens, by which names it is known, and how much it takes."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any that is free
    public_url: str = ""  # as browsers see it, when there is something in front; https makes cookies secure
    hosts: tuple[str, ...] = ()  # further values of the Host header that are meant; its own address always is
    origins: tuple[str, ...] = ()  # pages of others that may call it with a token; never with a cookie
    token_file: str = ""  # where the token of the local operator is kept; "": beside the store
    oidc: OidcOptions | None = None
    headers: int = 64 * 1024  # bytes of a request's headers
    body: int = 8 * 1024 * 1024  # bytes of a request's body; uploads have their own limit
    connections: int = 20_000  # open at once
    header_time: float = 8.0  # seconds to send the headers of a request
    body_time: float = 30.0  # seconds in which a body must go on
    idle: float = 60.0  # seconds a connection may rest between two requests
    keep_alive: float = 15.0  # seconds between two signs of life of a stream in which nothing happens
    merge: float = 0.05  # seconds over which pieces of text are merged
    drain: float = 25.0  # seconds to come to an end, when told to leave
    login: float = 14 * 86_400.0  # seconds for which a browser stays logged in
