"""Documents that tests make: small PDF, Office and OpenDocument files, and what is broken or hostile about others."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape

OFFICE = "application/vnd.openxmlformats-officedocument."
ODF = "application/vnd.oasis.opendocument."
PDF_TYPE = "application/pdf"
DOCX_TYPE, XLSX_TYPE, PPTX_TYPE = (
    f"{OFFICE}{name}" for name in ("wordprocessingml.document", "spreadsheetml.sheet", "presentationml.presentation")
)
ODT_TYPE, ODS_TYPE, ODP_TYPE = (f"{ODF}{name}" for name in ("text", "spreadsheet", "presentation"))
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OPEN = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)


def pack(parts: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file with these parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return buffer.getvalue()


# PDF ------------------------------------------------------------------------------------------------------------------


def pdf_objects(objects: Sequence[bytes], root: int = 1, extra: bytes = b"") -> bytes:
    """A PDF file with these objects, numbered from 1."""
    out, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root %d 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, root, extra, table)
    return bytes(out)


def stream(content: bytes, filters: bytes = b"/FlateDecode") -> bytes:
    """A stream object."""
    return b"<< /Length %d /Filter %s >>\nstream\n%s\nendstream" % (len(content), filters, content)


def text_stream(text: str) -> bytes:
    """The content of a page with these lines."""
    escaped = [line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in text.split("\n")]
    lines = b" ".join(b"(%s) Tj T*" % line.encode("cp1252") for line in escaped)
    return b"BT /F1 11 Tf 50 780 Td 14 TL " + lines + b" ET"


def make_pdf(pages: Iterable[str], extra: bytes = b"") -> bytes:
    """A PDF file with these pages."""
    streams = [zlib.compress(text_stream(text)) for text in pages]
    kids = b" ".join(b"%d 0 R" % (4 + 2 * at) for at in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(streams), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for at, content in enumerate(streams):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
            b"/Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>" % (5 + 2 * at)
        )
        objects.append(stream(content))
    return pdf_objects(objects, extra=extra)


# Word, Excel, PowerPoint ----------------------------------------------------------------------------------------------


def make_docx(paragraphs: Iterable[str], body: str = "", **parts: str) -> bytes:
    """A Word document; a paragraph that begins with `# ` is a heading. `body` is XML after them."""
    xml = ""
    for text in paragraphs:
        style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' if text.startswith("# ") else ""
        xml += f"<w:p>{style}<w:r><w:t>{escape(text.removeprefix('# '))}</w:t></w:r></w:p>"
    document = f"<w:document {W} {R}><w:body>{xml}{body}</w:body></w:document>"
    return pack({"[Content_Types].xml": "<Types/>", "word/document.xml": document, **parts})


def relations(targets: Iterable[tuple[str, str, str]]) -> str:
    """The relations of a part: id, kind and target of each."""
    items = "".join(
        f'<Relationship Id="{name}" Type="{TYPES}/{kind}" Target="{target}"/>' for name, kind, target in targets
    )
    return f'<Relationships xmlns="{RELATIONS}">{items}</Relationships>'


def make_xlsx(sheets: Mapping[str, str], strings: Sequence[str] = (), styles: str = "") -> bytes:
    """An Excel file: the names of its sheets, and the XML of their rows."""
    numbered = list(enumerate(sheets.items(), 1))
    listed = "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, (name, _) in numbered)
    parts = {
        "xl/workbook.xml": f"<workbook {R}><sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            (f"rId{n}", "worksheet", f"worksheets/sheet{n}.xml") for n, _ in numbered
        ),
        "xl/sharedStrings.xml": f"<sst>{''.join(f'<si><t>{escape(text)}</t></si>' for text in strings)}</sst>",
    }
    for number, (_, rows) in numbered:
        parts[f"xl/worksheets/sheet{number}.xml"] = f"<worksheet><sheetData>{rows}</sheetData></worksheet>"
    if styles:
        parts["xl/styles.xml"] = styles
    return pack(parts)


def make_pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """A PowerPoint file: the text of each slide, and the notes of some."""
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    parts = {
        "ppt/presentation.xml": f'<p:presentation xmlns:p="p" {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(
            (f"rId{n}", "slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)
        ),
    }
    for number, text in enumerate(slides, 1):
        parts[f"ppt/slides/slide{number}.xml"] = _drawing(text)
        if notes and number in notes:
            parts[f"ppt/notesSlides/notesSlide{number}.xml"] = _drawing(notes[number])
            parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
                [("rId1", "notesSlide", f"../notesSlides/notesSlide{number}.xml")]
            )
    return pack(parts)


def _drawing(text: str) -> str:
    paragraphs = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f'<p:sld xmlns:p="p" {A}><p:txBody>{paragraphs}</p:txBody></p:sld>'


# OpenDocument ---------------------------------------------------------------------------------------------------------


def make_odf(kind: str, body: str, **parts: str) -> bytes:
    """An OpenDocument file: `text`, `spreadsheet` or `presentation`, and the XML of its body."""
    content = f"<office:document-content {OPEN}><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    return pack({"mimetype": f"{ODF}{kind}", "content.xml": content, **parts})
