"""MCP prompts and resources: validates what a server lists, limits its size, and converts what it returns. Pure.

A server's statements are only claims. Names and descriptions are shown to a person; the text of a prompt and the content of a
resource become attached context of a message, which is untrusted, as results of the server's tools are.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

from msgspec import Struct

from everturn.core.canonical_json import JsonObject, replace_surrogates
from everturn.errors import ConfigError

MOST_PROMPTS: Final = 200  # of a server
MOST_RESOURCES: Final = 1_000
MOST_ARGUMENTS: Final = 20
LONGEST_OFFER_NAME: Final = 128
LONGEST_URI: Final = 1_000
LONGEST_ABOUT: Final = 500  # characters of a description
LONGEST_VALUE: Final = 10_000  # characters of an argument
MAX_CONTENT: Final = 200_000  # characters of a prompt or a resource; the rest is cut
MAX_FILE: Final = 8 * 2**20  # bytes of a resource that is no text
# Marks of direction and other invisible characters: a text that is attached is read as it is shown.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Words of a command line: no blank, nothing that cannot be printed.
_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class OfferArgument(Struct, frozen=True):
    """An argument of a prompt; its value is a text."""

    name: str
    description: str = ""
    required: bool = False


class OfferedPrompt(Struct, frozen=True):
    """A prompt as its server describes it."""

    name: str
    description: str = ""
    arguments: tuple[OfferArgument, ...] = ()


class OfferedResource(Struct, frozen=True):
    """A resource as its server lists it. A URI is a name that the server gives; nothing else is opened by it."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""


class ServerOffers(Struct, frozen=True):
    """The prompts and resources of a server, and the problems of those that were left out."""

    prompts: tuple[OfferedPrompt, ...] = ()
    resources: tuple[OfferedResource, ...] = ()
    problems: tuple[str, ...] = ()


class ResourceFile(Struct, frozen=True):
    """A content of a resource that is no text."""

    data: bytes
    media_type: str
    name: str


class OfferedContent(Struct, frozen=True):
    """What a prompt or a resource contains: a text for a model, and files."""

    text: str
    files: tuple[ResourceFile, ...] = ()


Offer = TypeVar("Offer", OfferedPrompt, OfferedResource)


def read_prompts(raw: Any) -> tuple[list[OfferedPrompt], list[str]]:
    """Return the valid prompts, and the problems of the others."""
    return _read_all(raw, "prompt", _read_prompt, lambda prompt: prompt.name, MOST_PROMPTS)


def read_resources(raw: Any) -> tuple[list[OfferedResource], list[str]]:
    """Return the valid resources, and the problems of the others."""
    return _read_all(raw, "resource", _read_resource, lambda resource: resource.uri, MOST_RESOURCES)


def _read_all(
    raw: Any, kind: str, read: Callable[[JsonObject], Offer | str], key: Callable[[Offer], str], most: int
) -> tuple[list[Offer], list[str]]:
    if not isinstance(raw, list):
        return [], [f"its list of {kind}s is no list"]
    found: dict[str, Offer] = {}
    problems: list[str] = []
    rows = cast("list[Any]", raw)
    for at, row in enumerate(rows[:most]):
        offer = read(cast("JsonObject", row)) if isinstance(row, dict) else "it is no object"
        if isinstance(offer, str):
            problems.append(f"{kind} number {at + 1}: {offer}")
        elif key(offer) in found:
            problems.append(f"{kind} {key(offer)!r}: it is listed twice; the first is used")
        else:
            found[key(offer)] = offer
    if len(rows) > most:
        problems.append(f"it lists {len(rows)} {kind}s; those after the first {most} were left out")
    return list(found.values()), problems


def _read_prompt(row: JsonObject) -> OfferedPrompt | str:
    name = row.get("name")
    if not _is_name(name):
        return f"its name is invalid: at most {LONGEST_OFFER_NAME} visible characters without blanks"
    listed: Any = row.get("arguments") or []
    if not isinstance(listed, list) or len(cast("list[Any]", listed)) > MOST_ARGUMENTS:
        return f"its arguments are invalid: a list of at most {MOST_ARGUMENTS}"
    arguments: dict[str, OfferArgument] = {}
    for one in cast("list[Any]", listed):
        argument = cast("JsonObject", one) if isinstance(one, dict) else {}
        if not _is_name(argument.get("name")) or "=" in argument["name"] or argument["name"] in arguments:
            return "the name of an argument is invalid"
        arguments[argument["name"]] = OfferArgument(
            argument["name"], _about(argument.get("description")), argument.get("required") is True
        )
    about = row.get("description") or row.get("title")
    return OfferedPrompt(cast("str", name), _about(about), tuple(arguments.values()))


