"""What `everturn serve` would find on this machine: a configuration, a port, the operator's token, and its page."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

import everturn
from everturn.cli.doctor_checks import Check, plain
from everturn.cli.doctor_store import place_of
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.config.loading import Loaded

ABOUT: Final = "Server"
SHOWN = 3  # of the things that are wrong in a configuration
ASKING: Final = 0.5  # seconds for whoever has the port to say who they are


def configuration(environment: Mapping[str, str]) -> tuple[list[Check], Loaded | None]:
    """What is configured and, if it makes no sense, each thing that does not."""
    from everturn.config.checking import missing
    from everturn.config.layers import user_file
    from everturn.config.loading import load

    about, name = "Configuration", "files"
    try:
        loaded = load(environment.get("EVERTURN_CONFIG") or None, environment)
    except ConfigError as error:
        lines = str(error).splitlines()
        found = [Check(about, name, "broken", plain(line)) for line in lines[:SHOWN]]
        more = f"; it has {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        last = found[-1]
        found[-1] = Check(about, name, "broken", last.detail, f"{_mend(last.detail)}{more}")
        return found, None
    own = user_file(environment)
    usual = f"no file, so the defaults hold; yours would be {own}"
    said = ", ".join(loaded.files) or (usual if own else "no file is read, for HOME is not set; the defaults hold")
    found = [Check(about, name, "ok" if loaded.files or own else "note", plain(said))]
    if variables := sorted(name for name in environment if _is_setting(name)):
        found.append(Check(about, "variables", "ok", plain(", ".join(variables))))
    for gone in missing(loaded.config, environment):
        found.append(Check(about, "references", "broken", plain(gone), "set the variable, or make the file"))
    return found, loaded


def _mend(said: str) -> str:
    if "Permission denied" in said:
        return f"chmod u+r {quote(said.partition(': ')[0])}"
    if "No such file" in said:
        return "make that file, or unset EVERTURN_CONFIG"
    return "mend that line; `everturn config check` looks again"


def _is_setting(name: str) -> bool:
    from everturn.config.layers import VARIABLE

    return VARIABLE.fullmatch(name) is not None


def server(loaded: Loaded, environment: Mapping[str, str]) -> list[Check]:
    """What a configuration that makes sense leads to."""
    options = loaded.config.server
    return [port(options.host, options.port), token(loaded, environment), page(environment)]


def page(environment: Mapping[str, str]) -> Check:
    """Whether there is a page to serve: a release has it, and a checkout when it was built."""
    root = Path(environment.get("EVERTURN_WEB") or Path(everturn.__file__).parent / "server" / "web")
    if (root / "index.html").is_file():
        return Check(ABOUT, "page", "ok", "is there")
    mend = "in the checkout: scripts/web, which takes Node 20.19 or newer; a release has it"
    return Check(ABOUT, "page", "absent", f"{plain(str(root))} holds none; the API works without", mend)


def port(host: str, number: int) -> Check:
    """Whether the port is free, as far as it can be said without keeping it; and if not, who has it."""
    place = plain(f"{host}:{number}")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, number))
    except (OSError, OverflowError) as error:
        code = getattr(error, "errno", None)
        if code == errno.EADDRINUSE:
            mend = "`everturn serve --port 0` takes any that is free"
            who = holder(number)
            if _is_ours(host, number):
                return Check(ABOUT, "port", "ok", f"{place}: a server of Everturn has it{who and f', {who}'}")
            return Check(ABOUT, "port", "note", f"{place} is taken{who and f' by {who}'}", mend)
        mend = "name another: host and port under [server], or --host and --port"
        return Check(ABOUT, "port", "broken", f"{place}: {getattr(error, 'strerror', None) or error}", mend)
    return Check(ABOUT, "port", "ok", f"{place} is free")


def _is_ours(host: str, number: int) -> bool:
    """Whether whoever has the port answers as our server does."""
    try:
        with socket.create_connection((host, number), ASKING) as one:
            place = f"[{host}]:{number}" if ":" in host else f"{host}:{number}"  # it answers to its own name only
            one.sendall(f"GET /api/sessions HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while len(answer) < 4096 and (piece := one.recv(4096)):
                answer += piece
    except OSError:
        return False
    return b"everturn" in answer.lower()


def holder(number: int) -> str:
    """The process that listens on a port, where the system says so: what belongs to others it keeps to itself."""
    sockets: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        columns = [row.split() for row in rows]
        sockets |= {f"socket:[{row[9]}]" for row in columns if row[3] == "0A" and row[1].endswith(f":{number:04X}")}
    if not sockets:
        return ""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(file) in sockets for file in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return plain(f"process {process.name} ({name})")
        except OSError:  # somebody else's, or gone
            continue
    return ""


def token(loaded: Loaded, environment: Mapping[str, str]) -> Check:
    """Whether the token of the operator is theirs alone. It is not read."""
    from everturn.config.building import token_file

    try:
        path = token_file(loaded, place_of(loaded, environment), environment)
    except ConfigError as error:
        return Check(ABOUT, "operator token", "broken", plain(str(error)))
    except RuntimeError:
        return Check(ABOUT, "operator token", "broken", "there is no home folder to keep it in", "set HOME")
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return Check(ABOUT, "operator token", "absent", f"{plain(str(path))}, made at the first start")
    except OSError as error:
        return Check(ABOUT, "operator token", "broken", f"{plain(str(path))}: {error.strerror}", "see to its folder")
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        said = f"{plain(str(path))} is not a file of yours"
        return Check(ABOUT, "operator token", "broken", said, "remove it, and start again")
    if stat.S_IMODE(found.st_mode) & 0o077:
        said = f"{plain(str(path))} can be read by others"
        return Check(ABOUT, "operator token", "broken", said, f"chmod 600 {quote(str(path))}")
    return Check(ABOUT, "operator token", "ok", plain(str(path)))
