"""Text of PDF files, page by page, with pypdf."""

from __future__ import annotations

import contextlib
import importlib
import io

import pypdf
from pypdf.errors import DependencyError, PyPdfError

from everturn.documents.office_xml import ENCRYPTED, Limits, UnreadableDocument

# What pypdf imports when a file needs it, which is too late in a process that can open no file.
_LATER = ("filters", "xmp", "_configuration", "_codecs._codecs", "_crypt_providers._fallback", "generic._font")
_SMALL = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Count 1/Kids[3 0 R]>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>endobj\n"
    b"4 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
    b"5 0 obj<</Length 21>>stream\nBT/F 9 Tf(a) Tj ET   \nendstream endobj\ntrailer<</Root 1 0 R/Size 6>>\n%%EOF"
)


def warm_up() -> None:
    """Import everything that reading a file may need."""
    for name in _LATER:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"pypdf.{name}")
    with contextlib.suppress(PyPdfError):
        pypdf.PdfReader(io.BytesIO(_SMALL), strict=False).pages[0].extract_text()


def read_pdf(data: bytes, limits: Limits) -> None:
    """Write the text of each page; a page that cannot be read has none.

    Raises:
        UnreadableDocument: the file cannot be read, or not to its end.
    """
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableDocument(ENCRYPTED)
        count = len(reader.pages)
    except (PyPdfError, DependencyError, NotImplementedError) as error:
        if "encrypt" in str(error).lower() or isinstance(error, DependencyError):
            raise UnreadableDocument(ENCRYPTED) from None
        raise UnreadableDocument("it is damaged or not a PDF") from None
    limits.announce(count)
    unread = 0
    for number in range(count):
        try:
            text = reader.pages[number].extract_text()
        except MemoryError:
            raise
        except Exception:  # the page is damaged, or uses what pypdf does not know
            text = ""
            unread += 1
        limits.emit(text)
    if unread:
        raise UnreadableDocument(f"{unread} of its pages cannot be read")
