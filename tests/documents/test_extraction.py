"""Text of documents: PDF, Word, Excel, PowerPoint and OpenDocument files as lines, page by page."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.helpers.document_files import (
    DOCX_TYPE,
    ODP_TYPE,
    ODS_TYPE,
    ODT_TYPE,
    PDF_TYPE,
    PPTX_TYPE,
    XLSX_TYPE,
    make_docx,
    make_odf,
    make_pdf,
    make_pptx,
    make_xlsx,
)

from everturn.core.context.documents import StoredDocument
from everturn.documents import extraction
from everturn.documents.extraction import ExtractionLimits, extract_text
from everturn.sandbox.seccomp import interpreter_filter


async def sections(data: bytes, media_type: str) -> list[str]:
    """The headings and texts of a document that is read without a problem."""
    document = StoredDocument(await extract_text(data, media_type))
    assert document.info.problem == ""
    return [document.heading(number) + document.section(number) for number in range(1, len(document) + 1)]


async def test_a_pdf_has_the_text_of_each_page() -> None:
    found = await sections(make_pdf(["Annual report\nfor 2026 (draft)", "Grüße aus Köln"]), PDF_TYPE)
    assert found == ["--- page 1 ---\nAnnual report\nfor 2026 (draft)", "--- page 2 ---\nGrüße aus Köln"]


async def test_a_word_document_has_headings_paragraphs_tables_and_footnotes() -> None:
    body = (
        "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>an item</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc>"
        "<w:tc><w:p><w:r><w:t>b</w:t><w:br/><w:delText>gone</w:delText></w:r></w:p></w:tc></w:tr></w:tbl>"
        "<mc:A xmlns:mc='mc'><mc:Choice><w:p><w:r><w:t>once</w:t></w:r></w:p></mc:Choice>"
        "<mc:Fallback><w:p><w:r><w:t>once</w:t></w:r></w:p></mc:Fallback></mc:A>"
    )
    note = '<w:footnotes xmlns:w="w"><w:footnote><w:p><w:r><w:t>a note</w:t></w:r></w:p></w:footnote></w:footnotes>'
    data = make_docx(["# Plan", "Ask & answer"], body, **{"word/footnotes.xml": note})
    assert await sections(data, DOCX_TYPE) == ["# Plan\nAsk & answer\n- an item\na\tb\n\nonce\n\na note"]


async def test_a_sheet_has_its_rows_with_dates_and_without_gaps() -> None:
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>day</t></is></c></row>'
        '<row r="7"><c r="A7" t="b"><v>1</v></c><c r="B7" s="1"><v>45000</v></c><c r="D7"><f>SUM(A1)</f></c>'
        '<c r="XFD7"><v>9</v></c></row>'
    )
    styles = '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    data = make_xlsx({"Budget": rows, "Empty": ""}, ["what"], styles)
    row = "7\tTRUE\t2023-03-15\t\t=SUM(A1)" + "\t" * 41 + "9"
    assert await sections(data, XLSX_TYPE) == [
        f"--- sheet 1: Budget ---\n1\twhat\tday\n{row}",
        "--- sheet 2: Empty ---\n",
    ]


async def test_slides_come_in_their_order_with_their_notes() -> None:
    found = await sections(make_pptx(["Welcome", "Numbers\nup"], {2: "smile"}), PPTX_TYPE)
    assert found == ["--- slide 1 ---\nWelcome", "--- slide 2 ---\nNumbers\nup\n\nNotes:\nsmile"]


async def test_open_documents_have_their_text_sheets_and_slides() -> None:
    text = "<text:h text:outline-level='2'>Head</text:h><text:p>a<text:tab/>b<text:s text:c='2'/>c</text:p>"
    assert await sections(make_odf("text", text), ODT_TYPE) == ["## Head\na\tb  c"]
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    gap = "<table:table-cell table:number-columns-repeated='2'/>"
    row = f"<table:table-row>{cell.format(1)}{gap}{cell.format(2)}<table:table-cell table:number-columns-repeated='999'/></table:table-row>"
    sheet = f"<table:table table:name='T'>{row}</table:table>"
    assert await sections(make_odf("spreadsheet", sheet), ODS_TYPE) == ["--- sheet 1: T ---\n1\t\t\t2"]
    slides = "<draw:page><text:p>one</text:p></draw:page><draw:page><text:p>two</text:p></draw:page>"
    assert await sections(make_odf("presentation", slides), ODP_TYPE) == [
        "--- slide 1 ---\none",
        "--- slide 2 ---\ntwo",
    ]


async def test_without_pypdf_the_text_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction.importlib.util, "find_spec", lambda name: None)
    document = StoredDocument(await extract_text(make_pdf(["x"]), PDF_TYPE))
    assert len(document) == 0
    assert "pip install 'everturn[documents]'" in document.info.problem


async def test_what_was_read_before_a_limit_is_kept() -> None:
    document = StoredDocument(
        await extract_text(make_pdf([f"page {n}" for n in range(9)]), PDF_TYPE, ExtractionLimits(sections=3))
    )
    assert [document.section(number) for number in (1, 2, 3)] == ["page 0", "page 1", "page 2"]
    assert len(document) == 3
    assert document.info.count == 9
    assert document.info.problem.startswith("it has too many pages")
    document = StoredDocument(await extract_text(make_docx(["word " * 99]), DOCX_TYPE, ExtractionLimits(text=100)))
    assert len(document.section(1)) <= 100
    assert "too long" in document.info.problem


@pytest.mark.skipif(sys.platform != "linux", reason="the filter of system calls is Linux's")
def test_the_process_that_reads_can_open_no_file_and_no_socket_and_start_no_process() -> None:
    request = {"seconds": 5, "memory": 2**29, "uid": extraction.UID, "filter": (interpreter_filter() or b"").hex()}
    program = f"""
import os, socket, json
from everturn.documents.worker import confine
confine(json.loads({json.dumps(request)!r}))
for attempt in (lambda: open("/etc/passwd"), lambda: socket.socket(), os.fork, lambda: os.listdir("/")):
    try:
        attempt()
        os.write(1, b"did it ")
    except OSError:
        os.write(1, b"refused ")
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=False, timeout=60)
    assert done.stdout == b"refused refused refused refused "
