"""Trust in MCP servers: decides whether a server and its tools are still the ones that a person trusted.

Trust is bound to hashes: of what is started or connected to, and of each tool as a model sees it. When a hash changes,
the trust ends, and `changes` describes the difference, with invisible characters written out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import JsonObject, encode_canonical, hash_values
from everturn.core.tenants.settings import McpTrust, TrustedTool
from everturn.errors import ConfigError
from everturn.mcp.config import ServerSpec
from everturn.mcp.private_file import lock_file, read_private, write_private

SHOWN = 4000  # characters kept of a text, for later comparison
KEPT = 400_000  # characters kept of all texts of one kind, per server
MAX_CHANGES_TEXT = 1_000_000  # characters of a description of changes
MAX_OTHER_FOLDERS = 20  # other folders for which a server of the same name stays trusted
MAX_REPEATED_LINES = 3  # repetitions of a line that are shown
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")


class ToolFacts(Struct, frozen=True):
    """Everything that a server says about a tool and that a model or a person relies on."""

    name: str
    description: str = ""
    schema: JsonObject = {}
    annotations: JsonObject = {}

    @property
    def hash(self) -> str:
        """Hash of these facts: a tool with another hash is another tool."""
        return tool_hash(self.name, self.description, self.schema, self.annotations)


def tool_hash(name: str, description: str, schema: JsonObject, annotations: JsonObject) -> str:
    """Hash what a server says about a tool."""
    return hash_values("tool", name, description, schema, annotations)


class Trust(Protocol):
    """Decides which servers and tools are trusted."""

    def launch(self, spec: ServerSpec) -> bool:
        """Whether this server may be started or connected to."""
        ...

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Return the names of those tools (name → hash) that are unchanged since they were trusted."""
        ...

    def trust(self, spec: ServerSpec, hashes: Mapping[str, str], facts: Iterable[ToolFacts] = ()) -> None:
        """Trust a server as it is now; the facts are kept to describe later changes."""
        ...

    def forget(self, name: str) -> None:
        """Remove the trust in a server."""
        ...


class TrustAll:
    """Trusts every server, for servers that are named in code. Tools are pinned when they are first seen."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, str]] = {}

    def launch(self, spec: ServerSpec) -> bool:
        """Allow it: the server is named in code."""
        return True

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Return the tools that have not changed since this process first saw them."""
        pinned = self._seen.setdefault(server, {})
        return {name for name, hash in hashes.items() if pinned.setdefault(name, hash) == hash}

    def trust(self, spec: ServerSpec, hashes: Mapping[str, str], facts: Iterable[ToolFacts] = ()) -> None:
        """Pin the tools as they are now."""
        self._seen[spec.name] = dict(hashes)

    def changes(self, spec: ServerSpec, facts: Iterable[ToolFacts] = ()) -> list[str]:
        """Describe the tools that have changed, in lines for a person; of the earlier state only hashes are known."""
        lost: dict[str, str] = dict.fromkeys(("description", "schema", "annotations"), "")
        known = {name: TrustedTool(hash, cut=lost) for name, hash in self._seen.get(spec.name, {}).items()}
        return _limit(_tool_changes(_TrustedServer("", tools=known), list(facts)))

    def forget(self, name: str) -> None:
        """Unpin the tools: the next list is the first one."""
        self._seen.pop(name, None)


class _TrustedServer(Struct, omit_defaults=True):
    launch: str
    line: str = ""
    pieces: dict[str, str] = {}  # each piece of what is started or connected to → its hash
    tools: dict[str, TrustedTool] = {}
    is_listed: bool = False  # its tools have been seen


class _TrustRecords(Struct, omit_defaults=True):
    version: int = 1
    servers: dict[str, _TrustedServer] = {}
    # Servers of the same name in other folders: two projects may both have a `files`.
    elsewhere: dict[str, list[_TrustedServer]] = {}

    def all(self, name: str) -> list[_TrustedServer]:
        """Return the servers of a name, last trusted first."""
        return [*([self.servers[name]] if name in self.servers else []), *self.elsewhere.get(name, [])]

    def fitting(self, name: str, launch: str) -> _TrustedServer | None:
        """Return the server with this launch hash; else the last trusted one, for comparison."""
        candidates = self.all(name)
        return next((server for server in candidates if server.launch == launch), candidates[0] if candidates else None)


