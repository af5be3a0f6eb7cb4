"""`everturn logs`: lists the sessions of this folder, and prints one of them or its last answer."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from typing import Final

from everturn.cli.commands.sessions import as_json, render_message, render_sessions
from everturn.cli.output import count_nouns, is_terminal, show_slow_operation
from everturn.cli.store.backends import SessionBackend, SessionRow, open_backend
from everturn.config.folder.project import find_project
from everturn.core.messages import Message
from everturn.core.parts import StepPart, Usage
from everturn.errors import ConfigError
from everturn.terminal.text.screen import escape_prose

PAGE: Final = 100
MAX_PAGES: Final = 20
NOTHING: Final = (
    'nothing was run in this folder yet; `everturn run "…"` asks something, `everturn logs --all` lists all'
)


def logs(options: argparse.Namespace) -> int:
    """List the sessions of this folder, or print one.

    Raises:
        ConfigError: there is no such store, or nothing to print.
    """
    if options.about is None:
        return asyncio.run(_list(options))
    messages, failures = asyncio.run(_read(options))
    if options.about == "answer":
        return _print_answer(messages)
    for message in messages:
        print(as_json(message) if options.json else "\n".join(_render(message, failures.get(message.id, ""))))
    return 0


async def _list(options: argparse.Namespace) -> int:
    with show_slow_operation("reading the sessions"):
        async with open_backend(options) as place:
            rows = await _find(place, options, options.limit)
    for line in map(as_json, rows) if options.json else render_sessions(rows, time.time()):
        print(line)
    if not rows and not options.json:
        print(NOTHING)
    return 0


async def _find(place: SessionBackend, options: argparse.Namespace, limit: int) -> list[SessionRow]:
    agent = "" if options.all else find_project(os.getcwd()).agent
    rows: list[SessionRow] = []
    before = ""
    for _ in range(MAX_PAGES):
        page, before = await place.list_sessions(PAGE, before)
        rows += [row for row in page if agent in ("", row.agent)]
        if len(rows) >= limit or not before:
            break
    return rows[:limit]


async def _read(options: argparse.Namespace) -> tuple[list[Message], dict[str, str]]:
    """The messages, and by the id of an answer why its turn failed."""
    with show_slow_operation("reading the session"):
        async with open_backend(options) as place:
            session = options.session
            if not session:
                rows = await _find(place, options, 1)
                if not rows:
                    raise ConfigError(NOTHING)
                session = rows[0].id
            messages = await place.messages(session)
            answers = [message for message in messages if message.role == "assistant" and message.turn]
            failures = {answer.id: await place.why_failed(session, answer.turn) for answer in answers}
            return messages, failures


def _print_answer(messages: list[Message]) -> int:
    answer = next((message for message in reversed(messages) if message.role == "assistant" and message.text), None)
    if answer is None:
        raise ConfigError("this session has no answer yet; `everturn logs show` prints what there is")
    text = answer.text.strip("\n")
    print("\n".join(map(escape_prose, text.split("\n"))) if is_terminal(sys.stdout) else text)
    return 0


def _render(message: Message, failure: str) -> list[str]:
    rendered = render_message(message)
    steps = [part for part in message.parts if isinstance(part, StepPart)]
    if steps:
        usage = sum((step.usage for step in steps), Usage())
        cost = f", ${usage.cost:.4f}" if usage.cost else ""
        rendered.insert(-1, f"({count_nouns(step=len(steps))}, {usage.input:,} tokens in, {usage.output:,} out{cost})")
    if failure:
        rendered.insert(-1, f"[failed] {escape_prose(failure)}")
    return rendered
