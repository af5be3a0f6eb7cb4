"""Inline scripts: the command lines that `bash -c`, `eval`, `trap`, `ssh` and others are given, and what they
assign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from everturn.permissions.shell.nested_programs import (
    Assignment,
    NestedCommand,
    NestedItem,
    NestedScript,
    base_name,
    require_static,
)
from everturn.permissions.shell.parser import UnreadableCommand
from everturn.permissions.shell.word_expansion import ASSIGNMENT, HOLE, IDENTIFIER, ShellWord, assigned, expanded

SHELLS = frozenset("sh bash dash ash ksh mksh rbash yash".split())
OTHER_SHELLS = frozenset("zsh fish csh tcsh nu pwsh powershell elvish xonsh rc es".split())
# -o and -O take a value from the words after them; with them it is not certain which word is the script.
SCRIPT_OPTION = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
LONE_OPTION = re.compile(r"[-+][a-gi-npqrt-zA-GIJL-NP-Z]+|--(?:norc|noprofile|login|posix|verbose)")
FILES_OF_INPUT = re.compile(r"-|/dev/(?:stdin|fd/.*|tty)|/proc/.*")
NUMBER = re.compile(r"-?[0-9]+")
VALUED_SSH = "BbcDEeFIiJLlmOopQRSWw"


def _shell(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """A shell: a script after -c, a file, or its standard input (which is unknown)."""
    name = base_name(words[0].text)
    for at, word in enumerate(words[1:], 1):
        text = require_static(word)
        if SCRIPT_OPTION.fullmatch(text):
            if "o" in text.casefold() or at + 1 == len(words) or require_static(words[at + 1])[:1] in ("-", "+"):
                raise UnreadableCommand(f"write `{name} -c` with its script right after it")
            yield NestedScript(require_static(words[at + 1]), name == "bash")
            return
        if text in ("--version", "--help"):
            return
        if re.fullmatch(r"-[a-zA-Z]*s[a-zA-Z]*", text):
            raise _unknown_input(name)
        if text[:1] not in ("-", "+") or FILES_OF_INPUT.fullmatch(text):
            break
    else:
        raise _unknown_input(name)
    if FILES_OF_INPUT.fullmatch(text):
        raise _unknown_input(name)
    # An option such as --rcfile takes a value: then this is not the file, and a script may follow, or the input.
    if not all(LONE_OPTION.fullmatch(word.text) for word in words[1:at]):
        raise UnreadableCommand(f"write `{name} -c` with its script right after it, and no other options")


def _unknown_input(name: str) -> UnreadableCommand:
    return UnreadableCommand(f"what {name} would read from its input is not known; give it a file, or a script with -c")


def _other_shell(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """A shell with another grammar."""
    if len(words) == 1 or any(require_static(word).startswith(("-", "/dev/", "/proc/")) for word in words[1:2]):
        raise UnreadableCommand(f"the commands that {words[0].text} runs cannot be checked; use bash")
    yield from ()


def _eval(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`eval`, which reads its words as a command line."""
    rest = [require_static(word) for word in words[1:]]
    yield NestedScript(" ".join(rest[1:] if rest[:1] == ["--"] else rest))


