"""Anthropic Messages validation, content blocks: refuses empty and unsigned ones, and those of another role."""

from __future__ import annotations

import re
from typing import Any

from everturn.testing.provider.faults import Refused, is_list, is_object
from everturn.testing.provider.signatures import is_sealed, sign
from everturn.testing.provider.strict.server_blocks import (
    RESULTS,
    check_citations,
    check_server_call,
    check_server_result,
)

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,200}")
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
# Accepted unchecked: blocks of other features.
_UNCHECKED_USER = ("search_result", "container_upload", "mid_conv_system")
_UNCHECKED_ASSISTANT = ("mcp_tool_use", "mcp_tool_result", "compaction")


def check_user_block(path: str, block: dict[str, Any], model: str) -> None:
    """A user sends text, files and results."""
    match block["type"]:
        case "text":
            check_text(path, block)
        case "image":
            check_image(path, block)
        case "document":
            check_document(path, block)
        case "tool_result":
            check_result(path, block)
        case "thinking" | "redacted_thinking":
            raise Refused(f"{path}: `thinking` and `redacted_thinking` blocks may only be in `assistant` messages")
        case "tool_use":
            raise Refused(f"{path}: `tool_use` blocks can only be in `assistant` messages")
        case kind if kind not in _UNCHECKED_USER:
            raise _unknown(path, kind)
        case _:
            pass


def check_assistant_block(path: str, block: dict[str, Any], model: str) -> None:
    """An assistant has said text, made calls, and thought."""
    match block["type"]:
        case "text":
            check_text(path, block)
            check_citations(path, block, model)
        case "tool_use":
            check_call(path, block)
        case "server_tool_use":
            check_server_call(path, block, model)
        case kind if kind in RESULTS:
            check_server_result(path, block, model)
        case "thinking":
            check_signature(path, block, model)
        case "redacted_thinking":
            check_redacted(path, block, model)
        case "tool_result":
            raise Refused(f"{path}: `tool_result` blocks can only be in `user` messages")
        case kind if kind not in _UNCHECKED_ASSISTANT:
            raise _unknown(path, kind)
        case _:
            pass


def _unknown(path: str, kind: str) -> Refused:
    return Refused(f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags")


def check_text(path: str, block: dict[str, Any], *, may_be_blank: bool = False) -> None:
    """Text is not empty."""
    text = block.get("text")
    if not isinstance(text, str):
        raise Refused(f"{path}.text.text: Field required")
    if not text:
        if block.get("cache_control") is not None:
            raise Refused(f"{path}.text: cache_control cannot be set for empty text blocks")
        raise Refused("messages: text content blocks must be non-empty")
    if text.isspace() and not may_be_blank:
        raise Refused("messages: text content blocks must contain non-whitespace text")


def check_image(path: str, block: dict[str, Any]) -> None:
    """An image has one of four types, or a URL or file id."""
    source = block.get("source")
    if not is_object(source):
        raise Refused(f"{path}.image.source: Field required")
    if source.get("type") != "base64":
        return _check_elsewhere(f"{path}.image.source", source)
    if source.get("media_type") not in _IMAGES:
        raise Refused(
            f"{path}.image.source.base64.media_type: Input should be "
            "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        )
    if not isinstance(source.get("data"), str) or not source["data"]:
        raise Refused(f"{path}.image.source.base64.data: Field required")


def check_document(path: str, block: dict[str, Any]) -> None:
    """A document is a PDF, plain text, content blocks, or a URL or file id."""
    source = block.get("source")
    kind = source.get("type") if is_object(source) else None
    if not is_object(source) or kind is None:
        raise Refused(f"{path}.document.source: Field required")
    if kind in ("base64", "text"):
        wanted = "application/pdf" if kind == "base64" else "text/plain"
        if source.get("media_type") != wanted:
            raise Refused(f"{path}.document.source.{kind}.media_type: Input should be '{wanted}'")
        if not isinstance(source.get("data"), str) or not source["data"]:
            raise Refused(f"{path}.document.source.{kind}.data: Field required")
    elif kind != "content":
        _check_elsewhere(f"{path}.document.source", source)


def _check_elsewhere(path: str, source: dict[str, Any]) -> None:
    kind = source.get("type")
    word = {"url": "url", "file": "file_id"}.get(str(kind))
    if word is None:
        raise Refused(f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    if not isinstance(source.get(word), str):
        raise Refused(f"{path}.{kind}.{word}: Field required")


def check_call(path: str, block: dict[str, Any]) -> None:
    """A call has an id, a name, and an object."""
    id, name = block.get("id"), block.get("name")
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise Refused(f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Refused(f"{path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'")
    if not is_object(block.get("input")):
        raise Refused(f"{path}.tool_use.input: Input should be a valid dictionary")


def check_result(path: str, block: dict[str, Any]) -> None:
    """A result names its call, and one that reports an error has content."""
    if not isinstance(block.get("tool_use_id"), str):
        raise Refused(f"{path}.tool_result.tool_use_id: Field required")
    content = block.get("content")
    if not content:
        if block.get("is_error") is True:
            raise Refused(f"{path}.tool_result: content cannot be empty if `is_error` is true")
        return
    if isinstance(content, str):
        return
    if not is_list(content):
        raise Refused(f"{path}.tool_result.content: Input should be a valid list")
    for k, part in enumerate(content):
        inner = f"{path}.tool_result.content.{k}"
        kind = part.get("type") if is_object(part) else None
        if kind == "text":
            check_text(inner, part, may_be_blank=True)
        elif kind == "image":
            check_image(inner, part)
        elif kind == "document":
            check_document(inner, part)
        elif kind not in ("search_result", "tool_reference"):
            raise _unknown(inner, str(kind))


def check_signature(path: str, block: dict[str, Any], model: str) -> None:
    """Thinking is sent back unchanged, with its signature."""
    text, signature = block.get("thinking"), block.get("signature")
    if not isinstance(text, str):
        raise Refused(f"{path}.thinking.thinking: Field required")
    if not isinstance(signature, str):
        raise Refused(f"{path}.thinking.signature: Field required")
    if block.get("cache_control") is not None:
        raise Refused(f"{path}.thinking.cache_control: Extra inputs are not permitted")
    if signature != sign(model, text):
        raise Refused(f"{path}: Invalid `signature` in `thinking` block")


def check_redacted(path: str, block: dict[str, Any], model: str) -> None:
    """Redacted thinking is sent back unchanged too."""
    data = block.get("data")
    if not isinstance(data, str):
        raise Refused(f"{path}.redacted_thinking.data: Field required")
    if block.get("cache_control") is not None:
        raise Refused(f"{path}.redacted_thinking.cache_control: Extra inputs are not permitted")
    if not is_sealed("red", model, data):
        raise Refused(f"{path}: Invalid `data` in `redacted_thinking` block")
