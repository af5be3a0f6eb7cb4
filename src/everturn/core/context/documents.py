"""Documents: the text of PDF and Office files, as it is stored beside them, shown to a model, read by range and searched. Pure.

The text is read once, when a file is attached, and stored as a blob that the file part names. So a request stays a pure
function of the log, whatever library reads the next file. The first line of the blob is a `DocumentInfo`; the rest is the
text of the sections, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical, replace_surrogates
from everturn.core.messages import Message
from everturn.core.parts import FilePart, SummaryPart, ToolPart

SHOWN_LENGTH: Final = 12_000  # characters of a document that go with its message
LONGEST_LINE: Final = 1_000  # characters; a longer one is broken
MOST_HITS: Final = 40
DOCUMENT_ARTIFACT: Final = "document "  # how the line of an attached document begins in a summary
HIT_LENGTH: Final = 240  # characters of a line that a search shows

DocumentUnit = Literal["page", "slide", "sheet", "part"]
"""What a document is divided into. A text document has one part, which is read by lines."""

_OFFICE = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
DOCUMENT_KINDS: Final = {
    "application/pdf": "pdf",
    f"{_OFFICE}wordprocessingml.document": "docx",
    f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}presentationml.presentation": "pptx",
    f"{_ODF}text": "odt",
    f"{_ODF}spreadsheet": "ods",
    f"{_ODF}presentation": "odp",
}
"""Media type → kind, which is also the extension of such files."""

_MEDIA_TYPES: Final = {kind: media_type for media_type, kind in DOCUMENT_KINDS.items()}
_UNITS: Final[dict[str, DocumentUnit]] = {
    "pdf": "page",
    "pptx": "slide",
    "odp": "slide",
    "xlsx": "sheet",
    "ods": "sheet",
}
_PLAIN_UNITS: Final = {"page": "pages", "slide": "slides", "sheet": "sheets", "part": "parts"}


class DocumentInfo(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """How a text is divided: the first line of its blob. Of the `count` sections of the file, those with a size were read."""

    kind: str
    count: int = 0
    sizes: tuple[int, ...] = ()  # bytes of UTF-8
    titles: tuple[str, ...] = ()  # of sheets
    problem: str = ""  # why not everything was read
    version: int = 1

    @property
    def unit(self) -> DocumentUnit:
        """What its sections are."""
        return _UNITS.get(self.kind, "part")


class SectionText(Struct, frozen=True):
    """The text of a page, a slide, a sheet, or a whole text document."""

    text: str
    title: str = ""


class DocumentRange(Struct, frozen=True):
    """What to read: from a line of a section on, up to the end of another one."""

    first: int = 1
    last: int = 0  # 0: as far as the limit allows
    line: int = 1


def document_type(media_type: str, name: str) -> str:
    """The media type of a document; "" if the file is none whose text is read.

    Browsers and systems do not know all of them: then the extension decides.
    """
    if media_type in DOCUMENT_KINDS:
        return media_type
    is_unknown = media_type in ("", "application/octet-stream", "application/zip", "application/x-zip-compressed")
    return _MEDIA_TYPES.get(name.rpartition(".")[2].lower(), "") if is_unknown else ""


def dump_document(kind: str, sections: Sequence[SectionText], count: int = 0, problem: str = "") -> bytes:
    """Encode the text of a document."""
    texts = [_break_lines(replace_surrogates(section.text)).encode() for section in sections]
    titles = tuple(replace_surrogates(section.title) for section in sections)
    info = DocumentInfo(
        kind,
        max(count, len(sections)),
        tuple(map(len, texts)),
        titles if any(titles) else (),
        replace_surrogates(problem),
    )
    return encode_canonical(msgspec.to_builtins(info)).encode() + b"\n" + b"".join(texts)


def _break_lines(text: str) -> str:
    """The text without trailing blanks, and with long lines broken: so a line is always a range that can be read."""
    lines: list[str] = []
    for line in text.splitlines():
        plain = line.rstrip()
        lines += [plain[at : at + LONGEST_LINE] for at in range(0, max(len(plain), 1), LONGEST_LINE)]
    return "\n".join(lines).strip("\n")


def page_count(data: bytes) -> int:
    """The pages, slides or sheets of a document; 0: it has none, or they are not known."""
    info = StoredDocument(data).info
    return 0 if info.unit == "part" else info.count


class StoredDocument:
    """The text of a document, read from its blob."""

    def __init__(self, data: bytes) -> None:
        head, _, self._text = data.partition(b"\n")
        try:
            self.info = msgspec.json.decode(head, type=DocumentInfo)
        except msgspec.MsgspecError:
            self.info = DocumentInfo("", problem="its text is damaged")

    def __len__(self) -> int:
        """The number of sections that were read."""
        return len(self.info.sizes)

    def section(self, number: int, most: int = 0) -> str:
        """The text of a section, from 1; at least its first `most` characters, if it has them."""
        start, size = sum(self.info.sizes[: number - 1]), self.info.sizes[number - 1]
        data = self._text[start : start + (min(size, 4 * most) if most else size)]
        return data.decode("utf-8", "ignore")

    def heading(self, number: int) -> str:
        """The line above the text of a section; "" in a document without sections."""
        if self.info.unit == "part":
            return ""
        title = self.info.titles[number - 1] if self.info.titles else ""
        return f"--- {self.info.unit} {number}{f': {title}' if title else ''} ---\n"

    def amount(self) -> str:
        """How long it is: `48 pages`, `1,200 lines`."""
        info = self.info
        if info.unit == "part":
            count = self.section(1).count("\n") + 1 if len(self) else 0
            return f"{count:,} line{'' if count == 1 else 's'}"
        return f"{info.count:,} {info.unit if info.count == 1 else _PLAIN_UNITS[info.unit]}"


# What a model reads ---------------------------------------------------------------------------------------------------


def opening_text(name: str, data: bytes, most: int = SHOWN_LENGTH) -> str:
    """The first part of a document, as it goes with the message that it is attached to."""
    document = StoredDocument(data)
    problem = f"; {document.info.problem}" if document.info.problem else ""
    if not any(document.info.sizes):
        reason = problem or "; there is no text in it: its pages may be pictures of text"
        return f"[{name}: {document.amount()}{reason}]" if len(document) else f"[{name}{reason}]"
    text, following = _take(document, DocumentRange(), most)
    if following is None:
        return f"[{name}: {document.amount()}{problem}]\n{text}"
    rest = f"only the beginning is here; read_document reads on from {_position(document, following)}"
    return f"[{name}: {document.amount()}, {rest}{problem}]\n{text}"


def read_document_range(name: str, document: StoredDocument, wanted: DocumentRange, most: int) -> str:
    """A range of a document, with a note of what it is and where it goes on."""
    text, following = _take(document, wanted, most)
    info = document.info
    head = f"[{name}: {document.amount()}]\n"
    if not text.strip():
        text += "(no text here)"
    is_end = following is None and (wanted.last == 0 or wanted.last >= len(document))
    end = f"\n[to read on: {_position(document, following)}]" if following is not None else ""
    if is_end and info.problem:
        end = f"\n[the rest was not read: {info.problem}]"
    return f"{head}{text}{end}"


def _take(document: StoredDocument, wanted: DocumentRange, most: int) -> tuple[str, tuple[int, int] | None]:
    """The text of a range up to a number of characters, and the section and line that follow it in the range."""
    pieces: list[str] = []
    line = max(wanted.line, 1)
    last = min(wanted.last or len(document), len(document))
    for number in range(max(wanted.first, 1), last + 1):
        if most <= 0:
            return "\n".join(pieces), (number, 1)
        heading = document.heading(number)
        # A long sheet is decoded only as far as it is shown; from a later line on, from its beginning.
        lines = document.section(number, most + LONGEST_LINE + 1 if line == 1 else 0).split("\n")
        taken: list[str] = []
        most -= len(heading)
        for text in lines[line - 1 :]:
            if most < len(text) + 1 and (taken or pieces):  # at least one line, so that reading on comes to an end
                break
            taken.append(text)
            most -= len(text) + 1
        if taken or line > len(lines):
            pieces.append(heading + "\n".join(taken))
        if line - 1 + len(taken) < len(lines):
            return "\n".join(pieces), (number, line + len(taken))
        line = 1
    return "\n".join(pieces), None


def _position(document: StoredDocument, place: tuple[int, int]) -> str:
    number, line = place
    if document.info.unit == "part":
        return f"line={line}"
    return f"first={number}, line={line}" if line > 1 else f"first={number}"


def search_document(document: StoredDocument, query: str, most: int = MOST_HITS) -> list[tuple[int, int, str]]:
    """The lines with a text: section, line and content. Where no line has it as it is, those with all its words."""
    wanted = " ".join(query.casefold().split())
    for words in ((wanted,), tuple(dict.fromkeys(wanted.split()))):
        if hits := list(_matching_lines(document, words, most)):
            return hits
    return []


def _matching_lines(document: StoredDocument, words: Sequence[str], most: int) -> Iterator[tuple[int, int, str]]:
    if not all(words) or not words:
        return
    for number in range(1, len(document) + 1):
        text = document.section(number)
        if not all(word.split(" ")[0] in text.casefold() for word in words):
            continue
        for at, line in enumerate(text.split("\n"), 1):
            plain = " ".join(line.casefold().split())
            if all(word in plain for word in words):
                yield number, at, _around(line, words[0])
                most -= 1
                if not most:
                    return


def _around(line: str, word: str) -> str:
    """The piece of a line in which a word is found first."""
    if len(line) <= HIT_LENGTH:
        return line
    start = max(0, min(line.casefold().find(word) - HIT_LENGTH // 3, len(line) - HIT_LENGTH))
    return f"{'…' if start else ''}{line[start : start + HIT_LENGTH]}…"


def show_hits(name: str, document: StoredDocument, query: str, hits: Iterable[tuple[int, int, str]]) -> str:
    """The hits of a search, with the place of each."""
    unit = document.info.unit
    lines = [
        f"{f'line {line}' if unit == 'part' else f'{unit} {number}, line {line}'}: {text}"
        for number, line, text in hits
    ]
    if not lines:
        return f"[{name}: no line has {query!r}]"
    more = ", and there may be more" if len(lines) >= MOST_HITS else ""
    return "\n".join([f"[{name}: {len(lines)} line{'' if len(lines) == 1 else 's'} with {query!r}{more}]", *lines])


# The documents of a conversation --------------------------------------------------------------------------------------


def has_documents(messages: Iterable[Message]) -> bool:
    """Whether messages have a document, or a summary that replaced one: then `read_document` is offered."""
    for message in messages:
        for part in message.parts:
            if type(part) is SummaryPart:
                if any(line.startswith(DOCUMENT_ARTIFACT) for line in part.artifacts):
                    return True
            elif type(part) is FilePart:
                if part.text:
                    return True
            elif type(part) is ToolPart and part.output is not None and part.output.attachments:
                if any(file.text for file in part.output.attachments):
                    return True
    return False


def documents_of(messages: Iterable[Message]) -> list[FilePart]:
    """The documents in messages, in their order."""
    return [
        file
        for message in messages
        if not message.hidden and not message.refused
        for part in message.parts
        for file in _documents_of(part)
    ]


def _documents_of(part: object) -> Iterator[FilePart]:
    if type(part) is FilePart:
        if part.text:
            yield part
    elif type(part) is ToolPart and part.output is not None:
        yield from (file for file in part.output.attachments if file.text)


def name_documents(files: Iterable[FilePart]) -> dict[str, FilePart]:
    """The documents of a conversation by the names that a model uses: the newest has its own, earlier ones `#2`, `#3`."""
    named: dict[str, FilePart] = {}
    seen: set[tuple[str, str]] = set()
    for file in reversed(list(files)):
        if not file.text or (file.text, file.name) in seen:
            continue
        seen.add((file.text, file.name))
        name = plain_name(file)
        number = 1
        while (label := name if number == 1 else f"{name}#{number}") in named:
            number += 1
        named[label] = file
    return named


def plain_name(file: FilePart) -> str:
    """The name of a file as a model reads it; without a name, its media type."""
    return one_line(file.name or file.media_type) or "file"


def one_line(text: str) -> str:
    """An untrusted name without line breaks and unprintable characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