class TrustFile:
    """Trust in a file that only its owner can read and write."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._launched: dict[str, str] = {}  # name → launch hash of the last `launch` call

    def launch(self, spec: ServerSpec) -> bool:
        """Whether the server is started or connected to exactly as it was when it was trusted."""
        self._launched[spec.name] = spec.launch_hash
        known = self._read().fitting(spec.name, spec.launch_hash)
        return known is not None and known.launch == spec.launch_hash

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Return the tools that were trusted and are unchanged."""
        known = self._read().fitting(server, self._launched.get(server, ""))
        if known is None:
            return set()
        return {name for name, hash in hashes.items() if name in known.tools and known.tools[name].hash == hash}

    def trust(self, spec: ServerSpec, hashes: Mapping[str, str], facts: Iterable[ToolFacts] = ()) -> None:
        """Trust a server as it is now, in place of its earlier state in that folder."""
        facts_by_name = {fact.name: fact for fact in facts}
        size = min(SHOWN, KEPT // max(len(hashes), 1))
        tools = {name: _record_tool(hash, facts_by_name.get(name), size) for name, hash in hashes.items()}
        with lock_file(self.path):
            records = self._read()
            trusted = _TrustedServer(spec.launch_hash, spec.line, _pieces(spec), tools, bool(tools))
            others = [server for server in records.all(spec.name) if server.pieces.get("cwd") != trusted.pieces["cwd"]]
            records.servers[spec.name], records.elsewhere[spec.name] = trusted, others[:MAX_OTHER_FOLDERS]
            self._write(records)

    def forget(self, name: str) -> None:
        """Remove the trust in a server; without effect if it was never trusted."""
        with lock_file(self.path):
            records = self._read()
            if records.servers.pop(name, None) is not None:
                records.elsewhere.pop(name, None)
                self._write(records)

    def changes(self, spec: ServerSpec, facts: Iterable[ToolFacts] = ()) -> list[str]:
        """Describe what differs from the trusted state, in lines for a person; none if nothing differs.

        For a server that was never trusted, that is everything: each tool, with all that a model sees of it.
        """
        known = self._read().fitting(spec.name, spec.launch_hash)
        if known is None:
            would = "run" if spec.command else "be reached at"
            never = f"{spec.name} was never trusted; it would {would}: {escape_invisible(spec.line)}"
            return _limit([never, *_tool_changes(_TrustedServer(""), list(facts))])
        return _limit([*_launch_changes(known, spec), *_tool_changes(known, list(facts))])

    def _read(self) -> _TrustRecords:
        data = read_private(self.path)
        if data is None:
            return _TrustRecords()
        try:
            records = msgspec.json.decode(data, type=_TrustRecords)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{self.path} cannot be read: {error}; delete it, and trust your servers again") from None
        if records.version != 1:
            raise ConfigError(
                f"{self.path} was written by a newer version of Everturn; use that version, or delete the file "
                "and trust your servers again"
            )
        return records

    def _write(self, records: _TrustRecords) -> None:
        write_private(self.path, msgspec.json.format(msgspec.json.encode(records), indent=1))


class TrustOnFirst(TrustFile):
    """Trust on first use, for where no person can be asked: trusts what it has never seen, and later only exactly that."""

    def launch(self, spec: ServerSpec) -> bool:
        """Whether the server is what it was when it was first seen."""
        with lock_file(self.path):
            records = self._read()
            known = records.servers.get(spec.name)
            if known is None:
                records.servers[spec.name] = _TrustedServer(spec.launch_hash, spec.line, _pieces(spec))
                self._write(records)
                return True
        return known.launch == spec.launch_hash

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Return the tools of the first list that are unchanged."""
        with lock_file(self.path):
            records = self._read()
            known = records.servers.get(server)
            if known is not None and not known.is_listed and hashes:
                known.tools, known.is_listed = {name: TrustedTool(hash) for name, hash in hashes.items()}, True
                self._write(records)
        return super().tools(server, hashes)


class TrustFirstTools(TrustFile):
    """Starts what a person has trusted, and trusts the tools of its first list; later only exactly those.

    For servers that a person has agreed to start before their tools could be seen.
    """

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Return the tools of the first list that are unchanged."""
        launched = self._launched.get(server, "")
        with lock_file(self.path):
            records = self._read()
            known = records.fitting(server, launched)
            if known is not None and known.launch == launched and not known.is_listed and hashes:
                known.tools, known.is_listed = {name: TrustedTool(hash) for name, hash in hashes.items()}, True
                self._write(records)
        return super().tools(server, hashes)


class StoredTrust:
    """Trust in the servers of administrators, from the settings in the store: all processes have the same.

    Naming a server there means agreeing that it is connected to. Its tools are trusted one by one, by an administrator
    who has seen them.
    """

    def __init__(self) -> None:
        self._records: Mapping[str, McpTrust] = {}
        self._launched: dict[str, str] = {}  # name → hash of the last `launch` call

    def replace(self, records: Mapping[str, McpTrust]) -> set[str]:
        """Take over what the settings say now. Returns the names of servers for which something else is trusted."""
        before, self._records = self._records, records
        return {name for name in {**before, **records} if before.get(name) != records.get(name)}

    def launch(self, spec: ServerSpec) -> bool:
        """Allow it: an administrator named the server."""
        self._launched[spec.name] = launch_identity(spec)
        return True

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Return the tools that were trusted and are unchanged, at a server that is reached as it was."""
        known = self._records.get(server)
        if known is None or known.launch != self._launched.get(server, ""):
            return set()
        return {name for name, hash in hashes.items() if name in known.tools and known.tools[name].hash == hash}

    def trust(self, spec: ServerSpec, hashes: Mapping[str, str], facts: Iterable[ToolFacts] = ()) -> None:
        """Refuse: trust is a version of a setting, which the access layer stores.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"server {spec.name} is a setting; an administrator trusts it on the page")

    def changes(self, spec: ServerSpec, facts: Iterable[ToolFacts] = ()) -> list[str]:
        """Describe what of the tools differs from what was trusted; of a new server, all of them."""
        known = self._records.get(spec.name, McpTrust())
        tools = known.tools if known.launch == launch_identity(spec) else {}
        return _limit(_tool_changes(_TrustedServer("", tools=tools), list(facts)))

    def forget(self, name: str) -> None:
        """Do nothing: a deleted setting has no trust."""


