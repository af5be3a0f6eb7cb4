"""Permissions: what a call would do, in terms that permission rules can match, and rules as people write them.

The rules themselves and the decision are in `core.rules`. This package reads rules from text, explains decisions, and
analyses the command lines that a model wants to run.

- `rules_file`: reads rules from TOML
- `rule_text`: reads one rule from a line of text
- `stored_rules`: reads the rules that administrators have set
- `explain`: explains a decision to a person
- `shell`: analyses shell command lines
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from everturn.core.rules.patterns import Subject

__all__ = ["command_readers"]


def command_readers() -> tuple[
    Callable[[str], Sequence[Subject]], Callable[[Sequence[str]], Awaitable[Sequence[Sequence[Subject]]]]
]:
    """The two readers of command lines: one for short ones, at once, and one that uses a worker process."""
    return _read_short, _read_commands


def _read_short(text: str) -> Sequence[Subject]:
    from everturn.permissions.shell.bounded_reader import read_short  # only tools that run commands pay for the parser

    return read_short(text)


async def _read_commands(texts: Sequence[str]) -> Sequence[Sequence[Subject]]:
    from everturn.permissions.shell.bounded_reader import read_commands

    return await read_commands(texts)
