"""MCP servers from the files of other programs: .mcp.json, Cursor, VS Code, opencode and Claude Code.

Reading a file starts nothing. An entry is kept as it is written until a person has trusted it, with the references to
variables in it; only then are they filled in (`make_server`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from everturn.config.extensions.extension import Extension, ExtensionProblem, Scope, hash_bytes
from everturn.config.extensions.file_scan import check_no_link, read_text
from everturn.core.canonical_json import encode_canonical
from everturn.errors import ConfigError
from everturn.mcp.config import ServerSpec, read_server

MAX_SERVERS: Final = 50  # in one file
MAX_DEPTH: Final = 20
PROJECT_FILES: Final = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "opencode.json", "opencode.jsonc")
USER_FILES: Final = (".claude.json", ".cursor/mcp.json", ".config/opencode/opencode.json")
CLAUDE_FILE_LIMIT: Final = 20_000_000  # bytes: Claude Code keeps its history in the same file
_FIELDS: Final = ("command", "args", "env", "cwd", "url", "headers")
_TYPES: Final = {"local": "stdio", "remote": "http", "streamableHttp": "http", "streamable_http": "http"}
_VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}|\{(env|file):([^{}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def find_servers(root: Path, home: Path | None) -> Iterator[Extension | ExtensionProblem]:
    """Find the servers that files of a project and of the user define. The same name twice is resolved later."""
    for name in PROJECT_FILES:
        yield from _servers_of(root / name, root, root, "project", name)
    for name in USER_FILES if home is not None else ():
        assert home is not None
        yield from _servers_of(home / name, Path("/"), root, "user", str(home / name))


def _servers_of(path: Path, base: Path, root: Path, scope: Scope, place: str) -> Iterator[Extension | ExtensionProblem]:
    if not path.exists() and not path.is_symlink():
        return
    try:
        if scope == "project":
            check_no_link(base, path)
        text = read_text(path, CLAUDE_FILE_LIMIT if path.name == ".claude.json" else 1_000_000)
        tables = _tables(path.name, _decode(text), root)
    except ConfigError as error:
        yield ExtensionProblem(place, str(error))
        return
    for at, (name, table) in enumerate(tables.items()):
        if at >= MAX_SERVERS:
            yield ExtensionProblem(place, f"more than {MAX_SERVERS} servers; the rest is ignored")
            return
        try:
            entry = _normalize(table)
        except ConfigError as error:
            yield ExtensionProblem(f"{place}: {name[:40]!r}", str(error))
            continue
        if entry is None:
            continue
        data = encode_canonical(entry)
        yield Extension(
            "mcp",
            _server_name(name),
            f"{place}#{name[:64]}",
            hash_bytes(f"{root}\0{data}".encode(errors="replace")),
            describe_entry(entry),
            data,
            scope,
            folder=str(root),
        )


def _decode(text: str) -> dict[str, Any]:
    try:
        document: Any = msgspec.json.decode(_without_comments(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"it is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError("it is not a JSON object")
    return cast("dict[str, Any]", document)


def _without_comments(text: str) -> str:
    """Remove comments and commas before a closing bracket, which VS Code and opencode allow."""
    if "//" not in text and "/*" not in text and not re.search(r",\s*[}\]]", text):
        return text
    pieces = re.split(r'("(?:[^"\\\n]|\\.)*")', text)
    bare = [
        piece if at % 2 else re.sub(r"//[^\n]*|/\*.*?\*/", "", piece, flags=re.S) for at, piece in enumerate(pieces)
    ]
    if any("//" in piece or "/*" in piece for piece in bare[::2]):
        raise ConfigError("it has a comment that is not closed")
    joined = re.split(r'("(?:[^"\\\n]|\\.)*")', "".join(bare))
    return "".join(piece if at % 2 else re.sub(r",(\s*[}\]])", r"\1", piece) for at, piece in enumerate(joined))


def _tables(file: str, document: dict[str, Any], root: Path) -> dict[str, Any]:
    """Return the servers of a document by name: where they are depends on the program."""
    if file == ".claude.json":
        projects = document.get("projects")
        own = projects.get(str(root)) if isinstance(projects, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        local: Any = own.get("mcpServers", {}) if isinstance(own, dict) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        servers: Any = document.get("mcpServers", {})
        if not isinstance(local, dict) or not isinstance(servers, dict):
            raise ConfigError("its mcpServers is not a map of servers")
        return {**cast("dict[str, Any]", servers), **cast("dict[str, Any]", local)}
    keys = ("mcp",) if file.startswith("opencode.json") else ("mcpServers", "servers")
    found: Any = next((document[key] for key in keys if key in document), dict[str, Any]())
    if not isinstance(found, dict):
        raise ConfigError(f"its {keys[0]} is not a map of servers")
    return cast("dict[str, Any]", found)


def _normalize(table: Any) -> dict[str, Any] | None:
    """Return an entry with the fields that we know; None if it is switched off.

    Raises:
        ConfigError: it has a form that is not known, or needs something that is not done here.
    """
    if not isinstance(table, dict):
        raise ConfigError("it is not a map of settings")
    entry = cast("dict[str, Any]", table)
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return None
    if "envFile" in entry:
        raise ConfigError("envFile is not supported; name the variables in env")
    kind: Any = entry.get("type", "")
    if not isinstance(kind, str) or kind == "sse":
        raise ConfigError("the SSE transport is not supported; use streamable HTTP")
    result = {key: entry[key] for key in _FIELDS if key in entry}
    if "environment" in entry:  # opencode
        result["env"] = entry["environment"]
    if isinstance(entry.get("command"), list):  # opencode
        words: list[Any] = cast("list[Any]", entry["command"])
        if not words or not all(isinstance(word, str) for word in words):
            raise ConfigError("command is not a list of words")
        result["command"], result["args"] = words[0], [*words[1:], *cast("list[Any]", entry.get("args") or [])]
    if kind:
        result["type"] = _TYPES.get(kind, kind)
    for key in ("env", "headers"):
        value: Any = result.get(key, {})
        if not isinstance(value, dict):
            raise ConfigError(f"{key} is not a map of strings")
    if "url" in result:
        result = {key: value for key, value in result.items() if key in ("url", "headers", "type")}
    _check_depth(result, 0)
    return result


def _check_depth(value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ConfigError("it is nested too deeply")
    children: Any = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType]
    for child in children:
        _check_depth(child, depth + 1)


def _server_name(name: str) -> str:
    """Return a name that our tools can have: small letters, digits, `_` and `-`."""
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:32] or "server"


def describe_entry(entry: Mapping[str, Any]) -> str:
    """Return the command line or address of an entry as it is written, and the variables that it is passed."""
    if url := entry.get("url"):
        line = str(url)
    else:
        args: Any = entry.get("args") or []
        line = " ".join([str(entry.get("command", "")), *map(str, args if isinstance(args, list) else [args])])  # pyright: ignore[reportUnknownArgumentType]
    names = sorted({match[1] or f"{match[2]}:{match[3]}" for match in _VARIABLE.finditer(str(dict(entry)))})
    return f"{line}   (is passed: {', '.join(names)})" if names else line


def make_server(found: Extension, environ: Mapping[str, str]) -> ServerSpec:
    """Make the server of a trusted entry: fill in the variables that it references.

    Raises:
        ConfigError: a variable is not set, or the entry is invalid.
    """
    root, place = Path(found.folder), found.path
    entry: dict[str, Any] = msgspec.json.decode(found.text)
    values = {"workspaceFolder": str(root), "userHome": environ.get("HOME", ""), "pathSeparator": "/", "/": "/"}
    values["workspaceFolderBasename"] = root.name

    def expand(value: Any) -> Any:
        if isinstance(value, str):
            return _VARIABLE.sub(lambda match: _reference(match, values, place), value)
        if isinstance(value, list):
            return [expand(child) for child in cast("list[Any]", value)]
        return (
            {key: expand(child) for key, child in cast("dict[str, Any]", value).items()}
            if isinstance(value, dict)
            else value
        )

    spec = read_server(root / "mcp.json", place, found.name, expand(entry), environ)
    if spec is None:
        raise ConfigError(f"{place}: it is disabled")
    return spec


def _reference(match: re.Match[str], values: Mapping[str, str], place: str) -> str:
    """Return the text for a reference: a value of the workspace, or `${NAME}` as our own configuration reads it."""
    if match[2] == "file":
        raise ConfigError(f"{place}: {match[0]} is not supported; name a variable instead")
    word = match[3] if match[2] == "env" else match[1].removeprefix("env:")
    if match[2] is None and word in values:
        return values[word]
    name, separator, default = word.partition(":-")
    if _NAME.fullmatch(name) is None:
        raise ConfigError(f"{place}: {match[0]} is not supported; write ${{NAME}}, and set the variable NAME")
    return f"${{{name}{separator}{default}}}"
