"""Bytes that a server wrote → JSON-RPC messages, none of them larger than we can hold.

Whatever is no message is None; an answer that cannot be read is told to its call. What is too large is cut where a reader can still see what it was, before anything is
made of it: a hostile megabyte of numbers is thirty of objects, and stops everybody while they are made.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

LINE_LIMIT: Final = 16 * 2**20  # bytes of one message; what is longer is dropped, and its call told so
TEXT_LIMIT: Final = 8 * 2**20  # characters of a result
SMALL: Final = 2**20  # bytes of a message that is read as it is
BLOCKS: Final = 1000  # pieces of a result
TOO_LARGE: Final = -32063  # our own codes, beside those that the protocol has
UNREADABLE: Final = -32064
_EDGE = 256  # bytes of a line that is too long in which its id is looked for
_VALUE = rb'(\d{1,18}|"[^"\\]{1,128}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
# An id of the message itself, and not one of what is in it: as its first word, or as its last.
_FIRST = re.compile(
    rb'\s*\{\s*(?:%s\s*,\s*)?"id"\s*:\s*%s\s*,(?!\s*"(?:jsonrpc"[^,]*,\s*")?method")' % (_VERSION, _VALUE)
)
_LAST = re.compile(rb',\s*"id"\s*:\s*%s\s*(?:,\s*%s\s*)?\}\s*\Z' % (_VALUE, _VERSION))
_METHOD = re.compile(rb'\s*\{\s*(?:%s\s*,\s*)?"(?:method|params)"' % _VERSION)
_BOM = b"\xef\xbb\xbf"
_HALVES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..")


class Incoming(Struct):
    """A message as it came: a request has an id and a method, an answer an id and a result or an error."""

    id: int | str | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class _Envelope(Struct):
    id: int | str | float | None = None
    method: str | None = None
    params: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()


class _Result(Struct):
    content: list[Raw] = []
    structuredContent: Raw = Raw()
    isError: bool = False


class _Block(Struct):
    """A piece of a result with nothing in it but texts, which cost no more than they are long."""

    type: str = ""
    text: str = ""
    data: str = ""
    mimeType: str = ""


class _Failure(Struct):
    code: Any = 0
    message: Any = ""


_envelope = msgspec.json.Decoder(_Envelope)


class Lines:
    """Cuts a stream into lines; of one that is too long only the ends are kept."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit, self._line = limit, bytearray()
        self._head = b""  # of a line that is being dropped

    def feed(self, data: bytes) -> list[bytes | Incoming]:
        """The lines that are whole now; for one that was dropped, an error in its place if its id was to be seen."""
        found: list[bytes | Incoming] = []
        *ends, rest = data.split(b"\n")
        for piece in ends:
            self._add(piece)
            if self._head:
                found += dropped(self._head, bytes(self._line[-_EDGE:]), self._limit)
            elif self._line.strip():
                found.append(bytes(self._line))
            self._head, self._line = b"", bytearray()
        self._add(rest)
        return found

    def _add(self, piece: bytes) -> None:
        self._line += piece
        if self._head:
            del self._line[:-_EDGE]
        elif len(self._line) > self._limit:
            self._head = bytes(self._line[:_EDGE])
            self._line = self._line[-_EDGE:]


def dropped(head: bytes, tail: bytes, limit: int) -> list[bytes | Incoming]:
    """What is told to the call whose answer was too large, if it can be found out whose it was."""
    text = f"its answer was larger than {limit // 2**20} MiB and was dropped; ask it for less at a time"
    told = _told(head, tail, TOO_LARGE, text)
    return [] if told is None else [told]


def _told(head: bytes, tail: bytes, code: int, text: str) -> Incoming | None:
    found = None if _METHOD.match(head) else _FIRST.match(head) or _LAST.search(tail)
    return None if found is None else Incoming(id=msgspec.json.decode(found[1]), error={"code": code, "message": text})


def read_message(line: bytes) -> Incoming | None:
    """A line as a message; None if it is none. An answer that cannot be read is an error for the call that waits."""
    try:
        return _read(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:  # bytes that are no text are shown as such
        return _read(mended(line.removeprefix(_BOM).decode("utf-8", "replace").encode()))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        why = "it is too deep" if isinstance(error, RecursionError) else str(error)
        text = f"its answer cannot be read ({why}); what was asked of it may have been done"
        return _told(line[:_EDGE], line[-_EDGE:], UNREADABLE, text)


def mended(data: bytes) -> bytes:
    r"""JSON without halves of characters: JavaScript writes `\ud83d` when it has cut an emoji in two."""
    return _HALVES.sub(lambda found: found[0] if len(found[0]) != len(rb"\ud83d") else rb"\ufffd", data)


def _read(line: bytes) -> Incoming | None:
    envelope = _envelope.decode(line)
    message = Incoming(_whole(envelope.id), envelope.method)
    if envelope.method is not None:
        if len(bytes(envelope.params)) > SMALL:
            return None
        message.params = _object(envelope.params)
    elif message.id is None:
        return None
    elif bytes(envelope.error):
        failure = msgspec.json.decode(envelope.error, type=_Failure)
        code = failure.code if isinstance(failure.code, int) else 0
        text = failure.message if isinstance(failure.message, str) else "it does not say what is wrong"
        message.error = {"code": code, "message": text[:SMALL]}
    elif len(bytes(envelope.result)) <= SMALL:
        message.result = _object(envelope.result) or {}
    else:
        message.result = thin(envelope.result)
    return message


def _whole(id: float | str | None) -> int | str | None:
    """An id as we gave it; some write 1.0 for 1."""
    if isinstance(id, float):
        return int(id) if id.is_integer() else None
    return id


def _object(raw: Raw) -> dict[str, Any] | None:
    value: Any = msgspec.json.decode(raw) if bytes(raw) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def thin(raw: Raw | bytes) -> dict[str, Any]:
    """A large result with the texts and files that it holds, and nothing that grows when it is read."""
    result = msgspec.json.decode(raw, type=_Result)
    content: list[Any] = []
    for block in result.content[:BLOCKS]:
        if len(bytes(block)) <= SMALL:
            content.append(msgspec.json.decode(block))
        else:
            large = msgspec.json.decode(block, type=_Block)
            content.append({key: value for key, value in msgspec.structs.asdict(large).items() if value})
    if len(result.content) > BLOCKS:
        content.append({"type": "text", "text": f"[{len(result.content) - BLOCKS} more pieces were dropped]"})
    structured = bytes(result.structuredContent)
    thinned: dict[str, Any] = {"content": content, "isError": result.isError}
    if structured and len(structured) <= SMALL:
        thinned["structuredContent"] = msgspec.json.decode(structured)
    elif structured and not content:
        content.append({"type": "text", "text": structured[: TEXT_LIMIT + 1].decode("utf-8", "replace")})
    return thinned
