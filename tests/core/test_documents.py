"""Stored documents: what a model is shown of one, ranges of pages and lines, and search."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from everturn.core.context.documents import (
    DocumentRange,
    SectionText,
    StoredDocument,
    document_type,
    dump_document,
    name_documents,
    opening_text,
    page_count,
    read_document_range,
    search_document,
    show_hits,
)
from everturn.core.parts import FilePart

PDF = "application/pdf"
REPORT = dump_document("pdf", [SectionText(f"page {n} begins\nand has a second line") for n in range(1, 6)])
TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=300), min_size=1, max_size=6)


def test_a_short_document_is_shown_whole() -> None:
    data = dump_document("pptx", [SectionText("Welcome"), SectionText("Thanks")])
    assert opening_text("talk.pptx", data) == "[talk.pptx: 2 slides]\n--- slide 1 ---\nWelcome\n--- slide 2 ---\nThanks"
    assert page_count(data) == 2
    assert page_count(dump_document("docx", [SectionText("a\nb")])) == 0


def test_a_long_document_is_shown_up_to_a_limit_and_says_where_it_goes_on() -> None:
    shown = opening_text("report.pdf", REPORT, 100)
    assert shown.startswith(
        "[report.pdf: 5 pages, only the beginning is here; read_document reads on from first=2, line=2]\n--- page 1 ---"
    )
    assert shown.endswith("--- page 2 ---\npage 2 begins")


def test_without_text_there_is_the_reason() -> None:
    locked = dump_document("pdf", (), problem="it has a password")
    assert opening_text("a.pdf", locked) == "[a.pdf; it has a password]"
    scanned = dump_document("pdf", [SectionText(""), SectionText("")])
    assert (
        opening_text("a.pdf", scanned) == "[a.pdf: 2 pages; there is no text in it: its pages may be pictures of text]"
    )


def test_a_range_ends_with_the_place_where_it_goes_on() -> None:
    document = StoredDocument(REPORT)
    text = read_document_range("report.pdf", document, DocumentRange(2, 3), 10_000)
    assert text == (
        "[report.pdf: 5 pages]\n--- page 2 ---\npage 2 begins\nand has a second line\n"
        "--- page 3 ---\npage 3 begins\nand has a second line"
    )
    cut = read_document_range("report.pdf", document, DocumentRange(4), 40)
    assert cut.endswith("page 4 begins\n[to read on: first=4, line=2]")
    rest = read_document_range("report.pdf", document, DocumentRange(4, 0, 2), 40)
    assert "page 4 begins" not in rest
    assert "and has a second line" in rest


@given(TEXTS, st.integers(1, 400))
def test_reading_on_and_on_reads_every_line_once(texts: list[str], most: int) -> None:
    document = StoredDocument(dump_document("docx", [SectionText("\n".join(texts))]))
    read: list[str] = []
    place = DocumentRange()
    while place.line:
        _, *lines = read_document_range("a", document, place, most).split("\n")
        end = re.fullmatch(r"\[to read on: line=(\d+)\]", lines[-1])
        read += lines[:-1] if end else lines
        place = DocumentRange(1, 0, int(end[1]) if end else 0)
    assert [line.replace("(no text here)", "") for line in read] == document.section(1).split("\n")


def test_a_search_finds_lines_by_text_or_by_all_its_words() -> None:
    document = StoredDocument(
        dump_document(
            "xlsx", [SectionText("1\tTotal\t40\n2\tTax  of  all\t8", "Budget"), SectionText("1\ttotal", "Old")]
        )
    )
    hits = search_document(document, "TOTAL")
    assert hits == [(1, 1, "1\tTotal\t40"), (2, 1, "1\ttotal")]
    assert show_hits("b.xlsx", document, "TOTAL", hits).startswith(
        "[b.xlsx: 2 lines with 'TOTAL']\nsheet 1, line 1: 1\tTotal"
    )
    assert search_document(document, "tax of all") == [(1, 2, "2\tTax  of  all\t8")]
    assert search_document(document, "all tax") == [(1, 2, "2\tTax  of  all\t8")]
    assert search_document(document, "  ") == []
    assert show_hits("b.xlsx", document, "none", ()) == "[b.xlsx: no line has 'none']"


def test_the_newest_document_has_its_name_and_earlier_ones_a_number() -> None:
    files = [FilePart(f"b{n}", PDF, 1, "a.pdf", f"t{n}") for n in range(3)] + [FilePart("x", "image/png", 1, "c.png")]
    assert {name: file.text for name, file in name_documents([*files, files[2]]).items()} == {
        "a.pdf": "t2",
        "a.pdf#2": "t1",
        "a.pdf#3": "t0",
    }


def test_the_extension_decides_where_the_type_is_not_known() -> None:
    assert document_type("", "plan.DOCX").endswith("wordprocessingml.document")
    assert document_type("application/zip", "plan.ods").endswith("spreadsheet")
    assert document_type("text/plain", "plan.docx") == ""
    assert document_type("application/zip", "plan.zip") == ""
    assert document_type(PDF, "") == PDF


def test_a_damaged_text_is_no_error() -> None:
    assert opening_text("a.pdf", b"\xff\x00") == "[a.pdf; its text is damaged]"
