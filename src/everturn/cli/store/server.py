"""Store server: the process that has the store publishes its address and token in a file beside it, for other
processes.

One process drives a store. Every other one on this machine attaches to it over the loopback: a second terminal, a run,
a browser. The file with the address and the token has mode 0600 and is worth as much as the store itself.

A file can outlive its process, and by then any other process may have the port. So no token is sent before the listener
has proved that it knows it: it answers a random challenge with an HMAC under the token, over its own port (a process
that merely forwards the challenge to the real server listens at another one) and over the store.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn import api
from everturn.access.context.server_context import OpenFolderFunction
from everturn.cli.port_owner import check_port_owner
from everturn.config.tools import data_folder
from everturn.errors import ConfigError
from everturn.stores.registry import SUFFIXES, without_password

if TYPE_CHECKING:
    from everturn.server.route import HttpRequestContext, Route

Kind = Literal["terminal", "serve"]
PROOF: Final = "/api/store-server"
RELEASE: Final = "/api/store-server/release"
FOLDERS: Final = "/api/folders"
LARGEST: Final = 4096  # bytes read of the file, and of a response
CHALLENGE_TIMEOUT: Final = 10.0  # seconds to answer a challenge


class StoreServer(Struct, frozen=True):
    """Address and token of the server of a store. A `terminal` hands the store over on request; `serve` does not."""

    address: str
    token: str
    pid: int
    kind: Kind


class ChallengeResponse(Struct, frozen=True):
    """The response to a challenge."""

    proof: str


def sidecar_path(store: str, environ: Mapping[str, str]) -> Path:
    """Return the path that the files about a store begin with: the store's own path, or for a database one in the data
    folder, which is created if it does not exist."""
    file = re.sub(r"^sqlite:(//)?/?", "", store) if store.startswith("sqlite:") else store
    if "://" not in file and (file != store or Path(file).suffix in SUFFIXES):
        return Path(file).resolve()
    name = hashlib.sha256(without_password(store).encode()).hexdigest()[:16]
    folder = data_folder(environ)
    with suppress(OSError):  # taking the lock reports it
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"store-{name}"


def server_file(place: Path) -> Path:
    """Return the file with the address and the token."""
    return place.with_name(f"{place.name}.server")


def turnstile_path(place: Path) -> Path:
    """Return the lock file that a process holds from taking the store until it serves: one process at a time."""
    return place.with_name(f"{place.name}.next")


def write_server_file(file: Path, server: StoreServer) -> None:
    """Write the file atomically, for this user alone."""
    partial = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    opened = os.open(partial, flags, 0o600)
    try:
        with os.fdopen(opened, "wb") as out:
            if hasattr(os, "fchmod"):
                os.fchmod(out.fileno(), 0o600)  # whatever the umask is
            out.write(msgspec.json.encode(server))
        os.replace(partial, file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read_server_file(file: Path) -> StoreServer | None:
    """Read the file; None if there is none, or if another user owns it or can read it."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        opened = os.open(file, flags)
    except OSError:
        return None
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            return None
        if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o077):
            return None
        return msgspec.json.decode(os.read(opened, LARGEST), type=StoreServer)
    except (msgspec.MsgspecError, OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(opened)


def remove_server_file(file: Path, token: str) -> None:
    """Remove the file, unless another process has written its own since."""
    server = read_server_file(file)
    if server is not None and server.token == token:
        file.unlink(missing_ok=True)


def prove(token: str, challenge: str, port: int, place: Path) -> str:
    """Compute the response to a challenge, which takes knowledge of the token."""
    text = json.dumps(["everturn store server", challenge, port, str(place)])
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


def store_routes(token: str, place: Path, release: Callable[[], object] | None = None) -> list[Route]:
    """Return the routes by which other processes verify the server of a store and, at a terminal, ask it to release the
    store."""
    from everturn.server.route import Param, Route

    async def answer(context: HttpRequestContext) -> ChallengeResponse:
        port = int(context.request.scope["server"][1])  # of the socket, not of a header
        return ChallengeResponse(prove(token, context.query.get("challenge", ""), port, place))

    async def release_store(context: HttpRequestContext) -> None:
        assert release is not None
        release()

    challenge = Param("challenge", {"type": "string", "minLength": 32, "maxLength": 128}, is_needed=True)
    about = "Proves that this server knows the token of the store, without showing it."
    routes = [
        Route(
            method="GET",
            path=PROOF,
            name="store_server",
            needs=None,
            about=about,
            handler=answer,
            answer=ChallengeResponse,
            query=(challenge,),
            is_cheap=True,
            tag="about",
        )
    ]
    if release is not None:
        routes.append(
            Route(
                method="POST",
                path=RELEASE,
                name="release_store",
                needs="operator",
                about="Asks a terminal to hand its store over, and to attach to the process that takes it.",
                handler=release_store,
                status=204,
                tag="about",
            )
        )
    return routes


async def find_server(place: Path) -> StoreServer | None:
    """Return the server that has the store, once it has proved that it wrote the file; None if there is none."""
    server = read_server_file(server_file(place))
    return server if server is not None and await is_genuine(server, place) else None


async def is_genuine(server: StoreServer, place: Path) -> bool:
    """Whether the listener at the address knows the token. The token is not sent."""
    import aiohttp

    try:
        check_port_owner(server.address)
        port = urlsplit(server.address).port or 0
    except (ConfigError, ValueError):
        return False
    challenge = secrets.token_hex(32)
    timeout = aiohttp.ClientTimeout(total=CHALLENGE_TIMEOUT)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.get(server.address + PROOF, params={"challenge": challenge}, allow_redirects=False) as answer,
        ):
            body = await answer.content.read(LARGEST)
            if answer.status != 200:
                return False
        shown = msgspec.json.decode(body, type=ChallengeResponse).proof
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, msgspec.MsgspecError):
        return False
    return hmac.compare_digest(shown.encode(), prove(server.token, challenge, port, place).encode())


async def ask_to_release(server: StoreServer) -> bool:
    """Ask a terminal to release its store; return whether it agreed. Only for a server that `find_server` returned."""
    import aiohttp

    headers: dict[str, Any] = {"authorization": f"Bearer {server.token}"}
    timeout = aiohttp.ClientTimeout(total=CHALLENGE_TIMEOUT)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=headers) as http,
            http.post(server.address + RELEASE, allow_redirects=False) as answer,
        ):
            return answer.status == 204
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


def folder_route(open_folder: OpenFolderFunction) -> Route:
    """Return the route by which a terminal opens its folder at the process that has the store."""
    from everturn.server.route import Route

    async def opened(context: HttpRequestContext) -> api.FolderView:
        folder, key = await open_folder(context.body.path), context.body.key
        return replace(folder, session=await context.access.scope.new_session_id(key)) if key else folder

    return Route(
        method="POST",
        path=FOLDERS,
        name="open_folder",
        needs="operator",
        about="Opens a folder of this machine, which must be trusted; its agent works there.",
        handler=opened,
        body=api.OpenFolder,
        answer=api.FolderView,
        tag="about",
    )
