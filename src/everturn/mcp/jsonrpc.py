"""JSON-RPC messages: parses the bytes of a server into JSON-RPC messages of limited size.

A line that is not a message becomes None; for a response that cannot be read, its call receives an error. What is too
large is cut before it is decoded, where a reader can still see what it was: a hostile megabyte of numbers becomes
thirty megabytes of objects, and blocks the event loop while they are created.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

LINE_LIMIT: Final = 16 * 2**20  # bytes of one message; a longer one is dropped, and its call receives an error
TEXT_LIMIT: Final = 8 * 2**20  # characters of a result
SMALL: Final = 2**20  # bytes up to which a message is decoded as a whole
BLOCKS: Final = 1000  # content blocks of a result
TOO_LARGE: Final = -32063  # our own error codes, besides those of the protocol
UNREADABLE: Final = -32064
_EDGE = 256  # bytes at both ends of a line that is too long, in which its id is searched
_VALUE = rb'(\d{1,18}|"[^"\\]{1,128}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
# The id of the message itself, and not one inside of it: as its first key, or as its last.
_FIRST = re.compile(
    rb'\s*\{\s*(?:%s\s*,\s*)?"id"\s*:\s*%s\s*,(?!\s*"(?:jsonrpc"[^,]*,\s*")?method")' % (_VERSION, _VALUE)
)
_LAST = re.compile(rb',\s*"id"\s*:\s*%s\s*(?:,\s*%s\s*)?\}\s*\Z' % (_VALUE, _VERSION))
_METHOD = re.compile(rb'\s*\{\s*(?:%s\s*,\s*)?"(?:method|params)"' % _VERSION)
_BOM = b"\xef\xbb\xbf"
_SURROGATES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..")


class IncomingMessage(Struct):
    """A message as received: a request has an id and a method, a response an id and a result or an error."""

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


class _TextBlock(Struct):
    """A content block with only strings in it, whose decoded size is that of its bytes."""

    type: str = ""
    text: str = ""
    data: str = ""
    mimeType: str = ""


class _JsonRpcError(Struct):
    code: Any = 0
    message: Any = ""


_envelope = msgspec.json.Decoder(_Envelope)


class LineSplitter:
    """Splits a stream into lines; of a line that is too long only both ends are kept."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit, self._line = limit, bytearray()
        self._head = b""  # start of a line that is being dropped

    def feed(self, data: bytes) -> list[bytes | IncomingMessage]:
        """Return the lines that are complete now; for a dropped one, an error message if its id was found."""
        complete: list[bytes | IncomingMessage] = []
        *pieces, rest = data.split(b"\n")
        for piece in pieces:
            self._add(piece)
            if self._head:
                complete += make_too_large_error(self._head, bytes(self._line[-_EDGE:]), self._limit)
            elif self._line.strip():
                complete.append(bytes(self._line))
            self._head, self._line = b"", bytearray()
        self._add(rest)
        return complete

    def _add(self, piece: bytes) -> None:
        self._line += piece
        if self._head:
            del self._line[:-_EDGE]
        elif len(self._line) > self._limit:
            self._head = bytes(self._line[:_EDGE])
            self._line = self._line[-_EDGE:]


def make_too_large_error(head: bytes, tail: bytes, limit: int) -> list[bytes | IncomingMessage]:
    """Return an error message for the call whose response was too large, if its id can be found."""
    text = f"its answer was larger than {limit // 2**20} MiB and was dropped; ask it for less at a time"
    message = _error_message(head, tail, TOO_LARGE, text)
    return [] if message is None else [message]


def _error_message(head: bytes, tail: bytes, code: int, text: str) -> IncomingMessage | None:
    match = None if _METHOD.match(head) else _FIRST.match(head) or _LAST.search(tail)
    return (
        None
        if match is None
        else IncomingMessage(id=msgspec.json.decode(match[1]), error={"code": code, "message": text})
    )


def read_message(line: bytes) -> IncomingMessage | None:
    """Parse a line; None if it is not a message. A response that cannot be read becomes an error for its call."""
    try:
        return _read(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:  # invalid UTF-8 is replaced
        return _read(replace_lone_surrogates(line.removeprefix(_BOM).decode("utf-8", "replace").encode()))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        reason = "it is too deep" if isinstance(error, RecursionError) else str(error)
        text = f"its answer cannot be read ({reason}); what was asked of it may have been done"
        return _error_message(line[:_EDGE], line[-_EDGE:], UNREADABLE, text)


def replace_lone_surrogates(data: bytes) -> bytes:
    r"""Replace lone surrogate escapes in JSON: JavaScript writes `\ud83d` when it has cut an emoji in two."""
    return _SURROGATES.sub(lambda match: match[0] if len(match[0]) != len(rb"\ud83d") else rb"\ufffd", data)


def _read(line: bytes) -> IncomingMessage | None:
    envelope = _envelope.decode(line)
    message = IncomingMessage(_normalize_id(envelope.id), envelope.method)
    if envelope.method is not None:
        if len(bytes(envelope.params)) > SMALL:
            return None
        message.params = _object(envelope.params)
    elif message.id is None:
        return None
    elif bytes(envelope.error):
        failure = msgspec.json.decode(envelope.error, type=_JsonRpcError)
        code = failure.code if isinstance(failure.code, int) else 0
        text = failure.message if isinstance(failure.message, str) else "it does not say what is wrong"
        message.error = {"code": code, "message": text[:SMALL]}
    elif len(bytes(envelope.result)) <= SMALL:
        message.result = _object(envelope.result) or {}
    else:
        message.result = decode_large_result(envelope.result)
    return message


def _normalize_id(id: float | str | None) -> int | str | None:
    """Normalize an id to the one we sent; some servers write 1.0 for 1."""
    if isinstance(id, float):
        return int(id) if id.is_integer() else None
    return id


def _object(raw: Raw) -> dict[str, Any] | None:
    value: Any = msgspec.json.decode(raw) if bytes(raw) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def decode_large_result(raw: Raw | bytes) -> dict[str, Any]:
    """Decode a large result with its texts and files, and without anything that grows when it is decoded."""
    result = msgspec.json.decode(raw, type=_Result)
    content: list[Any] = []
    for block in result.content[:BLOCKS]:
        if len(bytes(block)) <= SMALL:
            content.append(msgspec.json.decode(block))
        else:
            large = msgspec.json.decode(block, type=_TextBlock)
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
