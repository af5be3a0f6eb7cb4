"""Charset detection: decodes the bytes of a page in its declared or probable charset. Pure."""

from __future__ import annotations

import codecs
import re
from typing import Final

_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META: Final = re.compile(rb"<meta[^>]{0,200}?charset\s{0,8}=\s{0,8}[\"']?([A-Za-z0-9_:-]{1,40})", re.IGNORECASE)
_NAME: Final = re.compile(r"[a-z0-9_:-]{1,40}")

# The charsets of the web. Python has others, some of which are no charsets, and some take quadratic time.
_CHARSETS: Final = frozenset(
    "utf-8 utf-16 utf-16-le utf-16-be cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp866 cp874 iso8859-2 "
    "iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16 "
    "koi8-r koi8-u mac-roman mac-cyrillic gbk gb2312 gb18030 big5 big5hkscs euc_jp iso2022_jp shift_jis cp932 euc_kr cp949".split()
)
_LATIN: Final = frozenset(("ascii", "iso8859-1"))  # read as cp1252, as every browser does

# Control characters except tab and line feed; marks that change the text direction; invisible characters.
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]+")


def decode_page(body: bytes, charset: str, *, is_html: bool) -> str | None:
    """Decode a page; None if it is binary."""
    bom = next((row for row in _BOMS if body.startswith(row[0])), None)
    if bom is not None:
        return _seen(body[len(bom[0]) :].decode(bom[1], "replace"))
    known = _known(charset)
    if known is None and is_html and (meta := _META.search(body[:2048])) is not None:
        known = _known(meta[1].decode("ascii").lower())
        # In UTF-16 the declaration itself would be unreadable
        known = "utf-8" if known is not None and known.startswith("utf-16") else known
    if known is None or not known.startswith("utf-16"):
        if b"\x00" in body[: 2**16]:
            return None
    if known is not None:
        return _seen(body.decode(known, "replace"))
    try:
        return _seen(body.decode("utf-8"))
    except UnicodeDecodeError:
        return _seen(body.decode("cp1252", "replace"))


def _known(charset: str) -> str | None:
    if _NAME.fullmatch(charset) is None:
        return None
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        return None
    return "cp1252" if name in _LATIN else name if name in _CHARSETS else None


def _seen(text: str) -> str:
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
