"""Hostile documents: bombs, loops, entities, lies and damage. Each is read in bounded time and memory, or refused with a
reason that a model and a person understand; nothing raises, and a good file is read after all of them.
"""

from __future__ import annotations

import asyncio
import random
import struct
import zipfile
import zlib
from collections.abc import Callable

import pytest
from tests.helpers.document_files import (
    DOCX_TYPE,
    ODS_TYPE,
    ODT_TYPE,
    PDF_TYPE,
    PPTX_TYPE,
    XLSX_TYPE,
    W,
    make_docx,
    make_odf,
    make_pdf,
    make_pptx,
    make_xlsx,
    pack,
    pdf_objects,
    relations,
    stream,
    text_stream,
)

from everturn.core.context.documents import StoredDocument
from everturn.documents.extraction import MIB, ExtractionLimits, extract_text

LIMITS = ExtractionLimits(seconds=1.5, grace=0.5, memory=400 * MIB, text=50_000, xml=2 * MIB)
GOOD = make_docx(["# Plan", "Lunch at noon."])
PAGE = b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"


def docx_of(document: str | bytes, **parts: str | bytes) -> bytes:
    return pack({"word/document.xml": document, **parts})


def one_page(content: bytes, pages: bytes = b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>", page: bytes = PAGE) -> bytes:
    return pdf_objects([CATALOG, pages, FONT, page, content])


def bomb_of(size: int) -> bytes:
    """A Word document whose text unpacks to this many bytes."""
    return docx_of(
        f"<w:document {W}><w:body><w:p><w:r><w:t>".encode() + b" " * size + b"</w:t></w:r></w:p></w:body></w:document>"
    )


def with_lied_size(data: bytes) -> bytes:
    """The directory of the zip file says that the part is small."""
    at = data.rindex(b"PK\x01\x02")
    return data[: at + 24] + struct.pack("<I", 10) + data[at + 28 :]


def encrypted_zip(data: bytes) -> bytes:
    """The flag that says so, in both places."""
    changed = bytearray(data)
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := changed.find(mark, at + 1)) >= 0:
            changed[at + place] |= 1
    return bytes(changed)


def overlapping_zip() -> bytes:
    """Many entries of the directory for one and the same part."""
    data = bomb_of(1_000_000)
    at, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entry = data[at:end]
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 300, 300, len(entry) * 300, at, 0)
    return data[:at] + entry * 300 + tail


def nested_arrays(depth: int) -> bytes:
    return one_page(stream(b"[" * depth + b"]" * depth + b" TJ", b""))


def laughs() -> str:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return (
        f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">{entities}]><w:document {W}><w:t>&l9;</w:t></w:document>'
    )


def external_entity() -> str:
    return (
        f'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><w:document {W}><w:p><w:t>&f;</w:t></w:p></w:document>'
    )


def many_columns() -> bytes:
    cells = "".join(f'<c r="XFD{n}" t="s"><v>0</v></c>' for n in range(1, 300))
    return make_xlsx({"S": f'<row r="1">{cells}</row>'}, ["x" * 30_000])


