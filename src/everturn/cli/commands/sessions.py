"""`everturn sessions`, `export` and `import`: lists, shows, organizes, erases, exports and imports stored sessions."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from everturn.cli.output import confirm, is_terminal, show_slow_operation
from everturn.cli.store.backends import SessionChange, SessionRow, StoreBackend, open_backend
from everturn.config.folder.project import display_agent_name
from everturn.core.events import TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import (
    ClearedPart,
    ContextPart,
    FilePart,
    NoticePart,
    ProviderToolPart,
    SummaryPart,
    TextPart,
    ToolPart,
    provider_tool_note,
)
from everturn.core.projections.cache_health import CacheRead, read_cache_health
from everturn.errors import ConfigError, KeyConflict, UnknownTurn, UnreadableLog
from everturn.terminal.text.compaction import format_sizes
from everturn.terminal.text.screen import escape_prose, escape_unprintable

TITLE: Final = 60  # characters of a title, and of a search hit
RESULT: Final = 200  # characters of a tool's result
DAY: Final = 86_400.0  # seconds


def sessions(options: argparse.Namespace) -> int:
    """List the sessions, or show, rename, pin, archive, label, share or erase one."""
    if options.about == "show":
        return asyncio.run(_show(options))
    if options.about == "erase":
        return asyncio.run(_erase(options))
    if options.about in ("share", "unshare", "link"):
        from everturn.cli.commands.session_sharing import change_sharing  # needs a server

        return asyncio.run(change_sharing(options))
    if options.about is not None:
        return asyncio.run(_update(options))
    rows, more = asyncio.run(_list(options))
    if options.json:
        for row in rows:
            print(as_json(row))
        if more:
            print(f"older ones: --before {shlex.quote(more)}", file=sys.stderr)
        return 0
    for line in render_sessions(rows, time.time()):
        print(line)
    if more:
        print(f"older ones: everturn sessions --before {shlex.quote(more)}", file=sys.stderr)
    if not rows:
        print("no session has these words" if options.search else "no sessions yet; `everturn chat` begins one")
    return 0


async def _list(options: argparse.Namespace) -> tuple[list[SessionRow], str]:
    with show_slow_operation("reading the sessions"):
        async with open_backend(options) as place:
            if options.search:
                return await place.search(options.search, options.limit), ""
            return await place.list_sessions(
                options.limit, options.before, archived=options.archived, label=options.label
            )


def render_sessions(found: Iterable[SessionRow], now: float) -> list[str]:
    """Render the list of sessions: one line for each, and its search hits below it."""
    table = [((format_time(row.touched, now), row.state, escape_unprintable(row.id)), row) for row in found]
    widths = [max((len(cells[at]) for cells, _ in table), default=0) for at in range(3)]
    output: list[str] = []
    for cells, row in table:
        agent = f"  [{_shorten(display_agent_name(row.agent))}]" if row.agent else ""
        aligned = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        marks = "".join((" (pinned)" * row.pinned, " (archived)" * row.archived))
        labels = "".join(f" #{_shorten(label)}" for label in row.labels)
        output.append("  ".join((*aligned, f"{_shorten(row.title) or '(no title)'}{agent}{marks}{labels}")))
        output += [f"    {_shorten(hit)}" for hit in row.hits]
    return output


def as_json(value: object) -> str:
    """Encode a value as one line of ASCII JSON: complete in any encoding, and harmless on a terminal."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def format_time(at: float, now: float) -> str:
    """Format a time in the local time zone: the hour within half a day, else the date."""
    try:
        local = datetime.fromtimestamp(at).astimezone()
    except (OverflowError, OSError, ValueError):  # a server may send any number
        return "?"
    return f"{local:%H:%M}" if now - at < DAY / 2 else f"{local:%Y-%m-%d}"


def _shorten(text: str) -> str:
    line = escape_unprintable(" ".join(text.split()))
    return line if len(line) <= TITLE else f"{line[: TITLE - 3]}..."


