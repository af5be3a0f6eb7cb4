"""A file that names MCP servers → `ServerSpec`s, or a line that says what is wrong in it and what is allowed.

A file is read when somebody names it, and never because it lies in a folder: what it says is run as a program. Secrets
stand in it by reference (`${TOKEN}`), and are in no text that is shown.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from everturn.core.canonical import digest
from everturn.core.events import Effects
from everturn.errors import ConfigError

NAME: Final = re.compile(r"[a-z0-9_-]{1,32}")
SIZE_LIMIT = 1_000_000  # bytes of a file
SERVERS = 100  # in one file
LONGEST = 3600.0  # seconds a call may be given
_REFERENCE: Final = re.compile(r"\$\{(?:env:)?([^}:]*)(:-[^}]*)?\}|\$\{([^}]*)\}")
_SECRET: Final = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)$", re.IGNORECASE)  # a variable of that name
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TYPES: Final = ("stdio", "http", "streamable-http")


class ServerSpec(Struct, frozen=True):
    """A server: a program that is started here (`command`), or one that is reached at a `url`.

    Raises:
        ConfigError: it makes no sense; the text says what does.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = 60.0  # seconds for a call
    cancel: Literal["tell", "leave"] = "tell"  # whether a server is told that nobody waits for a call any more
    effects: dict[str, Effects] = {}  # what a repeat of a tool would do, whatever the server says of it
    auth: Literal["none", "oauth"] = "none"
    insecure: bool = False  # plain http to another machine
    login_hosts: tuple[
        str, ...
    ] = ()  # host:port of an authorization server that is inside; others are public, by https
    written: str = ""  # the line that starts it as it stands in a file: with references in the place of secrets

    def __post_init__(self) -> None:
        """See that it makes sense."""
        if NAME.fullmatch(self.name) is None:
            raise ConfigError(f"{self.name!r} is not a name for a server; a-z, 0-9, '_' and '-', at most 32")
        if bool(self.command) == bool(self.url):
            raise ConfigError(f"server {self.name} needs either a command (a program to start) or a url, and not both")
        if not 0 < self.timeout <= LONGEST:
            raise ConfigError(f"server {self.name}: timeout is in seconds, above 0 and at most {LONGEST:g}")
        _check_program(self) if self.command else _check_address(self)

    @property
    def launch_hash(self) -> str:
        """The hash of all that decides what is started or talked to; it tells nobody the secrets in it."""
        env = {key: digest(value) for key, value in self.env.items()}
        headers = {key.lower(): digest(value) for key, value in self.headers.items()}
        more = (self.login_hosts,) if self.login_hosts else ()
        return digest("launch", self.command, self.args, env, self.folder, self.url, headers, *more)

    @property
    def folder(self) -> str:
        """Where a program is started: what `python server.py` means depends on it. "" for a url."""
        return self.cwd or (os.getcwd() if self.command else "")

    @property
    def line(self) -> str:
        """What is started or talked to, for people. As a file has it, references show which variables are handed over;
        of what code has made, values of variables and headers are not told."""
        return self.written or _line(self)

    def __repr__(self) -> str:
        """Without anything that might be a secret: a spec may get into a log."""
        return f"ServerSpec({self.name!r}, {urlsplit(self.url).netloc or self.command!r})"


def load_servers(path: str | Path, environ: Mapping[str, str] | None = None) -> list[ServerSpec]:
    """The servers of a file: TOML with tables `[mcp.NAME]`, or JSON with `mcpServers` or `servers`.

    A program is started in the folder of the file, from which a `cwd` is meant too: `python server.py` is another program
    in another folder. `${VAR}` and `${VAR:-default}` stand for variables of `environ`.

    Raises:
        ConfigError: the file cannot be read, or something in it makes no sense.
    """
    specs: list[ServerSpec] = []
    for spec in read_servers(path, environ).values():
        if isinstance(spec, ConfigError):
            raise spec
        specs.append(spec)
    return specs


