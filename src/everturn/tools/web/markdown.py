"""HTML → markdown: one pass, no tree, no recursion, no pattern that can run away. Pure.

Not markdownify: of 14 hostile pages of 200 kB it took more than ten seconds for two and died of five, and what holds the
interpreter inside one regular expression cannot be stopped from a thread. Here the time is that of the length, the text
is never longer than `most`, and `is_over` is asked all along.

Scripts, styles, forms and what is hidden are dropped; links become absolute; of a picture only its words are left, so
that nobody who draws the text fetches it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote, urljoin

from msgspec import Struct

from everturn.tools.web.writer import Writer

PIECE: Final = 2**15  # characters handled at a time, so that nothing holds the interpreter for long
MOST_ATTRIBUTES: Final = 100  # of a tag; behind them it ends at the next `>`, in quotes or not
LONGEST_LINK: Final = 2000

_SPACE: Final = re.compile(r"[\s/]*")
_NAME: Final = re.compile(r"[^\s/>]+")
_KEY: Final = re.compile(r"=?[^\s/>=]*")
_EQUALS: Final = re.compile(r"\s*=\s*")
_BARE: Final = re.compile(r"[^\s>]*")
_HUGE: Final = re.compile(r"&#[xX]?[0-9a-fA-F]{8,};?")  # longer than any character's number, and than int() takes
_HIDDEN: Final = re.compile(r"display:none|visibility:hidden|opacity:0(?![.\d])|font-size:0(?![.\d])")

_RAW: Final = frozenset(("script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp"))
_RAW_END: Final = {name: re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE) for name in _RAW}
_DROPPED: Final = frozenset(
    ("template", "svg", "math", "canvas", "object", "audio", "video", "select", "datalist", "map")
)
_VOID: Final = frozenset("area base br col embed hr img input link meta param source track wbr".split())


class Tag(Struct, frozen=True, gc=False):
    """A tag; `name` begins with a slash where it ends something."""

    name: str
    attributes: dict[str, str] = {}
    raw: str = ""  # what is inside, where that is no HTML


class Markdown(Struct, frozen=True):
    """A page to be read. `is_cut`: there is more than could be made of it."""

    text: str
    title: str = ""
    is_cut: bool = False


def to_markdown(
    source: str, base: str = "", *, most: int = 2_000_000, is_over: Callable[[], bool] = lambda: False
) -> Markdown:
    """Make markdown of a page that was found at `base`."""
    writer = Writer(most)
    title, hidden, depth, is_cut = "", "", 0, False
    for count, token in enumerate(read(source)):
        if writer.is_full or (count % 256 == 0 and is_over()):
            is_cut = True
            break
        if isinstance(token, str):
            if not hidden:
                writer.say(unescape(token))
        elif hidden:
            depth += (token.name == hidden) - (token.name == f"/{hidden}")
            hidden = hidden if depth else ""
        elif token.name == "title":
            title = title or " ".join(unescape(token.raw[:1000]).split())
        elif token.name == "base":
            base = _absolute(base, token.attributes.get("href", "")) or base
        elif token.name == "a":
            writer.link(_absolute(base, token.attributes.get("href", "")))
        elif token.name == "img":
            alt = " ".join(token.attributes.get("alt", "").split())
            writer.say(f" [image: {alt[:300]}] " if alt else " ")
        elif _is_dropped(token):
            hidden, depth = token.name, 1
        else:
            writer.tag(token.name)
    return Markdown(writer.end(), title, is_cut or writer.is_full)


def _is_dropped(tag: Tag) -> bool:
    if tag.name.startswith("/") or tag.name in _VOID or tag.name in _RAW:
        return False
    if tag.name in _DROPPED or "hidden" in tag.attributes:
        return True
    style = tag.attributes.get("style", "")
    return bool(style) and _HIDDEN.search("".join(style[:PIECE].lower().split())) is not None


def _absolute(base: str, href: str) -> str:
    """Where a link leads, if that is somewhere one can go."""
    href = href.strip()
    if not href or href.startswith("#") or len(href) > LONGEST_LINK:
        return ""
    try:
        there = urljoin(base, href)
    except ValueError:
        return ""
    if not there.lower().startswith(("http://", "https://", "mailto:")):
        return ""
    return quote(there, safe="%/:=&?~#+!$,;'@*-._[]", errors="replace")


def unescape(text: str) -> str:
    """Undo entities."""
    return html.unescape(_HUGE.sub("\ufffd", text)) if "&" in text else text


def read(source: str) -> Iterator[str | Tag]:
    """Texts (in pieces) and tags, in order. Whatever is never closed goes on to the end, as in a browser."""
    at, end = 0, len(source)
    while at < end:
        mark = source.find("<", at)
        mark = end if mark < 0 else mark
        for start in range(at, mark, PIECE):
            yield source[start : min(start + PIECE, mark)]
        following = source[mark + 1 : mark + 3]
        if following[:1].isascii() and following[:1].isalpha():
            tag, at = _read_tag(source, mark + 1)
            if tag is not None:
                yield tag
        elif following.startswith("/") and following[1:].isascii() and following[1:].isalpha():
            name = _NAME.match(source, mark + 2)
            yield Tag(f"/{name[0][:32].lower()}" if name else "/")
            at = _behind(source, ">", mark)
        elif following.startswith(("!", "?", "/")):
            is_comment = source.startswith("<!--", mark) and not source.startswith("<!-->", mark)
            at = _behind(source, "-->", mark + 4) if is_comment else _behind(source, ">", mark)
        elif mark < end:
            yield "<"
            at = mark + 1
        else:
            at = end


def _behind(source: str, what: str, at: int) -> int:
    found = source.find(what, at)
    return len(source) if found < 0 else found + len(what)


def _read_tag(source: str, at: int) -> tuple[Tag | None, int]:
    """A tag that begins something; None when the page ends inside it."""
    name, at = _take(_NAME, source, at)
    name = name[:32].lower()
    attributes: dict[str, str] = {}
    for _ in range(MOST_ATTRIBUTES):
        at = _take(_SPACE, source, at)[1]
        if at >= len(source):
            return None, at
        if source[at] == ">":
            at += 1
            break
        key, at = _take(_KEY, source, at)
        value = ""
        equals = _EQUALS.match(source, at)
        if equals is not None:
            at = equals.end()
            mark = source[at : at + 1]
            if mark in ("'", '"') and mark:
                close = source.find(mark, at + 1)
                if close < 0:
                    return None, len(source)
                value, at = source[at + 1 : min(close, at + 1 + PIECE)], close + 1
            else:
                value, at = _take(_BARE, source, at)
        attributes.setdefault(key[:32].lower(), unescape(value[:PIECE]))
    else:
        at = _behind(source, ">", at)
    if name not in _RAW:
        return Tag(name, attributes), at
    close = _RAW_END[name].search(source, at)
    if close is None:
        return Tag(name, attributes), len(source)
    return Tag(name, attributes, source[at : min(close.start(), at + PIECE)]), _behind(source, ">", close.start())


def _take(pattern: re.Pattern[str], source: str, at: int) -> tuple[str, int]:
    found = pattern.match(source, at)
    return (found[0], found.end()) if found else ("", at)