def _trap(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`trap`, with a command line for later."""
    rest = [require_static(word) for word in words[1:]]
    if rest[:1] == ["--"]:
        rest = rest[1:]
    if len(rest) > 1 and not rest[0].startswith("-"):
        yield NestedScript(rest[0])


def _source(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`source`: a file is taken as it is; standard input is unknown."""
    for word in words[1:2]:
        if FILES_OF_INPUT.fullmatch(require_static(word)):
            raise UnreadableCommand("the content of standard input is not known; name a file")
    yield from ()


def _renaming(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`alias`, `hash -p` and `enable -f`, which give a name another meaning."""
    marks = {"alias": "=", "hash": "p", "enable": "f"}[base_name(words[0].text)]
    if any(not word.is_static or marks in word.text for word in words[1:]):
        raise UnreadableCommand("this changes the meaning of the names after it; write the command itself")
    yield from ()


def _setting(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`set`, of which some options change how a line is read."""
    for word in words[1:]:
        if require_static(word) == "--":
            break
        if re.match(r"[-+][a-zA-Z]*[Hk]", word.text) or word.text in ("histexpand", "keyword", "posix"):
            raise UnreadableCommand(f"the option {word.text!r} changes how the following text is parsed; leave it out")
    yield from ()


def _ssh(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`ssh`, which passes its words to a remote shell."""
    at = 1
    while at < len(words) and require_static(words[at]).startswith("-"):
        text = words[at].text
        takes_next = text[-1] in VALUED_SSH and not any(letter in VALUED_SSH for letter in text[1:-1])
        at += 2 if takes_next else 1
    if any("command" in word.text.casefold() for word in words[1:at]):
        raise UnreadableCommand("an option of ssh that runs a command cannot be checked; leave it out")
    rest = [require_static(word) for word in words[at + 1 :]]
    if at < len(words) and (not rest or rest[0].startswith("-")):
        raise _unknown_input("ssh")
    if rest:
        yield NestedScript(" ".join(rest), is_bash=False)


def _watch(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`watch`, which passes its words to a shell again and again."""
    at = 1
    while at < len(words) and require_static(words[at]).startswith("-"):
        if not re.fullmatch(r"-[bcdegtpxw]+|-[nq][0-9.]*", words[at].text):
            raise UnreadableCommand("write the options of watch in their short form")
        at += 2 if words[at].text in ("-n", "-q") else 1
    if at < len(words):
        yield NestedCommand(words[at:])
        yield NestedScript(" ".join(require_static(word) for word in words[at:]), is_bash=False)


def _command_option(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`su`, `script`, `flock` and the like, with a command line after -c."""
    for at, word in enumerate(words[1:], 1):
        text = require_static(word)
        name, has_value, value = text.partition("=")
        if text.startswith("--"):
            is_command = len(name) > 4 and ("--command".startswith(name) or "--session-command".startswith(name))
        else:
            is_command, has_value, value = bool(re.match(r"-[a-zA-Z]*c", text)), "", ""
            if is_command and not text.endswith("c"):
                raise UnreadableCommand(f"write -c of {words[0].text} by itself")
        if is_command and (has_value or at + 1 < len(words)):
            yield NestedScript(value if has_value else require_static(words[at + 1]), is_bash=False)
            return
    if base_name(words[0].text) == "su":
        raise _unknown_input("su")


def _evaluating(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """Builtins that evaluate a subscript in a name they are given: `unset 'a[$(rm)]'` runs rm."""
    for word in words[1:]:
        if "[" in word.text and ("$" in word.text or "`" in word.text):
            raise UnreadableCommand(f"{word.text[:60]!r} may run what is in its brackets; write it without")
    yield from ()


def _testing(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`[`, `[[` and `test`. -v evaluates a name; and `[[` evaluates what it compares as numbers, as `let` does."""
    yield from _evaluating(words)
    is_long = words[0].text == "[["
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if word.text in ("-v", "-R") and not IDENTIFIER.fullmatch(after.text):
            raise UnreadableCommand(f"{word.text} evaluates {after.text!r}; name the variable")
        if is_long and word.text in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
            if not (NUMBER.fullmatch(before.text) and NUMBER.fullmatch(after.text)):
                raise UnreadableCommand(f"in [[ ]], {word.text} evaluates its operand as code; use [ ]")


def _declaring(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`export`, `declare` and the like."""
    yield from _evaluating(words)
    for word in words[1:]:
        if re.match(r"[-+]\w*[in]", word.text) and base_name(words[0].text) not in ("export", "readonly"):
            raise UnreadableCommand(f"the option {word.text!r} evaluates the value of a variable; leave it out")
        if ASSIGNMENT.match(word.text):
            yield Assignment(word)
        else:
            require_static(word)


def _unsetting(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`unset`."""
    yield from _evaluating(words)
    for word in words[1:]:
        require_static(word)


def _filled(name: str) -> Assignment:
    """A variable that is set from the input."""
    return Assignment(assigned(name, expanded("$REPLY", HOLE)))


def _reading(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`read` and the like, which set the variables that they are given."""
    yield from _evaluating(words)
    is_mapping = base_name(words[0].text) in ("mapfile", "readarray")
    if is_mapping and any(re.match(r"-[a-zA-Z]*C", word.text) for word in words):
        raise UnreadableCommand("-C runs a command for what is read; leave it out")
    for word in words[1:]:
        text = require_static(word)
        if re.fullmatch(r"-\w+", text, re.ASCII) and (option := re.match(r"-[a-zA-Z]*?[avp](?=[A-Za-z_])", text)):
            yield _filled(text[option.end() :])
        if IDENTIFIER.fullmatch(text):
            yield _filled(text)


def _printing(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`printf -v NAME` and `wait -p NAME`."""
    # An unknown word may become several, and the first of them -v: that is a capability of printf.
    if base_name(words[0].text) == "wait":
        for word in words[1:]:
            require_static(word)
    if any(re.match(r"-[a-z]*[vp]", word.text) for word in words[1:3]):
        yield from _reading(words[:3])


SCRIPT_READERS: dict[str, Callable[[Sequence[ShellWord]], Iterator[NestedItem]]] = {
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(OTHER_SHELLS, _other_shell),
    "eval": _eval,
    "trap": _trap,
    "source": _source,
    ".": _source,
    **dict.fromkeys(("alias", "hash", "enable"), _renaming),
    "set": _setting,
    "ssh": _ssh,
    "watch": _watch,
    **dict.fromkeys(("su", "script", "flock", "runuser", "sg"), _command_option),
    **dict.fromkeys(("declare", "typeset", "local", "export", "readonly"), _declaring),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts"), _reading),
    **dict.fromkeys(("printf", "wait"), _printing),
    **dict.fromkeys(("test", "[", "[["), _testing),
    "unset": _unsetting,
    "let": _evaluating,
}
