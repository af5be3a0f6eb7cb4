"""A server and its tools, as they are now → whether they are still those that somebody trusted.

Trust is bound to hashes: of what is started or talked to, and of each tool as a model is told of it. When one of them
changes nothing is trusted any more, and `changes` says in words what is different, with what cannot be seen written out.
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

from everturn.core.canonical import JsonObject, canonical, digest
from everturn.errors import ConfigError
from everturn.mcp.config import ServerSpec
from everturn.mcp.keeping import locked, read_private, write_private

SHOWN = 4000  # characters of a text that are kept, to be compared with the next one
KEPT = 400_000  # characters of all texts of one kind, of one server
TOLD = 1_000_000  # characters of all that is told of a server
PLACES = 20  # other folders in which a server of the same name is trusted
FEW = 3  # times that a line is told again
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")


class ToolFacts(Struct, frozen=True):
    """All that a server says of a tool and a model or a person goes by."""

    name: str
    description: str = ""
    schema: JsonObject = {}
    annotations: JsonObject = {}

    @property
    def hash(self) -> str:
        """Another one is another tool."""
        return tool_hash(self.name, self.description, self.schema, self.annotations)


def tool_hash(name: str, description: str, schema: JsonObject, annotations: JsonObject) -> str:
    """The hash of what a server says of a tool."""
    return digest("tool", name, description, schema, annotations)


class Trust(Protocol):
    """Who says what is trusted."""

    def launch(self, spec: ServerSpec) -> bool:
        """Whether this may be started, or talked to."""
        ...

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """The names, of these tools (name → hash), that are what they were when they were trusted."""
        ...

    def trust(self, spec: ServerSpec, hashes: Mapping[str, str], facts: Iterable[ToolFacts] = ()) -> None:
        """Trust it as it is now; the facts are kept to say what has changed when it does."""
        ...

    def forget(self, name: str) -> None:
        """Trust it no more."""
        ...


class TrustAll:
    """For servers that code names: whoever wrote them down trusts them. Tools are pinned as they are first seen."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, str]] = {}

    def launch(self, spec: ServerSpec) -> bool:
        """It is trusted, for it was written in code."""
        return True

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Those that have not changed since this process saw them first."""
        pinned = self._seen.setdefault(server, {})
        return {name for name, hash in hashes.items() if pinned.setdefault(name, hash) == hash}

    def trust(self, spec: ServerSpec, hashes: Mapping[str, str], facts: Iterable[ToolFacts] = ()) -> None:
        """Pin the tools as they are now."""
        self._seen[spec.name] = dict(hashes)

    def changes(self, spec: ServerSpec, facts: Iterable[ToolFacts] = ()) -> list[str]:
        """What is told now of the tools that are not what they were, in lines for a person; of before only hashes are kept."""
        lost: dict[str, str] = dict.fromkeys(("description", "schema", "annotations"), "")
        known = {name: _Tool(hash, cut=lost) for name, hash in self._seen.get(spec.name, {}).items()}
        return _bounded(_tool_changes(_Server("", tools=known), list(facts)))

    def forget(self, name: str) -> None:
        """Let the next sight be the first."""
        self._seen.pop(name, None)


class _Tool(Struct, omit_defaults=True):
    hash: str
    description: str = ""
    schema: str = ""
    annotations: str = ""
    cut: dict[str, str] = {}  # the parts that were too long to be kept → the hash of the whole


class _Server(Struct, omit_defaults=True):
    launch: str
    line: str = ""
    pieces: dict[str, str] = {}  # what was started or talked to, piece by piece → its hash
    tools: dict[str, _Tool] = {}
    is_listed: bool = False  # its tools have been seen


class _Kept(Struct, omit_defaults=True):
    version: int = 1
    servers: dict[str, _Server] = {}
    elsewhere: dict[str, list[_Server]] = {}  # others of that name, in other folders: two projects both have a `files`

    def all(self, name: str) -> list[_Server]:
        """Those of a name; the last that was trusted is the first."""
        return [*([self.servers[name]] if name in self.servers else []), *self.elsewhere.get(name, [])]

    def fitting(self, name: str, launch: str) -> _Server | None:
        """The one that is started so; else the last, to be compared with."""
        found = self.all(name)
        return next((one for one in found if one.launch == launch), found[0] if found else None)


class TrustFile:
    """What somebody has trusted, in a file that only they can read and write."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._launched: dict[str, str] = {}  # name → the launch that was asked about last

    def launch(self, spec: ServerSpec) -> bool:
        """Whether it is started or talked to just as it was when it was trusted."""
        self._launched[spec.name] = spec.launch_hash
        known = self._read().fitting(spec.name, spec.launch_hash)
        return known is not None and known.launch == spec.launch_hash

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Those that were trusted, and are what they were."""
        known = self._read().fitting(server, self._launched.get(server, ""))
        if known is None:
            return set()
        return {name for name, hash in hashes.items() if name in known.tools and known.tools[name].hash == hash}

    def trust(self, spec: ServerSpec, hashes: Mapping[str, str], facts: Iterable[ToolFacts] = ()) -> None:
        """Trust it as it is now, and nothing that it was before in that folder."""
        told = {fact.name: fact for fact in facts}
        size = min(SHOWN, KEPT // max(len(hashes), 1))
        tools = {name: _kept_tool(hash, told.get(name), size) for name, hash in hashes.items()}
        with locked(self.path):
            kept = self._read()
            now = _Server(spec.launch_hash, spec.line, _pieces(spec), tools, bool(tools))
            others = [one for one in kept.all(spec.name) if one.pieces.get("cwd") != now.pieces["cwd"]]
            kept.servers[spec.name], kept.elsewhere[spec.name] = now, others[:PLACES]
            self._write(kept)

    def forget(self, name: str) -> None:
        """Trust it no more; one that was never trusted is forgotten already."""
        with locked(self.path):
            kept = self._read()
            if kept.servers.pop(name, None) is not None:
                kept.elsewhere.pop(name, None)
                self._write(kept)

    def changes(self, spec: ServerSpec, facts: Iterable[ToolFacts] = ()) -> list[str]:
        """What is not as it was trusted, in lines for a person; none when nothing is different.

        Of a server that nobody has trusted that is all of it: each tool, with everything that a model is told of it.
        """
        known = self._read().fitting(spec.name, spec.launch_hash)
        if known is None:
            would = "run" if spec.command else "be reached at"
            never = f"{spec.name} was never trusted; it would {would}: {visible(spec.line)}"
            return _bounded([never, *_tool_changes(_Server(""), list(facts))])
        return _bounded([*_launch_changes(known, spec), *_tool_changes(known, list(facts))])

    def _read(self) -> _Kept:
        data = read_private(self.path)
        if data is None:
            return _Kept()
        try:
            kept = msgspec.json.decode(data, type=_Kept)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{self.path} cannot be read: {error}; delete it, and trust your servers again") from None
        if kept.version != 1:
            raise ConfigError(f"{self.path} was written by a later version; use that one, or delete it and trust again")
        return kept

    def _write(self, kept: _Kept) -> None:
        write_private(self.path, msgspec.json.format(msgspec.json.encode(kept), indent=1))


class TrustOnFirst(TrustFile):
    """Trusts what it has never seen, and from then on only just that: for where nobody is there to be asked."""

    def launch(self, spec: ServerSpec) -> bool:
        """Whether it is what it was when it was seen first."""
        with locked(self.path):
            kept = self._read()
            known = kept.servers.get(spec.name)
            if known is None:
                kept.servers[spec.name] = _Server(spec.launch_hash, spec.line, _pieces(spec))
                self._write(kept)
                return True
        return known.launch == spec.launch_hash

    def tools(self, server: str, hashes: Mapping[str, str]) -> set[str]:
        """Those that were in the first list, and are what they were."""
        with locked(self.path):
            kept = self._read()
            known = kept.servers.get(server)
            if known is not None and not known.is_listed and hashes:
                known.tools, known.is_listed = {name: _Tool(hash) for name, hash in hashes.items()}, True
                self._write(kept)
        return super().tools(server, hashes)


def default_trust_path(environ: Mapping[str, str] | None = None) -> Path:
    """Where a person's trust is kept, unless they say otherwise."""
    found = os.environ if environ is None else environ
    home = found.get("XDG_CONFIG_HOME") or str(Path(found.get("HOME") or "~").expanduser() / ".config")
    return Path(home) / "everturn" / "mcp-trust.json"


