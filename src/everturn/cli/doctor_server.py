"""What `everturn serve` would find on this machine: a configuration, a port, the operator's token, and its page."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import everturn
from everturn.cli.doctor import Check
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.config.loading import Loaded

ABOUT: Final = "Server"
SHOWN = 3  # of the things that are wrong in a configuration


def server(environment: Mapping[str, str]) -> list[Check]:
    """The configuration and, if it makes sense, what it leads to."""
    from everturn.config.checking import missing
    from everturn.config.loading import load

    try:
        loaded = load(environment.get("EVERTURN_CONFIG") or None, environment)
    except ConfigError as error:
        lines = str(error).splitlines()
        more = f"; and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        return [Check(ABOUT, "configuration", "broken", "; ".join(lines[:SHOWN]) + more, "everturn config check")]
    gone = missing(loaded.config, environment)
    said = ", ".join(loaded.files) or "no file, so the defaults hold"
    found = Check(ABOUT, "configuration", "broken" if gone else "ok", "; ".join([said, *gone]))
    options = loaded.config.server
    return [found, port(options.host, options.port), token(loaded, environment), page(environment)]


def page(environment: Mapping[str, str]) -> Check:
    """Whether there is a page to serve: a release has it, and a checkout when it was built."""
    root = Path(environment.get("EVERTURN_WEB") or Path(everturn.__file__).parent / "server" / "web")
    if (root / "index.html").is_file():
        return Check(ABOUT, "page", "ok", "is there")
    mend = "in the checkout: scripts/web, which takes Node 20.19 or newer; a release has it"
    return Check(ABOUT, "page", "absent", f"{root} holds none; the API works without", mend)


def port(host: str, number: int) -> Check:
    """Whether the port is free, as far as it can be said without keeping it."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, number))
    except OSError as error:
        mend = "a server may run already; `everturn serve --port 0` takes any that is free"
        return Check(ABOUT, "port", "absent", f"{host}:{number}: {error.strerror or error}", mend)
    return Check(ABOUT, "port", "ok", f"{host}:{number} is free")


def token(loaded: Loaded, environment: Mapping[str, str]) -> Check:
    """Whether the token of the operator is theirs alone. It is not read."""
    from everturn.config.building import token_file
    from everturn.config.tools import data_folder

    url = loaded.config.store.url
    try:
        store = url.resolved(environment) if url else str(data_folder(environment) / "everturn.db")
    except ConfigError as error:
        return Check(ABOUT, "operator token", "broken", str(error))
    path = token_file(loaded, store, environment)
    try:
        found = os.lstat(path)
    except OSError:
        return Check(ABOUT, "operator token", "absent", f"{path}, made at the first start")
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        return Check(ABOUT, "operator token", "broken", f"{path} is not a file of yours", "remove it, and start again")
    if stat.S_IMODE(found.st_mode) & 0o077:
        return Check(ABOUT, "operator token", "broken", f"{path} can be read by others", f"chmod 600 {_quoted(path)}")
    return Check(ABOUT, "operator token", "ok", str(path))


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
