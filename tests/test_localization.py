"""The catalogues: both languages have every text, with the same placeholders and the plural forms of the language."""

import re
from collections.abc import Iterator

import pytest

from everturn.localization import (
    LANGUAGES,
    PLURAL_CATEGORIES,
    Argument,
    BadText,
    Language,
    Pieces,
    format_text,
    load_catalog,
    parse_text,
)

NAMES = {"MCP", "JSON", "PDF", "Everturn", "everturn", "Token"}
"""Words that are the same in Chinese."""
IN_ENGLISH = {"web.login.other", "web.paletteCommands.language"}
"""The texts that offer English to a reader of Chinese."""
UNCOUNTED = {
    "terminal.chat.step", "terminal.chat.tokens_in", "terminal.chat.tokens_out", "terminal.chat.cached",
    "terminal.chat.reasoning", "terminal.chat.retrying", "terminal.chat.retrying_now", "terminal.screens.minutes",
    "terminal.screens.hours", "terminal.screens.days", "terminal.app.more_asks", "web.step.input", "web.step.output",
    "web.step.cached", "web.step.reasoning", "web.inbox.count", "web.mcp.more", "web.sidebar.waiting",
    "web.fileChanges.all", "web.messageActions.version", "web.messageActions.compare", "web.messagePair.tokens", "web.comparison.tokens", "web.comparison.answer", "web.adminRules.hidden",
    "web.visibleText.styled", "first_run.which", "first_run.none", "web.sentRequest.cut", "web.documentDialog.page",
    "web.documentDialog.slide", "web.documentDialog.sheet",
}  # fmt: skip
"""Texts with a number whose words are the same for one and for many."""


def texts(language: Language) -> dict[str, str]:
    found: dict[str, str] = {}
    for group, items in load_catalog(language).items():
        for key, text in items.items():
            found |= (
                {f"{group}.{key}": text}
                if isinstance(text, str)
                else {f"{group}.{key}.{k}": v for k, v in text.items()}
            )
    return found


def arguments(pieces: Pieces) -> Iterator[Argument]:
    for piece in pieces:
        if isinstance(piece, Argument):
            yield piece
            for option in piece.options.values():
                yield from arguments(option)


def named(text: str) -> set[str]:
    return {argument.name for argument in arguments(parse_text(text))} - {"#"}


def test_both_languages_have_the_same_texts() -> None:
    en, zh = texts("en"), texts("zh")
    assert not en.keys() ^ zh.keys(), "a text is missing in one of the languages"
    assert len(en) > 1_000
    assert not [key for key in en if not en[key].strip() and zh[key].strip()]


def test_both_languages_have_the_same_placeholders() -> None:
    en, zh = texts("en"), texts("zh")
    assert not {key: (named(en[key]), named(zh[key])) for key in en if named(zh[key]) - named(en[key])}
    # A translation may leave out a value only where it has no use for it: none does.
    assert not {key: (named(en[key]), named(zh[key])) for key in en if named(zh[key]) != named(en[key])}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_plural_has_the_forms_of_its_language(language: Language) -> None:
    wrong: list[str] = []
    for key, text in texts(language).items():
        for argument in arguments(parse_text(text)):
            forms = {form for form in argument.options if not form.startswith("=")}
            if argument.kind == "plural" and forms != set(PLURAL_CATEGORIES[language]):
                wrong.append(f"{key}: {sorted(forms)}")
    assert not wrong


def test_what_is_counted_has_a_singular() -> None:
    for key, text in texts("en").items():
        plain = [item for item in arguments(parse_text(text)) if item.name in ("n", "count") and not item.kind]
        plurals = [item for item in arguments(parse_text(text)) if item.kind == "plural"]
        assert not plain or plurals or key in UNCOUNTED, f"{key} has a number, and no plural: {text}"


def test_every_text_is_translated() -> None:
    left: list[str] = []
    for key, text in texts("zh").items():
        plain = re.sub(r"\{\w+(, number)?\}|[{}]|\b(plural|select|other|one)\b", "", text)
        words = re.findall(r"[A-Za-z]{3,}", re.sub(r"`[^`]*`|/\w+|\b\w+[._]\w+", "", plain))
        if (
            key not in IN_ENGLISH
            and not re.search(r"[\u4e00-\u9fff]", text)
            and [word for word in words if word not in NAMES]
        ):
            left.append(f"{key}: {text}")
    assert not left


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("{n, plural, one {# file} other {# files}}", {"n": 1}, "1 file"),
        ("{n, plural, one {# file} other {# files}}", {"n": 2_000}, "2,000 files"),
        ("{n, plural, =0 {none} one {# file} other {# files}}", {"n": 0}, "none"),
        ("{n, plural, other {# 个文件}}", {"n": 1}, "1 个文件"),
        ("{by}: {kind, select, edit {edited {file}} other {read {file}}}", {"by": "Ann", "kind": "edit", "file": "a"}, "Ann: edited a"),
        ("{kind, select, edit {edited} other {read}}", {"kind": "x"}, "read"),
        ("Such as '{'\"name\": 1'}'; the model's {0}", {"0": "a"}, 'Such as {"name": 1}; the model\'s a'),
        ("{a} {b}", {"a": "{b}", "b": 1}, "{b} 1"),
        ("{used, number} of {limit, number}", {"used": 1_234, "limit": 10}, "1,234 of 10"),
        ("it''s # {later}", {}, "it's # {later}"),
    ],
)  # fmt: skip
def test_format(text: str, values: dict[str, object], result: str) -> None:
    assert format_text(text, **values) == result


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "}",
        "{}",
        "a {b",
        "{n, plural, one {#}}",
        "{n, plural}",
        "{n, date, short}",
        "{n, plural, other {a}",
        "'{open",
    ],
)
def test_a_malformed_text_is_an_error(text: str) -> None:
    with pytest.raises(BadText):
        parse_text(text)