def _read_resource(row: JsonObject) -> OfferedResource | str:
    uri = row.get("uri")
    if not is_uri(uri):
        return f"its URI is invalid: a scheme and at most {LONGEST_URI} visible characters without blanks"
    name, media_type = _about(row.get("title") or row.get("name")), _media_type(row.get("mimeType"))
    return OfferedResource(cast("str", uri), name[:LONGEST_OFFER_NAME], _about(row.get("description")), media_type)


def is_uri(value: Any) -> bool:
    """Whether a value can be the URI of a resource."""
    return isinstance(value, str) and len(value) <= LONGEST_URI and bool(_URI.fullmatch(value)) and _is_printable(value)


def check_values(prompt: OfferedPrompt, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values for the arguments of a prompt.

    Raises:
        ConfigError: one is missing, too long, or of no argument.
    """
    known = {argument.name: argument for argument in prompt.arguments}
    if unknown := [name for name in values if name not in known]:
        raise ConfigError(f"{prompt.name} has no argument {unknown[0]!r}; it has: {', '.join(known) or 'none'}")
    given = {name: replace_surrogates(value) for name, value in values.items() if value}
    if missing := [name for name, argument in known.items() if argument.required and name not in given]:
        raise ConfigError(f"{prompt.name} needs: {', '.join(missing)}")
    if long := [name for name, value in given.items() if len(value) > LONGEST_VALUE]:
        raise ConfigError(f"{long[0]}: at most {LONGEST_VALUE} characters")
    return given


def convert_prompt(result: JsonObject) -> OfferedContent:
    """Return the text of a prompt: its messages in order, those of an assistant marked as such."""
    messages = result.get("messages")
    texts: list[str] = []
    for message in cast("list[Any]", messages) if isinstance(messages, list) else []:
        row = cast("JsonObject", message) if isinstance(message, dict) else {}
        text = _block_text(row.get("content"))
        texts.append(f"[assistant]\n{text}" if row.get("role") == "assistant" else text)
        if sum(map(len, texts)) > MAX_CONTENT:
            break
    return OfferedContent(_clean("\n\n".join(filter(None, texts))))


def _block_text(content: Any) -> str:
    block = cast("JsonObject", content) if isinstance(content, dict) else {}
    resource = block.get("resource")
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return block["text"]
    if block.get("type") == "resource" and isinstance(resource, dict):
        inner = cast("JsonObject", resource)
        if isinstance(inner.get("text"), str):
            return f"[{inner.get('uri')}]\n{inner['text']}"
    if block.get("type") == "resource_link":
        return f"[{block.get('name')}: {block.get('uri')}]"
    return f"[content of the kind {str(block.get('type'))[:50]!r} is left out]"


def convert_resource(result: JsonObject) -> OfferedContent:
    """Return the contents of a resource: its texts, and the others as files."""
    contents = result.get("contents")
    texts: list[str] = []
    files: list[ResourceFile] = []
    left = MAX_FILE
    for content in cast("list[Any]", contents) if isinstance(contents, list) else []:
        block = cast("JsonObject", content) if isinstance(content, dict) else {}
        if isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif isinstance(block.get("blob"), str):
            data = _decode(block["blob"], left)
            if data is None:
                texts.append(f"[content is left out: it is no base64, or has more than {MAX_FILE} bytes]")
                continue
            left -= len(data)
            name = str(block.get("uri") or "").rpartition("/")[2][:200]
            files.append(ResourceFile(data, _media_type(block.get("mimeType")) or "application/octet-stream", name))
        else:
            texts.append("[content is left out: it is neither a text nor a file]")
        if sum(map(len, texts)) > MAX_CONTENT:
            break
    return OfferedContent(_clean("\n\n".join(texts)), tuple(files))


def _decode(data: str, left: int) -> bytes | None:
    if len(data) * 3 // 4 > left:
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _clean(text: str) -> str:
    """A text for a model and a person: without characters that one of them does not see, and cut at a limit."""
    cut = text[:MAX_CONTENT]
    cleaned = _CONTROL.sub("", _INVISIBLE.sub("", replace_surrogates(cut.replace("\r\n", "\n"))))
    return cleaned if cut == text else f"{cleaned}\n[cut here: it is longer than {MAX_CONTENT} characters]"


def _about(value: Any) -> str:
    """A description on one line."""
    if not isinstance(value, str):
        return ""
    cut = replace_surrogates(value[: 4 * LONGEST_ABOUT])
    shown = "".join(char if char.isprintable() else " " for char in _INVISIBLE.sub("", cut))
    return " ".join(shown.split())[:LONGEST_ABOUT]


def _is_name(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= LONGEST_OFFER_NAME
        and bool(_NAME.fullmatch(value))
        and _is_printable(value)
    )


def _is_printable(text: str) -> bool:
    return text.isprintable() and _INVISIBLE.search(text) is None


def _media_type(value: Any) -> str:
    text = value.strip().lower() if isinstance(value, str) else ""
    return text if 0 < len(text) <= 100 and text.isascii() and text.isprintable() else ""
