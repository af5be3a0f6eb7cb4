r"""Rule patterns: compiles a pattern for a kind of value (text, path, url, command) and matches values with it.

The kind of the value decides how a pattern is read:

text      `*` any run of characters, `?` one
path      `*` and `?` stay within one segment, `**` crosses; a relative pattern allows nothing outside of its root
url       `https://*.example.com/docs/**`: the host's `*` ends at the host, no path means any path
command   word for word, globs within a word; a last word `*` is any number of further words, none included

A rule that allows matches exactly. A rule that asks or denies ("generous") also matches look-alikes and other spellings
of the same thing: other case, other forms of a letter, `/bin/rm` for `rm`, `/etc` for `etc`.

A word of a command that the shell would expand is unknown: a rule that allows matches it where the pattern takes any
word, and a rule that asks or denies wherever some expansion could match; see `shell_expansion`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, cast

from msgspec import Struct

from everturn.core.rules.globs import (
    ANY_PATH,
    TextMatcher,
    Token,
    compile_path_glob,
    compile_text_glob,
    escape_glob,
    fold_text,
    fold_tokens,
    parse_glob,
)
from everturn.core.rules.shell_expansion import CommandWords, Expansion, matches_every_expansion, matches_some_expansion
from everturn.core.rules.urls import Url, compile_url_pattern, lenient_url, parse_url

SubjectKind = Literal["text", "path", "url", "command"]
SUBJECT_KINDS: Final[tuple[SubjectKind, ...]] = ("text", "path", "url", "command")
MATCH_ALL_PATTERNS: Final = frozenset({"*", "**"})
CACHED_PATTERNS = 4096  # every session builds its own policy, mostly from the same patterns


class Subject(Struct, frozen=True, gc=False):
    """One value that rules are matched against; `words` are those of a command.

    `expansions` has an item for each word, None for a literal one; it is empty if all are literal. `option_of` are the
    words of a command whose option this subject stands for (`python -m`); an allow rule for exactly those covers it.
    """

    kind: SubjectKind
    text: str
    words: tuple[str, ...] = ()
    expansions: tuple[Expansion | None, ...] = ()
    option_of: tuple[str, ...] = ()


class MatchValue(Struct, frozen=True, gc=False):
    """A value prepared for matching: its exact form, and its loose forms for generous rules."""

    kind: SubjectKind
    exact: Any
    loose: Any
    # Further loose forms. They include the exact form if it could match although the loose form does not: `ẞ` is one
    # character, and two when folded.
    others: tuple[Any, ...] = ()
    option_of: tuple[str, ...] = ()  # the words of the command to which an option belongs


ValueMatcher = Callable[[MatchValue], bool]


def normalize_path(text: str) -> str | None:
    """Normalise a path without `.`, `..` and doubled slashes, as far as that is possible without a file system.

    A relative path that leaves its root keeps the leading `..`. None if it has control characters.
    """
    if not (text.isascii() and text.isprintable()) and any(map(_is_unreadable, text)):
        return None
    root = "/" if text.startswith("/") else ""
    segments: list[str] = []
    for segment in text.split("/"):
        if segment == ".." and segments and segments[-1] != "..":
            segments.pop()
        elif segment == ".." and root:
            continue
        elif segment and segment != ".":
            segments.append(segment)
    return root + "/".join(segments) or "."


def _is_unreadable(char: str) -> bool:
    """Whether this is a control character or a lone surrogate."""
    return char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"


def prepare_value(subject: Subject) -> MatchValue | None:
    """Prepare a value for matching; None if it cannot be parsed, and must be denied."""
    text = subject.text
    if subject.kind == "text":
        return MatchValue("text", text, fold_text(text), () if text.isascii() else (text,))
    if subject.kind == "path":
        path = normalize_path(text)
        if path is None:
            return None
        return MatchValue("path", path, fold_text(path).lstrip("/"), () if path.isascii() else (path,))
    if subject.kind == "url":
        url = parse_url(text)
        if url is None:
            return None
        is_plain = "%" not in url.target and "//" not in url.path
        return MatchValue("url", url, lenient_url(url), () if is_plain else (url,))
    if not subject.words:
        return None
    return _form_of_command(subject)


def _form_of_command(subject: Subject) -> MatchValue:
    folded = tuple(map(fold_text, subject.words))
    expansions = subject.expansions
    folded_expansions = tuple(expansion and expansion.folded() for expansion in expansions)
    exact = CommandWords(subject.words, expansions)
    others = () if all(map(str.isascii, subject.words)) else (exact,)
    option_of = subject.option_of
    if "/" not in folded[0]:
        return MatchValue("command", exact, CommandWords(folded, folded_expansions), others, option_of)
    short = (folded[0].rpartition("/")[2], *folded[1:])
    others = (CommandWords(folded, folded_expansions), *others)
    return MatchValue("command", exact, CommandWords(short, folded_expansions), others, option_of)


@lru_cache(CACHED_PATTERNS)
def compile_pattern(pattern: str, kind: SubjectKind, generous: bool) -> ValueMatcher:
    """Compile a pattern.

    A pattern that is invalid for this kind allows nothing, and asks about or denies everything.
    """
    if generous and pattern in MATCH_ALL_PATTERNS:
        return _always
    exact, loose = _MAKERS[kind](pattern, generous)
    if isinstance(exact, str):
        return _always if generous else _never
    if not generous:
        literal = _literal_words(pattern) if kind == "command" else ()
        if literal:  # who allows exactly this command has read its options, too
            return lambda form: exact(form.exact) or form.option_of == literal
        return lambda form: exact(form.exact)
    return lambda form: loose(form.loose) or (form.others != () and (any(map(loose, form.others)) or exact(form.exact)))


def explain_invalid_pattern(pattern: str, kind: SubjectKind) -> str:
    """Why a pattern is invalid for values of this kind; "" if it is valid."""
    compiled = _MAKERS[kind](pattern, False)[0]
    return compiled if isinstance(compiled, str) else ""


def exact_pattern(subject: Subject) -> str:
    """The pattern that matches this value and no other: what a gate offers for "always allow"."""
    if subject.kind == "command":
        return shlex.join([escape_glob(word) for word in subject.words])
    if subject.kind == "url":
        return escape_glob(str(parse_url(subject.text) or subject.text))
    if subject.kind == "path":
        return escape_glob(normalize_path(subject.text) or subject.text)
    return escape_glob(subject.text)


def _always(form: MatchValue) -> bool:
    return True


def _never(form: MatchValue) -> bool:
    return False


# ------------------------------------------------------------------------- one compiler for each kind of value
# Each returns a test of the exact form and one of the loose form, or a text that says why the pattern is invalid.

CompiledPattern = tuple[Callable[[Any], bool] | str, Callable[[Any], bool]]


def _make_text(pattern: str, generous: bool) -> CompiledPattern:
    tokens = parse_glob(pattern)
    folded = fold_tokens(tokens)
    exact = compile_text_glob(tokens)
    return exact, (exact if folded == tokens else compile_text_glob(folded))


def _make_path(pattern: str, generous: bool) -> CompiledPattern:
    normal = normalize_path(pattern)
    if normal is None:
        return "a path with control characters is never allowed, so no pattern has one", bool
    if _climbs_from_a_wildcard(pattern):
        return ".. after a wildcard is ambiguous; write the path without it", bool
    tokens = parse_glob(normal)
    if generous:
        folded = fold_tokens(tokens)
        if isinstance(folded[0], str):
            folded[0] = folded[0].lstrip("/")
        return _with_itself(tokens), _with_itself(folded)
    fits, outside = compile_path_glob(tokens), _outside(normal)
    if normal == "**":
        return (lambda path: not _outside(path)), bool
    if outside:
        return (lambda path: fits(path) and _outside(path) == outside), bool
    return (lambda path: fits(path) and not _outside(path) and (path != "." or normal == ".")), bool


def _climbs_from_a_wildcard(pattern: str) -> bool:
    before, separator, _ = pattern.rpartition("/..")
    return bool(separator) and ("*" in before or "?" in before) and ".." in pattern.split("/")


def _outside(path: str) -> str:
    """How a path leaves its root: `/`, one or more `../`, or not at all. No wildcard matches that."""
    if path.startswith("/"):
        return "/"
    if not path.startswith(".."):
        return ""
    return "../" * path.split("/").count("..")


def _with_itself(tokens: Sequence[Token]) -> TextMatcher:
    """A generous `secrets/**` matches `secrets` as well: removing the folder removes what is in it."""
    fits = compile_path_glob(tokens)
    before = tokens[-2] if len(tokens) > 1 else ""
    if tokens[-1] != ANY_PATH or not isinstance(before, str) or not before.endswith("/"):
        return fits
    itself = compile_path_glob([*tokens[:-2], before[:-1]])
    return lambda path: fits(path) or itself(path)


def _make_url(pattern: str, generous: bool) -> CompiledPattern:
    exact = compile_url_pattern(pattern, generous=False)
    return exact, cast("Callable[[Url], bool]", compile_url_pattern(pattern, generous=True) if generous else exact)


def _make_command(pattern: str, generous: bool) -> CompiledPattern:
    try:
        words = pattern.split() if _is_simple(pattern) else shlex.split(pattern)
    except ValueError:
        return "a quotation mark is never closed", bool
    if not words:
        return "a command has at least one word", bool
    is_open = words[-1] in MATCH_ALL_PATTERNS
    tokens = [parse_glob(word) for word in (words[:-1] if is_open else words)]
    folded = [fold_tokens(word) for word in tokens]
    exact = _words_glob(tokens, is_open, could_be=False)
    if not generous:
        return exact, exact
    return _words_glob(tokens, is_open, could_be=True), _words_glob(folded, is_open, could_be=True)


def _literal_words(pattern: str) -> tuple[str, ...]:
    """The words of a pattern without wildcards; () if it has some."""
    try:
        words = [parse_glob(word) for word in shlex.split(pattern)]
    except ValueError:
        return ()
    if any(isinstance(token, int) for tokens in words for token in tokens):
        return ()
    return tuple("".join(cast("list[str]", tokens)) for tokens in words)


def _is_simple(pattern: str) -> bool:
    """Whether only spaces separate its words; then the slow shell parser is not needed."""
    return pattern.isascii() and pattern.isprintable() and not any(char in pattern for char in "'\"\\")


def _words_glob(patterns: list[list[Token]], is_open: bool, *, could_be: bool) -> Callable[[CommandWords], bool]:
    """A matcher of words: the literal ones at the front are compared at once."""
    plain: list[str] = []
    for tokens in patterns:
        if any(isinstance(token, int) for token in tokens):
            break
        plain.append("".join(cast("list[str]", tokens)))
    head, cut, size = tuple(plain), len(plain), len(patterns)
    globs = [compile_text_glob(tokens) if tokens else "".__eq__ for tokens in patterns]

    def fits(value: CommandWords) -> bool:
        words, expansions = value
        if expansions:
            if could_be:
                return matches_some_expansion(value, patterns, globs, is_open)
            return matches_every_expansion(value, patterns, globs, is_open)
        if words[:cut] != head or len(words) < size or (len(words) > size and not is_open):
            return False
        return cut == size or all(glob(word) for glob, word in zip(globs[cut:], words[cut:], strict=False))

    return fits


_MAKERS: Final[dict[SubjectKind, Callable[[str, bool], CompiledPattern]]] = {
    "text": _make_text,
    "path": _make_path,
    "url": _make_url,
    "command": _make_command,
}
