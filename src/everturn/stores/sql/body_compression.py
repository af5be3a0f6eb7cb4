"""Compression of bodies: JSON of the log, deflated with a dictionary of what every log repeats. Pure.

PostgreSQL compresses no row below 2 kB, and what repeats in a small body are names of fields, which are in the dictionary.
The dictionary must never change: what was compressed with it could not be read any more. Another one needs another prefix.
"""

from __future__ import annotations

import zlib
from typing import Final

from everturn.errors import UnreadableLog

MAX_BYTES: Final = 64 * 1024  # of JSON: compressing so much takes about a millisecond of the event loop
MIN_BYTES: Final = 512  # below, compression gains little
MESSAGE_PREFIX: Final = b"\xe7\x02"  # JSON never begins with it, and neither does an encrypted value

# A small window and little memory: preparing the larger default costs more than compressing a few kB. Level 6 takes a fifth to a
# half longer than level 1 for these sizes, and saves a tenth to a quarter of the bytes.
_LEVEL, _WINDOW, _MEMORY = 6, -13, 6
_HEAD = b'{"v":1,"event":{"type":"'
_AT = b'","at":17,"turn":"turn_'
_CALL = b'","call":"turn_'
# What is most frequent is at the end, where it is cheapest to refer to.
_DICTIONARY: Final = b"".join(
    (
        b'"by":"user","attachments":[{"type":"file","name":"","media_type":"text/plain","size":,"blob":"',
        b'"citations":[{"url":"https://www.","title":"',
        _HEAD + b'GateOpened","gate":{"id":"gate_","kind":"approval","expires":"',
        _HEAD + b'GateResolved","resolution":{"allow":"once","denied":',
        _HEAD + b"TurnFailed" + _AT + b'","error":{"kind":"","message":"',
        _HEAD
        + b"TurnStarted"
        + _AT
        + b'","input":{"id":"msg_","parent":null,"role":"user","parts":[{"type":"text","text":"',
        b'"}],"turn":"turn_"},"options":{"model":""},"command":"cmd_","untitled":true}}\n',
        _HEAD + b"TitleSet" + _AT + b'","title":"',
        _HEAD
        + b"AnswerStarted"
        + _AT
        + b'","message":{"id":"msg_","parent":"msg_","role":"assistant","by":"","turn":"turn_',
        b'{"v":1,"message":{"id":"msg_","parent":"msg_","role":"assistant","parts":[{"type":"text","text":"',
        _HEAD + b"TurnFinishing" + _AT + b'","outcome":"completed"}}\n',
        _HEAD + b"TurnCompleted" + _AT + b'","usage":{"input":,"output":,"cached":,"reasoning":,"cost":0.0}}}\n',
        _HEAD + b"StepFinished" + _AT + b'","step":1,"parts":[{"type":"reasoning","text":""},{"type":"text","text":"',
        b'"},{"type":"tool","call":"turn_-1-1","name":"","arguments":"{\\"":\\"","provider_id":"call_","identity":"',
        b'"}],"finish":"tool_calls","finish":"stop","usage":{"input":100,"output":200},"first_chunk_at":17',
        _HEAD + b"PermissionDecided" + _AT + _CALL + b'-1-1","tool":"","identity":"","hash":"","allowed":true,"why":"',
        b' runs by itself","rule":{"tool":"","action":"allow","layer":"defaults","source":"its own `approval`"},"fingerprint":"',
        _HEAD
        + b"CallStarted"
        + _AT
        + _CALL
        + b'-1-1","tool":"","arguments":"{\\"\\":\\"\\"}","hash":"","key":"turn_-1-1',
        b'","idempotent":true,"read_only":true}}\n',
        _HEAD + b"HookFinished" + _AT + b'","step":1,"plugin":"tool_calling"}}\n',
        _HEAD + b"StepStarted" + _AT + b'","step":1}}\n',
        _HEAD + b"CallFinished" + _AT + _CALL + b'-1-1","state":"completed","output":{"text":"","origin":"function:',
    )
)


# Copied for each text: to enter the dictionary again takes longer than to compress a small one.
_EMPTY: Final = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)


def compress(text: bytes) -> bytes:
    """Return the text compressed; at most `MAX_BYTES` can be read again."""
    deflate = _EMPTY.copy()
    return deflate.compress(text) + deflate.flush()


def decompress(data: bytes) -> bytes:
    """Return the text that was compressed.

    Raises:
        UnreadableLog: the data is damaged, or would expand to more than `MAX_BYTES`.
    """
    inflate = zlib.decompressobj(_WINDOW, _DICTIONARY)
    try:
        text = inflate.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise UnreadableLog(f"a row is damaged: {error}") from error
    if not inflate.eof or inflate.unused_data or len(text) > MAX_BYTES:
        raise UnreadableLog("a row is damaged: its end is missing, or it is too large")
    return text


def compress_message(body: bytes) -> bytes:
    """Return the body of a message as it is stored: compressed, unless it is small or very large."""
    if not MIN_BYTES < len(body) <= MAX_BYTES:
        return body
    compressed = MESSAGE_PREFIX + compress(body)
    return compressed if len(compressed) < len(body) else body


def decompress_message(body: bytes) -> bytes:
    """Return the JSON of a stored message.

    Raises:
        UnreadableLog: it is damaged.
    """
    return decompress(body[len(MESSAGE_PREFIX) :]) if body.startswith(MESSAGE_PREFIX) else body
