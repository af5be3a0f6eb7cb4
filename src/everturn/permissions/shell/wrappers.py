"""Wrappers: the commands that a command would run itself, such as `sudo`, `xargs` and `find -exec`.

A wrapper's options are skipped where they are known. Where they are not, every word after them might be the command,
and every one is reported: too many commands make a rule stricter, and never looser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from everturn.permissions.shell import inline_scripts
from everturn.permissions.shell.capabilities import capabilities_of, make_capability
from everturn.permissions.shell.nested_programs import (
    Assignment,
    Capability,
    NestedCommand,
    NestedItem,
    NestedScript,
    base_name,
    require_static,
)
from everturn.permissions.shell.parser import UnreadableCommand
from everturn.permissions.shell.word_expansion import ASSIGNMENT, HOLE, ShellWord, WordPiece, expanded, literal

__all__ = ["RESERVED", "Assignment", "Capability", "NestedCommand", "NestedItem", "NestedScript", "nested_items"]

# Where a command is expected bash reads these as keywords. `time` and `coproc` are wrappers here.
RESERVED = frozenset("! { } [[ ]] case do done elif else esac fi for function if in select then until while".split())

MOST_STARTS = 4
ANY_ASSIGNMENT = ".*="  # to programs, unlike to the shell, any name is valid


class Wrapper(NamedTuple):
    """How to find the command after a wrapper's name."""

    flags: str = ""  # short options
    valued: str = ""  # short options with a value
    long_flags: str = ""
    long_valued: str = ""
    skipped: int = 0  # words before the command
    assigns: str = ""  # NAME=value may stand before it: a pattern
    takes_dash: bool = False  # a lone dash is an option, the last one
    needs_command: bool = False  # without a command it starts a shell, or is none itself


WRAPPERS = {
    "sudo": Wrapper(
        "AbEHiKknPSs",
        "CDgpRrTtUu",
        "preserve-env login non-interactive shell set-home stdin background askpass reset-timestamp",
        "user group prompt chdir chroot role type other-user close-from command-timeout",
        assigns=ANY_ASSIGNMENT,
        needs_command=True,
    ),
    "doas": Wrapper("Lns", "Cu", needs_command=True),
    "env": Wrapper(
        "i0v", "uC", "ignore-environment null debug", "unset chdir", assigns=ANY_ASSIGNMENT, takes_dash=True
    ),
    "timeout": Wrapper("v", "ks", "foreground preserve-status verbose", "signal kill-after", skipped=1),
    "nice": Wrapper("0123456789", "n", "", "adjustment"),
    "ionice": Wrapper("t", "cn", "ignore", "class classdata"),
    "nohup": Wrapper(),
    "setsid": Wrapper("cfw", "", "ctty fork wait"),
    "stdbuf": Wrapper("", "ioe", "", "input output error"),
    "time": Wrapper("apv", "fo", "append portability verbose", "format output", assigns=ASSIGNMENT.pattern),
    "coproc": Wrapper(assigns=ASSIGNMENT.pattern, needs_command=True),
    "exec": Wrapper("cl", "a"),
    "command": Wrapper("pvV"),
    "builtin": Wrapper(),
    "chroot": Wrapper("", "", "skip-chdir", "userspec groups", skipped=1, needs_command=True),
    "unshare": Wrapper(
        "munipUCTfrc", "", "mount net ipc uts pid user cgroup time fork map-root-user", needs_command=True
    ),
    "flock": Wrapper("sxeunFov", "wE", "shared exclusive nonblock unlock", "timeout wait", skipped=1),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "xargs": Wrapper(
        "0rtxpo",
        "aEdLnPsI",
        "null no-run-if-empty verbose exit interactive open-tty",
        "arg-file delimiter max-lines max-args max-procs max-chars",
    ),
}
# They run a command too, and have many options.
GUESSED = frozenset(
    "strace ltrace valgrind gdb lldb chrt taskset numactl runuser setpriv nsenter prlimit systemd-run firejail bwrap "
    "proxychains proxychains4 torsocks torify fakeroot eatmydata dbus-run-session xvfb-run caffeinate unbuffer rlwrap "
    "faketime cgexec softlimit setarch linux32 linux64 catchsegv sshpass entr pkexec gosu su-exec tini dumb-init sg "
    "capsh script start-stop-daemon daemonize run-parts choom uclampset perf hyperfine expect env-update jobs "
    "ld.so chpst setuidgid envdir with-contenv s6-setuidgid unminimize sudoedit nocorrect noglob".split()
)


