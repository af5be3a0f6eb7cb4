"""Configuration of MCP servers: reads a file that lists servers into `ServerSpec`s, or says what is wrong in it.

A file is read only when the user names it, never because it lies in a folder: its content is run as programs. Secrets
are written as references (`${TOKEN}`), and appear in no text that is shown.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import hash_values
from everturn.core.rules.urls import is_loopback
from everturn.errors import ConfigError

NAME: Final = re.compile(r"[a-z0-9_-]{1,32}")
SIZE_LIMIT = 1_000_000  # bytes of a file
MAX_SERVERS = 100  # in one file
MAX_TIMEOUT = 3600.0  # seconds; the largest timeout of a call
_REFERENCE: Final = re.compile(r"\$\{(?:env:)?([^}:]*)(:-[^}]*)?\}|\$\{([^}]*)\}")
_SECRET: Final = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)$", re.IGNORECASE)  # a variable of that name
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TYPES: Final = ("stdio", "http", "streamable-http")

Annotation = Literal["read_only", "idempotent", "at_most_once"]
"""What the configuration says a repeated call of a tool does, whatever the server's own annotations claim."""


TaskUse = Literal["auto", "always", "never"]
"""When a tool is called as a task where its server leaves that open. `auto`: if the call must not be repeated."""


Login = Literal["", "user", "shared"]
"""Whose an OAuth login is: each person's own, or the installation's. "": `user` on a server, `shared` elsewhere."""


