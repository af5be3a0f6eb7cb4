"""The words of a command that is known → what its options let it do beyond its trade: run a command, write a file.

`sort *` is allowed by people who think of sorting, and not of `--compress-program`. So each such option is an item of
its own, `!sort …`, which a rule for `sort *` does not cover. Where it is not certain, it is taken for one: too many
items make a rule stricter, and never looser. A program that is not known here has no powers but its own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from everturn.permissions.inner import Power, base_name
from everturn.permissions.programs import PROGRAMS, Program
from everturn.permissions.texts import has_power_in_awk, has_power_in_sed
from everturn.permissions.words import Word

__all__ = ["has_powers", "named", "powers"]

RUNS, WRITES = "runs a command", "writes a file"
INPUT: Final = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
PLACE: Final = re.compile(r"\+\d*[gGF]?")  # where to open a file
VERSION: Final = re.compile(r"[-.0-9]+$")  # python3.12, gawk-5
ALIASES: Final = {"gawk": "awk", "mawk": "awk", "nawk": "awk", "gsed": "sed", "gtar": "tar", "bsdtar": "tar"} | {
    "gsort": "sort", "gfind": "find", "more": "less", "most": "less", "nodejs": "node", "pypy": "python",
    "vi": "vim", "view": "vim", "nvim": "vim", "gvim": "vim", "ex": "vim", "vimdiff": "vim", "fdfind": "fd", "batcat": "bat",
}  # fmt: skip


class _Seen(NamedTuple):
    """A word of a command, and what it does."""

    word: str
    does: str


def named(name: str) -> str:
    """What a program is known as here, whatever its path and version."""
    base = VERSION.sub("", base_name(name)) or base_name(name)
    return ALIASES.get(base, base)


def has_powers(name: str) -> bool:
    """Whether a program is known to do more than its trade if it is given the right words."""
    return named(name) in PROGRAMS


def powers(words: Sequence[Word]) -> Iterator[Power]:
    """Yield what a command may do beyond its trade."""
    name = named(words[0].text)
    program = PROGRAMS.get(name)
    if program is None:
        return
    seen = dict(_SPECIAL[name](words[1:])) if name in _SPECIAL else {}
    seen |= dict(_options(words[1:], program))
    for word, does in seen.items():
        yield power(words, word, does)


def power(words: Sequence[Word], word: str, does: str = RUNS) -> Power:
    """An item for a word that has a power: it comes first, so that a rule can name it, and the others behind it."""
    name = named(words[0].text)
    others = [other.text for other in words[1:]]
    if word in others:
        others.remove(word)
    line = shlex.join(each.text for each in words)
    return Power((f"!{name}", word, *others), f"{name} {does} ({word}): {line}")


def _options(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """The options that have a power."""
    for word in _own(words, program):
        text = word.text
        if _is_among(text, program.runs, program.long_runs, program):
            yield _Seen(text, RUNS)
        elif _is_among(text, program.writes, program.long_writes, program) or text in program.writing:
            yield _Seen(text, WRITES)
        elif text in program.words or ("+" in program.words and text[:1] == "+" and not PLACE.fullmatch(text)):
            yield _Seen(text, RUNS)


def _own(words: Sequence[Word], program: Program) -> Iterator[Word]:
    """The words that may be options of the program itself, and not of the script that it runs."""
    before = ""
    for word in words:
        if word.text == "--":
            return
        is_value = before[:1] == "-" and (before[-1] in program.valued or (before[:2] == "--" and "=" not in before))
        if program.is_interpreter and not word.text.startswith("-") and not is_value:
            return
        yield word
        before = word.text


def _is_among(text: str, letters: str, names: str, program: Program) -> bool:
    if text.startswith("--"):
        name = text[2:].partition("=")[0]
        # A long option may be cut short as long as no other begins like it.
        return (
            bool(name) and name not in program.harmless.split() and any(one.startswith(name) for one in names.split())
        )
    if not text.startswith("-"):
        return False
    ends = [at for at, letter in enumerate(text) if at and letter in program.valued]
    return any(letter in letters for letter in text[1 : ends[0] if ends else None])


# Programs that are more than their options -------------------------------------------------------------------------


def _awk(words: Sequence[Word]) -> Iterator[_Seen]:
    """`awk`, with its program in any word, for all we know."""
    before = ""
    is_known = False
    for word in words:
        is_program = not is_known and before not in ("-v", "-F") and not word.text.startswith("-")
        if has_power_in_awk(word.text) or (is_program and not word.is_static):
            yield _Seen(word.text, RUNS)
        is_known = is_known or is_program
        before = word.text


SED_FLAGS: Final = re.compile(r"-[nErsuz]*(?:e(.*)|l(\d*))?", re.DOTALL)
SED_LONG: Final = frozenset(
    "--quiet --silent --regexp-extended --separate --unbuffered --null-data --posix --debug --sandbox --version --help "
    "--zero-terminated --follow-symlinks".split()
)


def _sed(words: Sequence[Word]) -> Iterator[_Seen]:
    """`sed`, whose scripts run and write by single letters; so they have to be understood."""
    scripts: list[Word] = []
    others: list[Word] = []
    ahead = list(reversed(words))
    is_ended = False
    while ahead:
        word = ahead.pop()
        text = word.text
        if is_ended or not text.startswith("-") or text == "-":
            others.append(word)
        elif text == "--":
            is_ended = True
        elif text.startswith("--expression="):
            scripts.append(word._replace(text=text.partition("=")[2]))
        elif (found := SED_FLAGS.fullmatch(text)) is not None:
            if found[1]:
                scripts.append(word._replace(text=found[1]))
            elif (found[1] == "" or found[2] == "") and ahead:
                value = ahead.pop()
                scripts += [value] if found[1] == "" else []
        elif text not in SED_LONG:
            yield _Seen(text, RUNS)
    for script in scripts or others[:1]:
        if not script.is_static or has_power_in_sed(script.text):
            yield _Seen(script.text, RUNS)


def _git(words: Sequence[Word]) -> Iterator[_Seen]:
    """`git`, of whose letters each command has its own."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        if words[at].text.startswith("-c"):
            yield _Seen(words[at].text, RUNS)
        at += 2 if words[at].text in ("-c", "-C", "--git-dir", "--work-tree", "--namespace") else 1
    command = words[at].text if at < len(words) else ""
    letters = _GIT_LETTERS.get(command, "")
    for word in words[at + 1 :]:
        if word.text == "--":
            break
        is_cluster = word.text[:1] == "-" and word.text[1:2] != "-"
        if (is_cluster and any(letter in letters for letter in word.text)) or (command, word.text) in _GIT_WORDS:
            yield _Seen(word.text, RUNS)


