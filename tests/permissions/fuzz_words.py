"""Words in every spelling, expanded by bash, held against what was read: literal words to the letter, others by what they
could become; and a rule that denies what bash made of a line denies the line.

By hand: python -m tests.permissions.fuzz_words 100000 [seed]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.permissions.fuzz_shell import could_become

from everturn.core.rules.patterns import exact_pattern
from everturn.core.rules.policy import Policy, Rule, Subject
from everturn.core.rules.shell_expansion import CommandWords
from everturn.permissions.shell.command_line import UnreadableCommand, read_command

ENVIRONMENT = {"X": "-x", "Y": "a b", "Z": "", "G": "*", "N": "\n", "HOME": "/h", "Q": "'q'", "B": "{a,b}", "T": "~"}
FILES = ["a", "ab", "-x", "b.c", "a b", "[a]", "{x}", "~", "ac.c"]
PIECES = [
    "a", "b", "x", "-", ".", "/", "=", ":", "~", "*", "?", "[", "]", "[ab]", "{", "}", ",", "{a,b}", "{,x}", "{}", "{a}", "{1..3}", "..", "''", "'a b'", "'{'", "','", '"a"', '"$X"', '"$Y"',
    "$X", "$Y", "$Z", "$G", "${X}", "${U:-d}", "${U:-d e}", "${X:+o}", '"${U:-d e}"', "$((1+1))", "$((0-3))", "$(echo s t)", '"$(echo s t)"', "`echo b`", "\\*", "\\{", "\\,", "\\a", "\\\\",
    "$'\\x2a'", "$'\\n'", '"\\$X"', '"a\\b"', '"$@"', '"x$Y z"', "$B", "$T", "a\\\nb", '"\\\n"', "@", "%", "+", "!", "#", "^", "é", "{a,{b,c}}", "{'a,b',c}", "-{x,y}", "~/",
]  # fmt: skip


class Found(NamedTuple):
    """What a run has seen."""

    wrong: list[tuple[str, object, object]]
    static: int
    expanded: int
    braces: int


def made_up(rng: random.Random) -> str:
    """A few words."""
    return "a " + " ".join("".join(rng.choices(PIECES, k=rng.randint(1, 5))) for _ in range(rng.randint(1, 3)))


def bash(lines: list[str], place: Path) -> list[tuple[str, ...] | None]:
    """What bash makes of each line; None where it would not have it."""
    for name in FILES:
        (place / name).touch()
    script = "".join(
        f"( a() {{ printf '%s\\0' \"$#\" \"$@\"; }}\n{line}\n) 2>/dev/null; printf 'end\\0'\n" for line in lines
    )
    (place.parent / "script").write_text(script, encoding="utf-8")
    done = subprocess.run(
        ["/bin/bash", str(place.parent / "script"), "p", "q r"],
        cwd=place, env={**ENVIRONMENT, "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}, capture_output=True, check=False,
    )  # fmt: skip
    calls: list[tuple[str, ...] | None] = []
    current: list[str] = []
    for field in done.stdout.decode(errors="surrogateescape").split("\0")[:-1]:
        if field == "end" and (not current or len(current) == int(current[0]) + 1):
            calls.append(("a", *current[1:]) if current else None)
            current = []
        else:
            current.append(field)
    return calls


def run(count: int, rng: random.Random, root: Path) -> Found:
    """Make words up, and compare."""
    place = root / "words"
    place.mkdir()
    read: list[tuple[str, Subject]] = []
    while len(read) < count:
        line = made_up(rng)
        try:
            items = [item for item in read_command(line) if item.words[0] == "a"]
        except UnreadableCommand:
            continue
        read += [(line, items[0])] if len(items) == 1 else []
    called: list[tuple[str, ...] | None] = []
    for start in range(0, count, 500):
        called += bash([line for line, _ in read[start : start + 500]], place)
    assert len(called) == count
    wrong: list[tuple[str, object, object]] = []
    static = expanded = braces = 0
    for (line, item), call in zip(read, called, strict=True):
        if call is None:
            continue
        if not item.expansions:
            static, braces = static + 1, braces + ("{" in line)
            if item.words != call:
                wrong.append((line, item.words, call))
            continue
        expanded += 1
        globs = [word.__eq__ for word in call]
        if not could_become(
            CommandWords(item.words, item.expansions), [[word] if word else [] for word in call], globs
        ):
            wrong.append((line, item.expansions, call))
        policy = Policy([Rule("run", "deny", {"command": exact_pattern(Subject("command", "", call))})])
        if policy.decide("run", [{"command": item}]).action != "deny":
            wrong.append((line, "is not denied", call))
    return Found(wrong, static, expanded, braces)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        result = run(int(sys.argv[1]), random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0), Path(scratch))
    for mismatch in result.wrong[:40]:
        print(*map(repr, mismatch))
    print(
        f"{result.static} literal ({result.braces} with braces), {result.expanded} expanded, {len(result.wrong)} wrong"
    )
    sys.exit(bool(result.wrong))