class ServerSpec(Struct, frozen=True):
    """An MCP server: a program to start (`command`), or an address to connect to (`url`).

    Raises:
        ConfigError: a value is invalid; the text says what is valid.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = 60.0  # seconds for a call
    cancel: Literal["tell", "leave"] = "tell"  # whether a cancelled call is cancelled at the server, too
    annotations: dict[str, Annotation] = {}  # overrides what the server's annotations say about repeating a tool
    auth: Literal["none", "oauth"] = "none"
    login: Login = ""  # whose the login is, with auth = "oauth"
    insecure: bool = False  # plain http to another machine
    # host:port of an authorization server in the internal network; others must be public, with https
    login_hosts: tuple[str, ...] = ()
    tasks: dict[str, TaskUse] = {}  # which tools are called as tasks; "*": all
    # Exceptions (host:port) of the egress policy that the address is under; None: it was trusted by who wrote the file.
    allow: tuple[str, ...] | None = None
    source_line: str = ""  # its command line as written in a file, with references instead of secrets

    def __post_init__(self) -> None:
        """Validate the values."""
        if NAME.fullmatch(self.name) is None:
            raise ConfigError(f"{self.name!r} is not a name for a server; a-z, 0-9, '_' and '-', at most 32")
        if bool(self.command) == bool(self.url):
            raise ConfigError(f"server {self.name} needs either a command (a program to start) or a url, and not both")
        if not 0 < self.timeout <= MAX_TIMEOUT:
            raise ConfigError(f"server {self.name}: timeout is in seconds, above 0 and at most {MAX_TIMEOUT:g}")
        if self.login and self.auth == "none":
            raise ConfigError(
                f'server {self.name}: login needs auth = "oauth"; without it, there is nothing to log in to'
            )
        _check_program(self) if self.command else _check_address(self)

    @property
    def launch_hash(self) -> str:
        """Hash of everything that decides what is started or connected to; it does not reveal the secrets in it."""
        env = {key: hash_values(value) for key, value in self.env.items()}
        headers = {key.lower(): hash_values(value) for key, value in self.headers.items()}
        more = (self.login_hosts,) if self.login_hosts else ()
        return hash_values("launch", self.command, self.args, env, self.folder, self.url, headers, *more)

    @property
    def is_per_person(self) -> bool:
        """Whether each person logs in, and calls use the login of the person who started the turn."""
        return self.auth == "oauth" and self.login == "user"

    @property
    def folder(self) -> str:
        """The folder in which the program is started, because `python server.py` depends on it. "" for a url."""
        return self.cwd or (os.getcwd() if self.command else "")

    @property
    def line(self) -> str:
        """The command line or address, for people. From a file, references show which variables are passed on; of a
        spec made in code, the values of variables and headers are left out."""
        return self.source_line or _safe_line(self)

    def __repr__(self) -> str:
        """Leave out everything that might be a secret: a spec may get into a log."""
        return f"ServerSpec({self.name!r}, {urlsplit(self.url).netloc or self.command!r})"


def load_servers(path: str | Path, environ: Mapping[str, str] | None = None) -> list[ServerSpec]:
    """Read the servers of a file: TOML with tables `[mcp.NAME]`, or JSON with `mcpServers` or `servers`.

    A program is started in the folder of the file, and a `cwd` is relative to that folder: `python server.py` is
    another program in another folder. `${VAR}` and `${VAR:-default}` stand for variables of `environ`.

    Raises:
        ConfigError: the file cannot be read, or a server in it is invalid.
    """
    specs: list[ServerSpec] = []
    for spec in read_servers(path, environ).values():
        if isinstance(spec, ConfigError):
            raise spec
        specs.append(spec)
    return specs


def read_servers(path: str | Path, environ: Mapping[str, str] | None = None) -> dict[str, ServerSpec | ConfigError]:
    """Read the servers of a file by name. An invalid server is its error, and does not affect the others.

    Raises:
        ConfigError: the file cannot be read.
    """
    path = Path(path).expanduser()
    key, tables = _tables(path)
    environ = os.environ if environ is None else environ
    if len(tables) > MAX_SERVERS:
        raise ConfigError(f"{path}: {len(tables)} servers; at most {MAX_SERVERS} are allowed")
    servers: dict[str, ServerSpec | ConfigError] = {}
    for name, table in tables.items():
        try:
            spec = _spec(path, f"{key}.{name}", name, table, environ)
        except ConfigError as error:
            spec = error
        if spec is not None:
            servers[name] = spec
    return servers


def _tables(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        if not path.is_file():
            raise ConfigError(f"there is no file {path}; name the file that lists your MCP servers")
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise ConfigError(f"{path} is too large for a list of servers: at most {SIZE_LIMIT} bytes")
        is_json = path.suffix == ".json" or data.lstrip()[:1] == b"{"
        loaded: Any = msgspec.json.decode(data) if is_json else tomllib.loads(data.decode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is neither valid JSON nor valid TOML: {error}") from None
    document = cast("dict[str, Any]", loaded if isinstance(loaded, dict) else {})
    keys = ("mcpServers", "servers") if is_json else ("mcp",)
    key = next((key for key in keys if key in document), None)
    if key is None:
        expected = '{"mcpServers": {"NAME": {…}}}' if is_json else "tables [mcp.NAME]"
        raise ConfigError(f"{path}: it contains no servers; it needs {expected}")
    if not isinstance(document[key], dict):
        raise ConfigError(f"{path}: {key} must be a table of servers by name, each with a command or a url")
    return key, cast("dict[str, Any]", document[key])


def read_server(path: Path, key: str, name: str, table: Any, environ: Mapping[str, str]) -> ServerSpec | None:
    """Read one server that another file defines at `key`; None if it is disabled. A `cwd` is relative to the folder of `path`.

    Raises:
        ConfigError: it is invalid.
    """
    return _spec(path, key, name, table, environ)


class _ServerEntry(Struct, forbid_unknown_fields=True):
    """A server as written in a file, with the field names that other MCP clients use as well."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str | int | float | bool] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = 60.0
    cancel: Literal["tell", "leave"] = "tell"
    annotations: dict[str, Annotation] = {}
    auth: Literal["none", "oauth"] = "none"
    login: Login = ""
    insecure: bool = False
    login_hosts: list[str] = []
    tasks: dict[str, TaskUse] = {}
    type: str = ""
    disabled: bool = False


def _spec(path: Path, key: str, name: str, table: Any, environ: Mapping[str, str]) -> ServerSpec | None:
    try:
        entry = msgspec.convert(table, _ServerEntry)
    except msgspec.ValidationError as error:
        allowed = ", ".join(_ServerEntry.__struct_fields__)
        raise ConfigError(f"{path}: {key}: {error}; a server may have: {allowed}") from None
    if entry.disabled:
        return None
    if entry.type and entry.type not in _TYPES:
        raise ConfigError(f"{path}: {key}.type {entry.type!r} is not supported; there are: {', '.join(_TYPES)}")
    if entry.type and (entry.type == "stdio") != bool(entry.command):
        raise ConfigError(f"{path}: {key}.type: stdio needs a command, {' and '.join(_TYPES[1:])} with a url")

    def expand(field: str, text: str) -> str:
        return _expand(text, environ, f"{path}: {key}.{field}")

    try:
        folder = ""
        if entry.command or entry.cwd:
            folder = str((path.parent / Path(expand("cwd", entry.cwd)).expanduser()).resolve())
        return ServerSpec(
            name,
            expand("command", entry.command),
            tuple(expand(f"args[{at}]", word) for at, word in enumerate(entry.args)),
            {word: expand(f"env.{word}", _env_text(value)) for word, value in entry.env.items()},
            folder,
            expand("url", entry.url),
            {word: expand(f"headers.{word}", value) for word, value in entry.headers.items()},
            entry.timeout,
            entry.cancel,
            entry.annotations,
            entry.auth,
            entry.login,
            entry.insecure,
            tuple(entry.login_hosts),
            entry.tasks,
            source_line=_written_line(entry, entry.cwd if "${" in entry.cwd else folder),
        )
    except ConfigError as error:
        text = str(error)
        raise ConfigError(text if text.startswith(str(path)) else f"{path}: {key}: {text}") from None


