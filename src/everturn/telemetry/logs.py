"""Log formatters: one line per record, as JSON or text, redacted, escaped, and with the ids of the current session and turn.

logs.setup("json")
with logs.about(session="sess_1", turn="turn_2"):
    log.warning("the store is slow")
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Final, Literal

import msgspec

from everturn.telemetry.metrics import METRICS
from everturn.telemetry.redact import one_line, redact

LogKind = Literal["json", "text"]

MOST_TEXT: Final = 16_000  # characters of one record's message, and of its traceback
LOG_IDS: Final = ("request", "session", "turn", "trace", "span")  # the ids that a record may have, in this order
_CUT: Final = "… (cut)"

_about: ContextVar[Mapping[str, str] | None] = ContextVar("everturn_log_about", default=None)


@contextmanager
def log_context(**ids: str) -> Generator[None]:
    """Add ids, out of `LOG_IDS`, to every log record of this block and of tasks that it starts."""
    ids_here = {**(_about.get() or {}), **{name: value for name, value in ids.items() if name in LOG_IDS and value}}
    token = _about.set(ids_here)
    try:
        yield
    finally:
        _about.reset(token)


def current_log_context() -> Mapping[str, str]:
    """The current ids."""
    return _about.get() or {}


class _LogFormatter(logging.Formatter):
    """The base of both formatters: the message and the traceback, redacted and bounded."""

    def message_of(self, record: logging.LogRecord) -> str:
        try:
            text = record.getMessage()
        except Exception:  # the arguments do not fit the format; the line must not be lost
            text = f"{record.msg!r} % {type(record.args).__name__}"
        return _redacted(text)

    def traceback_of(self, record: logging.LogRecord) -> str:
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        return _redacted("\n".join(text for text in (record.exc_text, record.stack_info) if text))


class JsonLogFormatter(_LogFormatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        line: dict[str, object] = {
            "at": _timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": one_line(record.name),
            "message": one_line(self.message_of(record), keep="\n\t"),
            **{name: one_line(value) for name, value in current_log_context().items()},
        }
        if trouble := self.traceback_of(record):
            line["exception"] = one_line(trouble, keep="\n\t")
        line["process"] = record.process
        # A line break of a message becomes `\n` in JSON, and never ends the line.
        return msgspec.json.encode(line).decode()


class TextLogFormatter(_LogFormatter):
    """One line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record; a traceback follows in further lines, each indented so that none looks like a record."""
        ids = "".join(f" {name}={one_line(value)}" for name, value in current_log_context().items())
        line = f"{_timestamp(record.created)} {record.levelname.lower()} {one_line(record.name)}:{ids} {one_line(self.message_of(record))}"
        trouble = self.traceback_of(record)
        return line + "".join(f"\n    {one_line(line_text)}" for line_text in trouble.splitlines())


class _CountingHandler(logging.StreamHandler[IO[str]]):
    def emit(self, record: logging.LogRecord) -> None:
        METRICS.count("log_records_total", record.levelname.lower())
        super().emit(record)


def setup(kind: LogKind = "text", level: str | int = logging.INFO, stream: IO[str] | None = None) -> logging.Handler:
    """Send all log records of this process to one handler, including those of uvicorn and granian."""
    handler = _CountingHandler(stream or sys.stderr)
    handler.setFormatter(JsonLogFormatter() if kind == "json" else TextLogFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        if type(old) in (_CountingHandler, logging.StreamHandler):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in list(logging.Logger.manager.loggerDict):
        if name.partition(".")[0] in ("uvicorn", "granian", "_granian"):
            foreign = logging.getLogger(name)
            foreign.handlers, foreign.propagate = [], True
    # It logs every request with its query, and a query may contain a login token. Metrics count requests by route instead.
    logging.getLogger("uvicorn.access").disabled = True
    logging.captureWarnings(True)
    return handler


def _redacted(text: str) -> str:
    # Redacted before it is cut: a truncated secret no longer matches. Four times the limit is enough to check.
    text = redact(text[: 4 * MOST_TEXT]) if len(text) > MOST_TEXT else redact(text)
    text = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + _CUT
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot be encoded


def _timestamp(seconds: float) -> str:
    """A time in UTC, to the millisecond."""
    millis = min(int(seconds % 1 * 1000), 999)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{millis:03d}Z"
