"""The parser of the command line → docs/reference/command-line.md: every command, what it takes, examples, exit codes.

`python scripts/commands.py` writes it; with `--check` it only says whether the page is out of date.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from everturn.cli.args.commands import GROUPS, make_parser
from everturn.cli.args.parser import command_summaries, subcommands

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "command-line.md"
TOP = """\
# The command line

This page lists all commands of `everturn` with their arguments, options, examples and exit codes. `scripts/commands.py` writes it
from the code, and `everturn COMMAND --help` prints the same text. [The command line](../terminal/command-line.md) is a
guide by task.

Every command has the options `-h` and `--help`. A command prints an error as one line on stderr and exits with code 2, unless its
section lists another code. Exit code 130 means that Ctrl-C ended the command, and 141 that the reader of its output exited.
"""


def page() -> str:
    """The whole page."""
    parser = make_parser()
    told, known = command_summaries(parser), subcommands(parser)
    lines = [TOP, "| | command | |", "|---|---|---|"]
    for group, names in GROUPS.items():
        for name in names:
            lines.append(
                f"| {group if name == names[0] else ''} | [`{name}`](#everturn-{name}) | {_cell(told[name])} |"
            )
    for name in (name for names in GROUPS.values() for name in names):
        lines += _command(known[name], 2)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _command(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield from ("", f"{'#' * level} {parser.prog}", "")
    yield from _text(parser.description or "")
    rows = [row for action in parser._actions if (row := _row(action))]
    if rows:
        yield from ("", "| | |", "|---|---|", *rows)
    if parser.epilog:
        yield from ("", *_text(parser.epilog))
    for below in subcommands(parser).values():
        yield from _command(below, level + 1)


def _row(action: argparse.Action) -> str:
    if isinstance(action, argparse._HelpAction | argparse._SubParsersAction | argparse._VersionAction):
        return ""
    what = str(action.metavar or "") or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else "")
    if not action.option_strings:
        names = what or action.dest
    elif action.nargs == 0:
        names = ", ".join(action.option_strings)
    else:
        names = f"{', '.join(action.option_strings)} {f'[{what}]' if action.nargs == '?' else what}"
    return f"| `{names.strip()}` | {_cell(action.help or '')} |"


def _cell(text: str) -> str:
    return text.replace("%%", "%").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _text(text: str) -> Iterator[str]:
    """Prose as it is; what is indented, as a block of text."""
    is_block = False
    for line in [*text.strip("\n").splitlines(), ""]:
        if line.startswith(" ") and not is_block:
            yield from ("", "```text")
        if not line.startswith(" ") and is_block:
            yield "```"
        is_block = line.startswith(" ")
        yield line[2:] if is_block else _prose(line)


def _prose(line: str) -> str:
    return line.replace("<", "&lt;").replace("*", "\\*") if "`" not in line else line


def main() -> int:
    new = page()
    is_check = "--check" in sys.argv[1:]
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if new == old:
        return 0
    if is_check:
        print("docs/reference/command-line.md is out of date; run: python scripts/commands.py")
        return 1
    PAGE.write_text(new, encoding="utf-8")
    print("wrote docs/reference/command-line.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
