"""Lines of the log: one for each record, nothing that lets somebody in, and nobody's forged line."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.telemetry import logs
from everturn.telemetry.logs import JsonLogFormatter, LogKind, TextLogFormatter
from everturn.telemetry.redact import LONGEST, REDACTED, one_line, redact

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEiLCJleHAiOjF9.c2lnbmF0dXJlLW9mLWl0"
SECRETS = [
    "evk_live0123456789abcdef",
    "evs_0123456789abcdef0123",
    "sk-proj-abcdefghijklmnop1234",
    "sk-ant-api03-abcdefghijklmnop",
    "ghp_abcdefghijklmnopqrstuvwxyz0123",
    "AKIAABCDEFGHIJKLMNOP",
    "xoxb-1234567890-abcdef",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    JWT,
]
LINES = [
    *(("it is {}", secret) for secret in SECRETS),
    ("Authorization: Bearer {}", "c2VjcmV0LXRva2Vu"),
    ("Authorization: Basic {}", "YWRhOmxvdmVsYWNl"),
    ("{{'authorization': 'Bearer {}'}}", "plain-token-value"),
    ("headers=[(b'cookie', b'everturn={}')]", "c00kie-value-here"),
    ("Set-Cookie: __Host-everturn={}; HttpOnly", "c00kie-value-here"),
    ('{{"x-api-key": "{}"}}', "anything-at-all"),
    ("postgresql://everturn:{}@127.0.0.1:5432/everturn", "pa55:word"),
    ("nats://user:{}@127.0.0.1:4222", "hunter22"),
    ("could not open https://example.com/login?token={}", "t0ken-of-a-login"),
    ("DATABASE_PASSWORD={}", "hunter22"),
    ('{{"client_secret": "{}"}}', "hunter22"),
    ("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA"),
]


@pytest.fixture
def root() -> Generator[logging.Logger]:
    """The root as it is here, and as it was again afterwards."""
    root = logging.getLogger()
    handlers, level, access = list(root.handlers), root.level, logging.getLogger("uvicorn.access").disabled
    yield root
    root.handlers[:], root.level = handlers, level
    logging.getLogger("uvicorn.access").disabled = access
    logging.captureWarnings(False)


def record(
    text: str, *args: object, name: str = "everturn.server", exc: BaseException | None = None
) -> logging.LogRecord:
    info = (type(exc), exc, exc.__traceback__) if exc is not None else None
    return logging.LogRecord(name, logging.WARNING, __file__, 1, text, args, info)


@pytest.mark.parametrize(("line", "secret"), LINES, ids=[f"{number}" for number in range(len(LINES))])
@pytest.mark.parametrize("lines", [JsonLogFormatter(), TextLogFormatter()], ids=["json", "text"])
def test_what_lets_somebody_in_is_on_no_line(lines: logging.Formatter, line: str, secret: str) -> None:
    message = line.format(secret)
    try:
        raise ValueError(message)
    except ValueError as error:
        written = lines.format(record("it failed: %s", message, exc=error))
    assert secret not in written
    assert REDACTED in written


@pytest.mark.parametrize(
    "text",
    [
        "turn turn_01JABC of session sess_01JXYZ ended",
        "the event has keys: 3 tokens: 14",
        "risk-free; task-oriented; skip-level",
        "https://example.com:8443/path?page=2",
        "3 workers for 127.0.0.1:5432/everturn",
        "ValueError: tool 'ReadFil' is not known",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_a_secret_that_would_be_cut_in_two_is_gone_whole() -> None:
    text = "x" * (logs.MOST_TEXT - 12) + " " + SECRETS[2]
    written = JsonLogFormatter().format(record("%s", text))
    assert "sk-proj" not in written


@given(st.text(max_size=300), st.text(max_size=40))
def test_a_record_is_one_line_whatever_is_in_it(text: str, name: str) -> None:
    with logs.log_context(session=name):
        for lines in (JsonLogFormatter(), TextLogFormatter()):
            written = lines.format(record("%s", text, name=name or "x"))
            assert len(written.splitlines()) == 1
            assert written.isprintable()


def test_nobody_can_forge_a_record_or_move_the_cursor() -> None:
    evil = 'ok\n2026-01-01T00:00:00.000Z error everturn: all is lost\r\x1b[2J\x9b31m\u2028"}\n{"level":"error"}'
    written = JsonLogFormatter().format(record("said: %s", evil))
    assert json.loads(written)["level"] == "warning"
    assert "\n" not in written
    assert "\x1b" not in written
    assert "\x1b" not in TextLogFormatter().format(record("said: %s", evil))


def test_a_traceback_is_in_the_line_or_moved_in_below_it() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        json_line, many = (
            JsonLogFormatter().format(record("x", exc=error)),
            TextLogFormatter().format(record("x", exc=error)),
        )
    assert "Traceback" in json.loads(json_line)["exception"]
    assert all(line.startswith("    ") for line in many.splitlines()[1:])


def test_a_record_whose_arguments_do_not_fit_is_still_a_line() -> None:
    assert "%d" in json.loads(JsonLogFormatter().format(record("%d of %s", "x")))["message"]


async def test_a_record_says_what_it_is_about_and_tasks_do_not_mix_it_up() -> None:
    written: list[dict[str, str]] = []

    async def write_record(name: str) -> None:
        with logs.log_context(session=name, turn=f"turn of {name}", password="x"):
            await asyncio.sleep(0)
            with logs.log_context(trace="abc"):
                await asyncio.sleep(0)
                written.append(json.loads(JsonLogFormatter().format(record("here"))))

    await asyncio.gather(write_record("a"), write_record("b"))
    assert [(line["session"], line["turn"], line["trace"]) for line in written] == [
        ("a", "turn of a", "abc"),
        ("b", "turn of b", "abc"),
    ]
    assert "password" not in written[0]
    assert not logs.current_log_context()


@pytest.mark.parametrize("kind", ["json", "text"])
def test_a_process_writes_all_its_records_this_way_and_each_once(root: logging.Logger, kind: LogKind) -> None:
    theirs = logging.getLogger("uvicorn.error")
    theirs.addHandler(logging.StreamHandler(io.StringIO()))
    out = io.StringIO()
    for stream in (io.StringIO(), out):  # a second time takes the place of the first
        logs.setup(kind, "INFO", stream)
    logging.getLogger("everturn.somewhere").info("hello")
    theirs.warning("from uvicorn")
    logging.getLogger("uvicorn.access").info("GET /login?token=evk_abcdefgh12345678")
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert "hello" in lines[0]
    assert "from uvicorn" in lines[1]
    if kind == "json":
        assert {"at", "level", "logger", "message", "process"} <= set(json.loads(lines[0]))


def test_redacting_a_hostile_text_takes_no_time_to_speak_of() -> None:
    hostile = [
        "a" * 60_000,
        "://" * 20_000,
        "token=" * 10_000,
        "-----BEGIN " * 5_000,
        "eyJ" + "a." * 30_000,
        "x:" * 30_000,
        "a-" * 30_000,
        "sk-" * 20_000,
        "eyJ-" * 15_000,
        "-----BEGIN PRIVATE KEY-----" * 2_300,
    ]
    for text in hostile:
        began = time.process_time()
        redact(text)
        # Seconds of the processor: a pattern that backtracks needs hours, and one that looks again and again seconds.
        assert time.process_time() - began < 0.5, text[:30]


def test_of_a_long_text_only_the_beginning_is_written_and_no_half_of_a_key() -> None:
    key = "sk-" + "a" * 40
    text = "word " * ((LONGEST - 10) // 5) + key
    assert redact(text).endswith(" [cut]")
    assert "sk-" not in redact(text)
    assert len(redact("x" * 1_000_000)) < LONGEST + 10
    assert redact(f"my_password={key[:9]} old.client_secret: hunter2") == (
        f"my_password={REDACTED} old.client_secret: {REDACTED}"
    )


def test_a_private_key_without_an_end_goes_with_what_comes_behind_it() -> None:
    begin = "-----BEGIN RSA PRIVATE KEY-----"
    assert redact(f"a {begin}\nMIIE\nMIIF") == f"a {REDACTED}"
    assert redact(f"a {begin}\nMIIE\n-----END RSA PRIVATE KEY----- b") == f"a {REDACTED} b"


def test_escaping_keeps_what_can_be_read() -> None:
    assert one_line("é \U0001f600 日本") == "é \U0001f600 日本"
    assert one_line("a\nb\x00\u202ec\U000e0001") == "a\\x0ab\\x00\\u202ec\\U000e0001"
