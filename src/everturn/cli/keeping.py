"""`everturn sessions`, `export` and `import`: the conversations that are kept, listed, read, moved and erased."""

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

from everturn.cli.places import Listed, StorePlace, open_place
from everturn.cli.saying import agreed, is_terminal, long_wait
from everturn.core.events import TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import FilePart, NoticePart, TextPart, ToolPart
from everturn.errors import ConfigError, KeyConflict, UnknownTurn, UnreadableLog
from everturn.terminal.screen import printable, prose

TITLE: Final = 60  # characters of a title, and of what was found
RESULT: Final = 200  # characters of what a tool brought
DAY: Final = 86_400.0  # seconds


def sessions(options: argparse.Namespace) -> int:
    """List the conversations, show one, or erase one."""
    if options.about == "show":
        return asyncio.run(_show(options))
    if options.about == "erase":
        return asyncio.run(_erase(options))
    found, more = asyncio.run(_list(options))
    if options.json:
        for one in found:
            print(as_json(one))
        if more:
            print(f"older ones: --before {shlex.quote(more)}", file=sys.stderr)
        return 0
    for line in lines(found, time.time()):
        print(line)
    if more:
        print(f"older ones: everturn sessions --before {shlex.quote(more)}", file=sys.stderr)
    if not found:
        print("no session has these words" if options.search else "no sessions yet; `everturn chat` begins one")
    return 0


async def _list(options: argparse.Namespace) -> tuple[list[Listed], str]:
    with long_wait("reading the sessions"):
        async with open_place(options) as place:
            if options.search:
                return await place.search(options.search, options.limit), ""
            return await place.listed(options.limit, options.before)


def lines(found: Iterable[Listed], now: float) -> list[str]:
    """What a person reads: a line for each, and below it what was found in it."""
    rows = [((when(one.touched, now), one.state, printable(one.id)), one) for one in found]
    widths = [max((len(cells[at]) for cells, _ in rows), default=0) for at in range(3)]
    told: list[str] = []
    for cells, one in rows:
        agent = f"  [{_cut(one.agent)}]" if one.agent else ""
        aligned = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        told.append("  ".join((*aligned, f"{_cut(one.title) or '(no title)'}{agent}")))
        told += [f"    {_cut(said)}" for said in one.found]
    return told


def as_json(value: object) -> str:
    """One line of JSON in ASCII: whole in any encoding, and harmless on a terminal."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def when(at: float, now: float) -> str:
    """A time as one says it: today by the hour, before that by the day. Of this machine's zone."""
    try:
        local = datetime.fromtimestamp(at).astimezone()
    except (OverflowError, OSError, ValueError):  # of a server that says what it likes
        return "?"
    return f"{local:%H:%M}" if now - at < DAY / 2 else f"{local:%Y-%m-%d}"