async def _show(options: argparse.Namespace) -> int:
    if options.cache:
        return await _show_cache(options)
    with show_slow_operation("reading the session"):
        async with open_backend(options) as place:
            messages = await place.messages(options.session)
    for message in messages:
        if options.json:
            print(as_json(message))
        else:
            print("\n".join(render_message(message)))
    return 0


async def _show_cache(options: argparse.Namespace) -> int:
    with show_slow_operation("reading the session"):
        async with open_backend(options) as place:
            if not isinstance(place, StoreBackend):
                raise ConfigError("--cache reads the log of a store; name one with --store")
            await place.require_session(options.session)
            entries = await place.store.events(options.session)
    reads = read_cache_health(entry.event for entry in entries)
    for line in map(as_json, reads) if options.json else render_cache(reads):
        print(line)
    return 0


def render_cache(reads: Iterable[CacheRead]) -> list[str]:
    """Render the cache reads of a session's requests: a line each, with the cause where the cache collapsed."""
    rows = [f"{'turn':<14} {'step':>4} {'input':>9} {'expected':>9} {'read':>9} {'written':>9}"]
    for one in reads:
        counts = "".join(f" {count:>9,}" for count in (one.input, one.expected, one.read, one.written))
        cause = f"  {one.cause}" if one.cause else ""
        rows.append(f"{escape_unprintable(one.turn)[-14:]:<14} {one.step:>4}{counts}{cause}")
    return rows


def render_message(message: Message) -> list[str]:
    """Render a message as text that is safe on a terminal: author, text, tool calls and files."""
    rendered = [f"--- {escape_unprintable(message.by or message.role)}"]
    for part in message.parts:
        match part:
            case TextPart():
                rendered += [escape_prose(line) for line in part.text.splitlines()]
            case ToolPart():
                output = escape_unprintable((part.output.text if part.output is not None else "")[:RESULT])
                rendered.append(
                    f"[{escape_unprintable(part.name)} {escape_unprintable(part.used or part.arguments)}: {part.state}] {output}".rstrip()
                )
            case ProviderToolPart():
                rendered += [escape_prose(line) for line in provider_tool_note(part)[:RESULT].splitlines()]
            case FilePart():
                rendered.append(
                    f"[file {escape_unprintable(part.name or part.blob[:12])}, "
                    f"{escape_unprintable(part.media_type)}, {part.size:,} bytes]"
                )
            case ContextPart():
                about = part.title or part.source
                rendered.append(
                    f"[{escape_unprintable(f'{part.kind} {about}'.strip())}, {len(part.text):,} characters]"
                )
            case NoticePart():
                rendered.append(f"[{escape_unprintable(part.kind)}] {escape_prose(part.text)}")
            case SummaryPart() | ClearedPart():
                rendered.append(f"[compacted {format_sizes(part)} tokens]")
                if isinstance(part, SummaryPart):
                    rendered += [escape_prose(line) for line in part.text.splitlines()]
            case _:
                pass
    return [*rendered, ""]


CHANGES: Final = {
    "pin": (SessionChange(pinned=True), "pinned"),
    "unpin": (SessionChange(pinned=False), "no longer pinned"),
    "archive": (SessionChange(archived=True), "archived"),
    "unarchive": (SessionChange(archived=False), "no longer archived"),
}


async def _update(options: argparse.Namespace) -> int:
    if options.about == "rename":
        change, done = SessionChange(title=" ".join(options.title)), "renamed"
    elif options.about == "label":
        change, done = SessionChange(labels=tuple(options.labels)), "labelled" if options.labels else "without labels"
    else:
        change, done = CHANGES[options.about]
    async with open_backend(options) as place:
        await place.update(options.session, change)
    print(f"{escape_unprintable(options.session)} is {done}")
    return 0


async def _erase(options: argparse.Namespace) -> int:
    async with open_backend(options) as place:
        messages = await place.messages(options.session)  # an unknown session is reported before the question
        about = (
            f"{escape_unprintable(options.session)} ({len(messages)} messages on its branch, all others, and its files)"
        )
        if not confirm(f"erase {about} from {escape_unprintable(place.name)} for good?", options.yes):
            print("nothing was erased", file=sys.stderr)
            return 1
        with show_slow_operation("erasing"):
            await place.erase(options.session)
    print(f"{escape_unprintable(options.session)} is erased")
    return 0


