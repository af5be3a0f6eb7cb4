"""Redaction of secrets in log texts: removes keys, tokens, cookies and passwords in URLs.

A safety net, not a guarantee: secrets are kept out of texts by not putting them there. This catches what slips through in
the message of a foreign exception, or in a line that another library logs.
"""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = "[redacted]"
LONGEST: Final = 32_768  # characters of a text that are checked, and written
LAST_WORD_LIMIT: Final = 4096

_RULES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    # A header, as on the wire, in a dict or as JSON. Before the token formats, because its value may be of any.
    (
        re.compile(
            r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api-key|x-goog-api-key|x-csrf-token)"
            r"(['\"]?\s{0,4}[:=,]\s{0,4})(b?['\"])?([^\r\n'\"]+)"
        ),
        rf"\1\2\3{REDACTED}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s{1,4}[a-z0-9._~+/=-]{8,}"), rf"\1 {REDACTED}"),
    # user:password@ in a URL; the user may stay. No look-behind over a long text: schemes are short.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://[^\s/:@'\"]{0,200}):([^\s/@'\"]{1,400})@"), rf"\1:{REDACTED}@"),
    # name=value and "name": "value" where the name tells
    (
        re.compile(
            r"(?i)(password|passwd|secret|api_?key|access_?token|refresh_?token|id_?token|private_?key|\btoken|\bpwd)"
            r"(['\"]?\s{0,4}[:=]\s{0,4})(['\"]?)([^\s'\"&,;}\])]{3,})"
        ),
        rf"\1\2\3{REDACTED}",
    ),
    # token formats: our keys, those of providers and clouds, JWTs
    (re.compile(r"\bev[a-z]{1,2}_[A-Za-z0-9_-]{8,}"), REDACTED),
    (re.compile(r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}"), REDACTED),
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"), REDACTED),
    (re.compile(r"\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bgsk_[A-Za-z0-9]{20,}"), REDACTED),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{20,}"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}"), REDACTED),
    # Without an end, everything after its beginning is removed: a repeated search would take for ever.
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[\s\S]{0,8000}?-----END [A-Z ]{0,40}KEY-----|[\s\S]{0,8000})"
        ),
        REDACTED,
    ),
)


def redact(text: str) -> str:
    """Remove everything that looks like a credential."""
    if len(text) > LONGEST:
        # Without the last word: it may be a truncated key, which the patterns no longer match.
        text = (
            text[: max(text.rfind(" ", 0, LONGEST), text.rfind("\n", 0, LONGEST), LONGEST - LAST_WORD_LIMIT)] + " [cut]"
        )
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def one_line(text: str, keep: str = "") -> str:
    """Escape everything that would begin another line, or move a terminal's cursor: one record is one line.

    Characters in `keep` stay, for a caller that escapes them itself.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