def read_servers(path: str | Path, environ: Mapping[str, str] | None = None) -> dict[str, ServerSpec | ConfigError]:
    """The same by name, with what is wrong in the place of a server that makes no sense: it harms no other.

    Raises:
        ConfigError: the file cannot be read.
    """
    path = Path(path).expanduser()
    key, tables = _tables(path)
    environ = os.environ if environ is None else environ
    if len(tables) > SERVERS:
        raise ConfigError(f"{path}: {len(tables)} servers are too many; there may be {SERVERS}")
    found: dict[str, ServerSpec | ConfigError] = {}
    for name, table in tables.items():
        try:
            spec = _spec(path, f"{key}.{name}", name, table, environ)
        except ConfigError as error:
            spec = error
        if spec is not None:
            found[name] = spec
    return found


def _tables(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        if not path.is_file():
            raise ConfigError(f"there is no file {path}; name the one that lists your MCP servers")
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise ConfigError(f"{path} is too large to be a list of servers: there may be {SIZE_LIMIT} bytes")
        is_json = path.suffix == ".json" or data.lstrip()[:1] == b"{"
        loaded: Any = msgspec.json.decode(data) if is_json else tomllib.loads(data.decode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is neither JSON nor TOML as it should be: {error}") from None
    whole = cast("dict[str, Any]", loaded if isinstance(loaded, dict) else {})
    keys = ("mcpServers", "servers") if is_json else ("mcp",)
    key = next((key for key in keys if key in whole), None)
    if key is None:
        wanted = '{"mcpServers": {"NAME": {…}}}' if is_json else "tables [mcp.NAME]"
        raise ConfigError(f"{path}: there are no servers in it; it has {wanted}")
    if not isinstance(whole[key], dict):
        raise ConfigError(f"{path}: {key} holds servers by their names, each with a command or a url")
    return key, cast("dict[str, Any]", whole[key])


class _Written(Struct, forbid_unknown_fields=True):
    """A server as it is written, in the words that other programs use as well."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str | int | float | bool] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = 60.0
    cancel: Literal["tell", "leave"] = "tell"
    effects: dict[str, Effects] = {}
    auth: Literal["none", "oauth"] = "none"
    insecure: bool = False
    login_hosts: list[str] = []
    type: str = ""
    disabled: bool = False


def _spec(path: Path, key: str, name: str, table: Any, environ: Mapping[str, str]) -> ServerSpec | None:
    try:
        written = msgspec.convert(table, _Written)
    except msgspec.ValidationError as error:
        allowed = ", ".join(_Written.__struct_fields__)
        raise ConfigError(f"{path}: {key}: {error}; a server may have: {allowed}") from None
    if written.disabled:
        return None
    if written.type and written.type not in _TYPES:
        raise ConfigError(f"{path}: {key}.type {written.type!r} is not spoken here; there are: {', '.join(_TYPES)}")
    if written.type and (written.type == "stdio") != bool(written.command):
        raise ConfigError(f"{path}: {key}.type: stdio goes with a command, {' and '.join(_TYPES[1:])} with a url")

    def expand(field: str, text: str) -> str:
        return _expand(text, environ, f"{path}: {key}.{field}")

    try:
        folder = ""
        if written.command or written.cwd:
            folder = str((path.parent / Path(expand("cwd", written.cwd)).expanduser()).resolve())
        return ServerSpec(
            name,
            expand("command", written.command),
            tuple(expand(f"args[{at}]", word) for at, word in enumerate(written.args)),
            {word: expand(f"env.{word}", _plain(value)) for word, value in written.env.items()},
            folder,
            expand("url", written.url),
            {word: expand(f"headers.{word}", value) for word, value in written.headers.items()},
            written.timeout,
            written.cancel,
            written.effects,
            written.auth,
            written.insecure,
            tuple(written.login_hosts),
            _written_line(written, written.cwd if "${" in written.cwd else folder),
        )
    except ConfigError as error:
        text = str(error)
        raise ConfigError(text if text.startswith(str(path)) else f"{path}: {key}: {text}") from None


def _plain(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _expand(text: str, environ: Mapping[str, str], place: str) -> str:
    def stand(found: re.Match[str]) -> str:
        name, default = found[1] or "", found[2]
        if _VARIABLE.fullmatch(name) is None:
            raise ConfigError(f"{place}: {found[0]} is not known here; write ${{VAR}} or ${{VAR:-default}}")
        if environ.get(name):
            return environ[name]
        if default is None:
            raise ConfigError(f"{place}: the variable {name} is not set; set it, or write ${{{name}:-default}}")
        return default[2:]

    return _REFERENCE.sub(stand, text)


def _check_program(spec: ServerSpec) -> None:
    words = (spec.command, *spec.args, spec.cwd, *spec.env, *spec.env.values())
    if any("\0" in word for word in words):
        raise ConfigError(f"server {spec.name}: there is a zero byte in what is to be started; take it out")
    if any(not key or "=" in key for key in spec.env):
        raise ConfigError(f"server {spec.name}: a variable in env has a name without '='")
    if spec.headers or spec.auth != "none":
        raise ConfigError(f"server {spec.name}: headers and auth go with a url; a program has env")


def _check_address(spec: ServerSpec) -> None:
    try:
        address = urlsplit(spec.url)
        host, _ = address.hostname or "", address.port
    except ValueError as error:
        raise ConfigError(f"server {spec.name}: its url cannot be read: {error}") from None
    if address.scheme not in ("http", "https") or not host or re.search(r"[\x00-\x20\x7f\\]", spec.url):
        raise ConfigError(f"server {spec.name}: its url is one like https://example.org/mcp")
    if address.username is not None or address.password is not None:
        raise ConfigError(f"server {spec.name}: a name and password do not belong in its url; put them in headers")
    if address.scheme == "http" and not (spec.insecure or is_loopback(host)):
        raise ConfigError(
            f"server {spec.name}: plain http to {host} can be read and changed on the way; "
            "use https, or say insecure = true"
        )
    if spec.args or spec.env or spec.cwd:
        raise ConfigError(f"server {spec.name}: args, env and cwd go with a command; a url has headers")
    for key, value in spec.headers.items():
        if _HEADER.fullmatch(key) is None or re.search(r"[\x00\r\n]", value):
            raise ConfigError(
                f"server {spec.name}: the header {key!r} cannot be sent; names have no blanks, values no breaks"
            )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _line(spec: ServerSpec) -> str:
    if spec.url:
        place, mark, _ = spec.url.partition("#")[0].partition("?")
        place = f"{place}{'?…' if mark else ''}"
        return f"{place} (headers: {', '.join(sorted(spec.headers))})" if spec.headers else place
    return _program((f"{key}=…" for key in sorted(spec.env)), spec, spec.cwd)


def _written_line(written: _Written, folder: str) -> str:
    """The line with every reference in it, and with every value of `env` that is not called a secret: some run code."""
    if written.url:
        place, mark, query = written.url.partition("#")[0].partition("?")
        place = f"{place}{mark}{_references(query)}"
        headers = ", ".join(f"{key}: {_references(value)}" for key, value in sorted(written.headers.items()))
        return f"{place} (headers: {headers})" if headers else place
    values = {key: _plain(value) for key, value in written.env.items()}
    env = (f"{key}={_references(value) if _SECRET.search(key) else value}" for key, value in sorted(values.items()))
    return _program(env, written, folder)


def _program(env: Iterable[str], server: ServerSpec | _Written, folder: str) -> str:
    words = " ".join(_quoted(word) for word in (*env, server.command, *server.args))
    return f"{words} (in {folder})" if folder else words


def _references(text: str) -> str:
    """Of a text that may be a secret only what it refers to: `Bearer ${TOKEN}` → `…${TOKEN}`."""
    names = [f"${{{found[1] or ''}}}" for found in _REFERENCE.finditer(text)]
    return ("" if _REFERENCE.fullmatch(text) or not text else "…") + "…".join(names)


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./…${}-]+", word) else "'" + word.replace("'", "'\\''") + "'"