def export(options: argparse.Namespace) -> int:
    """Write a session, or one turn of it, to a file."""
    kind = ".jsonl" if options.turn else ".zip"
    name = options.output or f"{re.sub(r'[^A-Za-z0-9._-]', '_', options.session)[:100]}{kind}"
    if name == "-":
        if is_terminal(sys.stdout):
            raise ConfigError("this would write binary data to the terminal; use -o FILE, or a pipe")
        with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
            file = Path(folder, f"session{kind}")
            asyncio.run(_export(options, file))
            sys.stdout.buffer.write(file.read_bytes())
        return 0
    file = Path(name)
    if file.exists() and not options.force:
        raise ConfigError(f"{file} already exists; use --force to overwrite it, or -o for another file")
    if file.exists() and not file.is_file():
        raise ConfigError(f"{file} is not a regular file and would be replaced; `-o -` writes to standard output")
    with _naming_file(file, "written"):
        asyncio.run(_export(options, file))
    print(f"wrote {escape_unprintable(str(file))}, {file.stat().st_size:,} bytes")
    return 0


async def _export(options: argparse.Namespace, file: Path) -> None:
    with show_slow_operation(f"exporting {escape_unprintable(options.session)}"):
        async with open_backend(options) as place:
            if not options.turn:
                await place.export(options.session, file)
            elif isinstance(place, StoreBackend):
                await _export_turn(place, options.session, options.turn, file)
            else:
                raise ConfigError(
                    "a server exports whole sessions only; leave --turn out, `everturn replay` reads them too"
                )


async def _export_turn(place: StoreBackend, session: str, turn: str, file: Path) -> None:
    await place.require_session(session)
    turns = [entry.event.turn for entry in await place.store.events(session) if isinstance(entry.event, TurnStarted)]
    wanted = turns[-1] if turn == "last" and turns else turn
    if wanted not in turns:
        names = f"there are: {', '.join(turns[-5:])}" if turns else "there are none"
        raise UnknownTurn(f"{session!r} has no turn {turn!r}; {names}")
    replaying: Any = import_module("everturn.cli.commands.replay")
    await replaying.export_turn(place.store, session, wanted, file)


def import_session(options: argparse.Namespace) -> int:
    """Import a session from an exported file."""
    with _input_file(options.file) as file:
        session, where = asyncio.run(_import(options, file))
    print(
        f"{escape_unprintable(session)} is in {escape_unprintable(where)}; `everturn sessions show "
        f"{escape_unprintable(session)}` reads it"
    )
    return 0


async def _import(options: argparse.Namespace, file: Path) -> tuple[str, str]:
    with show_slow_operation(f"importing {escape_unprintable(file.name)}"):
        async with open_backend(options) as place:
            try:
                return await place.import_session(file, options.session), place.name
            except KeyConflict:
                raise KeyConflict(
                    f"{place.name} has, or had, a session with this id; --session ID chooses another"
                ) from None
            except UnreadableLog as error:
                raise UnreadableLog(f"{error}; `everturn export SESSION` makes a file that can be imported") from None


@contextmanager
def _input_file(name: str) -> Generator[Path]:
    if name == "-":
        if is_terminal(sys.stdin):
            raise ConfigError("stdin is empty; name a FILE, or pipe one in")
        with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
            file = Path(folder, "stdin.zip")
            with file.open("wb") as out:
                shutil.copyfileobj(sys.stdin.buffer, out)  # the file may be large, so it is not held in memory
            yield file
        return
    file = Path(name)
    if file.is_dir() or not file.exists():
        problem = "it is a folder" if file.is_dir() else "there is no such file"
        raise ConfigError(f"{name}: {problem}; `everturn export SESSION` creates one")
    if not os.access(file, os.R_OK):
        raise ConfigError(f"{name} cannot be read; check its permissions")
    yield file


@contextmanager
def _naming_file(file: Path, verb: str) -> Generator[None]:
    """Turn an OSError into a ConfigError that names the file."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{file} cannot be {verb}: {error.strerror or error}; choose another file with -o") from None
