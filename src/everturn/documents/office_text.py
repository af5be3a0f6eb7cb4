"""Text of Word, PowerPoint and OpenDocument files: paragraphs as lines, cells separated by tabs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from everturn.documents.office_xml import (
    ENCRYPTED,
    Attributes,
    Limits,
    OfficeFile,
    UnreadableDocument,
    parse_number,
)
from everturn.documents.text_lines import TextLines, write_section
from everturn.documents.workbook_text import read_xlsx

FOOTNOTES: Final = "word/footnotes.xml"
MOST_EMPTY_CELLS: Final = 40  # between two cells of a row that are written as tabs
MOST_BLANKS: Final = 40


# Word -----------------------------------------------------------------------------------------------------------------


def read_docx(data: bytes, limits: Limits) -> None:
    """Write the text of a Word document: its body, then its footnotes."""
    file = OfficeFile(data, limits)
    limits.announce(1)
    main = next((path for kind, path in file.relations("").values() if kind == "officeDocument"), "word/document.xml")
    word = _WordText(limits.text)
    with write_section(limits, word.lines):
        file.parse(main, word.start, word.end, word.text)
        if FOOTNOTES in file.names:
            word.lines.add("\n")
            file.parse(FOOTNOTES, word.start, word.end, word.text)


class _WordText:
    """The paragraphs and tables of a part of a Word document."""

    def __init__(self, most: int) -> None:
        self.lines = TextLines(most)
        self._skipped, self._is_text = 0, False

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "Fallback" or self._skipped:  # the same text again, for older programs
            self._skipped += 1
            return
        match tag:
            case "t":
                self._is_text = True
            case "tab":
                self.lines.add("\t")
            case "br" | "cr":
                self.lines.add("\n")
            case "tc":
                self.lines.cells += 1
            case "pStyle":
                self._set_style(attributes.get("val", "").lower())
            case "numPr" if not self.lines.prefix:
                self.lines.prefix = "- "
            case _:
                pass

    def _set_style(self, style: str) -> None:
        level = int(style[-1]) if style[-1:].isdecimal() else 1
        if style.startswith(("heading", "title", "berschrift", "titre")):
            self.lines.prefix = "#" * min(max(level, 1), 6) + " "

    def end(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif tag == "t":
            self._is_text = False
        else:
            self.lines.end_element(tag)

    def text(self, value: str) -> None:
        if self._is_text and not self._skipped:
            self.lines.add(value)


# PowerPoint -----------------------------------------------------------------------------------------------------------


def read_pptx(data: bytes, limits: Limits) -> None:
    """Write the text of each slide, with its notes."""
    file = OfficeFile(data, limits)
    relations = file.relations("ppt/presentation.xml")
    ids: list[str] = []

    def start(tag: str, attributes: Attributes) -> None:
        if tag == "sldId":
            ids.append(attributes.get("r:id", ""))

    file.parse("ppt/presentation.xml", start)
    slides = [relations[name][1] for name in ids if name in relations]
    limits.announce(len(slides))
    for slide in slides:
        lines = TextLines(limits.text)
        parts = [slide, *(path for kind, path in file.relations(slide).values() if kind == "notesSlide")]
        with write_section(limits, lines):
            for number, part in enumerate(parts):
                if number:
                    lines.add("\nNotes:\n")
                _read_drawing(file, part, lines)


def _read_drawing(file: OfficeFile, name: str, lines: TextLines) -> None:
    is_text, has_number = False, 0

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal is_text, has_number
        if tag == "t":
            is_text = not has_number
        elif tag == "fld" and attributes.get("type") == "slidenum":
            has_number += 1
        elif tag == "br":
            lines.add("\n")
        elif tag == "tc":
            lines.cells += 1

    def end(tag: str) -> None:
        nonlocal is_text, has_number
        if tag == "t":
            is_text = False
        elif tag == "fld":
            has_number = 0
        else:
            lines.end_element(tag)

    file.parse(name, start, end, lambda value: lines.add(value) if is_text else None)


# OpenDocument ---------------------------------------------------------------------------------------------------------


def read_odf(data: bytes, limits: Limits) -> None:
    """Write the text of an OpenDocument file: each slide, each sheet, or the whole text."""
    file = OfficeFile(data, limits)
    if "META-INF/manifest.xml" in file.names:

        def check(tag: str, _: Attributes) -> None:
            if tag == "encryption-data":
                raise UnreadableDocument(ENCRYPTED)

        file.parse("META-INF/manifest.xml", check)
    reader = _OpenDocument(limits)
    try:
        file.parse("content.xml", reader.start, reader.end, reader.text)
    finally:
        reader.emit_rest()


class _OpenDocument:
    def __init__(self, limits: Limits) -> None:
        self._limits, self.lines, self._title = limits, TextLines(limits.text), ""
        self._kind, self._paragraphs, self._skipped, self._count = "", 0, 0, 0
        self._empty, self._is_filled = 0, False  # cells of the row

    def start(self, tag: str, attributes: Attributes) -> None:
        if self._skipped or tag in ("annotation", "tracked-changes"):
            self._skipped += 1
        elif tag in ("text", "spreadsheet", "presentation") and not self._kind:
            self._kind = tag
        elif (tag == "table" and self._kind == "spreadsheet") or (tag == "page" and self._kind == "presentation"):
            self._title = attributes.get("name", "") if tag == "table" else ""
        elif tag in ("p", "h"):
            self._paragraphs += 1
            if tag == "h":
                self.lines.prefix = "#" * min(max(parse_number(attributes.get("outline-level")), 1), 6) + " "
        elif tag == "list-item":
            self.lines.prefix = "- "
        elif tag == "tab":
            self.lines.add("\t")
        elif tag == "line-break":
            self.lines.add("\n")
        elif tag == "s":
            self.lines.add(" " * min(max(parse_number(attributes.get("c")), 1), MOST_BLANKS))
        elif tag in ("table-cell", "covered-table-cell"):
            self._start_cell(attributes)

    def _start_cell(self, attributes: Attributes) -> None:
        self.lines.cells += 1
        self._is_filled = False
        self._repeated = min(max(parse_number(attributes.get("number-columns-repeated")), 1), MOST_EMPTY_CELLS)

    def text(self, value: str) -> None:
        if self._paragraphs and not self._skipped:
            if self.lines.cells and not self._is_filled:
                self.lines.add("\t" * min(self._empty, MOST_EMPTY_CELLS))
                self._empty, self._is_filled = 0, True
            self.lines.add(value)

    def end(self, tag: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif tag in ("p", "h"):
            self._paragraphs -= 1
            if not self.lines.cells or self._is_filled:
                self.lines.end_paragraph()
        elif tag in ("table-cell", "covered-table-cell"):
            self.lines.cells = max(self.lines.cells - 1, 0)
            # Empty cells are written only before one that is not: a row may end with a thousand of them.
            self._empty += self._repeated
        elif tag == "table-row":
            self._empty = 0
            self.lines.end_row()
        elif (tag == "table" and self._kind == "spreadsheet") or (tag == "page" and self._kind == "presentation"):
            self._emit(self.lines.take())

    def _emit(self, text: str) -> None:
        self._count += 1
        self._limits.announce(self._count)
        self._limits.emit(text.strip("\n"), self._title)
        self.lines = TextLines(self._limits.text)

    def emit_rest(self) -> None:
        """Write what has not been written: the whole of a text document."""
        if (rest := self.lines.take()).strip():
            self._emit(rest)


OFFICE_READERS: Final[dict[str, Callable[[bytes, Limits], None]]] = {
    "docx": read_docx,
    "xlsx": read_xlsx,
    "pptx": read_pptx,
    "odt": read_odf,
    "ods": read_odf,
    "odp": read_odf,
}
