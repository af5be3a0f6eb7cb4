"""Text → the same text without what lets somebody in: keys, tokens, cookies, passwords in addresses.

A net, not a promise: secrets are kept out of texts by not putting them there. This catches what slips through in the
message of a foreign exception, or in a line that another library logs.
"""

from __future__ import annotations

import re
from typing import Final

GONE: Final = "[redacted]"
LONGEST: Final = 32_768  # characters of a text that are looked at, and written
LAST_WORD: Final = 4096

_RULES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    # A header, as it is written on the wire, in a dict or as JSON. Before the shapes, for its value may be of any.
    (
        re.compile(
            r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api-key|x-goog-api-key|x-csrf-token)"
            r"(['\"]?\s{0,4}[:=,]\s{0,4})(b?['\"])?([^\r\n'\"]+)"
        ),
        rf"\1\2\3{GONE}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s{1,4}[a-z0-9._~+/=-]{8,}"), rf"\1 {GONE}"),
    # user:password@ in an address; the user may stay. No look-behind over a long text: schemes are short.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"]{0,200}):([^\s/@'\"]{1,400})@"), rf"\1:{GONE}@"),
    # name=value and "name": "value" where the name says it
    (
        re.compile(
            r"(?i)(password|passwd|secret|api_?key|access_?token|refresh_?token|id_?token|private_?key|\btoken|\bpwd)"
            r"(['\"]?\s{0,4}[:=]\s{0,4})(['\"]?)([^\s'\"&,;}\])]{3,})"
        ),
        rf"\1\2\3{GONE}",
    ),
    # shapes: our keys, those of providers and clouds, tokens with three parts
    (re.compile(r"\bev[a-z]{1,2}_[A-Za-z0-9_-]{8,}"), GONE),
    (re.compile(r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}"), GONE),
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"), GONE),
    (re.compile(r"\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bgsk_[A-Za-z0-9]{20,}"), GONE),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}"), GONE),
    (re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}"), GONE),
    # Without an end, what comes behind its beginning goes: to look for it again and again would take for ever.
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[\s\S]{0,8000}?-----END [A-Z ]{0,40}KEY-----|[\s\S]{0,8000})"
        ),
        GONE,
    ),
)


def redact(text: str) -> str:
    """Take out whatever looks as if it could let somebody in."""
    if len(text) > LONGEST:
        # Without the last word: it may be half of a key that is known only by its whole.
        text = text[: max(text.rfind(" ", 0, LONGEST), text.rfind("\n", 0, LONGEST), LONGEST - LAST_WORD)] + " [cut]"
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text


def one_line(text: str, keep: str = "") -> str:
    """Escape whatever would begin another line, or move a terminal's cursor: one record is one line.

    What is in `keep` stays, for a writer that escapes it in a way of its own.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
