"""Names in the code: modules are nouns or plain verbs, class names are unique, and no name of the first version is left."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "everturn"

GERUNDS_OF_THE_FIELD = {
    "recording",
    "routing",
    "running",
    "sharing",
    "steering",
    "keyring",
    "string",
    "testing",
    "tool_calling",
}
"""Gerunds that the field uses as nouns (decision 0146), and words that only end like one."""
NOT_A_THING = {
    *("above", "aside", "below", "beneath", "beside", "inside", "within", "between", "through", "without"),
    *(
        "it",
        "this",
        "that",
        "these",
        "who",
        "whose",
        "here",
        "there",
        "given",
        "made",
        "told",
        "asked",
        "said",
        "words",
    ),
}
REMOVED = {
    *(
        "AnswerOpened",
        "CallBelow",
        "CallJudged",
        "CallMade",
        "CallPaused",
        "CallSettled",
        "CallStirred",
        "GateAnswered",
    ),
    *("GateClaimed", "LateArrived", "TurnEnding", "TurnParked", "SubTurn", "SubAnswer", "EverturnApp", "bring_in"),
    *("keep_house", "by_hand", "Verdict", "Patience", "Strangers", "Entrance", "Overseeing", "Veil", "Hookup"),
}
"""Names of the first version; vocabulary and decision 0146 say what each became."""
REMOVED_PHRASES = re.compile(
    r"\b(put aside|begun again|leaves the house|by the door|keep house|stand-in for a private)\b", re.I
)


LISTS = (Path(__file__), ROOT / "tests" / "docs_src" / "test_wording.py")
"""Files that list what must not be said."""


def modules() -> list[Path]:
    return [path for path in SRC.rglob("*.py") if path.stem not in ("__init__", "__main__")]


def is_plain(name: str) -> bool:
    """Whether a module name is no gerund, preposition or pronoun."""
    last = name.rsplit("_", 1)[-1]
    is_gerund = last.endswith("ing") and name not in GERUNDS_OF_THE_FIELD and last not in GERUNDS_OF_THE_FIELD
    return not is_gerund and name not in NOT_A_THING


def texts() -> Iterator[tuple[str, str]]:
    """Sources in which a removed name may not occur: the package, the web UI and the tests, without `LISTS`."""
    for folder, kinds in (
        ("src", ("py", "sql", "json")),
        ("web/src", ("ts", "tsx")),
        ("web/client/src", ("ts",)),
        ("tests", ("py",)),
    ):
        for kind in kinds:
            for path in (ROOT / folder).rglob(f"*.{kind}"):
                if path not in LISTS and "node_modules" not in path.parts:
                    yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_no_module_is_named_by_a_gerund_a_preposition_or_a_pronoun() -> None:
    folders = {path.parent for path in modules()}
    assert [str(path.relative_to(SRC)) for path in [*modules(), *folders] if not is_plain(path.stem)] == []


@pytest.mark.parametrize("name", ["keeping", "file_keeping", "beneath", "words", "given"])
def test_a_name_that_is_no_thing_is_noticed(name: str) -> None:
    assert not is_plain(name)


def test_no_class_name_is_used_for_two_things() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(SRC)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_name_of_the_first_version_is_left() -> None:
    pattern = re.compile(rf"\b({'|'.join(sorted(REMOVED))})\b")
    found = {(path, match[0]) for path, text in texts() for match in pattern.finditer(text)}
    found |= {(path, match[0]) for path, text in texts() for match in REMOVED_PHRASES.finditer(text)}
    assert sorted(found) == []
