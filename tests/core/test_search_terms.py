"""Text becomes words, and a query finds the texts that have them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.memory.search_terms import (
    QUERY_TERMS_LIMIT,
    TERM_LENGTH_LIMIT,
    TERMS_LIMIT,
    TEXT_LIMIT,
    matches,
    query_terms,
    text_terms,
)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("lun", "Lunch is at noon"),
        ("NOON lunch", "Lunch is at noon"),
        ("straße", "In der STRASSE"),
        ("über", "U\u0308ber den Wolken"),
        ("abc", "\uff21\uff22\uff23 in full width"),
        ("snake_ca", "call snake_case()"),
        ("午饭", "今天的午饭在十二点"),
        ("十二点", "今天的午饭在十二点"),
        ("点", "今天的午饭在十二点"),
        ("gpt 模型", "我们用GPT模型回答"),
        ("カタ", "半角ｶﾀｶﾅ"),
        ("ビル", "東京のビ\u30ebは高い"),
        ("안녕", "여러분안녕하세요"),
        ("ภาษา", "นี่คือภาษาไทย"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("שלום", "אמר שלום"),
        ("2026", "on 2026-11-15"),
        ("\U00020bb7", "\U00020bb7野家"),
    ],
)
def test_a_query_finds_the_text(query: str, text: str) -> None:
    assert matches(query_terms(query), text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("unch", "Lunch is at noon"),
        ("lunch dinner", "Lunch is at noon"),
        ("晚饭", "今天的午饭在十二点"),
        ("हद", "मैं हिन्दी बोलता हूँ"),
        ("snake case", "call snakes()"),
        ("", "anything"),
        ("?!\x00\"'*-()", "anything ?!"),
        ("𓀀🎉", "🎉"),
    ],
)
def test_a_query_does_not_find_the_text(query: str, text: str) -> None:
    assert not matches(query_terms(query), text)


@given(st.text())
def test_every_word_is_one_that_no_index_takes_apart(text: str) -> None:
    for word in [*text_terms(text), *query_terms(text)]:
        ascii = [char for char in word if char.isascii()]
        assert all(char.isalnum() or char == "_" for char in ascii)
        assert word
        assert word == word.casefold() or not word.isascii()
        word.encode()


@given(st.text(min_size=1, max_size=40), st.data())
def test_a_text_is_found_by_any_of_its_words_and_their_beginnings(text: str, data: st.DataObject) -> None:
    if terms := text_terms(text):
        word = data.draw(st.sampled_from(terms))
        assert matches([word[: data.draw(st.integers(1, len(word)))]], text)
        assert matches(query_terms(text), text)


@given(st.text("天地玄黄宇宙洪荒", min_size=3, max_size=30), st.data())
def test_any_piece_of_a_sentence_without_spaces_is_found(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    assert matches(query_terms(text[at : data.draw(st.integers(at + 1, len(text)))]), text)


def test_a_word_that_is_too_long_is_found_by_as_much_of_it_as_counts() -> None:
    long = "a" * 1_000_000
    assert text_terms(long) == ["a" * TERM_LENGTH_LIMIT]
    assert matches(query_terms(long), long)


def test_what_is_taken_of_a_text_and_of_a_query_is_bounded() -> None:
    many = " ".join(f"w{number}" for number in range(50_000))
    assert len(text_terms(many)) <= TERMS_LIMIT
    assert len(query_terms(many)) == QUERY_TERMS_LIMIT
    assert not matches(query_terms("late"), " " * TEXT_LIMIT + "late")
    assert sum(len(word.encode()) for word in text_terms("\ufdfa" * TEXT_LIMIT)) < 1 << 20
    assert sum(len(word.encode()) for word in text_terms("".join(map(chr, range(0x20000, 0x30000))))) < 1 << 20
