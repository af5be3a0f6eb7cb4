r"""Patterns of rules: from a pattern and a value to yes or no.

A value has a kind, and the kind says how a pattern is read:

text      `*` any run of characters, `?` one
path      `*` and `?` stay within one segment, `**` crosses; a relative pattern allows nothing outside of its root
url       `https://*.example.com/docs/**`: the host's `*` ends at the host, no path means any path
command   word for word, globs within a word; a last word `*` is any number of further words, none included

A rule that allows is held to the letter. One that asks or denies also fits what merely looks alike or leads to the
same thing: other case, other forms of a letter, `/bin/rm` for `rm`, `/etc` for `etc`.

A word of a command that the shell would expand is not known: a rule that allows fits it where any word may stand, and
one that asks or denies wherever it could make the rule fit; see `expanding`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, cast

from msgspec import Struct

from everturn.core.globs import DEEP, Fits, Token, escape, fold, fold_tokens, path_glob, text_glob, tokens_of
from everturn.core.shell_expansion import Expansion, Words, could_fit, fits_any
from everturn.core.urls import Url, loosely, read_url, url_glob

SubjectKind = Literal["text", "path", "url", "command"]
KINDS: Final[tuple[SubjectKind, ...]] = ("text", "path", "url", "command")
ANYTHING: Final = frozenset({"*", "**"})
REMEMBERED_PATTERNS = 4096  # policies are made anew for every session, mostly of the same patterns


class Subject(Struct, frozen=True, gc=False):
    """One value that rules are matched against; `words` are those of a command.

    `expansions` has a place for each word, None for a literal one; it is empty where all are literal.
    """

    kind: SubjectKind
    text: str
    words: tuple[str, ...] = ()
    expansions: tuple[Expansion | None, ...] = ()


class Form(Struct, frozen=True, gc=False):
    """A value made ready: to the letter, and in every way in which it is compared generously."""

    kind: SubjectKind
    exact: Any
    loose: Any
    # Further loose forms. The letter is one of them where it could fit although the loose form does not: `ẞ` is one
    # character, and two when folded.
    others: tuple[Any, ...] = ()


Match = Callable[[Form], bool]


def read_path(text: str) -> str | None:
    """The path without `.`, `..` and doubled slashes, as far as that can be said without a disk.

    A relative one that climbs out keeps the `..` it begins with. None when it has control characters in it.
    """
    if not (text.isascii() and text.isprintable()) and any(map(_is_unreadable, text)):
        return None
    root = "/" if text.startswith("/") else ""
    kept: list[str] = []
    for segment in text.split("/"):
        if segment == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif segment == ".." and root:
            continue
        elif segment and segment != ".":
            kept.append(segment)
    return root + "/".join(kept) or "."


def _is_unreadable(char: str) -> bool:
    """A control character, or half of one."""
    return char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"


def form_of(subject: Subject) -> Form | None:
    """Make a value ready to be compared; None when it cannot be read, and must be denied."""
    text = subject.text
    if subject.kind == "text":
        return Form("text", text, fold(text), () if text.isascii() else (text,))
    if subject.kind == "path":
        path = read_path(text)
        if path is None:
            return None
        return Form("path", path, fold(path).lstrip("/"), () if path.isascii() else (path,))
    if subject.kind == "url":
        url = read_url(text)
        if url is None:
            return None
        is_plain = "%" not in url.target and "//" not in url.path
        return Form("url", url, loosely(url), () if is_plain else (url,))
    if not subject.words:
        return None
    return _form_of_command(subject)


def _form_of_command(subject: Subject) -> Form:
    folded = tuple(map(fold, subject.words))
    expansions = subject.expansions
    loosely = tuple(each and each.folded() for each in expansions)
    exact = Words(subject.words, expansions)
    others = () if all(map(str.isascii, subject.words)) else (exact,)
    if "/" not in folded[0]:
        return Form("command", exact, Words(folded, loosely), others)
    short = (folded[0].rpartition("/")[2], *folded[1:])
    return Form("command", exact, Words(short, loosely), (Words(folded, loosely), *others))


@lru_cache(REMEMBERED_PATTERNS)
def matcher(pattern: str, kind: SubjectKind, generous: bool) -> Match:
    """Compile a pattern. One that makes no sense for this kind allows nothing, and asks about or denies everything."""
    if generous and pattern in ANYTHING:
        return _always
    exact, loose = _MAKERS[kind](pattern, generous)
    if isinstance(exact, str):
        return _always if generous else _never
    if not generous:
        return lambda form: exact(form.exact)
    return lambda form: loose(form.loose) or (form.others != () and (any(map(loose, form.others)) or exact(form.exact)))


def trouble_with(pattern: str, kind: SubjectKind) -> str:
    """Why a pattern can fit no value of this kind; nothing if it can."""
    made = _MAKERS[kind](pattern, False)[0]
    return made if isinstance(made, str) else ""


def exactly(subject: Subject) -> str:
    """The pattern that fits this value and no other: what a person is shown who would always allow it."""
    if subject.kind == "command":
        return shlex.join([escape(word) for word in subject.words])
    if subject.kind == "url":
        return escape(str(read_url(subject.text) or subject.text))
    if subject.kind == "path":
        return escape(read_path(subject.text) or subject.text)
    return escape(subject.text)


def _always(form: Form) -> bool:
    return True


def _never(form: Form) -> bool:
    return False


# ---------------------------------------------------------------------------- one maker for each kind of value
# Each gives a test of the letter and one of the folded form, or says in words why there is none.

Made = tuple[Callable[[Any], bool] | str, Callable[[Any], bool]]


def _make_text(pattern: str, generous: bool) -> Made:
    tokens = tokens_of(pattern)
    folded = fold_tokens(tokens)
    exact = text_glob(tokens)
    return exact, (exact if folded == tokens else text_glob(folded))


def _make_path(pattern: str, generous: bool) -> Made:
    normal = read_path(pattern)
    if normal is None:
        return "a path with control characters is never allowed, so no pattern has one", bool
    if _climbs_from_a_wildcard(pattern):
        return "what .. means behind a wildcard cannot be said; write the path without it", bool
    tokens = tokens_of(normal)
    if generous:
        folded = fold_tokens(tokens)
        if isinstance(folded[0], str):
            folded[0] = folded[0].lstrip("/")
        return _with_itself(tokens), _with_itself(folded)
    fits, outside = path_glob(tokens), _outside(normal)
    if normal == "**":
        return (lambda path: not _outside(path)), bool
    if outside:
        return (lambda path: fits(path) and _outside(path) == outside), bool
    return (lambda path: fits(path) and not _outside(path) and (path != "." or normal == ".")), bool


def _climbs_from_a_wildcard(pattern: str) -> bool:
    before, found, _ = pattern.rpartition("/..")
    return bool(found) and ("*" in before or "?" in before) and ".." in pattern.split("/")


def _outside(path: str) -> str:
    """How a path leaves its root: `/`, one or more `../`, or not at all. No wildcard stands for that."""
    if path.startswith("/"):
        return "/"
    if not path.startswith(".."):
        return ""
    return "../" * path.split("/").count("..")


def _with_itself(tokens: Sequence[Token]) -> Fits:
    """A generous `secrets/**` fits `secrets` as well: who removes it removes what is in it."""
    fits = path_glob(tokens)
    before = tokens[-2] if len(tokens) > 1 else ""
    if tokens[-1] != DEEP or not isinstance(before, str) or not before.endswith("/"):
        return fits
    itself = path_glob([*tokens[:-2], before[:-1]])
    return lambda path: fits(path) or itself(path)


def _make_url(pattern: str, generous: bool) -> Made:
    exact = url_glob(pattern, generous=False)
    return exact, cast("Callable[[Url], bool]", url_glob(pattern, generous=True) if generous else exact)


def _make_command(pattern: str, generous: bool) -> Made:
    try:
        words = pattern.split() if _is_simple(pattern) else shlex.split(pattern)
    except ValueError:
        return "a quotation mark is never closed", bool
    if not words:
        return "a command has at least one word", bool
    is_open = words[-1] in ANYTHING
    tokens = [tokens_of(word) for word in (words[:-1] if is_open else words)]
    folded = [fold_tokens(word) for word in tokens]
    exact = _words_glob(tokens, is_open, could_be=False)
    if not generous:
        return exact, exact
    return _words_glob(tokens, is_open, could_be=True), _words_glob(folded, is_open, could_be=True)


def _is_simple(pattern: str) -> bool:
    """Whether only spaces part its words; then there is no need for a shell's way of reading, which is slow."""
    return pattern.isascii() and pattern.isprintable() and not any(char in pattern for char in "'\"\\")


def _words_glob(patterns: list[list[Token]], is_open: bool, *, could_be: bool) -> Callable[[Words], bool]:
    """A matcher of words: the plain ones at the front are compared at once."""
    plain: list[str] = []
    for tokens in patterns:
        if any(isinstance(token, int) for token in tokens):
            break
        plain.append("".join(cast("list[str]", tokens)))
    head, cut, size = tuple(plain), len(plain), len(patterns)
    globs = [text_glob(tokens) if tokens else "".__eq__ for tokens in patterns]

    def fits(value: Words) -> bool:
        words, expansions = value
        if expansions:
            if could_be:
                return could_fit(value, patterns, globs, is_open)
            return fits_any(value, patterns, globs, is_open)
        if words[:cut] != head or len(words) < size or (len(words) > size and not is_open):
            return False
        return cut == size or all(glob(word) for glob, word in zip(globs[cut:], words[cut:], strict=False))

    return fits


_MAKERS: Final[dict[SubjectKind, Callable[[str, bool], Made]]] = {
    "text": _make_text,
    "path": _make_path,
    "url": _make_url,
    "command": _make_command,
}
