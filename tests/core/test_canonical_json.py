"""JSON texts compared by value: a person is told of changed arguments only where they have changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.canonical_json import encode_canonical, is_same_value
from everturn.core.events import AnswerStarted, CallStarted, StepFinished, TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import ToolPart
from everturn.core.tree import MessageTree

# The page compares in its own language, by the same table.
TABLE: dict[str, list[list[str]]] = json.loads(
    (Path(__file__).parents[2] / "web/client/tests/same_values.json").read_text("utf-8")
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(("first", "other"), TABLE["same"])
def test_texts_that_are_spelled_differently_at_most_say_the_same(first: str, other: str) -> None:
    assert is_same_value(first, other)
    assert is_same_value(other, first)


@pytest.mark.parametrize(("first", "other"), TABLE["different"])
def test_texts_that_say_something_else_are_not_the_same(first: str, other: str) -> None:
    assert not is_same_value(first, other)
    assert not is_same_value(other, first)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_a_model_wrote_and_its_canonical_form_say_the_same(value: dict[str, Any]) -> None:
    try:
        text = encode_canonical(value)
    except UnicodeEncodeError:  # lone surrogates are replaced before anything runs, and that is a change
        return
    assert is_same_value(json.dumps(value, indent=1), text)


@pytest.mark.parametrize(
    ("requested", "used"),
    [
        ('{"path": "a.txt", "content": "x"}', ""),
        ('{"content":"x","path":"a.txt"}', ""),
        ('{"path": "b.txt", "content": "x"}', '{"content":"x","path":"a.txt"}'),
    ],
)
def test_a_call_says_what_it_used_only_where_that_is_not_what_was_asked(requested: str, used: str) -> None:
    tree = MessageTree()
    for event in (
        TurnStarted(turn="t", input=Message("u", None, "user", turn="t")),
        AnswerStarted(turn="t", message=Message("a", "u", "assistant", turn="t")),
        StepFinished(turn="t", step=1, parts=(ToolPart("c", "write_file", requested),), finish="tool_calls"),
        CallStarted(
            turn="t",
            call="c",
            tool="write_file",
            arguments='{"content":"x","path":"a.txt"}',
            hash="",
            idempotent=True,
            key="c",
        ),
    ):
        tree.apply(event)
    [part] = [part for part in tree.messages["a"].parts if isinstance(part, ToolPart)]
    assert part.used == used