def launch_identity(spec: ServerSpec) -> str:
    """Hash what is started or connected to, without secrets: it is stored where others may read it."""
    return hash_values("launch", spec.command, spec.args, spec.cwd, spec.url, sorted(spec.env), sorted(spec.headers))


def trusted_now(spec: ServerSpec, facts: Iterable[ToolFacts]) -> McpTrust:
    """Return the trust in a server with these tools."""
    found = list(facts)
    size = min(SHOWN, KEPT // max(len(found), 1))
    return McpTrust(launch_identity(spec), {fact.name: _record_tool(fact.hash, fact, size) for fact in found})


def default_trust_path(environ: Mapping[str, str] | None = None) -> Path:
    """Return the default path of a user's trust file."""
    variables = os.environ if environ is None else environ
    home = variables.get("XDG_CONFIG_HOME") or str(Path(variables.get("HOME") or "~").expanduser() / ".config")
    return Path(home) / "everturn" / "mcp-trust.json"


def escape_invisible(text: str) -> str:
    r"""Return one line with all invisible characters written out: `\x1b`, `\u202e`, and blanks at the end."""
    shown = "".join(char if char.isprintable() and not _INVISIBLE.match(char) else _escape(char) for char in text)
    bare = shown.rstrip(" ")
    return bare + r"\x20" * (len(shown) - len(bare))


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _texts(fact: ToolFacts) -> dict[str, str]:
    """Return the parts of a tool's description as lines that can be compared."""
    rows = {"schema": fact.schema, "annotations": fact.annotations}
    formatted = {
        part: msgspec.json.format(encode_canonical(value), indent=1) if value else "" for part, value in rows.items()
    }
    return {"description": fact.description, **formatted}


def _record_tool(hash: str, fact: ToolFacts | None, size: int) -> TrustedTool:
    if fact is None:
        return TrustedTool(hash)
    texts = _texts(fact)
    cut = {part: hash_values(text) for part, text in texts.items() if len(text) > size}
    return TrustedTool(hash, **{part: text[:size] for part, text in texts.items()}, cut=cut)


def _pieces(spec: ServerSpec) -> dict[str, str]:
    pieces: dict[str, Any] = {"command": spec.command, "args": spec.args, "cwd": spec.folder, "url": spec.url}
    pieces |= {f"env {key}": value for key, value in spec.env.items()}
    pieces |= {f"header {key.lower()}": value for key, value in spec.headers.items()}
    return {name: hash_values(value) for name, value in pieces.items()}


def _launch_changes(known: _TrustedServer, spec: ServerSpec) -> list[str]:
    if known.launch == spec.launch_hash:
        return []
    now = _pieces(spec)
    names = [name for name in {**known.pieces, **now} if known.pieces.get(name) != now.get(name)]
    headline = f"{spec.name} is not started or reached as it was; different: {', '.join(map(escape_invisible, names)) or 'unknown'}"
    return [headline, f"  - {escape_invisible(known.line)}", f"  + {escape_invisible(spec.line)}"]


def _tool_changes(known: _TrustedServer, facts: list[ToolFacts]) -> list[str]:
    lines: list[str] = []
    for fact in facts:
        before = known.tools.get(fact.name)
        if before is not None and before.hash == fact.hash:
            continue
        lines.append(f"{'new' if before is None else 'changed'} tool {escape_invisible(fact.name)}")
        for part, now in _texts(fact).items():
            lines += _difference(part, before or TrustedTool(""), now)
    names = {fact.name for fact in facts}
    return lines + [f"gone tool {escape_invisible(name)}" for name in known.tools if facts and name not in names]


def _difference(part: str, tool: TrustedTool, now: str) -> list[str]:
    """List the lines from the first to the last difference. None in between is left out: it might be what matters."""
    before, whole = cast("str", getattr(tool, part)), tool.cut.get(part)
    if before == now or whole == hash_values(now):
        return []
    old, new = before.split("\n") if before else [], now.split("\n") if now else []
    start = next(
        (at for at, (old_line, new_line) in enumerate(zip(old, new, strict=False)) if old_line != new_line), None
    )
    start = min(len(old), len(new)) if start is None else start
    end = 0
    while whole is None and end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    rows = [f"- {row}" for row in old[start : len(old) - end]] + [f"+ {row}" for row in new[start : len(new) - end]]
    rest = ["    (no more was kept of what it was)"] if whole is not None else []
    return [f"  {part}:", *_fold_repeats(rows), *rest]


def _fold_repeats(rows: list[str]) -> list[str]:
    """Format the lines for a person; a line repeated many times, which pushes others out of sight, appears once."""
    lines: list[str] = []
    for row, same in groupby(rows):
        lines.append(f"    {row[:2]}{escape_invisible(row[2:])}")
        if (more := sum(1 for _ in same) - 1) > 0:
            lines += [lines[-1]] * more if more < MAX_REPEATED_LINES else [f"      (the same line {more} times more)"]
    return lines


def _limit(lines: list[str]) -> list[str]:
    size = 0
    for at, line in enumerate(lines):
        size += len(line)
        if size > MAX_CHANGES_TEXT:
            return [
                *lines[:at],
                f"… {len(lines) - at} more lines are not shown. Do not trust a server that you cannot review",
            ]
    return lines
