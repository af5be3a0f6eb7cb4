"""The words of a command that is known → what its options let it do beyond its trade: run a command, write a file.

`sort *` is allowed by people who think of sorting, and not of `--compress-program`. So each such option is an item of
its own, `!sort …`, which a rule for `sort *` does not cover. A word that is only known when it runs could be such an
option, and is taken for one. Where it is not certain, it is taken for one: too many items make a rule stricter, and
never looser. A program that is not known here has no powers but its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from everturn.permissions.arguments import arguments
from everturn.permissions.inner import Power, base_name
from everturn.permissions.programs import PROGRAMS, Program
from everturn.permissions.texts import has_power_in_awk, has_power_in_sed
from everturn.permissions.words import Word, as_written, literal

__all__ = ["RUNS", "has_powers", "named", "power", "powers"]

RUNS, WRITES, UNKNOWN = "runs a command", "writes a file", "may run a command or write a file"
INPUT: Final = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
PLACE: Final = re.compile(r"\+\d*[gGF]?")  # where to open a file
VERSION: Final = re.compile(r"(?<![-.0-9])[-.0-9]+$")  # python3.12, gawk-5
ALIASES: Final = {"gawk": "awk", "mawk": "awk", "nawk": "awk", "gsed": "sed", "gtar": "tar", "bsdtar": "tar"} | {
    "gsort": "sort", "gfind": "find", "more": "less", "most": "less", "nodejs": "node", "pypy": "python",
    "vi": "vim", "view": "vim", "nvim": "vim", "gvim": "vim", "ex": "vim", "vimdiff": "vim", "fdfind": "fd", "batcat": "bat",
    "guniq": "uniq", "gshuf": "shuf", "gsplit": "split", "gmake": "make", "complete": "compgen", "[": "test", "etags": "ctags",
    "pdflatex": "latex", "xelatex": "latex", "lualatex": "latex", "tex": "latex", "g++": "gcc", "cc": "gcc", "c++": "gcc",
    "clang": "gcc", "clang++": "gcc", "ncat": "nc", "netcat": "nc", "mariadb": "mysql", "gdiff3": "diff3", "sqlite3": "sqlite",
}  # fmt: skip


class _Seen(NamedTuple):
    """A word of a command, and what it does."""

    word: Word
    does: str


def named(name: str) -> str:
    """What a program is known as here, whatever its path and version."""
    full = base_name(name)
    if full in PROGRAMS:
        return full
    base = VERSION.sub("", full) or full
    return ALIASES.get(full) or ALIASES.get(base, base)


def has_powers(name: str) -> bool:
    """Whether a program is known to do more than its trade if it is given the right words."""
    return named(name) in PROGRAMS


def powers(words: Sequence[Word]) -> Iterator[Power]:
    """Yield what a command may do beyond its trade."""
    name = named(words[0].text)
    program = PROGRAMS.get(name)
    if program is None:
        return
    seen: dict[str, _Seen] = {}
    for one in (*_options(words[1:], program), *(_SPECIAL[name](words[1:], program) if name in _SPECIAL else ())):
        seen.setdefault(one.word.text, one)
    for one in seen.values():
        yield power(words, one.word, one.does)


def power(words: Sequence[Word], word: Word, does: str = RUNS) -> Power:
    """An item for a word that has a power: it comes first, so that a rule can name it, and the others behind it."""
    name = named(words[0].text)
    others = list(words[1:])
    if word in others:
        others.remove(word)
    line = " ".join(map(as_written, words))
    return Power((literal(f"!{name}"), word, *others), f"{name} {does} ({word.shown}): {line}")


def _options(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """The options that have a power, and the words that could be such options."""
    if program.is_special:
        return
    count = 0
    for word, role, is_free in arguments(words, program):
        text = word.text
        count += role == "argument"
        if not word.is_static:
            is_many = word.expansion is None or word.expansion.count != "one"
            beyond = program.inputs >= 0 and (is_many or count > program.inputs)
            if role == "option" or beyond or (program.is_interpreter and role == "argument" and count == 1):
                yield _Seen(word, UNKNOWN)
            count += is_many
        elif role == "argument" and 0 <= program.inputs < count:
            yield _Seen(word, WRITES)
        elif is_free:
            continue
        elif _is_among(text, program.runs, program.long_runs, program):
            yield _Seen(word, RUNS)
        elif _is_among(text, program.writes, program.long_writes, program) or text in program.writing:
            yield _Seen(word, WRITES)
        elif _is_word(text, program) or (program.is_strict and _is_unknown(text, program)):
            yield _Seen(word, RUNS)


def _is_word(text: str, program: Program) -> bool:
    name = text.partition("=")[0]
    return (
        name in program.words
        or (name.startswith("--") and name[1:] in program.words)
        or ("+" in program.words and text[:1] == "+" and not PLACE.fullmatch(text))
    )


def _is_unknown(text: str, program: Program) -> bool:
    """A long option that is not known to be harmless."""
    name = text.partition("=")[0]
    return text.startswith("--") and name not in program.shows.split() and name[2:] not in program.flags


def _is_among(text: str, letters: str, names: str, program: Program) -> bool:
    if text.startswith("--"):
        name = text[2:].partition("=")[0].replace("_", "-")
        # A long option may be cut short as long as no other begins like it.
        return (
            bool(name) and name not in program.harmless.split() and any(one.startswith(name) for one in names.split())
        )
    if not text.startswith("-"):
        return False
    ends = [at for at, letter in enumerate(text) if at and letter in program.valued]
    return any(letter in letters for letter in text[1 : ends[0] if ends else None])


# Programs that are more than their options -------------------------------------------------------------------------


def _awk(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """`awk`, with its program in any word, for all we know."""
    is_known = False
    for word, role, _ in arguments(words, program):
        is_program = not is_known and role == "argument"
        if (word.is_static and has_power_in_awk(word.text)) or (is_program and not word.is_static):
            yield _Seen(word, RUNS)
        is_known = is_known or is_program


SED_FLAGS: Final = re.compile(r"-[nErsuz]*(?:e(.*)|l(\d*))?", re.DOTALL)


def _sed(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
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
            scripts.append(literal(text.partition("=")[2]))
        elif (found := SED_FLAGS.fullmatch(text)) is not None:
            if found[1]:
                scripts.append(literal(found[1]))
            elif (found[1] == "" or found[2] == "") and ahead:
                value = ahead.pop()
                scripts += [value] if found[1] == "" else []
        elif text.removeprefix("--") not in program.flags:
            yield _Seen(word, RUNS)
    for script in scripts or others[:1]:
        if not script.is_static or has_power_in_sed(script.text):
            yield _Seen(script, RUNS)


GIT_VALUED: Final = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})


def _git(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """`git`, of whose letters each command has its own."""
    at = 0
    while at < len(words) and words[at].is_static and words[at].text.startswith("-"):
        if words[at].text.startswith("-c"):
            yield _Seen(words[at], RUNS)
        at += 2 if words[at].text in GIT_VALUED else 1
    for word in words[: at + 1]:
        if not word.is_static:  # it may be the command itself
            yield _Seen(word, UNKNOWN)
    command = words[at].text if at < len(words) else ""
    is_shown = command == "config" and any(word.text in _GIT_SHOWING for word in words[at + 1 : at + 2])
    if command in _GIT_RUNNING and not is_shown:
        yield _Seen(words[at], RUNS)
    letters = _GIT_LETTERS.get(command, "")
    for word, _, is_free in arguments(words[at + 1 :], program):
        if not word.is_static and command in {name for name, _ in _GIT_WORDS}:
            yield _Seen(word, UNKNOWN)
        is_cluster = word.is_static and word.text[:1] == "-" and word.text[1:2] != "-" and not is_free
        if (is_cluster and any(letter in letters for letter in word.text)) or (command, word.text) in _GIT_WORDS:
            yield _Seen(word, RUNS)


_GIT_LETTERS: Final = {
    "clone": "uc", "grep": "O", "rebase": "xi", "difftool": "xt", "format-patch": "o", "archive": "o", "mergetool": "t",
    "bugreport": "o", "diagnose": "o", "init": "c", "send-email": "", "help": "wi", "merge": "sX",
}  # fmt: skip
_GIT_WORDS: Final = frozenset({("bisect", "run"), ("submodule", "foreach"), ("hook", "run"), ("bundle", "create")})
# Commands of git that run what they are told, or what a file tells them.
_GIT_RUNNING: Final = frozenset(
    "config filter-branch for-each-repo web--browse instaweb daemon shell remote-ext remote-fd submodule--helper "
    "bisect--helper difftool mergetool p4 fast-import upload-pack receive-pack http-backend sh-setup".split()
)


_GIT_SHOWING: Final = frozenset("--get --get-all --get-regexp --list -l get list".split())


def _tar(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """`tar`, whose first word may be options without a dash, with their values behind it."""
    for word in words[:1]:
        if word.is_static and not word.text.startswith("-"):
            if any(letter in word.text for letter in program.runs):
                yield _Seen(word, RUNS)
            taken = sum(letter in program.valued for letter in word.text)
            # Behind `cf --` the options go on.
            if any(each.text == "--" for each in words[1 : 1 + taken]):
                yield _Seen(word, UNKNOWN)
        elif not word.is_static:
            yield _Seen(word, UNKNOWN)


CURL_OUTPUT: Final = re.compile(r"%\{?output|^@")


def _curl(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """`curl`, which writes files by the text behind -w, and takes text from variables by options of other names."""
    for at, word in enumerate(words):
        text = word.text
        if text.startswith("--"):
            name = text[2:].partition("=")[0]
            if "expand-".startswith(name[:7]) and name.startswith("exp"):
                yield _Seen(word, UNKNOWN)
            is_format = len(name) > 2 and "write-out".startswith(name)
            value = text.partition("=")[2]
        else:
            is_format, value = text.startswith("-") and "w" in text, text.partition("w")[2]
        behind = words[at + 1 : at + 2]
        values = [value, *(each.text for each in behind)]
        if is_format and (any(map(CURL_OUTPUT.search, values)) or any(not each.is_static for each in behind)):
            yield _Seen(word, WRITES)


def _make(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """`make`, for which any word may set a variable, and what variables hold is run."""
    for word in words:
        if not word.is_static or ("=" in word.text and not word.text.startswith("-")):
            yield _Seen(word, RUNS)


def _test(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """`[`, to which a word may be -v, which evaluates the name behind it."""
    given = [word for word in words if word.source]  # without the closing bracket
    if given and given[0].text == "!":
        given = given[1:]
    unknown = [word for word in given if not word.is_static]
    is_plain = all(word.expansion is not None and word.expansion.count == "one" for word in unknown)
    is_clear = len(given) == 1 or (len(given) == 2 and given[0].is_static) or (len(given) == 3 and given[1].is_static)
    if unknown and not (is_plain and is_clear):
        for word in unknown:
            yield _Seen(word, UNKNOWN)


def _incoming(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """An interpreter without a file, which runs what comes in."""
    given = list(arguments(words, program))
    is_shown = any(one.word.text in program.shows.split() for one in given if one.role == "option")
    scripts = [one.word for one in given if one.role == "argument"]
    if scripts and scripts[0].text in INPUT:
        yield _Seen(scripts[0], RUNS)
    elif not scripts and not is_shown:
        yield _Seen(literal("-"), RUNS)


def _reads_orders(words: Sequence[Word], program: Program) -> Iterator[_Seen]:
    """A program that takes its orders from its input, whatever else it is given."""
    if not any(word.text in program.shows.split() for word in words):
        yield _Seen(literal("-"), RUNS)


_SPECIAL: Final[dict[str, Callable[[Sequence[Word], Program], Iterator[_Seen]]]] = {
    "awk": _awk,
    "sed": _sed,
    "git": _git,
    "tar": _tar,
    "curl": _curl,
    "make": _make,
    "test": _test,
    **{name: _incoming for name, program in PROGRAMS.items() if program.is_interpreter},
    **{name: _reads_orders for name, program in PROGRAMS.items() if program.reads_orders},
}
