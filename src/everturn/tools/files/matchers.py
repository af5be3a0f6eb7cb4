"""Text search: finds plain text in a thread, and regular expressions in a process of their own (`grep_worker`)."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from everturn.core.canonical_json import encode_canonical
from everturn.errors import BadArguments, ToolError
from everturn.tools.files.grep_worker import LONGEST_SHOWN

MATCH_TIMEOUT = 5.0  # seconds for one text
_LONGEST_ANSWER: Final = 2**22  # bytes

Hit = tuple[int, str]
FindLines = Callable[[bytes, int], Awaitable[list[Hit]]]
"""Finds lines in a text, at most so many: their numbers and contents."""


@contextlib.asynccontextmanager
async def match_plain_text(wanted: str, *, ignore_case: bool) -> AsyncGenerator[FindLines]:
    """Find a text literally."""
    needle = wanted.casefold() if ignore_case else wanted

    def look(data: bytes, most: int) -> list[Hit]:
        text = data.decode("utf-8", "replace")
        if needle not in (text.casefold() if ignore_case else text):
            return []
        hits: list[Hit] = []
        for number, line in enumerate(text.split("\n"), 1):
            if len(hits) >= most:
                break
            if needle in (line.casefold() if ignore_case else line):
                hits.append((number, line[:LONGEST_SHOWN]))
        return hits

    async def find(data: bytes, most: int) -> list[Hit]:
        return await asyncio.to_thread(look, data, most)

    yield find


@contextlib.asynccontextmanager
async def match_regex(wanted: str, *, ignore_case: bool) -> AsyncGenerator[FindLines]:
    """Find the lines that a regular expression matches.

    Raises:
        BadArguments: the regular expression is invalid.
        ToolError: it takes too long.
    """
    program = str(Path(__file__).with_name("grep_worker.py"))
    if not sys.executable:
        raise ToolError("regular expressions are not available here; search for plain text")
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", program),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=None if sys.platform == "win32" else {},
        limit=_LONGEST_ANSWER,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    into, out = worker.stdin, worker.stdout

    async def send_request(head: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        into.write(encode_canonical(head).encode() + b"\n" + data)
        line = b""
        try:
            async with asyncio.timeout(MATCH_TIMEOUT):
                await into.drain()
                line = await out.readline()
        except TimeoutError:
            raise ToolError(
                "the pattern takes too long to match; write it without nested repetitions, or search for plain text"
            ) from None
        except (ConnectionError, ValueError):
            pass
        if not line:
            raise ToolError(
                "the pattern could not be matched: it needs too much memory, or its process ended; simplify it, "
                "or search for plain text"
            )
        return msgspec.json.decode(line, type=dict[str, Any])

    async def find(data: bytes, most: int) -> list[Hit]:
        answer = await send_request({"size": len(data), "most": most}, data)
        return [(number, line) for number, line in answer["hits"]]

    try:
        first_answer = await send_request({"pattern": wanted, "ignore_case": ignore_case})
        if "error" in first_answer:
            raise BadArguments(
                f"{wanted[:200]!r} is not a regular expression: {first_answer['error']}; or search for plain text"
            )
        yield find
    finally:
        with contextlib.suppress(ProcessLookupError):
            worker.kill()
        into.close()
        await worker.wait()
