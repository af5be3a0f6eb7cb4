"""MCP tool results: converts the content of a result to text and files, with limits on everything a server sends."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Any, Final, cast

from everturn.core.canonical_json import JsonObject, encode_canonical, replace_surrogates, replace_surrogates_in
from everturn.core.parts import FilePart, Output
from everturn.core.ports import BlobStorage
from everturn.errors import ToolError
from everturn.mcp.jsonrpc import TEXT_LIMIT

MOST_FILES: Final = 16
MOST_BYTES: Final = 12 * 2**20  # of all files of a result
STRUCTURED: Final = 65_536  # characters of structured content kept besides the text


async def convert_result(result: JsonObject, server: str, blobs: BlobStorage | None) -> Output:
    """Convert a result to an output, and store its files.

    Raises:
        ToolError: the result says that the tool failed; the text is the server's.
    """
    content = result.get("content")
    texts: list[str] = []
    files: list[FilePart] = []
    remaining_bytes = MOST_BYTES
    for block in cast("list[Any]", content) if isinstance(content, list) else []:
        text, data, media_type, name = _read_block(block)
        if not data:
            texts.append(text)
            continue
        if blobs is None or len(files) >= MOST_FILES or len(data) * 3 // 4 > remaining_bytes:
            texts.append(f"[{media_type}: it was not kept, for it is too much]")
            continue
        decoded = await _decode_base64(data)
        if decoded is None:
            texts.append(f"[{media_type}: it was not kept, for it is no base64]")
            continue
        remaining_bytes -= len(decoded)
        files.append(FilePart(await blobs.put(decoded), media_type, len(decoded), name))
        texts.append(f"[{media_type}, {len(decoded)} bytes, attached]")
    structured = result.get("structuredContent")
    try:
        structured_text = encode_canonical(replace_surrogates_in(structured)) if structured is not None else ""
    except RecursionError:
        structured_text = "[structured content: it was not kept, for it is too deep]"
        structured = structured_text
    text = replace_surrogates("\n".join(texts) if texts else structured_text)
    if len(text) > TEXT_LIMIT:
        text = f"{text[:TEXT_LIMIT]}\n[cut here: the result was longer than {TEXT_LIMIT} characters]"
    if result.get("isError") is True:
        raise ToolError(text or f"server {server} says that the tool failed, and not why")
    metadata: dict[str, object] | None = None
    if texts and structured_text and len(structured_text) <= STRUCTURED:
        metadata = {"structured": structured}
    return Output(text, metadata=metadata, attachments=tuple(files), untrusted=True)


def _read_block(block: Any) -> tuple[str, str, str, str]:
    """Split a content block into a text, or the base64 of a file with its type and name."""
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
    media_type = _text(piece, "mimeType").strip().lower()
    return (
        media_type
        if 0 < len(media_type) <= 100 and media_type.isascii() and media_type.isprintable()
        else "application/octet-stream"
    )


async def _decode_base64(data: str) -> bytes | None:
    try:
        return await asyncio.to_thread(base64.b64decode, data, validate=True)
    except (binascii.Error, ValueError):
        return None
