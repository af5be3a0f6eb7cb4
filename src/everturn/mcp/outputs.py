"""The result of a tool → what a model reads, and files. Whatever a server sends, there is an end to it."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Any, Final, cast

from everturn.core.canonical import JsonObject, canonical, clean, clean_all
from everturn.core.parts import FilePart, Output
from everturn.core.ports import Blobs
from everturn.errors import ToolError
from everturn.mcp.lines import TEXT_LIMIT

MOST_FILES: Final = 16
MOST_BYTES: Final = 12 * 2**20  # of all files of a result
STRUCTURED: Final = 65_536  # characters of structured content that are kept beside the text


async def output_of(result: JsonObject, server: str, blobs: Blobs | None) -> Output:
    """A result as it is kept.

    Raises:
        ToolError: it says that the tool failed; the text is the server's.
    """
    given = result.get("content")
    texts: list[str] = []
    files: list[FilePart] = []
    left = MOST_BYTES
    for block in cast("list[Any]", given) if isinstance(given, list) else []:
        text, data, media_type, name = _block(block)
        if not data:
            texts.append(text)
            continue
        if blobs is None or len(files) >= MOST_FILES or len(data) * 3 // 4 > left:
            texts.append(f"[{media_type}: it was not kept, for it is too much]")
            continue
        decoded = await _decoded(data)
        if decoded is None:
            texts.append(f"[{media_type}: it was not kept, for it is no base64]")
            continue
        left -= len(decoded)
        files.append(FilePart(await blobs.put(decoded), media_type, len(decoded), name))
        texts.append(f"[{media_type}, {len(decoded)} bytes, attached]")
    structured = result.get("structuredContent")
    try:
        written = canonical(clean_all(structured)) if structured is not None else ""
    except RecursionError:
        written = "[structured content: it was not kept, for it is too deep]"
        structured = written
    text = clean("\n".join(texts) if texts else written)
    if len(text) > TEXT_LIMIT:
        text = f"{text[:TEXT_LIMIT]}\n[cut here: the result was longer than {TEXT_LIMIT} characters]"
    if result.get("isError") is True:
        raise ToolError(text or f"server {server} says that the tool failed, and not why")
    metadata: dict[str, object] | None = None
    if texts and written and len(written) <= STRUCTURED:
        metadata = {"structured": structured}
    return Output(text, metadata=metadata, attachments=tuple(files), untrusted=True)


def _block(block: Any) -> tuple[str, str, str, str]:
    """A piece of a result: a text, or the base64 of a file with its type and name."""
    if not isinstance(block, dict):
        return "[a piece that cannot be read]", "", "", ""
    piece = cast("dict[str, Any]", block)
    kind = piece.get("type")
    if kind == "text":
        return _text(piece, "text"), "", "", ""
    if kind in ("image", "audio"):
        return "", _text(piece, "data"), _media_type(piece), ""
    if kind == "resource_link":
        return f"[{_text(piece, 'name')}: {_text(piece, 'uri')}]", "", "", ""
    resource = piece.get("resource")
    if kind == "resource" and isinstance(resource, dict):
        inner = cast("dict[str, Any]", resource)
        if isinstance(inner.get("text"), str):
            return f"[{_text(inner, 'uri')}]\n{inner['text']}", "", "", ""
        name = "".join(char for char in _text(inner, "uri").rpartition("/")[2][:200] if char.isprintable())
        return "", _text(inner, "blob"), _media_type(inner), name
    return f"[a piece of a kind that is not known here: {str(kind)[:50]!r}]", "", "", ""


def _text(piece: dict[str, Any], key: str) -> str:
    value = piece.get(key)
    return value if isinstance(value, str) else ""


def _media_type(piece: dict[str, Any]) -> str:
    given = _text(piece, "mimeType").strip().lower()
    return given if 0 < len(given) <= 100 and given.isascii() and given.isprintable() else "application/octet-stream"


async def _decoded(data: str) -> bytes | None:
    try:
        return await asyncio.to_thread(base64.b64decode, data, validate=True)
    except (binascii.Error, ValueError):
        return None
