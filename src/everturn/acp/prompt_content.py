"""Content of a prompt: text, links and embedded files of the editor, images and audio."""

from __future__ import annotations

import base64
import binascii
from typing import Any, cast

from msgspec import Struct, field

from everturn import api
from everturn.acp.connection import INVALID_PARAMS, RpcError
from everturn.client import Server
from everturn.core.canonical_json import replace_surrogates
from everturn.core.parts import ContextPart

JsonObject = dict[str, Any]


class PromptContent(Struct):
    """What a prompt says. The text of an embedded file is context: quoted data, and not the person's words."""

    text: str = ""
    contexts: list[ContextPart] = field(default_factory=list[ContextPart])
    files: list[api.FileView] = field(default_factory=list[api.FileView])


async def read_prompt(blocks: Any, server: Server) -> PromptContent:
    """Read the content blocks of a prompt, and upload its images and audio.

    Raises:
        RpcError: a block has no such shape.
    """
    if not isinstance(blocks, list):
        raise RpcError(INVALID_PARAMS, "prompt must be a list of content blocks")
    content = PromptContent()
    texts: list[str] = []
    for block in cast("list[Any]", blocks):
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "resource_link", "uri": str(uri)}:
                name = block.get("name")
                texts.append(f"[@{name if isinstance(name, str) else uri}]({uri})")
            case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
                if text:
                    content.contexts.append(
                        ContextPart("file", replace_surrogates(text), title=uri[:500], source=uri[:2000])
                    )
            case {"type": "image" | "audio", "data": str(data), "mimeType": str(kind)}:
                content.files.append(await server.attach(_decode(data), kind, kind.replace("/", ".")))
            case {"type": "resource", "resource": {"blob": str(data), "mimeType": str(kind)}}:
                content.files.append(await server.attach(_decode(data), kind, kind.replace("/", ".")))
            case _:
                raise RpcError(
                    INVALID_PARAMS, "the type of a content block must be text, image, audio, resource_link or resource"
                )
    content.text = replace_surrogates("".join(texts))
    if not content.text.strip() and not content.files and not content.contexts:
        raise RpcError(INVALID_PARAMS, "the prompt is empty")
    return content


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise RpcError(INVALID_PARAMS, "data must be base64") from None
