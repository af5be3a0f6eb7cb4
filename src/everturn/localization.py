"""Localization: the texts of both UIs, from one catalogue per language (`locales/en.json`, `locales/zh.json`).

A catalogue maps groups to keys to texts. A text is ICU MessageFormat, of which we use four forms:

    {name}                                             a value
    {n, number}                                        a number, formatted
    {n, plural, =0 {none} one {# file} other {# files}}  one of several, by the plural rules of the language
    {kind, select, edit {…} other {…}}                 one of several, by a word

The web UI takes the same files: `scripts/web_texts.py` compiles the groups `web.*` to TypeScript.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

Language = Literal["en", "zh"]
T = TypeVar("T", bound=Struct)
Catalog = dict[str, dict[str, str | dict[str, str]]]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh")
PLURAL_CATEGORIES: Final[dict[Language, tuple[str, ...]]] = {"en": ("one", "other"), "zh": ("other",)}
"""The plural categories of each language for whole numbers, as CLDR has them. A language with more needs its rule in
`format_text` and in `scripts/web_texts.py`."""
FOLDER: Final = Path(__file__).parent / "locales"
_ARGUMENT: Final = re.compile(r"\s*(\w+)\s*(?:,\s*(\w+)\s*)?(,)?")
_OPTION: Final = re.compile(r"\s*(=\d+|\w+)\s*\{")


class Argument(Struct, frozen=True):
    """A placeholder of a text: its kind is empty, `number`, `plural` or `select`; the latter two have options."""

    name: str
    kind: str = ""
    options: dict[str, tuple[str | Argument, ...]] = {}


Pieces = tuple[str | Argument, ...]


class BadText(ValueError):
    """A text of a catalogue that is not ICU MessageFormat, or not in the forms that we use."""


@cache
def load_catalog(language: Language) -> Catalog:
    """Read the catalogue of a language."""
    return msgspec.json.decode((FOLDER / f"{language}.json").read_bytes(), type=Catalog)


def load_texts(group: str, language: Language, texts: type[T]) -> T:
    """Return a group of the catalogue as a Struct with one field per text.

    Raises:
        msgspec.ValidationError: a text of the Struct is missing in the catalogue.
    """
    return msgspec.convert(load_catalog(language)[group], texts)


def load_group(group: str, language: Language) -> dict[str, str]:
    """Return a group of the catalogue whose keys are not known beforehand."""
    return msgspec.convert(load_catalog(language)[group], dict[str, str])


def format_text(text: str, **values: object) -> str:
    """Fill in the values of a text; a placeholder without a value stays as it is.

    Raises:
        BadText: the text is malformed.
    """
    return "".join(_format(piece, values, None) for piece in parse_text(text))


def _format(piece: str | Argument, values: dict[str, object], number: int | None) -> str:
    if isinstance(piece, str):
        return piece
    if piece.name == "#":
        return "#" if number is None else f"{number:,}"
    if piece.name not in values:
        return f"{{{piece.name}}}"
    value = values[piece.name]
    if piece.kind == "number" and isinstance(value, int):
        return f"{value:,}"
    if not piece.options:
        return str(value)
    if piece.kind == "plural" and isinstance(value, int):
        number, chosen = value, f"={value}"
        if chosen not in piece.options and value == 1:  # in a language that has this category, it is that of 1
            chosen = "one"
    else:
        chosen = str(value)
    inner = piece.options.get(chosen, piece.options["other"])
    return "".join(_format(part, values, number) for part in inner)


# Parsing -----------------------------------------------------------------------------------------------------------


@cache
def parse_text(text: str) -> Pieces:
    """Parse a text.

    Raises:
        BadText: it is malformed; the message has the text.
    """
    pieces, end = _parse(text, 0, is_plural=False, depth=0)
    if end != len(text):
        raise BadText(f"a closing brace without an opening one: {text!r}")
    return pieces


def _parse(text: str, at: int, *, is_plural: bool, depth: int) -> tuple[Pieces, int]:
    pieces: list[str | Argument] = []
    plain = ""
    while at < len(text) and text[at] != "}":
        char = text[at]
        if char == "'" and text[at + 1 : at + 2] in ("{", "}", "#", "'"):  # 'quoted'; two apostrophes are one
            end = text.find("'", at + 1)
            if end < 0:
                raise BadText(f"an apostrophe before a brace begins a quotation, which does not end: {text!r}")
            plain += text[at + 1 : end] or "'"
            at = end + 1
        elif char == "{" or (char == "#" and is_plural):
            pieces += [plain] if plain else []
            plain = ""
            argument, at = (Argument("#"), at + 1) if char == "#" else _parse_argument(text, at + 1, depth)
            pieces.append(argument)
        else:
            plain += char
            at += 1
    return (*pieces, *([plain] if plain else [])), at


def _parse_argument(text: str, at: int, depth: int) -> tuple[Argument, int]:
    found = _ARGUMENT.match(text, at)
    if found is None or depth > 3:
        raise BadText(f"a brace that begins no placeholder; write '{{' for a brace: {text!r}")
    name, kind, has_options = found[1], found[2] or "", bool(found[3])
    at = found.end()
    if has_options != (kind in ("plural", "select")) or kind not in ("", "number", "plural", "select"):
        raise BadText(f"{{{name}}} has a kind other than number, plural and select: {text!r}")
    options: dict[str, Pieces] = {}
    while has_options and (option := _OPTION.match(text, at)):
        options[option[1]], at = _parse(text, option.end(), is_plural=kind == "plural", depth=depth + 1)
        at += 1
    while text[at : at + 1].isspace():
        at += 1
    if text[at : at + 1] != "}" or (has_options and "other" not in options):
        raise BadText(f"{{{name}}} is not closed, or has no option `other`: {text!r}")
    return Argument(name, kind, options), at + 1
