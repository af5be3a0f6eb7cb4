"""Slash commands as Markdown files: the text that `/name arguments` sends, with its arguments filled in.

Arguments are text and nothing else: `$ARGUMENTS` and `$1` to `$9` are replaced once, so that a value with a `$` in it stands for
itself. A `` !`command` `` in the text is not run here: the model is told to run it with its own shell, under the rules of
the folder.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from everturn.config.extensions.extension import Extension, ExtensionProblem, Scope, hash_bytes, one_line, visible_text
from everturn.config.extensions.file_scan import check_no_link, find_links, read_text, walk_files
from everturn.config.extensions.frontmatter import parse_document, text_field
from everturn.errors import ConfigError

MAX_COMMANDS: Final = 200
COMMAND_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(?::[A-Za-z0-9][A-Za-z0-9_.-]{0,63}){0,3}")
SHELL_NOTE: Final = "[Commands marked !`…` above were not run. Run those that you need with the shell tool.]"
_PLACEHOLDER: Final = re.compile(r"\$(ARGUMENTS\b|[1-9](?![0-9]))")
_SHELL: Final = re.compile(r"!`[^`\n]+`")


def find_commands(top: Path, root: Path, scope: Scope) -> Iterator[Extension | ExtensionProblem]:
    """Find the commands below a folder such as `.claude/commands`; one in a folder `a` is called `a:name`."""
    yield from find_markdown(top, root, scope, "command", MAX_COMMANDS)


def find_markdown(top: Path, root: Path, scope: Scope, kind: str, limit: int) -> Iterator[Extension | ExtensionProblem]:
    """Find Markdown files with frontmatter below a folder, as extensions of one kind."""

    def place(path: Path) -> str:
        return path.relative_to(root).as_posix() if root != Path("/") else str(path)

    try:
        if scope == "project":
            check_no_link(root, top)
        yield from (
            ExtensionProblem(place(link), "it is a link; put the file there instead") for link in find_links(top)
        )
        count = 0
        for path in walk_files(top):
            if path.suffix != ".md" or path.name.upper() in ("README.MD", "AGENTS.MD", "CLAUDE.MD"):
                continue
            count += 1
            if count > limit:
                yield ExtensionProblem(place(top), f"more than {limit} files; the rest is ignored")
                return
            yield _read(path, ":".join((*path.relative_to(top).parts[:-1], path.stem)), place(path), scope, kind)
    except ConfigError as error:
        yield ExtensionProblem(place(top), str(error))


def _read(path: Path, name: str, place: str, scope: Scope, kind: str) -> Extension | ExtensionProblem:
    try:
        text = read_text(path)
        document = parse_document(text)
        name = name if kind == "command" else text_field(document.fields, "name") or path.stem
        if COMMAND_NAME.fullmatch(name) is None:
            return ExtensionProblem(
                place, f"{name[:60]!r} is not a name: letters, digits, '_', '.' and '-', at most 64"
            )
        body = visible_text(document.body).strip()
        if not body:
            return ExtensionProblem(place, "it has no text below the frontmatter")
        description = one_line(text_field(document.fields, "description"))
    except ConfigError as error:
        return ExtensionProblem(place, str(error))
    digest = hash_bytes(text.encode())
    found = "agent" if kind == "agent" else "command"
    return Extension(found, name, place, digest, description, body, scope, document.fields)


def expand_command(text: str, arguments: str) -> str:
    """Fill in the arguments; a text without placeholders gets them at its end."""
    words = _split_words(arguments)

    def value(match: re.Match[str]) -> str:
        if match[1] == "ARGUMENTS":
            return arguments.strip()
        at = int(match[1]) - 1
        return words[at] if at < len(words) else ""

    expanded = _PLACEHOLDER.sub(value, text)
    if arguments.strip() and _PLACEHOLDER.search(text) is None:
        expanded = f"{text}\n\n{arguments.strip()}"
    return f"{expanded}\n\n{SHELL_NOTE}" if _SHELL.search(text) else expanded


def _split_words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # a quote that is not closed
        return arguments.split()
