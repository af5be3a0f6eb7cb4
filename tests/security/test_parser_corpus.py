"""What fuzzing of our parsers began with and what it found, again: see `fuzz_parsers.py`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.security.fuzz_parsers import targets

CORPUS = [
    ast.literal_eval(line)
    for line in (Path(__file__).parent / "parser_corpus.txt").read_text(encoding="ascii").splitlines()
]


@pytest.mark.parametrize("name", targets())
def test_no_parser_is_broken_by_anything_in_the_corpus(name: str) -> None:
    for data in CORPUS:
        for cut in (0, 1, 7):
            targets()[name](data)
            targets()[name](bytes([cut]) + data)
