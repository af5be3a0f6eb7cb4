"""Commands of the assistant in a folder: `!command`, commands of files, Markdown export, and the files that `@` completes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from textual.content import Content

from everturn import api
from everturn.config.extensions.extension import one_line
from everturn.config.extensions.slash_commands import expand_command
from everturn.core.messages import Message
from everturn.core.parts import ContextPart, TextPart, ToolPart
from everturn.localization import format_text
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.host import Language
from everturn.terminal.tui.texts.folder import get_folder_texts

COMMAND_TIMEOUT: Final = 120.0  # seconds of a `!command`
END_TIMEOUT: Final = 2.0  # seconds until a killed one has ended
MAX_OUTPUT: Final = 30_000  # characters of its output
MAX_KEPT: Final = 1_000_000  # bytes of it in memory
MAX_ROWS: Final = 12  # lines of its output above the input
MAX_FILES: Final = 20_000
MAX_MATCHES: Final = 50
MAX_ABOUT: Final = 36  # characters of a description


async def run_own_command(command: str, folder: str, seconds: float = COMMAND_TIMEOUT) -> ContextPart:
    """Run a command that the person typed, in their own shell and not in the sandbox; its output goes with a message.

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        os.environ.get("SHELL") or "/bin/sh",
        "-c",
        command,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    output, dropped = bytearray(), 0
    assert process.stdout is not None
    try:
        async with asyncio.timeout(seconds):
            while piece := await process.stdout.read(1 << 16):
                output += piece
                if (excess := len(output) - MAX_KEPT) > 0:  # the first and the last part of it stay
                    del output[MAX_KEPT // 2 : MAX_KEPT // 2 + excess]
                    dropped += excess
            end = f"[exit code {await process.wait()}]"
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it has started, too
        with suppress(TimeoutError):  # a program in a session of its own may keep the pipe
            async with asyncio.timeout(END_TIMEOUT):
                await process.wait()
        end = f"[stopped after {seconds:g} seconds]"
    text = output.decode(errors="replace")
    if len(text) > MAX_OUTPUT:
        omitted = len(text) - MAX_OUTPUT + dropped
        text = f"{text[: MAX_OUTPUT // 2]}\n[… {omitted:,} characters …]\n{text[-MAX_OUTPUT // 2 :]}"
    return ContextPart("output", f"{text.rstrip()}\n{end}", title=f"$ {command}"[:500], source=folder)


def output_rows(part: ContextPart, language: Language) -> list[Content]:
    """Return the command and the last lines of its output."""
    lines = part.text.split("\n")
    hidden = max(len(lines) - MAX_ROWS, 0)
    rows = [Content.styled(escape_prose(part.title), "bold")]
    if hidden:
        rows.append(Content.styled(format_text(get_folder_texts(language).earlier_lines, n=hidden), "$text-muted"))
    return [*rows, *(Content(escape_prose(line.expandtabs(8))) for line in lines[hidden:])]


def describe_commands(folder: api.FolderView | None) -> dict[str, str]:
    """Return the slash commands that files of the folder define, each with its arguments and its description."""
    commands = [] if folder is None else folder.commands
    return {
        f"/{command.name}": "  ".join(
            filter(None, (command.hint, one_line(command.description, MAX_ABOUT) or command.source))
        )
        for command in commands
    }


def expand_folder_command(folder: api.FolderView | None, word: str, arguments: str) -> str | None:
    """Return what a command of the folder sends; None if there is no such command."""
    commands = [] if folder is None else folder.commands
    found = next((command for command in commands if f"/{command.name}" == word), None)
    return None if found is None else expand_command(found.text, arguments)


def list_files(folder: str) -> list[str]:
    """List the files of a folder, as git sees them; without git, those that are not hidden."""
    try:
        words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        done = subprocess.run(words, cwd=folder, capture_output=True, timeout=5, check=True)
        return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name][:MAX_FILES]
    except (OSError, subprocess.SubprocessError):
        pass
    found: list[str] = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        found += [os.path.relpath(os.path.join(at, name), folder) for name in files if not name.startswith(".")]
        if len(found) >= MAX_FILES:
            break
    return found[:MAX_FILES]


def match_files(files: list[str], typed: str) -> list[str]:
    """Return the files that have the typed characters in this order: in their names first, then anywhere in the path."""
    wanted = typed.lower()
    scored: list[tuple[int, int, str]] = []
    for path in files:
        name = path.rpartition("/")[2].lower()
        lower = path.lower()
        rank = 0 if name.startswith(wanted) else 1 if wanted in name else 2 if wanted in lower else 3
        if rank < 3 or _is_subsequence(wanted, lower):
            scored.append((rank, len(path), path))
    return [path for _, _, path in sorted(scored)[:MAX_MATCHES]]


def _is_subsequence(wanted: str, text: str) -> bool:
    rest = iter(text)
    return all(char in rest for char in wanted)


def render_markdown(title: str, messages: list[Message]) -> str:
    """Write a conversation as Markdown: what was said, and the calls with their results, folded."""
    parts = [f"# {title or 'Conversation'}"]
    for message in messages:
        if message.role not in ("user", "assistant"):
            continue
        parts.append("## You" if message.role == "user" else f"## {message.by or 'Assistant'}")
        for part in message.parts:
            if isinstance(part, TextPart) and part.text.strip():
                parts.append(part.text.strip())
            elif isinstance(part, ToolPart):
                result = part.output.text if part.output is not None else ""
                parts.append(_folded(f"{part.name} {part.arguments}"[:200], result))
            elif isinstance(part, ContextPart):
                parts.append(_folded(part.title, part.text))
    return "\n\n".join(parts) + "\n"


def _folded(title: str, text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in text.split("\n") if set(run) == {"`"}), default=0))
    summary = title.replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")
    return f"<details><summary>{summary}</summary>\n\n{fence}\n{text}\n{fence}\n\n</details>"


def markdown_path(path: str) -> Path | None:
    """Return the path of a Markdown export; None: another format is wanted."""
    return Path(os.path.expanduser(path)) if path.lower().endswith((".md", ".markdown")) else None