def _env_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _expand(text: str, environ: Mapping[str, str], location: str) -> str:
    def substitute(match: re.Match[str]) -> str:
        name, default = match[1] or "", match[2]
        if _VARIABLE.fullmatch(name) is None:
            raise ConfigError(f"{location}: {match[0]} is not supported; write ${{VAR}} or ${{VAR:-default}}")
        if environ.get(name):
            return environ[name]
        if default is None:
            raise ConfigError(f"{location}: the variable {name} is not set; set it, or write ${{{name}:-default}}")
        return default[2:]

    return _REFERENCE.sub(substitute, text)


def _check_program(spec: ServerSpec) -> None:
    words = (spec.command, *spec.args, spec.cwd, *spec.env, *spec.env.values())
    if any("\0" in word for word in words):
        raise ConfigError(f"server {spec.name}: the command contains a zero byte; remove it")
    if any(not key or "=" in key for key in spec.env):
        raise ConfigError(f"server {spec.name}: a variable in env has a name without '='")
    if spec.headers or spec.auth != "none":
        raise ConfigError(f"server {spec.name}: headers and auth need a url; for a program, use env")


def _check_address(spec: ServerSpec) -> None:
    try:
        address = urlsplit(spec.url)
        host, _ = address.hostname or "", address.port
    except ValueError as error:
        raise ConfigError(f"server {spec.name}: its url cannot be read: {error}") from None
    if address.scheme not in ("http", "https") or not host or re.search(r"[\x00-\x20\x7f\\]", spec.url):
        raise ConfigError(f"server {spec.name}: its url must look like https://example.org/mcp")
    if address.username is not None or address.password is not None:
        raise ConfigError(f"server {spec.name}: a name and password do not belong in its url; put them in headers")
    if address.scheme == "http" and not (spec.insecure or is_loopback(host)):
        raise ConfigError(
            f"server {spec.name}: plain http to {host} can be read and changed on the way; use https, or set "
            "insecure = true"
        )
    if spec.args or spec.env or spec.cwd:
        raise ConfigError(f"server {spec.name}: args, env and cwd need a command; for a url, use headers")
    for key, value in spec.headers.items():
        if _HEADER.fullmatch(key) is None or re.search(r"[\x00\r\n]", value):
            raise ConfigError(
                f"server {spec.name}: the header {key!r} cannot be sent; a name has no spaces, a value no line breaks"
            )


def _safe_line(spec: ServerSpec) -> str:
    if spec.url:
        address, separator, _ = spec.url.partition("#")[0].partition("?")
        address = f"{address}{'?…' if separator else ''}"
        return f"{address} (headers: {', '.join(sorted(spec.headers))})" if spec.headers else address
    return _program_line((f"{key}=…" for key in sorted(spec.env)), spec, spec.cwd)


def _written_line(entry: _ServerEntry, folder: str) -> str:
    """Return the line with all references.

    Of `env` it has every value whose name is not that of a secret: some values run code.
    """
    if entry.url:
        address, separator, query = entry.url.partition("#")[0].partition("?")
        address = f"{address}{separator}{_references(query)}"
        headers = ", ".join(f"{key}: {_references(value)}" for key, value in sorted(entry.headers.items()))
        return f"{address} (headers: {headers})" if headers else address
    values = {key: _env_text(value) for key, value in entry.env.items()}
    env = (f"{key}={_references(value) if _SECRET.search(key) else value}" for key, value in sorted(values.items()))
    return _program_line(env, entry, folder)


def _program_line(env: Iterable[str], server: ServerSpec | _ServerEntry, folder: str) -> str:
    line = " ".join(_shell_quote(word) for word in (*env, server.command, *server.args))
    return f"{line} (in {folder})" if folder else line


def _references(text: str) -> str:
    """Reduce a text that may be a secret to its references: `Bearer ${TOKEN}` → `…${TOKEN}`."""
    names = [f"${{{match[1] or ''}}}" for match in _REFERENCE.finditer(text)]
    return ("" if _REFERENCE.fullmatch(text) or not text else "…") + "…".join(names)


def _shell_quote(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./…${}-]+", word) else "'" + word.replace("'", "'\\''") + "'"
