"""`everturn` alone: a machine on which nothing is configured → one question, a configuration, and a chat.

It is asked once. Whoever has a configuration, or names a model in the environment, goes straight into the chat.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from everturn import api
from everturn.cli.first_words import ABOUT, FILE, WORDS, language
from everturn.config.layers import SYSTEM_FILE, user_file
from everturn.config.loading import Loaded, load
from everturn.config.models import make_model, usual_model
from everturn.config.surveying import PLACES, Place, survey, way_to
from everturn.config.tools import data_folder
from everturn.errors import ConfigError
from everturn.models.named import named
from everturn.models.offline import OFFLINE
from everturn.terminal.screen import printable

AGENT: Final = "assistant"
MOST: Final = 5  # models of one server that are offered
UNUSABLE, INTERRUPTED = 2, 130


class Way(Struct, frozen=True):
    """One who could answer: a line about it, and what is written for it."""

    line: str
    model: str
    about: str
    toml: str


def begin() -> int:
    """Ask who is to answer if nobody has said so, and talk; return the exit code."""
    words, environ = WORDS[language(os.environ)], os.environ
    file = user_file(environ)
    if is_configured(file, environ):
        return _chat()
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        return _complain(words["no_terminal"].format(file=file or "~/.config/everturn/everturn.toml"))
    if file is None:
        return _complain(words["no_place"])
    try:
        way = _choose(ways(environ, words, PLACES), words, file)
    except EOFError:
        print(f"\n{words['left']}")
        return 0
    except KeyboardInterrupt:
        print(f"\n{words['left']}")
        return INTERRUPTED
    try:
        write(file, text_for(way, environ))
    except FileExistsError:
        pass  # another start was faster, and what it wrote counts
    except OSError as error:
        why = error.strerror or str(error)
        return _complain(words["unwritable"].format(file=file, why=why, model=way.model))
    print(words["written"].format(file=file))
    return _chat()


def is_configured(file: Path | None, environ: Mapping[str, str]) -> bool:
    """Whether somebody has said who answers, or at least has begun to configure something."""
    if any(environ.get(name, "").strip() for name in ("EVERTURN_MODEL", "EVERTURN_CONFIG")):
        return True
    return any(os.path.lexists(one) for one in (file, SYSTEM_FILE) if one is not None)


def ways(environ: Mapping[str, str], words: Mapping[str, str], places: Sequence[Place]) -> list[Way]:
    """Who could answer here: by keys in the environment, by servers on this machine, and the demo, which always can."""

    async def look() -> list[api.WayIn]:
        return (await survey(load(None, environ), environ, places)(AGENT, "")).ways

    found: list[Way] = []
    for way in asyncio.run(look()):
        place = next((one for one in places if one.name == way.name), None)
        for model in way.models[:MOST]:
            toml = way.toml if place is None else way_to(place, [model], AGENT, ()).toml
            said = {"model": printable(model), "name": way.name, "address": way.address}
            found.append(Way(words[way.kind].format(**said), model, ABOUT[way.kind].format(**said), toml))
    demo = f'[agents.{AGENT}]\nmodel = "{OFFLINE}"\n'
    return [*found, Way(words["demo"], OFFLINE, ABOUT["demo"], demo)]


def _choose(found: Sequence[Way], words: Mapping[str, str], file: Path) -> Way:
    print(words["welcome"])
    for number, way in enumerate(found, 1):
        print(f"  {number}  {way.line}")
    print(words["again"].format(file=file))
    while True:
        said = input(words["which"].format(count=len(found))).strip() or "1"
        if said.isdecimal() and len(said) < 4 and 1 <= int(said) <= len(found):
            return found[int(said) - 1]
        print(words["none"].format(said=printable(said), count=len(found)))


def text_for(way: Way, environ: Mapping[str, str]) -> str:
    """The configuration for one who answers, with a word on everything in it."""
    return FILE.format(about=way.about, toml=way.toml, store=printable(str(data_folder(environ) / "everturn.db")))


def write(file: Path, text: str) -> None:
    """Write a file for its owner alone: all of it or nothing, and never in the place of another.

    Raises:
        FileExistsError: there is one by now.
        OSError: it cannot be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        try:
            os.link(partial, file)  # unlike a rename, it takes nobody's place
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
                opened.write(text)
    finally:
        with suppress(OSError):
            partial.unlink()


def _chat() -> int:
    """Talk, as it is configured: on the whole screen where that can be had, or line by line."""
    from everturn.cli import chatting
    from everturn.cli.words import make_parser

    try:
        words = configured(load(os.environ.get("EVERTURN_CONFIG") or None), os.environ)
    except ConfigError as error:
        return _complain(str(error))
    if not chatting.no_screen(make_parser().parse_args(["chat"])):
        return chatting.chat_now()
    return chatting.chat(make_parser().parse_args(["chat", *words]))


def configured(loaded: Loaded, environ: Mapping[str, str]) -> list[str]:
    """The model that is configured to answer, as a command line names it.

    Raises:
        ConfigError: it cannot be had here; the text says which line names it, and what is missing.
    """
    name, agent = next(iter(loaded.config.agents.items()), ("", None))
    wanted = (agent.model if agent is not None else "") or usual_model(environ)
    table = loaded.config.models.get(wanted)
    try:
        if table is not None:
            make_model(wanted, table, environ)
        else:
            named(wanted, environ=environ)
    except ConfigError as error:
        path = ("models", wanted, "model") if table is not None else ("agents", name, "model")
        where = loaded.tree.where(path) if table is not None or (agent is not None and agent.model) else ""
        raise ConfigError(f"{where}: {error}" if where else str(error)) from None
    if table is None:
        return ["--model", wanted]
    return ["--model", table.model, *(["--base-url", table.base_url] if table.base_url else [])]


def _is_terminal(stream: object) -> bool:
    return stream is not None and bool(getattr(stream, "isatty", bool)())


def _complain(text: str) -> int:
    print(f"everturn: {printable(text)}", file=sys.stderr)
    return UNUSABLE
