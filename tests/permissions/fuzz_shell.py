"""Command lines are run by bash, with programs that only say how they were called; each call has to have been read.

By hand, for as long as wanted: python -m tests.permissions.fuzz_shell 600
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.helpers.shell_corpus import BENIGN, HOSTILE

from everturn.core.rules.globs import TextMatcher, Token
from everturn.core.rules.policy import Subject
from everturn.core.rules.shell_expansion import EXPANSION_MARK, CommandWords, matches_some_expansion
from everturn.permissions.shell.command_line import UnreadableCommand, read_command

# Each writes how it was called into descriptor 9, in one piece. `no` fails, so that loops end.
STUB = """#!/bin/bash
printf '%s\\0' "$(($# + 1))" "${0##*/}" "$@" >&9
[ "${0##*/}" != no ]
"""
STUBS = ("git", "zap", "one", "two", "no", "sudo", "doas")
# Real ones, which run the others. Nothing else is on the path.
REAL = ("bash", "sh", "env", "timeout", "nice", "nohup", "setsid", "stdbuf", "xargs", "find", "ionice")
# What may leave the directory, never ends, or takes a program from elsewhere.
UNSAFE = re.compile(
    r"[/~]|\b(?:while|until|select|kill|cd|pushd|ulimit|read|mapfile|command|hash|enable|suspend|fg|bg|sleep|PATH)\b"
    r"|\(\( *;|env -|ld-linux|9|\d\d|%|:.*:|wait|exec|\.\."
)


class World:
    """A directory, a path with little on it, and a bash."""

    def __init__(self, root: Path) -> None:
        self.programs = root / "programs"
        self.place = root / "a" / "b" / "c"
        self.programs.mkdir()
        self.place.mkdir(parents=True)
        for name in STUBS:
            (self.programs / name).write_text(STUB, encoding="utf-8")
            (self.programs / name).chmod(0o755)
        for name in REAL:
            if found := shutil.which(name):
                (self.programs / name).symlink_to(found)

    def clear(self) -> None:
        """Forget what was written."""
        shutil.rmtree(self.place)
        self.place.mkdir()

    def run(self, line: str) -> list[tuple[str, ...]] | None:
        """Run a line; what was called and how, or None if it did not end."""
        ours, theirs = os.pipe()
        # Descriptor 9 is opened by a bash of ours, which then becomes the one under test.
        process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec 9>&{theirs} {theirs}>&- && exec "$0" -c -- "$1"', "/bin/bash", line],
            cwd=self.place,
            env={"PATH": str(self.programs), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs,),
            start_new_session=True,
        )
        os.close(theirs)
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)
            output = _drain(ours)
        return _calls(output)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _drain(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def _calls(output: bytes) -> list[tuple[str, ...]]:
    fields = output.decode(errors="replace").split("\0")[:-1]
    calls: list[tuple[str, ...]] = []
    while fields:
        count = int(fields[0])
        calls.append(tuple(fields[1 : count + 1]))
        fields = fields[count + 1 :]
    return calls


def is_read(call: tuple[str, ...], items: Sequence[Subject]) -> bool:
    """Is there an item that could become these words? What stands behind a word that bash expands has to be there too."""
    # A shell finds a script on the path too, behind its options.
    files = [
        Subject("command", "", item.words[at:], item.expansions[at:])
        for item in items
        if item.words[0] in (".", "source", "bash", "sh")
        for at in range(1, len(item.words))
    ]
    return any(_fits(call, item) for item in [*items, *files])


def _fits(call: tuple[str, ...], item: Subject) -> bool:
    name = item.words[0].rpartition("/")[2]
    value = CommandWords((name, *item.words[1:]), item.expansions)
    # The call, as a pattern of literal words.
    tokens: list[list[Token]] = [[word] if word else [] for word in call]
    if not item.expansions:
        return value.words == call
    globs: list[TextMatcher] = [word.__eq__ for word in call]
    return could_become(value, tokens, globs)


def could_become(value: CommandWords, tokens: Sequence[Sequence[Token]], globs: Sequence[TextMatcher]) -> bool:
    """As a rule that denies sees it, but for the spelling of an expansion, which is nothing it becomes."""
    never = tuple(
        word if each is None else EXPANSION_MARK for word, each in zip(value.words, value.expansions, strict=True)
    )
    return matches_some_expansion(CommandWords(never, value.expansions), tokens, globs, is_open=False)


def unread(world: World, line: str) -> list[tuple[str, ...]] | None:
    """Return the calls that bash made of a line and that were not read in it; None if it could not be read."""
    try:
        items = read_command(line)
    except UnreadableCommand:
        return None
    world.clear()
    wrong = [call for call in world.run(line) or [] if not is_read(call, items)]
    written = [item for item in items if item.words[0] in (">", ">>")]
    if not any(item.expansions for item in written):
        names = {item.words[1] for item in written}
        wrong += [(">", name) for name in os.listdir(world.place) if name not in names]
    return wrong


def harmless(lines: list[str]) -> list[str]:
    """Lines with a stub in place of rm, without those that might do harm."""
    named = [re.sub(r"\brm\b", "zap", line) for line in lines]
    return [line for line in named if not UNSAFE.search(line) and "\0" not in line and len(line) < 2000]


# ------------------------------------------------------------------------------------------------ making up lines

WORDS = [
    "x", "'a b'", '"c d"', "e\\ f", "$X", '"$X"', "*", "{p,q}", "$'\\x41'", "''", "k=v", "-n", "--", "#h", "a#b", "'#'", "\\;", "';'", "{}", "\\\\", '"\\""', "'\"'",
    "$((1+1))", "${X:-y}", '"${X}"', "!", "[", "]", "=", "é", "-", '"a\nb"', "\\$X", "a\\\nb", '"\\\n"', "2", "a2", "in", "do", "if", "then", "}", "time", "esac", "$", "a$",
]  # fmt: skip
NAMES = [
    "git log",
    "zap",
    "one",
    "two",
    "no",
    "g'i't log",
    "\\zap",
    '"one"',
    "z\\ap",
    "$'zap'",
    "X=1 one",
    "A=b C=d two",
]
WRAPPING = [
    "sudo", "env", "env A=b", "timeout 1", "nice -n 1", "nohup", "setsid -w", "stdbuf -oL", "time", "builtin eval", "eval", "xargs", "! ", "coproc", "time -p", "command",
]  # fmt: skip


def word(rng: random.Random, depth: int) -> str:
    """Make up a word."""
    kind = rng.randrange(12)
    if kind == 0 and depth:
        return f"$({line(rng, depth - 1)})"
    if kind == 1 and depth:
        return f'"{rng.choice(["", "a ", " "])}$({line(rng, depth - 1)})"'
    if kind == 2 and depth:
        return f"`{line(rng, 0)}`"
    if kind == 3 and depth:
        return f"<({line(rng, depth - 1)})"
    if kind == 4:
        return rng.choice(WORDS) + rng.choice(WORDS)
    return rng.choice(WORDS)


def command(rng: random.Random, depth: int) -> str:
    """Make up a simple command."""
    words = [rng.choice(NAMES), *(word(rng, depth) for _ in range(rng.randrange(4)))]
    if rng.randrange(4) == 0:
        words.insert(0, rng.choice(WRAPPING))
    if rng.randrange(4) == 0:
        redirect = rng.choice(
            ["> f", ">f", "2>&1", "2> f", "< f", "<<< x", ">&2", "&> f", ">> f", ">f x", "2>&-", ">|f"]
        )
        words.insert(rng.randrange(len(words) + 1), redirect)
    if rng.randrange(12) == 0:
        quote = rng.choice(["", "'", "\\"])
        return f"{' '.join(words)} <<{quote}E{quote if quote == chr(39) else ''}\nh {word(rng, depth)}\nE\n"
    return rng.choice([" ", " ", "  ", "\t", " \\\n "]).join(words)


def line(rng: random.Random, depth: int) -> str:
    """Make up a command line."""
    if depth == 0 or rng.randrange(3) == 0:
        return command(rng, depth)
    a, b, c = (line(rng, depth - 1) for _ in range(3))
    forms = [
        f"{a}; {b}", f"{a};{b}", f"{a} && {b}", f"{a}||{b}", f"{a} | {b}", f"{a} & {b}", f"{a}\n{b}", f"{{ {a}; }}", f"({a})", f"( {a} ) > f", f"! {a}",
        f"if {a}; then {b}; else {c}; fi", f"for i in 1 2; do {a}; done", f"case x in x) {a};; *) {b};; esac", f"f() {{ {a}; }}; f", f"{a} # {b}\n{c}",
        f"[ x = x ] && {a}", f"[[ x == x ]] && {a}", f"v=$({a})", f"function f {{ {a}\n}}\nf", f"case x in (y|x) {a} ;; esac", f"if {a}\nthen {b}\nfi", f"{{ {a}\n}} | {b}",
    ]  # fmt: skip
    return rng.choice(forms)


SIGNS = [
    *";&|<>(){}[]'\"`$\\#!=* \n\t-x2", "$(", "${", "<(", "<<", "&&", "||", ";;", " # ", "\\\n", "zap", " zap ", "E", "$'", "((", "))",
]  # fmt: skip


def disturbed(rng: random.Random, text: str) -> str:
    """Change a few characters of a line."""
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        if rng.randrange(3):
            text = text[:at] + rng.choice(SIGNS) + text[at:]
        else:
            text = text[:at] + text[at + rng.randrange(1, 3) :]
    return text


def made_up(rng: random.Random) -> str:
    """Make up a line, or disturb one."""
    kind = rng.randrange(3)
    if kind == 0:
        return line(rng, rng.randrange(3))
    return disturbed(rng, line(rng, rng.randrange(3)) if kind == 1 else rng.choice(harmless(HOSTILE + BENIGN)))


def main(seconds: float, seed: int) -> int:
    """Make up lines and run them until the time is over; the number of those that were misread."""
    rng, wrong, read, total = random.Random(seed), 0, 0, 0
    with tempfile.TemporaryDirectory() as root:
        world, end = World(Path(root)), time.monotonic() + seconds
        while time.monotonic() < end:
            text = made_up(rng)
            if UNSAFE.search(text):
                continue
            found = unread(world, text)
            total, read = total + 1, read + (found is not None)
            if found:
                wrong += 1
                print(repr(text), found, [item.words for item in read_command(text)], flush=True)
    print(f"{total} lines, {read} read, {wrong} misread (seed {seed})")
    return wrong


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