def visible(text: str) -> str:
    r"""One line with everything written out that cannot be seen: `\x1b`, `\u202e`, and blanks at its end."""
    shown = "".join(char if char.isprintable() and not _UNSEEN.match(char) else _written(char) for char in text)
    bare = shown.rstrip(" ")
    return bare + r"\x20" * (len(shown) - len(bare))


def _written(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _texts(fact: ToolFacts) -> dict[str, str]:
    """What is told of a tool, part by part, in lines that can be compared."""
    rows = {"schema": fact.schema, "annotations": fact.annotations}
    told = {part: msgspec.json.format(canonical(value), indent=1) if value else "" for part, value in rows.items()}
    return {"description": fact.description, **told}


def _kept_tool(hash: str, fact: ToolFacts | None, size: int) -> _Tool:
    if fact is None:
        return _Tool(hash)
    texts = _texts(fact)
    cut = {part: digest(text) for part, text in texts.items() if len(text) > size}
    return _Tool(hash, **{part: text[:size] for part, text in texts.items()}, cut=cut)


def _pieces(spec: ServerSpec) -> dict[str, str]:
    pieces: dict[str, Any] = {"command": spec.command, "args": spec.args, "cwd": spec.folder, "url": spec.url}
    pieces |= {f"env {key}": value for key, value in spec.env.items()}
    pieces |= {f"header {key.lower()}": value for key, value in spec.headers.items()}
    return {name: digest(value) for name, value in pieces.items()}


def _launch_changes(known: _Server, spec: ServerSpec) -> list[str]:
    if known.launch == spec.launch_hash:
        return []
    now = _pieces(spec)
    names = [name for name in {**known.pieces, **now} if known.pieces.get(name) != now.get(name)]
    what = f"{spec.name} is not started or reached as it was; different: {', '.join(map(visible, names)) or 'unknown'}"
    return [what, f"  - {visible(known.line)}", f"  + {visible(spec.line)}"]


def _tool_changes(known: _Server, facts: list[ToolFacts]) -> list[str]:
    lines: list[str] = []
    for fact in facts:
        before = known.tools.get(fact.name)
        if before is not None and before.hash == fact.hash:
            continue
        lines.append(f"{'new' if before is None else 'changed'} tool {visible(fact.name)}")
        for part, now in _texts(fact).items():
            lines += _difference(part, before or _Tool(""), now)
    names = {fact.name for fact in facts}
    return lines + [f"gone tool {visible(name)}" for name in known.tools if facts and name not in names]


def _difference(part: str, tool: _Tool, now: str) -> list[str]:
    """The lines from the first that is another to the last. Nothing in between is left out: it might be what matters."""
    before, whole = cast("str", getattr(tool, part)), tool.cut.get(part)
    if before == now or whole == digest(now):
        return []
    old, new = before.split("\n") if before else [], now.split("\n") if now else []
    start = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    start = min(len(old), len(new)) if start is None else start
    end = 0
    while whole is None and end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    rows = [f"- {row}" for row in old[start : len(old) - end]] + [f"+ {row}" for row in new[start : len(new) - end]]
    rest = ["    (no more was kept of what it was)"] if whole is not None else []
    return [f"  {part}:", *_folded(rows), *rest]


def _folded(rows: list[str]) -> list[str]:
    """Lines for a person; the same one many times over, which pushes others out of sight, stands there once."""
    lines: list[str] = []
    for row, same in groupby(rows):
        lines.append(f"    {row[:2]}{visible(row[2:])}")
        if (more := sum(1 for _ in same) - 1) > 0:
            lines += [lines[-1]] * more if more < FEW else [f"      (the same line {more} times more)"]
    return lines


def _bounded(lines: list[str]) -> list[str]:
    size = 0
    for at, line in enumerate(lines):
        size += len(line)
        if size > TOLD:
            return [
                *lines[:at],
                f"… {len(lines) - at} more lines are not shown: nobody reads that much; do not trust it",
            ]
    return lines