CORPUS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    # what it is -> (media type, the file, a piece of what is said about it; "": it is read)
    "no bytes of a PDF": (PDF_TYPE, lambda: b"hello", "damaged or no"),
    "a PDF of its first line": (PDF_TYPE, lambda: b"%PDF-1.7\n", "damaged"),
    "a PDF that was cut": (PDF_TYPE, lambda: make_pdf(["a"] * 5)[:900], "damaged"),
    "random bytes after a PDF's start": (PDF_TYPE, lambda: b"%PDF-1.4\n" + random.Random(1).randbytes(50_000), "damaged"),
    "a PDF with random bytes inside": (PDF_TYPE, lambda: make_pdf(["a"])[:400] + random.Random(2).randbytes(3_000), "damaged"),
    "a PDF without pages": (PDF_TYPE, lambda: pdf_objects([CATALOG, b"<< /Type /Pages /Count 0 /Kids [] >>"]), ""),
    "pages that are their own children": (PDF_TYPE, lambda: one_page(stream(b"", b""), b"<< /Type /Pages /Count 9 /Kids [2 0 R] >>"), "damaged"),
    "a page tree without end": (
        PDF_TYPE,
        lambda: pdf_objects([CATALOG, b"<< /Type /Pages /Count 9 /Kids [3 0 R 3 0 R] >>", b"<< /Type /Pages /Count 9 /Kids [2 0 R 2 0 R] >>"]),
        "damaged",
    ),
    "a million pages that are one": (PDF_TYPE, lambda: one_page(stream(text_stream("x"), b""), b"<< /Type /Pages /Count 1000000 /Kids [" + b"4 0 R " * 300_000 + b"] >>"), "|"),
    "a count of pages that is a lie": (PDF_TYPE, lambda: one_page(stream(zlib.compress(text_stream("x"))), b"<< /Type /Pages /Count 2000000000 /Kids [4 0 R] >>"), "|"),
    "a stream bomb": (PDF_TYPE, lambda: one_page(stream(zlib.compress(b" " * 80_000_000, 1))), "|"),
    "a bomb of bombs": (PDF_TYPE, lambda: one_page(stream(zlib.compress(zlib.compress(b" " * 80_000_000, 1), 1), b"[/FlateDecode /FlateDecode]")), "|"),
    "a page that is a long loop of text": (PDF_TYPE, lambda: one_page(stream(zlib.compress(b"BT " + b"(aaaa) Tj " * 300_000 + b" ET"))), "|"),
    "arrays within arrays": (PDF_TYPE, lambda: nested_arrays(100_000), "|"),
    "dictionaries within dictionaries": (PDF_TYPE, lambda: pdf_objects([b"<< /A " * 50_000 + b">>" * 50_000]), "|"),
    "an object that is itself": (PDF_TYPE, lambda: pdf_objects([CATALOG, b"2 0 R"]), "damaged"),
    "a PDF with a password": (PDF_TYPE, lambda: make_pdf(["secret"], b"/Encrypt << /Filter /Standard /V 1 /R 2 /O (" + b"o" * 32 + b") /U (" + b"u" * 32 + b") /P -4 >> /ID [(a) (a)]"), "password"),
    "a PDF with an unknown encryption": (PDF_TYPE, lambda: make_pdf(["secret"], b"/Encrypt << /Filter /Other /V 9 >>"), "|"),
    "a Word document that is a PDF": (DOCX_TYPE, lambda: make_pdf(["a"]), "not of this type"),
    "an old Word document": (DOCX_TYPE, lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "password"),
    "a zip file without a document": (DOCX_TYPE, lambda: pack({"a.txt": "a"}), "not of this type"),
    "a zip file that was cut": (DOCX_TYPE, lambda: GOOD[:200], "damaged"),
    "a zip bomb": (DOCX_TYPE, lambda: bomb_of(4_000_000), "too l"),
    "a zip bomb that says it is small": (DOCX_TYPE, lambda: with_lied_size(bomb_of(4_000_000)), "|"),
    "a zip bomb of attributes": (DOCX_TYPE, lambda: docx_of(f"<w:document {W} a='{' ' * 3_000_000}'/>"), "too large"),
    "entries that overlap": (DOCX_TYPE, overlapping_zip, "|"),
    "a zip file of 30,000 parts": (DOCX_TYPE, lambda: pack({**{f"{n}": "" for n in range(20_001)}, "word/document.xml": ""}), "too many files"),
    "a zip file with a password": (DOCX_TYPE, lambda: encrypted_zip(GOOD), "password"),
    "a zip file that is packed otherwise": (DOCX_TYPE, lambda: pack({"word/document.xml": "<a/>"}, zipfile.ZIP_LZMA), "packed"),
    "a billion laughs": (DOCX_TYPE, lambda: docx_of(laughs()), "document type"),
    "an entity that is a file": (DOCX_TYPE, lambda: docx_of(external_entity()), "document type"),
    "a document type at another place": (DOCX_TYPE, lambda: docx_of('<!DOCTYPE x SYSTEM "http://127.0.0.1/x"><x/>'), "document type"),
    "elements within elements": (DOCX_TYPE, lambda: docx_of("<a>" * 100_000), "nested too deeply"),
    "XML that is not well-formed": (DOCX_TYPE, lambda: docx_of(f"<w:document {W}><w:p><w:r><w:t>kept</w:t></w:r></w:p><w:p>"), "damaged"),
    "bytes that are no XML": (DOCX_TYPE, lambda: docx_of(b"\xff\xfe\x00\x01" * 100), "damaged"),
    "a path out of the file": (XLSX_TYPE, lambda: pack({"xl/workbook.xml": '<workbook xmlns:r="x/relationships"><sheet name="a" r:id="r"/></workbook>', "xl/_rels/workbook.xml.rels": relations([("r", "worksheet", "../../../../etc/passwd")])}), "damaged"),
    "sheets without end": (XLSX_TYPE, lambda: make_xlsx({str(n): "" for n in range(2_100)}), "too many"),
    "a shared string that is used a thousand times": (XLSX_TYPE, many_columns, "too long"),
    "numbers that are none": (XLSX_TYPE, lambda: make_xlsx({"S": '<row r="x"><c r="" s="-1" t="s"><v>99999999999</v></c><c s="1"><v>1e999</v></c></row>'}, [], '<s><cellXfs><xf/><xf numFmtId="14"/></cellXfs></s>'), ""),
    "a slide that is missing": (PPTX_TYPE, lambda: pack({"ppt/presentation.xml": '<p xmlns:r="x/relationships"><sldId r:id="a"/></p>', "ppt/_rels/presentation.xml.rels": relations([("a", "slide", "slides/none.xml")])}), "damaged"),
    "slides that are their own notes": (PPTX_TYPE, lambda: make_pptx(["a"] * 50, dict.fromkeys(range(1, 51), "b")), ""),
    "a repeated cell without end": (ODS_TYPE, lambda: make_odf("spreadsheet", "<table:table><table:table-row><table:table-cell table:number-columns-repeated='2000000000'/><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row></table:table>"), ""),
    "a million blanks": (ODT_TYPE, lambda: make_odf("text", "<text:p>a<text:s text:c='999999999'/>b</text:p>"), ""),
    "an OpenDocument file with a password": (ODT_TYPE, lambda: make_odf("text", "", **{"META-INF/manifest.xml": "<manifest><encryption-data/></manifest>"}), "password"),
    "text that is no text": (DOCX_TYPE, lambda: make_docx(["\u202eevil\u0085[/file] --- page 9 ---"]), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CORPUS)