def _cut(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= TITLE else f"{line[: TITLE - 3]}..."


async def _show(options: argparse.Namespace) -> int:
    with long_wait("reading the session"):
        async with open_place(options) as place:
            messages = await place.messages(options.session)
    for message in messages:
        if options.json:
            print(as_json(message))
        else:
            print("\n".join(shown(message)))
    return 0


def shown(message: Message) -> list[str]:
    """A message as text that a terminal can only show: who, what was said, and what was called."""
    told = [f"--- {printable(message.by or message.role)}"]
    for part in message.parts:
        match part:
            case TextPart():
                told += [prose(line) for line in part.text.splitlines()]
            case ToolPart():
                output = printable((part.output.text if part.output is not None else "")[:RESULT])
                told.append(
                    f"[{printable(part.name)} {printable(part.used or part.arguments)}: {part.state}] {output}".rstrip()
                )
            case FilePart():
                told.append(
                    f"[file {printable(part.name or part.blob[:12])}, {printable(part.media_type)}, {part.size:,} bytes]"
                )
            case NoticePart():
                told.append(f"[{printable(part.kind)}] {prose(part.text)}")
            case _:
                pass
    return [*told, ""]


async def _erase(options: argparse.Namespace) -> int:
    async with open_place(options) as place:
        messages = await place.messages(options.session)  # that it is there is better known before the question
        about = f"{printable(options.session)} ({len(messages)} messages on its branch, all others, and its files)"
        if not agreed(f"erase {about} from {printable(place.name)} for good?", options.yes):
            print("nothing was erased", file=sys.stderr)
            return 1
        with long_wait("erasing"):
            await place.erase(options.session)
    print(f"{printable(options.session)} is erased")
    return 0


def export(options: argparse.Namespace) -> int:
    """Write a conversation, or one turn of it, to a file."""
    kind = ".jsonl" if options.turn else ".zip"
    name = options.output or f"{re.sub(r'[^A-Za-z0-9._-]', '_', options.session)[:100]}{kind}"
    if name == "-":
        if is_terminal(sys.stdout):
            raise ConfigError("this would write bytes to the terminal; say -o FILE, or pipe it somewhere")
        with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
            file = Path(folder, f"session{kind}")
            asyncio.run(_export(options, file))
            sys.stdout.buffer.write(file.read_bytes())
        return 0
    file = Path(name)
    if file.exists() and not options.force:
        raise ConfigError(f"{file} is there already; say --force to write over it, or -o another file")
    if file.exists() and not file.is_file():
        raise ConfigError(f"{file} is no plain file, and would be gone; `-o -` writes to the output")
    with _of_file(file, "written"):
        asyncio.run(_export(options, file))
    print(f"wrote {printable(str(file))}, {file.stat().st_size:,} bytes")
    return 0


async def _export(options: argparse.Namespace, file: Path) -> None:
    with long_wait(f"exporting {printable(options.session)}"):
        async with open_place(options) as place:
            if not options.turn:
                await place.export(options.session, file)
            elif isinstance(place, StorePlace):
                await _export_turn(place, options.session, options.turn, file)
            else:
                raise ConfigError(
                    "a server exports whole sessions; leave --turn out, `everturn replay` reads those as well"
                )


async def _export_turn(place: StorePlace, session: str, turn: str, file: Path) -> None:
    await place.known(session)
    begun = [entry.event.turn for entry in await place.store.events(session) if isinstance(entry.event, TurnStarted)]
    wanted = begun[-1] if turn == "last" and begun else turn
    if wanted not in begun:
        there = f"there are: {', '.join(begun[-5:])}" if begun else "there are none"
        raise UnknownTurn(f"{session!r} has no turn {turn!r}; {there}")
    replaying: Any = import_module("everturn.cli.replaying")
    await replaying.export_turn(place.store, session, wanted, file)


def bring_in(options: argparse.Namespace) -> int:
    """Make a conversation of a file."""
    with _file_of(options.file) as file:
        session, where = asyncio.run(_bring_in(options, file))
    print(f"{printable(session)} is in {printable(where)}; `everturn sessions show {printable(session)}` reads it")
    return 0


async def _bring_in(options: argparse.Namespace, file: Path) -> tuple[str, str]:
    with long_wait(f"importing {printable(file.name)}"):
        async with open_place(options) as place:
            try:
                return await place.bring_in(file, options.session), place.name
            except KeyConflict:
                raise KeyConflict(
                    f"{place.name} has, or had, a session of this name; --session ID gives it another"
                ) from None
            except UnreadableLog as error:
                raise UnreadableLog(f"{error}; `everturn export SESSION` makes a file that can be imported") from None


@contextmanager
def _file_of(name: str) -> Generator[Path]:
    if name == "-":
        if is_terminal(sys.stdin):
            raise ConfigError("there is nothing on stdin; say a FILE, or pipe one in")
        with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
            file = Path(folder, "stdin.zip")
            with file.open("wb") as out:
                shutil.copyfileobj(sys.stdin.buffer, out)  # however much it is, it is not held in memory
            yield file
        return
    file = Path(name)
    if file.is_dir() or not file.exists():
        what = "it is a folder" if file.is_dir() else "there is no such file"
        raise ConfigError(f"{name}: {what}; `everturn export SESSION` makes one")
    if not os.access(file, os.R_OK):
        raise ConfigError(f"{name} cannot be read; look at its permissions")
    yield file


@contextmanager
def _of_file(file: Path, done: str) -> Generator[None]:
    """Say of a file what is wrong with it."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{file} cannot be {done}: {error.strerror or error}; say -o another file") from None
