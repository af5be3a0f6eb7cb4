"""Saved prompts: what is accepted, how arguments are read and filled in, and that a value is never a template."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.tenants.saved_prompts import (
    MAX_PROMPT_CHARS,
    PromptArgument,
    SavedPrompt,
    check_prompt,
    dump_prompt,
    expand_prompt,
    load_prompt,
    parse_arguments,
)
from everturn.errors import ConfigError

REVIEW = check_prompt(
    SavedPrompt("review", "Review {{branch}} against {{ base }}.", arguments=(PromptArgument("base", default="main"),))
)


def test_arguments_have_the_order_of_the_text_and_those_that_are_not_described_are_added() -> None:
    assert [(argument.name, argument.default) for argument in REVIEW.arguments] == [("branch", None), ("base", "main")]


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        (SavedPrompt("Review", "x"), "name: 'Review'"),
        (SavedPrompt("", "x"), "name: ''"),
        (SavedPrompt("a/b", "x"), "name: 'a/b'"),
        (SavedPrompt("a", " \n"), "a prompt needs a text"),
        (SavedPrompt("a", "x" * (MAX_PROMPT_CHARS + 1)), "at most 20,000 characters, not 20,001"),
        (SavedPrompt("a", "{{Topic}}"), "arguments: 'Topic'"),
        (SavedPrompt("a", "x", arguments=(PromptArgument("b"),)), "the text does not use 'b'; write {{b}} in it"),
        (SavedPrompt("a", "{{b}}", arguments=(PromptArgument("b"),) * 2), "two of them have the same name"),
        (SavedPrompt("a", " ".join(f"{{{{n{n}}}}}" for n in range(21))), "at most 20, not 21"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_do(prompt: SavedPrompt, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_prompt(prompt)
    assert problem in str(raised.value)


def test_an_expansion_fills_defaults_and_refuses_what_is_missing_or_unknown() -> None:
    assert expand_prompt(REVIEW, {"branch": "fix"}) == "Review fix against main."
    assert expand_prompt(REVIEW, {"branch": "fix", "base": ""}) == "Review fix against ."
    with pytest.raises(ConfigError, match=r"needs branch; write /review branch=…"):
        expand_prompt(REVIEW, {})
    with pytest.raises(ConfigError, match=r"no argument 'brunch'; its arguments: branch, base"):
        expand_prompt(REVIEW, {"branch": "x", "brunch": "y"})


def test_a_value_is_no_template() -> None:
    assert expand_prompt(REVIEW, {"branch": "{{base}}"}) == "Review {{base}} against main."


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("", {}),
        ("branch=fix", {"branch": "fix"}),
        ("fix", {"branch": "fix"}),
        ("fix release", {"branch": "fix", "base": "release"}),
        ("branch=fix base=release 2", {"branch": "fix", "base": "release 2"}),
        ('base="release 2" the branch of Ada', {"base": "release 2", "branch": "the branch of Ada"}),
        ("fix the release of Ada", {"branch": "fix", "base": "the release of Ada"}),
        ("branch='a b'", {"branch": "a b"}),
        ("fix x=1", {"branch": "fix", "base": "x=1"}),
    ],
)
def test_arguments_are_read_by_name_or_in_order_and_the_last_takes_the_rest(words: str, values: dict[str, str]) -> None:
    assert parse_arguments(REVIEW, words) == values


def test_more_values_than_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="takes 0 arguments; there is more: 'now'"):
        parse_arguments(check_prompt(SavedPrompt("plain", "x")), "now")


@given(st.text(max_size=60), st.text(max_size=60))
def test_every_value_is_inserted_as_it_is(branch: str, base: str) -> None:
    assert expand_prompt(REVIEW, {"branch": branch, "base": base}) == f"Review {branch} against {base}."


@given(st.text(max_size=80))
def test_reading_arguments_ends_with_values_or_an_error(words: str) -> None:
    try:
        values = parse_arguments(REVIEW, words)
    except ConfigError:
        return
    assert set(values) <= {"base", "branch"}


def test_a_stored_prompt_is_read_back_and_other_text_is_none() -> None:
    assert load_prompt(dump_prompt(REVIEW)) == REVIEW
    assert load_prompt("notes") is None
