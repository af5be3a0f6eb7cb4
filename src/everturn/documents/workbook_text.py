"""Text of Excel files: a line for each row, with its number and its cells."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from everturn.documents.office_xml import Attributes, Limits, OfficeFile, parse_number
from everturn.documents.text_lines import TextLines, write_section

MOST_EMPTY_CELLS: Final = 40  # between two cells of a row that are written as tabs
EPOCH: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - dates of a sheet have no time zone
EPOCH_1904: Final = datetime(1904, 1, 1)  # noqa: DTZ001
_DATE_FORMATS: Final = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))  # built in
_QUOTED: Final = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')


def read_xlsx(data: bytes, limits: Limits) -> None:
    """Write each sheet: a line for each row, with the number of the row and its cells."""
    file = OfficeFile(data, limits)
    relations = file.relations("xl/workbook.xml")
    sheets: list[tuple[str, str]] = []
    has_1904 = False

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal has_1904
        if tag == "sheet" and attributes.get("r:id") in relations:
            sheets.append((attributes.get("name", ""), relations[attributes["r:id"]][1]))
        elif tag == "workbookPr":
            has_1904 = attributes.get("date1904") in ("1", "true")

    file.parse("xl/workbook.xml", start)
    limits.announce(len(sheets))
    strings = _shared_strings(file) if "xl/sharedStrings.xml" in file.names else []
    dates = _date_styles(file) if "xl/styles.xml" in file.names else frozenset[int]()
    for title, path in sheets:
        sheet = _Sheet(limits, strings, dates, EPOCH_1904 if has_1904 else EPOCH)
        with write_section(limits, sheet.lines, title):
            file.parse(path, sheet.start, sheet.end, sheet.text)


def _shared_strings(file: OfficeFile) -> list[str]:
    strings: list[str] = []
    pieces: list[str] = []
    is_text, is_phonetic = False, False

    def start(tag: str, _: Attributes) -> None:
        nonlocal is_text, is_phonetic
        is_text = tag == "t" and not is_phonetic
        is_phonetic = is_phonetic or tag == "rPh"

    def end(tag: str) -> None:
        nonlocal is_text, is_phonetic
        is_text = False
        if tag == "rPh":
            is_phonetic = False
        elif tag == "si":
            strings.append("".join(pieces))
            pieces.clear()

    file.parse("xl/sharedStrings.xml", start, end, lambda value: pieces.append(value) if is_text else None)
    return strings


def _date_styles(file: OfficeFile) -> frozenset[int]:
    """The numbers of the cell styles that show a number as a date."""
    custom: set[int] = set()
    styles: set[int] = set()
    count, is_cells = 0, False

    def start(tag: str, attributes: Attributes) -> None:
        nonlocal count, is_cells
        if tag == "numFmt":
            code = _QUOTED.sub("", attributes.get("formatCode", "")).lower()
            if any(letter in code for letter in "ymdhs") and "0" not in code.replace("ss.0", ""):
                custom.add(parse_number(attributes.get("numFmtId")))
        elif tag == "cellXfs":
            is_cells = True
        elif tag == "xf" and is_cells:
            number = parse_number(attributes.get("numFmtId"))
            if number in _DATE_FORMATS or number in custom:
                styles.add(count)
            count += 1

    def end(tag: str) -> None:
        nonlocal is_cells
        if tag == "cellXfs":
            is_cells = False

    file.parse("xl/styles.xml", start, end)
    return frozenset(styles)


class _Sheet:
    """The rows of a sheet."""

    def __init__(self, limits: Limits, strings: list[str], dates: frozenset[int], epoch: datetime) -> None:
        self.lines = TextLines(limits.text)
        self._strings, self._dates, self._epoch = strings, dates, epoch
        self._row, self._column, self._cells = 0, 0, list[str]()
        self._type, self._style, self._place = "", 0, 0
        self._value, self._formula, self._reads = list[str](), list[str](), ""

    def start(self, tag: str, attributes: Attributes) -> None:
        if tag == "row":
            self._row = parse_number(attributes.get("r")) or self._row + 1
            self._column, self._cells = 0, []
        elif tag == "c":
            self._type, self._style = attributes.get("t", ""), parse_number(attributes.get("s"))
            self._place = _column(attributes.get("r", "")) or self._column + 1
            self._value, self._formula = [], []
        elif tag in ("v", "t", "f"):
            self._reads = tag

    def text(self, value: str) -> None:
        if self._reads == "f":
            self._formula.append(value)
        elif self._reads:
            self._value.append(value)

    def end(self, tag: str) -> None:
        if tag == self._reads:
            self._reads = ""
        elif tag == "c":
            if content := self._content():
                gap = max(self._place - self._column - 1, 0)
                self._cells += [""] * min(gap, MOST_EMPTY_CELLS)
                self._cells.append(" ".join(content.split()))
                self._column = self._place
        elif tag == "row" and self._cells:
            self.lines.add(f"{self._row}\t" + "\t".join(self._cells) + "\n")

    def _content(self) -> str:
        value = "".join(self._value)
        if not value:
            return f"={''.join(self._formula)}" if self._formula else ""
        if self._type == "s":
            at = parse_number(value)
            return self._strings[at] if at < len(self._strings) else ""
        if self._type == "b":
            return "TRUE" if value == "1" else "FALSE"
        if self._style in self._dates and self._type in ("", "n"):
            return self._date(value)
        return value

    def _date(self, value: str) -> str:
        try:
            days = float(value)
            at = self._epoch + timedelta(seconds=round(days * 86_400))
        except (ValueError, OverflowError):
            return value
        if days < 1:
            return at.time().isoformat()
        return at.date().isoformat() if not at.hour + at.minute + at.second else at.isoformat(" ")


def _column(reference: str) -> int:
    """The number of the column of a cell such as AB12."""
    number = 0
    for letter in reference[:4]:
        if not ("A" <= letter <= "Z"):
            break
        number = 26 * number + ord(letter) - 64
    return number