def nested_items(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """Yield what a command would run or assign besides itself, and the capabilities of its options."""
    name = base_name(words[0].text)
    yield from capabilities_of(words)
    if name in inline_scripts.SCRIPT_READERS:
        yield from inline_scripts.SCRIPT_READERS[name](words)
    if name in SPECIAL:
        yield from SPECIAL[name](words)
    elif name in WRAPPERS:
        yield from _wrapped(words, WRAPPERS[name])
    elif name in GUESSED or name.startswith("ld-linux"):
        yield from _every_suffix(words, 1)


def _wrapped(words: Sequence[ShellWord], wrapper: Wrapper) -> Iterator[NestedItem]:
    at, is_certain = _skip_options(words, wrapper)
    if not is_certain:
        yield from _every_suffix(words, at)
        return
    for word in words[at : at + wrapper.skipped]:
        require_static(word)
    at += wrapper.skipped
    while wrapper.assigns and at < len(words) and re.match(wrapper.assigns, words[at].text, re.DOTALL):
        require_static(words[at])
        yield Assignment(words[at])
        at += 1
    if at < len(words):
        yield from _command(words[at:])
    elif wrapper.needs_command:
        raise UnreadableCommand(f"{words[0].text} without a command cannot be checked; name the command")


def _command(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    if words[0].source in RESERVED:
        raise UnreadableCommand(f"{words[0].source!r} cannot be checked; write the commands without it")
    yield NestedCommand(words)


def _every_suffix(words: Sequence[ShellWord], start: int) -> Iterator[NestedItem]:
    """Every word that might be the command; and every option, because its effect is not known."""
    for at, word in enumerate(words[start:], start):
        require_static(word)
        if word.text.startswith("-") and word.text not in ("-", "--"):
            yield make_capability(words, word)
        elif word.text:
            yield from _command(words[at:])


def _skip_options(words: Sequence[ShellWord], wrapper: Wrapper) -> tuple[int, bool]:
    """Return where the options end, and whether that is certain."""
    at = 1
    while at < len(words):
        text = require_static(words[at])
        if text == "--":
            return at + 1, True
        if text == "-":
            return at + wrapper.takes_dash, wrapper.takes_dash
        if not text.startswith("-"):
            break
        width = _long_width(text[2:], wrapper) if text.startswith("--") else _short_width(text[1:], wrapper)
        if width == 0:
            return at, False
        for value in words[at : at + width]:
            require_static(value)
        at += width
    return at, True


def _long_width(text: str, wrapper: Wrapper) -> int:
    name, has_value, _ = text.partition("=")
    if name in wrapper.long_valued.split():
        return 1 if has_value else 2
    return 1 if name in wrapper.long_flags.split() else 0


def _short_width(letters: str, wrapper: Wrapper) -> int:
    """How many words a cluster of short options takes; 0 if one of them is unknown."""
    for at, letter in enumerate(letters):
        if letter in wrapper.valued:
            return 1 if letters[at + 1 :] else 2
        if letter not in wrapper.flags:
            return 0
    return 1


def _env(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`env`, whose -S splits one word into several."""
    at = 1
    wrapper = WRAPPERS["env"]
    while at < len(words):
        text = require_static(words[at])
        if not text.startswith("-") or text in ("-", "--"):
            break
        is_long = text.startswith("--")
        if text.startswith("--s") or text.startswith("-S"):
            yield from _split(words, at)
            return
        if not is_long and "S" in re.split(f"[{wrapper.valued}]", text)[0]:
            raise UnreadableCommand("write -S of env by itself, or better the command without it")
        at += max(1, _long_width(text[2:], wrapper) if is_long else _short_width(text[1:], wrapper))
    yield from _wrapped(words, wrapper)


def _split(words: Sequence[ShellWord], at: int) -> Iterator[NestedItem]:
    text, rest = require_static(words[at]), words[at + 1 :]
    value = text.partition("=")[2] if text.startswith("--") else text[2:]
    if not value and rest:
        value, rest = require_static(rest[0]), rest[1:]
    if any(sign in value for sign in "\\$'\"#"):
        raise UnreadableCommand("the text after -S of env cannot be parsed; write the command without it")
    pieces = [literal(piece) for piece in value.split()]
    yield NestedCommand([words[0], *words[1:at], *pieces, *rest])


def _xargs(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`xargs`, which appends words of its input to the command, or puts them in place of a marker."""
    wrapper = WRAPPERS["xargs"]
    at, is_certain = _skip_options(words, wrapper)
    if not is_certain:
        raise UnreadableCommand(
            f"the option {words[at].text!r} of xargs is not supported; use its common short options"
        )
    marks = [word.text[2:] or words[place + 1].text for place, word in enumerate(words[:at]) if word.text[:2] == "-I"]
    if any("I" in word.text[2:] and word.text[1:2] not in "I-" for word in words[1:at] if word.text.startswith("-")):
        raise UnreadableCommand("write -I of xargs by itself")
    argv = list(words[at:])
    if not argv:
        return  # xargs without a command echoes
    if marks:
        argv = [_marked(word, marks[-1], HOLE._replace(hole="one")) for word in argv]
    else:
        argv.append(expanded("{}", HOLE))  # words of any kind, options too
    yield from _command(argv)


def _marked(word: ShellWord, mark: str, hole: WordPiece) -> ShellWord:
    """A word in which a marker is replaced is not known beforehand."""
    if not word.is_static or not mark or mark not in word.text:
        return word
    pieces: list[WordPiece] = []
    for text in word.text.split(mark):
        pieces += [hole, WordPiece(text, is_quoted=True)] if text else [hole]
    return expanded(word.text, *pieces[1:])


def _find(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    """`find`, with a command after each -exec, up to a ';' or '+'."""
    for at, word in enumerate(words):
        if word.text not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        ends = [end for end in range(at + 1, len(words)) if words[end].text in (";", "+")]
        if not ends or ends[0] == at + 1:
            raise UnreadableCommand(f"the command after {word.text} of find has no end; close it with \\;")
        starts = ["./"] if word.text.endswith("dir") else _starts(words)
        # A '+' ends it only after {}; so the command up to each of the possible ends.
        for end in ends:
            for start in starts:
                hole = WordPiece(start, hole="some")
                yield from _command([_marked(each, "{}", hole) for each in words[at + 1 : end]])
            if words[end].text == ";":
                break


def _starts(words: Sequence[ShellWord]) -> Sequence[str]:
    """What the paths that find reports may begin with."""
    at = 1
    while at < len(words) and words[at].text in ("-H", "-L", "-P"):
        at += 1
    found: list[str] = []
    for word in words[at:]:
        if word.text[:1] in ("-", "(", "!"):
            break
        found.append(word.text if word.is_static else word.expansion.prefix if word.expansion else "")
    is_listed = any(word.text.startswith("-files0") for word in words)
    return [""] if is_listed or len(found) > MOST_STARTS else found or ["."]


def _parallel(words: Sequence[ShellWord]) -> Iterator[NestedItem]:
    raise UnreadableCommand(f"{words[0].text} builds its commands itself; run them one by one, or with xargs")


SPECIAL: dict[str, Callable[[Sequence[ShellWord]], Iterator[NestedItem]]] = {
    "env": _env,
    "xargs": _xargs,
    "find": _find,
    "parallel": _parallel,
    "sem": _parallel,
}
