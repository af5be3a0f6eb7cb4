"""Capabilities of known programs: options that let a command run other commands or write files.

People who allow `sort *` think of sorting, and not of `--compress-program`. So each such option is a subject of its
own, `!sort …`, which a rule for `sort *` does not cover. A word that is only known at run time could be such an option,
and counts as one. So does every uncertain word: too many subjects make a rule stricter, and never looser. A program
that is not known here has no capabilities.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from everturn.permissions.shell.arguments import classify_arguments
from everturn.permissions.shell.awk_sed import has_awk_capability, has_sed_capability
from everturn.permissions.shell.nested_programs import Capability, base_name
from everturn.permissions.shell.programs import PROGRAMS, ProgramOptions
from everturn.permissions.shell.word_expansion import ShellWord, literal, quote_word

__all__ = ["RUNS", "canonical_name", "capabilities_of", "has_capabilities", "make_capability"]

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


class _WordUse(NamedTuple):
    """A word of a command, and what it does."""

    word: ShellWord
    does: str


def canonical_name(name: str) -> str:
    """The canonical name of a program, whatever its path and version."""
    full = base_name(name)
    if full in PROGRAMS:
        return full
    base = VERSION.sub("", full) or full
    return ALIASES.get(full) or ALIASES.get(base, base)


def has_capabilities(name: str) -> bool:
    """Whether a program is known to have options that run commands or write files."""
    return canonical_name(name) in PROGRAMS


def capabilities_of(words: Sequence[ShellWord]) -> Iterator[Capability]:
    """Yield the capabilities that the options of a command give it."""
    name = canonical_name(words[0].text)
    program = PROGRAMS.get(name)
    if program is None:
        return
    seen: dict[str, _WordUse] = {}
    for use in (*_options(words[1:], program), *(_SPECIAL[name](words[1:], program) if name in _SPECIAL else ())):
        seen.setdefault(use.word.text, use)
    for use in seen.values():
        yield make_capability(words, use.word, use.does)


def make_capability(words: Sequence[ShellWord], word: ShellWord, does: str = RUNS) -> Capability:
    """The subject for a word with a capability: the word comes first, so that a rule can name it, and the others after
    it.
    """
    name = canonical_name(words[0].text)
    others = list(words[1:])
    if word in others:
        others.remove(word)
    line = " ".join(map(quote_word, words))
    return Capability((literal(f"!{name}"), word, *others), f"{name} {does} ({word.shown}): {line}")


def _options(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """The options with a capability, and the words that could be such options."""
    if program.is_special:
        return
    count = 0
    for word, role, is_free in classify_arguments(words, program):
        text = word.text
        count += role == "argument"
        if not word.is_static:
            is_many = word.expansion is None or word.expansion.count != "one"
            beyond = program.inputs >= 0 and (is_many or count > program.inputs)
            if role == "option" or beyond or (program.is_interpreter and role == "argument" and count == 1):
                yield _WordUse(word, UNKNOWN)
            count += is_many
        elif role == "argument" and 0 <= program.inputs < count:
            yield _WordUse(word, WRITES)
        elif is_free:
            continue
        elif _is_among(text, program.runs, program.long_runs, program):
            yield _WordUse(word, RUNS)
        elif _is_among(text, program.writes, program.long_writes, program) or text in program.writing:
            yield _WordUse(word, WRITES)
        elif _is_word(text, program) or (program.is_strict and _is_unknown(text, program)):
            yield _WordUse(word, RUNS)


def _is_word(text: str, program: ProgramOptions) -> bool:
    name = text.partition("=")[0]
    return (
        name in program.words
        or (name.startswith("--") and name[1:] in program.words)
        or ("+" in program.words and text[:1] == "+" and not PLACE.fullmatch(text))
    )


def _is_unknown(text: str, program: ProgramOptions) -> bool:
    """A long option that is not known to be harmless."""
    name = text.partition("=")[0]
    return text.startswith("--") and name not in program.info_options.split() and name[2:] not in program.flags


def _is_among(text: str, letters: str, names: str, program: ProgramOptions) -> bool:
    if text.startswith("--"):
        name = text[2:].partition("=")[0].replace("_", "-")
        # A long option may be abbreviated as long as it is unique.
        return (
            bool(name)
            and name not in program.harmless.split()
            and any(long_name.startswith(name) for long_name in names.split())
        )
    if not text.startswith("-"):
        return False
    ends = [at for at, letter in enumerate(text) if at and letter in program.valued]
    return any(letter in letters for letter in text[1 : ends[0] if ends else None])


# Programs with special rules ---------------------------------------------------------------------------------------


def _awk(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """`awk`, with its program possibly in any word."""
    is_known = False
    for word, role, _ in classify_arguments(words, program):
        is_program = not is_known and role == "argument"
        if (word.is_static and has_awk_capability(word.text)) or (is_program and not word.is_static):
            yield _WordUse(word, RUNS)
        is_known = is_known or is_program


SED_FLAGS: Final = re.compile(r"-[nErsuz]*(?:e(.*)|l(\d*))?", re.DOTALL)


def _sed(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """`sed`, whose scripts run and write by single letters; so they have to be parsed."""
    scripts: list[ShellWord] = []
    others: list[ShellWord] = []
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
        elif (match := SED_FLAGS.fullmatch(text)) is not None:
            if match[1]:
                scripts.append(literal(match[1]))
            elif (match[1] == "" or match[2] == "") and ahead:
                value = ahead.pop()
                scripts += [value] if match[1] == "" else []
        elif text.removeprefix("--") not in program.flags:
            yield _WordUse(word, RUNS)
    for script in scripts or others[:1]:
        if not script.is_static or has_sed_capability(script.text):
            yield _WordUse(script, RUNS)


GIT_VALUED: Final = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})


def _git(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """`git`, whose commands each have their own option letters."""
    at = 0
    while at < len(words) and words[at].is_static and words[at].text.startswith("-"):
        if words[at].text.startswith("-c"):
            yield _WordUse(words[at], RUNS)
        at += 2 if words[at].text in GIT_VALUED else 1
    for word in words[: at + 1]:
        if not word.is_static:  # it may be the command itself
            yield _WordUse(word, UNKNOWN)
    command = words[at].text if at < len(words) else ""
    is_shown = command == "config" and any(word.text in _GIT_SHOWING for word in words[at + 1 : at + 2])
    if command in _GIT_RUNNING and not is_shown:
        yield _WordUse(words[at], RUNS)
    letters = _GIT_LETTERS.get(command, "")
    for word, _, is_free in classify_arguments(words[at + 1 :], program):
        if not word.is_static and command in {name for name, _ in _GIT_WORDS}:
            yield _WordUse(word, UNKNOWN)
        is_cluster = word.is_static and word.text[:1] == "-" and word.text[1:2] != "-" and not is_free
        if (is_cluster and any(letter in letters for letter in word.text)) or (command, word.text) in _GIT_WORDS:
            yield _WordUse(word, RUNS)


_GIT_LETTERS: Final = {
    "clone": "uc", "grep": "O", "rebase": "xi", "difftool": "xt", "format-patch": "o", "archive": "o", "mergetool": "t",
    "bugreport": "o", "diagnose": "o", "init": "c", "send-email": "", "help": "wi", "merge": "sX",
}  # fmt: skip
_GIT_WORDS: Final = frozenset({("bisect", "run"), ("submodule", "foreach"), ("hook", "run"), ("bundle", "create")})
# Commands of git that run programs from their arguments, or from a file.
_GIT_RUNNING: Final = frozenset(
    "config filter-branch for-each-repo web--browse instaweb daemon shell remote-ext remote-fd submodule--helper "
    "bisect--helper difftool mergetool p4 fast-import upload-pack receive-pack http-backend sh-setup".split()
)


_GIT_SHOWING: Final = frozenset("--get --get-all --get-regexp --list -l get list".split())


def _tar(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """`tar`, whose first word may be options without a dash, with their values after it."""
    for word in words[:1]:
        if word.is_static and not word.text.startswith("-"):
            if any(letter in word.text for letter in program.runs):
                yield _WordUse(word, RUNS)
            taken = sum(letter in program.valued for letter in word.text)
            # After `cf --` the options continue.
            if any(each.text == "--" for each in words[1 : 1 + taken]):
                yield _WordUse(word, UNKNOWN)
        elif not word.is_static:
            yield _WordUse(word, UNKNOWN)


CURL_OUTPUT: Final = re.compile(r"%\{?output|^@")


def _curl(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """`curl`, which writes files as -w says, and takes text from variables by options of other names."""
    for at, word in enumerate(words):
        text = word.text
        if text.startswith("--"):
            name = text[2:].partition("=")[0]
            if "expand-".startswith(name[:7]) and name.startswith("exp"):
                yield _WordUse(word, UNKNOWN)
            is_format = len(name) > 2 and "write-out".startswith(name)
            value = text.partition("=")[2]
        else:
            is_format, value = text.startswith("-") and "w" in text, text.partition("w")[2]
        following = words[at + 1 : at + 2]
        values = [value, *(each.text for each in following)]
        if is_format and (any(map(CURL_OUTPUT.search, values)) or any(not each.is_static for each in following)):
            yield _WordUse(word, WRITES)


def _make(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """`make`, for which any word may set a variable, and variables are run."""
    for word in words:
        if not word.is_static or ("=" in word.text and not word.text.startswith("-")):
            yield _WordUse(word, RUNS)


def _test(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """`[`, for which a word may be -v, which evaluates the name after it."""
    operands = [word for word in words if word.source]  # without the closing bracket
    if operands and operands[0].text == "!":
        operands = operands[1:]
    unknown = [word for word in operands if not word.is_static]
    is_plain = all(word.expansion is not None and word.expansion.count == "one" for word in unknown)
    is_clear = (
        len(operands) == 1
        or (len(operands) == 2 and operands[0].is_static)
        or (len(operands) == 3 and operands[1].is_static)
    )
    if unknown and not (is_plain and is_clear):
        for word in unknown:
            yield _WordUse(word, UNKNOWN)


def _incoming(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """An interpreter without a file, which runs its standard input."""
    roles = list(classify_arguments(words, program))
    is_shown = any(
        argument.word.text in program.info_options.split() for argument in roles if argument.role == "option"
    )
    scripts = [argument.word for argument in roles if argument.role == "argument"]
    if scripts and scripts[0].text in INPUT:
        yield _WordUse(scripts[0], RUNS)
    elif not scripts and not is_shown:
        yield _WordUse(literal("-"), RUNS)


def _reads_orders(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[_WordUse]:
    """A program that runs commands from its standard input, whatever its arguments are."""
    if not any(word.text in program.info_options.split() for word in words):
        yield _WordUse(literal("-"), RUNS)


_SPECIAL: Final[dict[str, Callable[[Sequence[ShellWord], ProgramOptions], Iterator[_WordUse]]]] = {
    "awk": _awk,
    "sed": _sed,
    "git": _git,
    "tar": _tar,
    "curl": _curl,
    "make": _make,
    "test": _test,
    **{name: _incoming for name, program in PROGRAMS.items() if program.is_interpreter},
    **{name: _reads_orders for name, program in PROGRAMS.items() if program.runs_stdin},
}
