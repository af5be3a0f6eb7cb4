"""What is allowed by a rule for a program uses none of its powers; real programs, and a canary. See `fuzz_effects`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.permissions.fuzz_effects import BAD, Judge, Line, World, run

NEEDED = ("bash", "git", "sort", "find", "tar", "sed", "awk", "curl", "xargs")
needs_programs = pytest.mark.skipif(
    not all(map(shutil.which, NEEDED)), reason=f"not all of {', '.join(NEEDED)} are here"
)

LINES = 5_000


@needs_programs
@pytest.mark.timeout(900)  # some hundred programs are run; a few tens of seconds of a processor
def test_no_canary_sings_under_a_rule_that_does_not_name_its_power() -> None:
    found = run(LINES, seed=18)
    assert found.sung == []
    assert found.lines == LINES
    assert found.allowed >= LINES / 10
    assert len(found.programs) > 40


@needs_programs
@pytest.mark.timeout(300)
def test_a_canary_that_sings_is_heard(tmp_path: Path) -> None:
    loud = [
        "sort -o PWN small", "sort -S1k --compress-program=./evil big", "find . -name victim -delete", "sed -i s/x/y/ small",
        "git log --output=PWN", "env -u X -S./evil", "sort $X small", "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=./evil small",
    ]  # fmt: skip
    quiet = ["sort small", "cat small", "true", "git log -1"]
    lines = [Line(text, (f"{text.split()[0]} *",), "") for pair in zip(loud, quiet * 2, strict=True) for text in pair]
    assert [line.text for line in World(tmp_path).sings(lines)] == loud
    assert [line.text for line in lines if Judge().is_allowed(line)] == quiet * 2


def test_the_hostile_forms_are_refused_as_they_are() -> None:
    judge = Judge()
    names = [Line(" ".join(map(_quoted, words)), (f"{words[0]} *", "sort *"), "") for words in BAD]
    assert len(names) > 100
    assert [line.text for line in names if judge.is_allowed(line)] == []


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