_GIT_LETTERS: Final = {"clone": "uc", "grep": "O", "rebase": "x", "difftool": "x", "format-patch": "o", "archive": "o"}
_GIT_WORDS: Final = frozenset({("bisect", "run"), ("submodule", "foreach")})


def _tar(words: Sequence[Word]) -> Iterator[_Seen]:
    """`tar`, whose first word may be options without a dash."""
    for word in words[:1]:
        if not word.text.startswith("-") and any(letter in word.text for letter in PROGRAMS["tar"].runs):
            yield _Seen(word.text, RUNS)


def _incoming(program: Program, words: Sequence[Word]) -> Iterator[_Seen]:
    """An interpreter without a file, which runs what comes in."""
    own = [word.text for word in _own(words, program)]
    rest = [word.text for word in words[len(own) :] if word.text != "--"]
    is_shown = any(text in program.shows.split() for text in own)
    if "-" in own or (rest[0] in INPUT if rest else not is_shown):
        yield _Seen("-", RUNS)


_SPECIAL: Final[dict[str, Callable[[Sequence[Word]], Iterator[_Seen]]]] = {
    "awk": _awk,
    "sed": _sed,
    "git": _git,
    "tar": _tar,
    **{name: partial(_incoming, program) for name, program in PROGRAMS.items() if program.is_interpreter},
}
