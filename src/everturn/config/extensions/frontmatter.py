"""Frontmatter: the YAML head of a Markdown file, read as a small subset of YAML.

Skills, agents and commands of other programs use keys with texts, lists and small maps. That is all this reader knows: an
anchor, an alias or a tag is plain text, so that no file can expand to more than it has. A value without quotes may
contain a colon, which files in the wild have, although YAML refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from everturn.errors import ConfigError

Value = str | list["Value"] | dict[str, "Value"]
Fields = dict[str, Value]

MAX_SIZE: Final = 32 * 1024  # characters of the head
MAX_LINES: Final = 500
MAX_DEPTH: Final = 4
_FENCE: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)(?:^---[ \t]*$\r?\n?)", re.S | re.M)
_KEY: Final = re.compile(
    r"(\"[^\"]{1,128}\"|'[^']{1,128}'|[^\s:#\"'\[\]{},&*!|>%@`-][^:#]{0,127}?|\*)\s*:(?:\s+(.*))?$"
)
_BLOCK: Final = re.compile(r"([|>])([+-]?)[1-9]?[+-]?\s*(?:#.*)?$")


class MarkdownDocument(Struct, frozen=True):
    """A Markdown file: the fields of its head, and the text below it."""

    fields: Fields
    body: str


class _HeadLine(Struct, frozen=True):
    indent: int
    text: str


def parse_document(text: str) -> MarkdownDocument:
    """Split a file into its frontmatter and its body. A file without frontmatter is all body.

    Raises:
        ConfigError: the head is too large, too deep, or not in the subset.
    """
    text = text.replace("\r\n", "\n")
    match = _FENCE.match(text[: MAX_SIZE + 16])
    if match is None:
        if text.removeprefix("\ufeff").startswith("---\n") and len(text) > MAX_SIZE:
            raise ConfigError(f"its frontmatter has no end within {MAX_SIZE:,} characters")
        return MarkdownDocument({}, text.removeprefix("\ufeff"))
    lines = match[1].split("\n")
    if len(lines) > MAX_LINES:
        raise ConfigError(f"its frontmatter has more than {MAX_LINES} lines")
    reader = _Reader([_HeadLine(len(line) - len(line.lstrip(" ")), line) for line in lines])
    return MarkdownDocument(reader.read_map(0, 0), text[match.end() :])


def text_field(fields: Fields, key: str) -> str:
    """Return a text of the frontmatter; "" if there is none.

    Raises:
        ConfigError: it is a list or a map.
    """
    value = fields.get(key, "")
    if not isinstance(value, str):
        raise ConfigError(f"{key} is a {'list' if isinstance(value, list) else 'map'}; it must be a string")
    return value


def list_field(fields: Fields, key: str) -> list[str] | None:
    """Return a list of names: a list of texts, or one text with commas or blanks; None if there is none.

    Raises:
        ConfigError: it is a map, or a list of something else.
    """
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, str):
        return _split_names(value)
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return [entry for entry in value if isinstance(entry, str) and entry]
    raise ConfigError(f"{key} must be a list of names")


def _split_names(text: str) -> list[str]:
    """Split at commas and blanks that are not inside parentheses: `Read, Bash(git log)`."""
    names, name, depth = list[str](), "", 0
    for char in text:
        if (char == "," or char.isspace()) and not depth:
            names.append(name)
            name = ""
        else:
            depth += (char == "(") - (char == ")" and depth > 0)
            name += char
    return [name for name in (*names, name) if name]


def is_set(fields: Fields, key: str) -> bool:
    """Whether a switch of the frontmatter is on."""
    return fields.get(key) in ("true", "True", "yes", "on")


class _Reader:
    def __init__(self, lines: Sequence[_HeadLine]) -> None:
        self._lines, self._at = lines, 0

    def _peek(self) -> _HeadLine | None:
        """Return the next line that is neither empty nor a comment."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text.strip() and not line.text.lstrip().startswith("#"):
                if "\t" in line.text[: len(line.text) - len(line.text.lstrip())]:
                    raise ConfigError("its frontmatter is indented with tabs; use spaces")
                return line
            self._at += 1
        return None

    def read_map(self, indent: int, depth: int) -> Fields:
        if depth > MAX_DEPTH:
            raise ConfigError(f"its frontmatter is nested more than {MAX_DEPTH} levels")
        fields: Fields = {}
        while (line := self._peek()) is not None and line.indent >= indent:
            match = _KEY.match(line.text.strip())
            if line.indent != indent or match is None:
                raise ConfigError(f"line {self._at + 2} of its frontmatter is not `key: value`")
            key = _unquote(match[1])
            if key in fields:
                raise ConfigError(f"its frontmatter has two values for {key[:40]!r}")
            self._at += 1
            fields[key] = self._read_value((match[2] or "").strip(), indent, depth)
        if depth == 0 and self._peek() is not None:
            raise ConfigError(f"line {self._at + 2} of its frontmatter is not `key: value`")
        return fields

    def _read_value(self, rest: str, indent: int, depth: int) -> Value:
        if (block := _BLOCK.match(rest)) is not None:
            return self._read_block(indent, is_folded=block[1] == ">")
        if rest and not rest.startswith("#"):
            return self._read_scalar(rest, indent)
        line = self._peek()
        if line is None or line.indent < indent:
            return ""
        is_list = line.text.lstrip().startswith("- ") or line.text.strip() == "-"
        if is_list:
            return self._read_list(line.indent)
        return self.read_map(line.indent, depth + 1) if line.indent > indent else ""

    def _read_scalar(self, rest: str, indent: int) -> Value:
        """Read a text, which may go on in lines that are indented more, or a list in brackets."""
        if rest[0] in "\"'":
            while not _is_closed(rest) and self._at < len(self._lines):
                rest = f"{rest} {self._lines[self._at].text.strip()}"
                self._at += 1
            return _unquote(rest)
        parts = [_without_comment(rest)]
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.text.strip() or line.indent <= indent:
                break
            parts.append(_without_comment(line.text.strip()))
            self._at += 1
        text = " ".join(parts)
        if text.startswith("[") and text.endswith("]"):
            return [_unquote(entry.strip()) for entry in _split_commas(text[1:-1]) if entry.strip()]
        return text

    def _read_list(self, indent: int) -> list[Value]:
        values: list[Value] = []
        while (line := self._peek()) is not None and line.indent == indent and line.text.lstrip().startswith("-"):
            self._at += 1
            entry = line.text.lstrip()[1:].strip()
            values.append(_unquote(_without_comment(entry)) if entry else "")
            while (below := self._peek()) is not None and below.indent > indent:
                self._at += 1  # maps in lists are of no use here
        return values

    def _read_block(self, indent: int, is_folded: bool) -> str:
        lines: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text.strip() and line.indent <= indent:
                break
            lines.append(line.text.strip() if is_folded else line.text[indent + 2 :])
            self._at += 1
        if not is_folded:
            return "\n".join(lines).strip("\n")
        return "\n".join(" ".join(part.split("\n")) for part in "\n".join(lines).split("\n\n")).strip()


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text[1:-1])
    return text


def _is_closed(text: str) -> bool:
    body = re.sub(r"\\.", "", text) if text[0] == '"' else text.replace("''", "")
    return len(body) >= 2 and body.rstrip().endswith(text[0])


def _without_comment(text: str) -> str:
    return re.sub(r"\s#.*$", "", text) if not text.startswith(('"', "'")) else text


def _split_commas(text: str) -> list[str]:
    return re.findall(r"\"[^\"]*\"|'[^']*'|[^,]+", text)
