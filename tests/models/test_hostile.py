"""Servers that break every rule, over a real socket: each gives a right answer or a typed error, and costs no memory.

Run as a script it is the client whose memory is measured.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from everturn import Chat, TurnError, TurnSettings, tool
from everturn.core.canonical_json import replace_surrogates
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.http_model import HttpModel
from everturn.models.profile import FormatName
from everturn.models.vendors import VENDORS
from everturn.transport import StreamLimits
from everturn.transport.live import HttpTransport

SOON = 60.0  # seconds after which something that should have ended is taken to hang
MIB = 2**20
FORMATS: tuple[FormatName, ...] = ("chat", "messages", "responses", "gemini", "ollama")
PROFILES = {
    "chat": replace(VENDORS["compatible"], key="COMPATIBLE_KEY"),
    "messages": replace(VENDORS["anthropic"], prices=""),
    "responses": replace(VENDORS["openai"], prices=""),
    "gemini": replace(VENDORS["gemini"], prices=""),
    "ollama": replace(VENDORS["ollama"], key="OLLAMA_KEY"),
}
# A picture of Gemini's comes whole, in one line, so its lines and its streams may be longer by design.
LINE = {"gemini": 32 * MIB, "ollama": 32 * MIB}
WHOLE_STREAM = {"gemini": 64 * MIB, "ollama": 64 * MIB}
every_format = pytest.mark.parametrize("format", FORMATS)
every_format_with_an_end = pytest.mark.parametrize("format", [format for format in FORMATS if format != "gemini"])


# What a model says ----------------------------------------------------------------------------------------------------


class Spoken(Struct, frozen=True):
    """How a format says things; `%b` is any JSON, however broken."""

    text: bytes
    call: bytes
    arguments: bytes
    usage: bytes
    finish: bytes
    done: bytes


SPOKEN = {
    "chat": Spoken(
        text=b'{"choices":[{"delta":{"content":%b}}]}',
        call=b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"note","arguments":""}}]}}]}',
        arguments=b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":%b}}]}}]}',
        usage=b'{"choices":[],"usage":{"prompt_tokens":%b,"completion_tokens":1}}',
        finish=b'{"choices":[{"delta":{},"finish_reason":"stop"}]}',
        done=b"[DONE]",
    ),
    "messages": Spoken(
        text=b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%b}}',
        call=b'{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"note","input":{}}}',
        arguments=b'{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":%b}}',
        usage=b'{"type":"message_delta","delta":{},"usage":{"input_tokens":%b,"output_tokens":1}}',
        finish=b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
        done=b'{"type":"message_stop"}',
    ),
    "responses": Spoken(
        text=b'{"type":"response.output_text.delta","delta":%b}',
        call=b'{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"note"}}',
        arguments=b'{"type":"response.function_call_arguments.delta","output_index":1,"delta":%b}',
        usage=b'{"type":"response.completed","response":{"usage":{"input_tokens":%b,"output_tokens":1}}}',
        finish=b'{"type":"response.in_progress"}',
        done=b'{"type":"response.completed","response":{}}',
    ),
    "gemini": Spoken(
        text=b'{"candidates":[{"content":{"parts":[{"text":%b}]}}]}',
        call=b"",  # it comes whole
        arguments=b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"note","args":%b}}]}}]}',
        usage=b'{"usageMetadata":{"promptTokenCount":%b,"candidatesTokenCount":1}}',
        finish=b'{"candidates":[{"finishReason":"STOP"}]}',
        done=b"",
    ),
    "ollama": Spoken(
        text=b'{"message":{"content":%b},"done":false}',
        call=b"",
        arguments=b'{"message":{"tool_calls":[{"function":{"name":"note","arguments":%b}}]},"done":false}',
        usage=b'{"message":{"content":""},"done":true,"prompt_eval_count":%b,"eval_count":1}',
        finish=b"",
        done=b'{"message":{"content":""},"done":true,"done_reason":"stop"}',
    ),
}


def framed(format: str, *events: bytes) -> bytes:
    """Events as the format puts them on the wire."""
    frame = b"%b\n" if format == "ollama" else b"data: %b\n\n"
    return b"".join(frame % event for event in events if event)


def end(format: str) -> bytes:
    return framed(format, SPOKEN[format].finish, SPOKEN[format].done)


def text_answer(format: str, *texts: bytes) -> bytes:
    """An answer that says these texts, each a JSON value."""
    return framed(format, *(SPOKEN[format].text % text for text in texts)) + end(format)


def head(status: str = "200 OK", **headers: object) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


STREAM = head(content_type="text/event-stream")


# A server that sends whatever it is told, byte by byte ----------------------------------------------------------------


class Answer(Struct):
    start: bytes
    forever: bytes = b""  # sent again and again, until nobody listens
    after: Literal["close", "stay"] = "close"
    count: int = 0  # how often `forever` is sent; 0: without end
    last: bytes = b""


class Server(Struct):
    answers: list[Answer]
    url: str = ""
    heads: list[bytes] = field(default_factory=list[bytes])
    sent: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                size = next(line for line in request.lower().splitlines() if line.startswith(b"content-length:"))
                await reader.readexactly(int(size.partition(b":")[2]))
                self.heads.append(request)
                answer = self.answers[min(len(self.heads), len(self.answers)) - 1]
                await self.send(writer, answer)
                if answer.after == "close":
                    return
        except (OSError, asyncio.IncompleteReadError):
            pass  # whom we bother has hung up
        finally:
            writer.close()

    async def send(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        writer.write(answer.start)
        await writer.drain()
        sent = 0
        while answer.forever and (not answer.count or sent < answer.count):
            writer.write(answer.forever)
            await writer.drain()
            self.sent += len(answer.forever)
            sent += 1
        writer.write(answer.last)
        await writer.drain()


@asynccontextmanager
async def serving(*answers: Answer | bytes) -> AsyncGenerator[Server]:
    server = Server([Answer(answer) if isinstance(answer, bytes) else answer for answer in answers])
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(server.serve(reader, writer)))

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# Who asks it ----------------------------------------------------------------------------------------------------------


def model_at(format: str, url: str, limits: StreamLimits | None = None) -> HttpModel:
    return HttpModel("m", replace(PROFILES[format], base_url=url), HttpTransport(), key="sk-secret", limits=limits)


class Heard(Struct):
    chunks: list[Chunk]
    error: ModelError | None = None

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextChunk))

    @property
    def arguments(self) -> str:
        return "".join(chunk.arguments for chunk in self.chunks if isinstance(chunk, CallChunk))

    @property
    def outcome(self) -> str:
        """The kind of the error, or what was said."""
        return f"{self.error.kind}!" if self.error is not None else self.text


async def hear(format: str, *answers: Answer | bytes) -> Heard:
    """Ask the model itself."""
    async with serving(*answers) as server, asyncio.timeout(SOON):
        result = Heard([])
        try:
            async for batch in model_at(format, server.url).stream(ModelRequest("m", "", [], [], {})):
                result.chunks += batch
        except ModelError as error:
            result.error = error
    finishes = [at for at, chunk in enumerate(result.chunks) if isinstance(chunk, FinishChunk)]
    assert finishes == ([] if result.error is not None else [len(result.chunks) - 1])
    return result


async def talk(format: str, *answers: Answer | bytes, settings: TurnSettings | None = None) -> str:
    """Ask through the front door; the kind of the error, or what was said."""

    @tool
    async def note(a: Any) -> str:
        return "noted"

    async with serving(*answers) as server, asyncio.timeout(SOON):
        async with Chat(model_at(format, server.url), tools=[note], settings=settings) as chat:
            try:
                return (await (await chat.send("hi"))).text
            except TurnError as error:
                str(error).encode()  # whatever a server said can be stored
                return f"{error.kind}!"


async def check(format: str, answer: Answer | bytes, *outcomes: str) -> None:
    """The model and the turn come to the same."""
    result = await hear(format, answer)
    assert result.outcome in outcomes, result.error
    assert await talk(format, answer) == result.outcome


# Too much -------------------------------------------------------------------------------------------------------------


@every_format
async def test_a_line_without_end_is_given_up(format: str) -> None:
    longest = LINE.get(format, MIB)
    endless = Answer(STREAM + b"data: ", forever=b"x" * 65536)
    async with serving(endless) as server, asyncio.timeout(SOON):
        stream = model_at(format, server.url).stream(ModelRequest("m", "", [], [], {}))
        with pytest.raises(ModelError, match=f"a line of more than {longest:,} bytes") as caught:
            assert not [chunk async for batch in stream for chunk in batch]
    assert caught.value.kind == "limit"
    assert server.sent < longest + 15 * MIB  # the socket was closed, and the buffers between us are not ours


@every_format
async def test_an_event_without_end_is_given_up(format: str) -> None:
    await check(format, Answer(STREAM, forever=b"data: x\n" * 8192), "limit!")


@every_format
async def test_comments_without_end_are_given_up(format: str) -> None:
    comment = b": PROCESSING".ljust(510, b".") + b"\n\n"
    assert (await hear(format, Answer(STREAM, forever=comment * 128))).outcome == "limit!"


@every_format
async def test_an_answer_without_end_is_given_up(format: str) -> None:
    text = framed(format, SPOKEN[format].text % (b'"%b"' % (b"x" * 100_000)))
    result = await hear(format, Answer(STREAM, forever=text))
    assert result.outcome == "limit!"
    longest = WHOLE_STREAM.get(format, 32 * MIB)
    assert longest - 2 * MIB < len(result.text) < longest


# Bytes and JSON -------------------------------------------------------------------------------------------------------


DEEP = 10_000
BROKEN_JSON: dict[str, tuple[bytes, str]] = {
    "NaN": (b"NaN", "hi"),
    "Infinity": (b"[Infinity,-Infinity,1e999]", "hi"),
    "half a character": (b'"\\ud800"', "hi"),
    "bytes that are no UTF-8": (b'"\xff\xfe\xc3"', "hi"),
    "half a character in UTF-8": (b'"\xed\xa0\x80"', "hi"),
    "a deep list": (b"[" * DEEP + b"]" * DEEP, "response!"),
    "a deep object": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "response!"),
    "a long number": (b"7" * 5000, "response!"),
    "a long fraction": (b"0." + b"7" * 5000, "hi"),
    "a large exponent": (b"1e" + b"9" * 50, "hi"),
    "the same key twice": (b'{"a":1,"a":2}', "hi"),
    "nothing": (b"", "response!"),
    "a zero byte": (b'"\x00"', "response!"),
}


@every_format
@pytest.mark.parametrize("defect", BROKEN_JSON)
async def test_a_field_nobody_reads_may_hold(format: str, defect: str) -> None:
    odd, outcome = BROKEN_JSON[defect]
    event = (SPOKEN[format].text % b'"hi"').replace(b"{", b'{"ignored":%b,' % odd.replace(b"%", b"%%"), 1)
    result = await hear(format, STREAM + framed(format, event) + end(format))

    if defect in ("a long number", "a deep list", "a deep object"):  # some are skipped unread; either is right
        assert result.outcome in ("hi", "response!")
    else:
        assert result.outcome == outcome
    assert await talk(format, STREAM + framed(format, event) + end(format)) == result.outcome


@every_format
@pytest.mark.parametrize("defect", BROKEN_JSON)
async def test_the_text_itself_may_be(format: str, defect: str) -> None:
    answer = STREAM + text_answer(format, b'"hi"', BROKEN_JSON[defect][0])
    result = await hear(format, answer)

    assert result.outcome == "response!" or result.text.startswith("hi")
    turn_outcome = await talk(format, answer)
    assert turn_outcome == result.outcome.encode("utf-8", "replace").decode()


@every_format
async def test_bytes_that_are_no_utf8_are_shown_as_such(format: str) -> None:
    await check(format, STREAM + text_answer(format, b'"a\xffb"', '"ü"'.encode("latin-1")), "a\ufffdb\ufffd")


@every_format
async def test_half_a_character_becomes_a_question_mark(format: str) -> None:
    answer = STREAM + text_answer(format, b'"a\\ud83db"')

    assert (await hear(format, answer)).text in ("a\ud83db", "a?b")
    assert await talk(format, answer) == "a?b"


@every_format
async def test_a_character_in_two_halves_is_no_error(format: str) -> None:
    assert await talk(format, STREAM + text_answer(format, b'"\\ud83d"', b'"\\ude00"')) == "??"  # it was one emoji


@every_format
async def test_of_two_equal_keys_the_last_one_counts(format: str) -> None:
    event = SPOKEN[format].text % b'"a"'
    name = {"responses": b'"delta":', "messages": b'"text":', "gemini": b'"text":'}.get(format, b'"content":')
    await check(
        format, STREAM + framed(format, event.replace(name + b'"a"', name + b'"a",' + name + b'"b"')) + end(format), "b"
    )


@every_format
@pytest.mark.parametrize("count", [b"7" * 5000, b"NaN", b"-1", b'"12"', b"1e3", b"null", b"[]", b"true", b"9" * 30])
async def test_a_count_of_tokens_may_be_anything(format: str, count: bytes) -> None:
    answer = STREAM + framed(format, SPOKEN[format].text % b'"hi"', SPOKEN[format].usage % count) + end(format)
    await check(format, answer, "hi", "response!")


# Arguments ------------------------------------------------------------------------------------------------------------


WRITTEN = {
    "a deep list": '{"a":' + "[" * DEEP + "]" * DEEP + "}",
    "a deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "not finished": '{"a":',
    "a long number": '{"a":' + "7" * 5000 + "}",
    "not a number": '{"a":NaN}',
    "half a character": '{"a":"\\ud800"}',
    "a raw half": '{"a":"\ud800"}',
    "twice": '{"a":1}{"a":2}',
    "the same key twice": '{"a":1,"a":2}',
    "no object": '"a"',
    "a megabyte": '{"a":"' + "x" * 900_000 + '"}',
}


@every_format
@pytest.mark.parametrize("case", WRITTEN)
async def test_arguments_may_be_anything_and_the_turn_goes_on(format: str, case: str) -> None:
    spoken = SPOKEN[format]
    written = json.dumps(WRITTEN[case]).encode()
    calling = STREAM + framed(format, spoken.call, spoken.arguments % written) + end(format)
    result = await hear(format, calling)

    assert result.error is None
    assert replace_surrogates(result.arguments) == replace_surrogates(WRITTEN[case])
    assert await talk(format, calling, STREAM + text_answer(format, b'"well"')) == "well"


# An object in the place of a text: llama.cpp sends `arguments` so, and some proxies the `input`.
WHOLE = {
    "chat": SPOKEN["chat"].call.replace(b'"arguments":""', b'"arguments":%b'),
    "messages": SPOKEN["messages"].call.replace(b'"input":{}', b'"input":%b'),
    "responses": SPOKEN["responses"].call.replace(b".added", b".done").replace(b'"note"}', b'"note","arguments":%b}'),
    "gemini": SPOKEN["gemini"].arguments,
    "ollama": SPOKEN["ollama"].arguments,
}


@every_format
@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(b'{"a":1}', id="plain"),
        pytest.param(b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}", id="deep"),
        pytest.param(b'{"a":' + b"7" * 30 + b"}", id="large"),
        pytest.param(b'{"a":' + b"7" * 5000 + b"}", id="huge"),
        pytest.param(b'{"a":NaN}', id="nan"),
        pytest.param(b'{"a":"\xff"}', id="no utf-8"),
    ],
)
async def test_arguments_may_come_as_an_object(format: str, whole: bytes) -> None:
    answer = STREAM + framed(format, WHOLE[format] % whole) + end(format)
    result = await hear(format, answer)

    assert result.error is None or result.error.kind == "response"
    assert await talk(format, answer, STREAM + text_answer(format, b'"well"')) == (result.outcome or "well")


@every_format
async def test_arguments_that_come_as_an_object_are_json(format: str) -> None:
    result = await hear(format, STREAM + framed(format, WHOLE[format] % b'{"a": "it"}') + end(format))

    assert json.loads(result.arguments) == {"a": "it"}


@every_format
async def test_half_a_character_in_arguments_that_come_as_an_object_is_no_crash(format: str) -> None:
    answer = STREAM + framed(format, WHOLE[format] % b'{"a":"\\ud800"}') + end(format)
    assert await talk(format, answer, STREAM + text_answer(format, b'"well"')) in ("well", "response!")


SEALED = {
    "chat": b'{"choices":[{"delta":{"reasoning_details":[{"type":"t","data":"\\ud800"}]}}]}',
    "messages": b'{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"\\ud800"}}',
    "responses": b'{"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"\\ud800"}}',
    "gemini": b'{"candidates":[{"content":{"parts":[{"text":"hm","thought":true,"thoughtSignature":"\\ud800"}]}}]}',
}


@pytest.mark.parametrize("format", SEALED)
async def test_half_a_character_in_a_seal_is_no_crash(format: str) -> None:
    await check(format, STREAM + framed(format, SEALED[format]) + text_answer(format, b'"hi"'), "hi", "response!")


async def test_a_sealed_thought_may_hold_anything() -> None:
    odd = b'{"choices":[{"delta":{"reasoning_details":[{"type":"t","text":[1,2]}]}}]}'
    await check("chat", STREAM + framed("chat", odd) + text_answer("chat", b'"hi"'), "hi", "response!")


@every_format
@pytest.mark.parametrize(
    "code",
    [
        b'"rate_limit_error"',
        b"429",
        b"null",
        b"[[]]",
        pytest.param('"²"'.encode()),
        pytest.param(b'"%b"' % (b"7" * 5000)),
    ],
)
async def test_an_error_in_the_middle_may_have_any_code(format: str, code: bytes) -> None:
    error = b'{"type":"error","error":{"code":%b,"message":"no"}}' % code
    await check(format, STREAM + framed(format, SPOKEN[format].text % b'"hi"', error), "rate!", "request!")


# Not a stream ---------------------------------------------------------------------------------------------------------

HTML = b"<!DOCTYPE html>\n<html>\n\n<body>\n\n" + b"<p>Welcome to nginx</p>\n" * 1000 + b"</body></html>"
COMPLETION = {
    "chat": b'{"id":"x","object":"chat.completion","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}',
    "messages": b'{"id":"x","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}]}',
    "responses": b'{"id":"x","object":"response","error":null,"output":[{"type":"message"}]}',
    "gemini": b'{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP"}]}',
}


@every_format
async def test_a_page_is_no_answer(format: str) -> None:
    result = await hear(format, head(content_type="text/html") + HTML)

    assert result.outcome == "response!"
    assert "sent a web page (that is not an answer of a model API: check the base URL" in str(result.error)
    assert "check the base URL" in str(result.error)
    assert len(str(result.error)) < 500
    await check(format, head("502 Bad Gateway", content_type="text/html") + HTML, "server!")


@every_format
async def test_an_error_that_comes_with_200_is_that_error(format: str) -> None:
    body = b'{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"slow down"}}'
    await check(format, head(content_type="application/json") + body, "rate!")


@pytest.mark.parametrize("format", COMPLETION)
async def test_an_answer_that_was_not_streamed_is_not_taken_for_one(format: str) -> None:
    await check(format, head(content_type="application/json") + COMPLETION[format], "response!")


async def test_an_answer_of_ollama_that_was_not_streamed_is_one_of_one_line() -> None:
    whole = b'{"model":"m","message":{"role":"assistant","content":"hi"},"done_reason":"stop","done":true}'
    await check("ollama", head(content_type="application/json") + whole, "hi")


@every_format
async def test_nothing_is_no_answer(format: str) -> None:
    await check(format, STREAM, "truncated!")
    await check(format, STREAM + b"\n\n\n", "truncated!")
    await check(format, head(content_length=0), "truncated!")
    await check(format, head("204 No Content"), "request!")


@every_format
async def test_a_stream_that_ends_while_it_waits_was_cut_off(format: str) -> None:
    await check(format, STREAM + b": PROCESSING\n\n: PROCESSING\n\n", "truncated!")


@every_format
async def test_a_redirect_is_not_followed(format: str) -> None:
    async with serving(STREAM + text_answer(format, b'"hi"')) as other:
        moved = head("302 Found", location=f"{other.url}/v1", content_length=0)
        result = await hear(format, moved)

        assert result.outcome == "request!"
        assert other.url in str(result.error)
        assert "change base_url" in str(result.error)
        assert await talk(format, moved) == "request!"
        assert not other.heads  # nobody was asked there, so no key went there


async def test_a_redirect_to_nowhere_can_be_stored() -> None:
    result = await hear("chat", b"HTTP/1.1 302 Found\r\nlocation: http://\xff\r\ncontent-length: 0\r\n\r\n")

    str(result.error).encode()


@every_format
async def test_the_key_is_sent_and_never_said(format: str) -> None:
    async with serving(head("401 Unauthorized") + b'{"error":{"message":"bad key"}}') as server:
        model = model_at(format, server.url)
        with pytest.raises(ModelError) as caught:
            await anext(model.stream(ModelRequest("m", "", [], [], {})))

    assert b"sk-secret" in server.heads[0]
    assert "sk-secret" not in f"{caught.value!r} {caught.value} {model!r}"
    assert b"accept-encoding: identity" in server.heads[0].lower()


# HTTP -----------------------------------------------------------------------------------------------------------------

Cut = Callable[[bytes], bytes]
BROKEN_HTTP: dict[str, tuple[Cut, str]] = {
    "nothing at all": (lambda _: b"", "network!"),
    "another protocol": (lambda _: b"SSH-2.0-OpenSSH_9.6\r\n", "network!"),
    "half a head": (lambda _: STREAM[:25], "network!"),
    "a status of four digits": (lambda body: head("2000 OK") + body, "network!"),
    "a header of 100 KB": (lambda body: head(x="y" * 100_000) + body, "network!"),
    "10,000 headers": (lambda body: head(x="y\r\nx: ".join([""] * 10_000)) + body, "network!"),
    "chunks without a size": (lambda body: head(transfer_encoding="chunked") + body, "network!"),
    "a negative length": (lambda body: head(content_length=-1) + body, "network!"),
    "two lengths": (lambda body: head(content_length="5\r\ncontent-length: 6") + body, "network!"),
    "a length that is too long": (lambda body: head(content_length=len(body) + 9) + body, "hi"),
    "a length that is longer than what came": (lambda body: head(content_length=999) + body[:50], "truncated!"),
    "a chunk that is cut": (lambda body: head(transfer_encoding="chunked") + b"fff\r\n" + body[:50], "truncated!"),
    "gzip, which nobody asked for": (lambda body: head(content_encoding="gzip") + gzip.compress(body), "hi"),
    "gzip that is none": (lambda body: head(content_encoding="gzip") + body, "network!"),
    "an encoding nobody knows": (lambda body: head(content_encoding="rot13") + body, "hi"),
}


@every_format
@pytest.mark.parametrize("defect", BROKEN_HTTP)
async def test_broken_http(format: str, defect: str) -> None:
    make, outcome = BROKEN_HTTP[defect]
    await check(format, make(text_answer(format, b'"hi"')), outcome)


@every_format
async def test_a_length_that_is_too_short_cuts_the_answer_off(format: str) -> None:
    body = text_answer(format, b'"hi"')
    # What is left over is a broken answer to nobody: it may be noticed before, or after.
    await check_either(format, head(content_length=len(body) - len(end(format))) + body, {"network!", "truncated!"})


async def check_either(format: str, answer: bytes, outcomes: set[str]) -> None:
    assert (await hear(format, answer)).outcome in outcomes
    assert await talk(format, answer) in outcomes


@every_format
async def test_a_bomb_is_not_unpacked_whole(format: str) -> None:
    bomb = gzip.compress(b"data: " + b"x" * (64 * MIB))
    await check(format, head(content_encoding="gzip", content_length=len(bomb)) + bomb, "limit!")


@every_format
async def test_a_hundred_times_continue_is_given_up_by_the_turn(format: str) -> None:
    endless = Answer(b"", forever=head("100 Continue"))
    assert await talk(format, endless, settings=TurnSettings(first_chunk_timeout=0.3, idle_timeout=0.3)) == "stalled!"


# The end --------------------------------------------------------------------------------------------------------------


@every_format_with_an_end
@pytest.mark.parametrize("more", [b'"more"', b"nonsense"])
async def test_what_comes_after_the_end_is_not_read(format: str, more: bytes) -> None:
    text = framed(format, SPOKEN[format].text % more)
    await check(format, Answer(STREAM + text_answer(format, b'"hi"') + text, forever=text * 100), "hi")


@every_format_with_an_end
async def test_a_server_may_go_on_for_ever_after_the_end(format: str) -> None:
    comments = Answer(STREAM + text_answer(format, b'"hi"'), forever=b": still here\n\n" * 100)
    await check(format, comments, "hi")


@every_format_with_an_end
async def test_a_server_that_never_hangs_up_is_left_at_the_end(format: str) -> None:
    await check(format, Answer(STREAM + text_answer(format, b'"hi"'), after="stay"), "hi")


@pytest.mark.parametrize("format", ["chat", "gemini"])
async def test_a_finish_without_the_end_is_waited_for_until_the_turn_has_enough(format: str) -> None:
    unended = Answer(STREAM + framed(format, SPOKEN[format].text % b'"hi"', SPOKEN[format].finish), after="stay")
    assert await talk(format, unended, settings=TurnSettings(idle_timeout=0.3)) == "stalled!"


async def test_gemini_has_no_word_for_the_end_so_what_goes_on_for_ever_is_too_much() -> None:
    whole = STREAM + text_answer("gemini", b'"hi"')
    text = framed("gemini", SPOKEN["gemini"].text % (b'"%b"' % (b"x" * 100_000)))
    for more in (text, (b": still here".ljust(4094, b".") + b"\n\n") * 16):
        assert (await hear("gemini", Answer(whole, forever=more))).outcome == "limit!"


@every_format
async def test_a_refusal_that_never_ends_is_given_up(format: str) -> None:
    await check(format, Answer(head("500 Oh no") + b"{", forever=b"x" * 4096), "server!")
    silent = Answer(head("500 Oh no", content_length=99) + b"{", after="stay")
    assert await talk(format, silent, settings=TurnSettings(first_chunk_timeout=0.3, idle_timeout=0.3)) == "stalled!"


@every_format
async def test_a_connection_that_breaks_in_the_middle_is_no_answer(format: str) -> None:
    body = text_answer(format, b'"hi"')
    chunked = head(transfer_encoding="chunked") + b"%x\r\n%b" % (len(body), body[: len(body) // 3])
    result = await hear(format, chunked)

    assert result.outcome in ("network!", "truncated!")
    assert result.error is not None
    assert result.error.retryable


# Memory ---------------------------------------------------------------------------------------------------------------

MILLION = 1_000_000


class Measured(Struct):
    """Of one client in a process of its own, beyond what it needed for ordinary answers, in bytes."""

    rss: int
    traced: int
    outcome: str
    size: int


async def measure(way: str, format: str, hostile: Answer, stream: int = 0) -> Measured:
    warm = [Answer(STREAM + text_answer(format, b'"hi"'))] * 20
    async with serving(*warm, hostile) as server:
        command = [sys.executable, __file__, way, format, server.url, str(len(warm)), str(stream)]
        root = Path(__file__).parents[2]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=root)
        out, _ = await process.communicate()
    assert process.returncode == 0
    return Measured(**json.loads(out))


long = pytest.mark.long
NOISE = bytes(range(256)) * 256
COMMENTS = (b": PROCESSING".ljust(510, b".") + b"\n\n") * 128


@pytest.mark.parametrize("way", ["rss", pytest.param("traced", marks=long)])
@pytest.mark.parametrize(
    ("format", "start", "forever", "most"),
    [
        pytest.param("chat", b"data: ", b"x" * 65536, 4, id="a line"),
        pytest.param("messages", b"data: ", b"x" * 65536, 4, id="a line of messages"),
        pytest.param("responses", b"data: ", b"x" * 65536, 4, id="a line of responses"),
        pytest.param("ollama", b"{", b"x" * 65536, 4 * 32, id="a line of ollama"),
        pytest.param("gemini", b"data: ", b"x" * 65536, 4 * 32, id="a line of gemini"),
        pytest.param("chat", b"", b"data: \xff{[\n\n", 4, id="nonsense"),
        pytest.param("ollama", b"{}\n", b"\xff{[\n", 4, id="nonsense of ollama"),
        pytest.param("chat", b"", COMMENTS, 4, id="comments", marks=long),
        pytest.param("chat", b"", b"\n" * 65536, 4, id="blank lines", marks=[long, pytest.mark.timeout(200)]),
        # These two are events without end, and an event alone may have 4 MiB.
        pytest.param("chat", b"", b"data: x\n" * 8192, 8, id="lines"),
        pytest.param("chat", b"", NOISE, 8, id="noise", marks=long),
        pytest.param("gemini", b"", b"data: x\n" * 8192, 4 * 32, id="lines of gemini"),
    ],
)
async def test_what_is_too_much_is_not_kept(way: str, format: str, start: bytes, forever: bytes, most: int) -> None:
    answer = Answer(STREAM + start, forever=forever, count=200 * MIB // len(forever))
    measured = await measure(way, format, answer)

    assert measured.outcome in ("limit!", "response!")
    assert max(measured.rss, measured.traced) <= most * MIB


@pytest.mark.parametrize("way", ["rss", pytest.param("traced", marks=long)])
async def test_a_bomb_costs_no_memory(way: str) -> None:
    bomb = gzip.compress(b"data: " + b"x" * (200 * MIB))
    measured = await measure(way, "chat", Answer(head(content_encoding="gzip") + bomb))

    assert measured.outcome == "limit!"
    assert measured.traced <= 4 * MIB
    assert measured.rss <= 8 * MIB  # what unpacks it has to be loaded, too


@long
@pytest.mark.timeout(200)
@every_format
@pytest.mark.parametrize("way", ["rss", "traced"])
async def test_a_million_tiny_chunks_are_not_kept_by_the_model(format: str, way: str) -> None:
    text = framed(format, SPOKEN[format].text % b'"x"') * 100
    answer = Answer(STREAM, forever=text, count=MILLION // 100)
    measured = await measure(way, format, answer, stream=256 * MIB)

    assert (measured.outcome, measured.size) == ("truncated!", MILLION)
    assert max(measured.rss, measured.traced) <= 8 * MIB


@long
@pytest.mark.timeout(200)
@every_format
async def test_a_million_tiny_chunks_are_little_more_than_their_text_to_a_turn(format: str) -> None:
    text = framed(format, SPOKEN[format].text % b'"word "') * 100
    answer = Answer(STREAM, forever=text, count=MILLION // 100, last=end(format))
    measured = await measure("chat-rss", format, answer, stream=256 * MIB)

    assert (measured.outcome, measured.size) == ("", 5 * MILLION)
    assert measured.rss - measured.size <= 32 * MIB


async def _count(model: HttpModel) -> tuple[str, int]:
    size = 0
    try:
        async for batch in model.stream(ModelRequest("m", "", [], [], {})):
            size += sum(len(chunk.text) for chunk in batch if isinstance(chunk, TextChunk))
    except ModelError as error:
        return f"{error.kind}!", size
    return "", size


async def _converse(model: HttpModel) -> tuple[str, int]:
    async with Chat(model) as chat:
        try:
            return "", len((await (await chat.send("hi"))).text)
        except TurnError as error:
            return f"{error.kind}!", 0


def peak() -> int:
    """The most memory this process has had, in bytes; what `getrusage` says begins with what its parent had."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.read_text("utf-8").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


async def _main(way: str, format: str, url: str, warm: int, stream: int) -> Measured:
    ask = _converse if way.startswith("chat") else _count
    model = model_at(format, url, StreamLimits(stream=stream) if stream else None)
    for _ in range(warm):
        await ask(model)
    if "traced" in way:
        tracemalloc.start()
    before = peak()
    outcome, size = await ask(model)
    after = peak()
    traced = tracemalloc.get_traced_memory()[1] if "traced" in way else 0
    return Measured(0 if "traced" in way else after - before, traced, outcome, size)


def main(arguments: Sequence[str]) -> None:
    way, format, url, *sizes = arguments
    measured = asyncio.run(_main(way, format, url, *map(int, sizes)))
    print(json.dumps({name: getattr(measured, name) for name in measured.__struct_fields__}))


if __name__ == "__main__":
    main(sys.argv[1:])
