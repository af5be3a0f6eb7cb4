"""Parts of Office files: the XML in a zip file, parsed as a stream with limits for hostile files.

There is no entity and no document type in such XML: a file that declares one is refused. Nothing is unpacked as a whole.
"""

from __future__ import annotations

import io
import posixpath
import time
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, Final
from xml.parsers import expat

MOST_PARTS: Final = 20_000  # files in the zip file
MOST_DEPTH: Final = 400  # of elements
READ: Final = 65_536
OLE_SIGNATURE: Final = b"\xd0\xcf\x11\xe0"
ENCRYPTED: Final = "its text cannot be read without its password"

Attributes = dict[str, str]


class UnreadableDocument(Exception):
    """A document that is not read, or not to its end; the text says why."""


class Limits:
    """Where the text of a document goes, and how much of it."""

    def __init__(self, write: Callable[..., None], deadline: float, sections: int, text: int, xml: int) -> None:
        self._write, self._deadline, self._sections = write, deadline, sections
        self.text, self.xml = text, xml  # what is left

    def announce(self, count: int) -> None:
        """Tell how many sections the document has."""
        self._write(count=count)

    def emit(self, text: str, title: str = "") -> None:
        """Write a section.

        Raises:
            UnreadableDocument: it is one too many; as much of its text as is allowed was written.
        """
        if self._sections <= 0:
            raise UnreadableDocument("it has too many pages to be read to its end")
        self._sections -= 1
        whole, text = text, text[: max(self.text, 0)]
        self.text -= len(text)
        self._write(text=text, title=title[:200])
        if len(text) < len(whole):
            raise UnreadableDocument("it is too long to be read to its end")
        self.check_time()

    def check_time(self) -> None:
        """Stop when the time is over.

        Raises:
            UnreadableDocument: it is over.
        """
        if time.monotonic() > self._deadline:
            raise UnreadableDocument("reading its text took too long")


class OfficeFile:
    """A zip file with XML in it."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        if data.startswith(OLE_SIGNATURE):
            raise UnreadableDocument(f"{ENCRYPTED}, or it is in an old format; save it as .docx, .xlsx or .pptx")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, OverflowError):
            raise UnreadableDocument("it is damaged or not of this type") from None
        self._limits = limits
        if len(self._zip.filelist) > MOST_PARTS:
            raise UnreadableDocument("it consists of too many files")
        self.names = {info.filename for info in self._zip.filelist}

    def parse(
        self,
        name: str,
        start: Callable[[str, Attributes], None],
        end: Callable[[str], None] | None = None,
        text: Callable[[str], None] | None = None,
    ) -> None:
        """Parse a part. Names have no namespace, but for relations (`r:id`).

        Raises:
            UnreadableDocument: it is missing, damaged, or too large.
        """
        if name not in self.names:
            raise UnreadableDocument("it is damaged or not of this type")
        info = self._zip.getinfo(name)
        if info.flag_bits & 1:
            raise UnreadableDocument(ENCRYPTED)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnreadableDocument("it is packed in a way that such files are not")
        parser = _new_parser(start, end, text)
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(READ):
                    self._limits.xml -= len(piece)
                    if self._limits.xml < 0:
                        raise UnreadableDocument("it is too large when it is unpacked")
                    self._limits.check_time()
                    parser.Parse(piece, False)
            parser.Parse(b"", True)
        except (expat.ExpatError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError):
            raise UnreadableDocument("it is damaged") from None

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """The parts that a part refers to: id → (kind, name)."""
        folder, file = posixpath.split(name)
        relations: dict[str, tuple[str, str]] = {}

        def start(tag: str, attributes: Attributes) -> None:
            if tag == "Relationship" and attributes.get("TargetMode") != "External":
                target = attributes.get("Target", "")
                path = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                relations[attributes.get("Id", "")] = (attributes.get("Type", "").rpartition("/")[2], path)

        path = posixpath.join(folder, "_rels", f"{file}.rels")
        if path in self.names:
            self.parse(path, start)
        return relations


def _attribute(name: str) -> str:
    """The name of an attribute: `r:id` names a relation, and stands beside an `id`."""
    namespace, _, local = name.rpartition(" ")
    return f"r:{local}" if namespace.endswith("/relationships") else local


def _new_parser(
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None] | None,
    text: Callable[[str], None] | None,
) -> Any:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    depth = 0

    def refuse(*_: object) -> None:
        raise UnreadableDocument("it declares a document type, which such files do not")

    def on_start(tag: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise UnreadableDocument("it is nested too deeply to be read")
        start(tag.rpartition(" ")[2], {_attribute(name): value for name, value in attributes.items()})

    def on_end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        if end is not None:
            end(tag.rpartition(" ")[2])

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    if text is not None:
        parser.CharacterDataHandler = text
    return parser


def parse_number(text: str | None) -> int:
    """A number of an attribute; 0 if it is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0