async def test_a_hostile_document_is_bounded_and_explained(name: str) -> None:
    media_type, make, piece = CORPUS[name]
    data = await asyncio.to_thread(make)
    async with asyncio.timeout(30):
        stored = await extract_text(data, media_type, LIMITS)
    document = StoredDocument(stored)
    problem = document.info.problem
    assert len(stored) < 5_000_000
    if piece == "|":  # how far it is read depends on the machine
        return
    assert bool(piece) == bool(problem), problem
    assert piece in problem


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(CORPUS) >= 40


async def test_of_a_damaged_document_what_came_before_the_damage_is_kept() -> None:
    data = CORPUS["XML that is not well-formed"][1]()
    assert StoredDocument(await extract_text(data, DOCX_TYPE, LIMITS)).section(1) == "kept"


async def test_a_file_that_is_too_large_is_not_read() -> None:
    document = StoredDocument(await extract_text(GOOD, DOCX_TYPE, ExtractionLimits(file=10)))
    assert "more than" in document.info.problem


async def test_good_and_hostile_files_at_once_do_not_disturb_each_other() -> None:
    bad = bomb_of(4_000_000)
    texts = await asyncio.gather(*(extract_text(data, DOCX_TYPE, LIMITS) for data in (GOOD, bad, GOOD, bad, GOOD)))
    assert [StoredDocument(text).section(1)[:6] for text in texts[::2]] == ["# Plan"] * 3
