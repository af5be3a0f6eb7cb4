"""Start in a folder: asks once whether the folder, and the files in it that instruct assistants, are trusted.

The questions come before the full-screen UI, as plain text. Trust is remembered by hash: a changed AGENTS.md asks again.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from typing import Final

from everturn.cli.config_options import config_file
from everturn.cli.first_run_texts import detect_language
from everturn.cli.output import print_error
from everturn.cli.run.folder import MODES
from everturn.config.extensions.extension import Extension
from everturn.config.folder.instruction_files import InstructionFile
from everturn.config.folder.project import Project, find_project
from everturn.config.folder.trust import FolderTrust, TrustedItem
from everturn.config.load import load_config
from everturn.errors import ConfigError
from everturn.localization import format_text, load_group
from everturn.terminal.text.screen import escape_prose, escape_unprintable
from everturn.terminal.tui.folder import LAST, FolderStart

MAX_SHOWN: Final = 60  # lines of a file that are shown on request
MAX_LISTED: Final = 30  # extensions that are listed before somebody asks for all
MAX_ABOUT: Final = 90  # characters of a description


def prepare_folder(options: argparse.Namespace) -> FolderStart | None:
    """Ask what has to be asked before the assistant works in the current folder; None: it works without the folder.

    Raises:
        ConfigError: the folder, the configuration or the trust file cannot be used.
    """
    words = load_group("folder", detect_language(os.environ))
    if not load_config(config_file(options)).config.assistant.folder:
        options.here = False
        return None
    project = find_project(os.getcwd())
    trust = FolderTrust()
    if not _is_folder_trusted(project, trust, options.trust, words):
        options.here = False
        return None
    files = trust.unanswered(project)
    if files:
        _answer(project, trust, files, options.trust or _ask_about_files(files, words), words)
    ask_about_extensions(project, trust, words, is_given=options.trust)
    resume = options.resume or (LAST if options.goes_on else "")
    return FolderStart(str(project.current), MODES[options.mode], resume)


def _is_folder_trusted(project: Project, trust: FolderTrust, is_given: bool, words: dict[str, str]) -> bool:
    if project.breadth == "root":
        print(words["root"])
        return False
    if trust.is_trusted(project):
        return True
    if not is_given:
        print(words["home" if project.breadth else "folder"].format(folder=escape_unprintable(project.label)))
        if not _confirm(words["trust"], default=not project.breadth):
            print(words["without"])
            return False
    try:
        trust.trust(project)
    except ConfigError as error:  # a read-only home: it is asked again at the next start
        print_error(words["forgotten"].format(why=error), 0)
    return True


def _ask_about_files(files: Sequence[InstructionFile], words: dict[str, str]) -> bool:
    print(words["files"])
    for file in files:
        print(f"  {escape_unprintable(file.path)}   {file.size:,} bytes   sha256 {file.hash[:12]}")
    return _choose(words["use"], files, words)


def _choose(question: str, files: Sequence[TrustedItem], words: dict[str, str]) -> bool:
    while True:
        reply = input(question).strip().lower()
        if reply in ("", "y", "yes", "是"):
            return True
        if reply in ("n", "no", "否"):
            return False
        if reply in ("s", "show"):
            _show(files, words)


def ask_about_extensions(project: Project, trust: FolderTrust, words: dict[str, str], *, is_given: bool) -> None:
    """Ask about skills, agents and commands that are new or changed, and then about MCP servers, which run programs."""
    found = trust.unanswered_extensions(project)
    texts = [item for item in found if item.kind != "mcp"]
    servers = [item for item in found if item.kind == "mcp"]
    if texts:
        is_trusted = is_given
        if not is_given:
            print(words["extensions"])
            for extension in texts[:MAX_LISTED]:
                print(_line(extension))
            if len(texts) > MAX_LISTED:
                print(format_text(words["rest"], count=len(texts) - MAX_LISTED))
            is_trusted = _choose(words["use_extensions"], texts, words)
        _answer(project, trust, texts, is_trusted, words)
    if servers:
        print(words["servers"])
        for server in servers:
            print(_line(server))
        is_trusted = _confirm(words["use_servers"], default=False)
        _answer(project, trust, servers, is_trusted, words)
        if is_trusted:
            _trust_servers(servers, words)


def _line(extension: Extension) -> str:
    name = f"/{extension.name}" if extension.kind == "command" else extension.name
    about = escape_unprintable(extension.description)
    width = max(20, min(MAX_ABOUT, shutil.get_terminal_size().columns - 32))
    about = about if extension.kind == "mcp" or len(about) <= width else f"{about[: width - 1]}…"
    return f"  {extension.kind:<8}{name:<20} {about}\n{'':10}{escape_unprintable(extension.path)}   sha256 {extension.hash[:12]}"


def _trust_servers(servers: Sequence[Extension], words: dict[str, str]) -> None:
    from everturn.config.extensions.mcp_files import make_server
    from everturn.mcp.trust import TrustFile, default_trust_path

    for server in servers:
        try:
            TrustFile(default_trust_path()).trust(make_server(server, os.environ), {})
        except ConfigError as error:
            print_error(words["server_failed"].format(name=server.name, why=error), 0)


def _show(files: Sequence[TrustedItem], words: dict[str, str]) -> None:
    for file in files:
        lines = file.text.splitlines()
        print(f"--- {escape_unprintable(file.path)}")
        for line in lines[:MAX_SHOWN]:
            print(escape_prose(line))
        if len(lines) > MAX_SHOWN:
            print(format_text(words["more"], count=len(lines) - MAX_SHOWN))


def _answer(
    project: Project, trust: FolderTrust, files: Sequence[TrustedItem], is_trusted: bool, words: dict[str, str]
) -> None:
    try:
        trust.answer(project, files, is_trusted)
    except ConfigError as error:
        print_error(words["forgotten"].format(why=error), 0)


def _confirm(question: str, *, default: bool) -> bool:
    reply = input(question.format(choices="Y/n" if default else "y/N")).strip().lower()
    return default if not reply else reply in ("y", "yes", "是")
