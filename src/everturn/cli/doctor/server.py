"""Server check: what `everturn serve` would find on this machine (configuration, port, operator token, web UI)."""

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
from everturn.cli.doctor.checks import DoctorCheck, make_printable
from everturn.cli.doctor.store import resolve_configured_store
from everturn.cli.port_owner import listening_sockets
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.config.load import LoadedConfig

ABOUT: Final = "Server"
SHOWN = 3  # problems of a configuration that are shown
ASKING: Final = 0.5  # seconds for the process that has the port to answer


def check_configuration(environment: Mapping[str, str]) -> tuple[list[DoctorCheck], LoadedConfig | None]:
    """Load the configuration; if it is invalid, return a check for each problem, and no configuration."""
    from everturn.config.check import unresolved_references
    from everturn.config.layers import user_file
    from everturn.config.load import load_config

    about, name = "Configuration", "files"
    try:
        loaded = load_config(environment.get("EVERTURN_CONFIG") or None, environment)
    except ConfigError as error:
        lines = str(error).splitlines()
        checks = [DoctorCheck(about, name, "broken", make_printable(line)) for line in lines[:SHOWN]]
        more = f"; it has {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        last = checks[-1]
        checks[-1] = DoctorCheck(about, name, "broken", last.detail, f"{_fix_for(last.detail)}{more}")
        return checks, None
    own = user_file(environment)
    no_file_text = f"no file, so the defaults hold; yours would be {own}"
    detail = ", ".join(loaded.files) or (
        no_file_text if own else "no file is read, for HOME is not set; the defaults hold"
    )
    checks = [DoctorCheck(about, name, "ok" if loaded.files or own else "note", make_printable(detail))]
    if variables := sorted(name for name in environment if _is_setting(name)):
        checks.append(DoctorCheck(about, "variables", "ok", make_printable(", ".join(variables))))
    for reference in unresolved_references(loaded.config, environment):
        checks.append(
            DoctorCheck(about, "references", "broken", make_printable(reference), "set the variable, or make the file")
        )
    return checks, loaded


def _fix_for(detail: str) -> str:
    if "Permission denied" in detail:
        return f"chmod u+r {quote(detail.partition(': ')[0])}"
    if "No such file" in detail:
        return "make that file, or unset EVERTURN_CONFIG"
    return "fix that line; `everturn config check` looks again"


def _is_setting(name: str) -> bool:
    from everturn.config.layers import VARIABLE

    return VARIABLE.fullmatch(name) is not None


def check_server(loaded: LoadedConfig, environment: Mapping[str, str]) -> list[DoctorCheck]:
    """Check what a valid configuration needs: port, operator token and web UI."""
    options = loaded.config.server
    return [
        check_port(options.host, options.port),
        check_operator_token(loaded, environment),
        check_web_ui(environment),
    ]


def check_web_ui(environment: Mapping[str, str]) -> DoctorCheck:
    """Check whether the web UI is there: a release includes it, a checkout has it once it is built."""
    root = Path(environment.get("EVERTURN_WEB") or Path(everturn.__file__).parent / "server" / "web")
    if (root / "index.html").is_file():
        return DoctorCheck(ABOUT, "page", "ok", "is there")
    fix = "in the checkout: scripts/web, which takes Node 20.19 or newer; a release has it"
    return DoctorCheck(ABOUT, "page", "absent", f"{make_printable(str(root))} holds none; the API works without", fix)


def check_port(host: str, number: int) -> DoctorCheck:
    """Check whether the port is free, as far as that shows without keeping it; if not, name the process that has it."""
    address = make_printable(f"{host}:{number}")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, number))
    except (OSError, OverflowError) as error:
        code = getattr(error, "errno", None)
        if code == errno.EADDRINUSE:
            fix = "`everturn serve --port 0` takes any that is free"
            owner = find_port_holder(number)
            if _is_ours(host, number):
                return DoctorCheck(
                    ABOUT, "port", "ok", f"{address}: a server of Everturn has it{owner and f', {owner}'}"
                )
            return DoctorCheck(ABOUT, "port", "note", f"{address} is taken{owner and f' by {owner}'}", fix)
        fix = "name another: host and port under [server], or --host and --port"
        return DoctorCheck(ABOUT, "port", "broken", f"{address}: {getattr(error, 'strerror', None) or error}", fix)
    return DoctorCheck(ABOUT, "port", "ok", f"{address} is free")


def _is_ours(host: str, number: int) -> bool:
    """Whether the process that has the port answers like an Everturn server."""
    try:
        with socket.create_connection((host, number), ASKING) as connection:
            # The server accepts only its own Host.
            address = f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
            connection.sendall(f"GET /api/sessions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while len(answer) < 4096 and (piece := connection.recv(4096)):
                answer += piece
    except OSError:
        return False
    return b"everturn" in answer.lower()


def find_port_holder(number: int) -> str:
    """Name the process that listens on a port, on systems with /proc; processes of other users are not visible."""
    sockets = {f"socket:[{listening.inode}]" for listening in listening_sockets(number)}
    if not sockets:
        return ""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(file) in sockets for file in (process / "fd").iterdir()):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return make_printable(f"process {process.name} ({name})")
        except OSError:  # of another user, or gone
            continue
    return ""


def check_operator_token(loaded: LoadedConfig, environment: Mapping[str, str]) -> DoctorCheck:
    """Check that the operator token can be read by its owner alone. The token itself is not read."""
    from everturn.config.build import token_file

    try:
        path = token_file(loaded, resolve_configured_store(loaded, environment), environment)
    except ConfigError as error:
        return DoctorCheck(ABOUT, "operator token", "broken", make_printable(str(error)))
    except RuntimeError:
        return DoctorCheck(ABOUT, "operator token", "broken", "there is no home folder to keep it in", "set HOME")
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return DoctorCheck(ABOUT, "operator token", "absent", f"{make_printable(str(path))}, made at the first start")
    except OSError as error:
        return DoctorCheck(
            ABOUT, "operator token", "broken", f"{make_printable(str(path))}: {error.strerror}", "see to its folder"
        )
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        detail = f"{make_printable(str(path))} is not a file of yours"
        return DoctorCheck(ABOUT, "operator token", "broken", detail, "remove it, and start again")
    if stat.S_IMODE(status.st_mode) & 0o077:
        detail = f"{make_printable(str(path))} can be read by others"
        return DoctorCheck(ABOUT, "operator token", "broken", detail, f"chmod 600 {quote(str(path))}")
    return DoctorCheck(ABOUT, "operator token", "ok", make_printable(str(path)))
