"""Log records → one line each, as JSON or as text: redacted, escaped, with the ids of what was under way.

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
from everturn.telemetry.redacting import one_line, redact

LogKind = Literal["json", "text"]

MOST_TEXT: Final = 16_000  # characters of one record's message, and of its traceback
KNOWN: Final = ("request", "session", "turn", "trace", "span")  # what a record may be about, in this order
_CUT: Final = "… (cut)"

_about: ContextVar[Mapping[str, str] | None] = ContextVar("everturn_log_about", default=None)


@contextmanager
def about(**ids: str) -> Generator[None]:
    """Let every record of this block, and of tasks begun in it, say what it is about: ids only, out of `KNOWN`."""
    inside = {**(_about.get() or {}), **{name: value for name, value in ids.items() if name in KNOWN and value}}
    token = _about.set(inside)
    try:
        yield
    finally:
        _about.reset(token)


def now_about() -> Mapping[str, str]:
    """What is known here and now."""
    return _about.get() or {}


class _Lines(logging.Formatter):
    """What both kinds have in common: the message and the traceback, safe to write."""

    def said(self, record: logging.LogRecord) -> str:
        try:
            text = record.getMessage()
        except Exception:  # a caller's arguments do not fit its format; that must not cost us the line
            text = f"{record.msg!r} % {type(record.args).__name__}"
        return _safe(text)

    def trouble(self, record: logging.LogRecord) -> str:
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        return _safe("\n".join(text for text in (record.exc_text, record.stack_info) if text))


class JsonLines(_Lines):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        line: dict[str, object] = {
            "at": _when(record.created),
            "level": record.levelname.lower(),
            "logger": one_line(record.name),
            "message": one_line(self.said(record), keep="\n\t"),
            **{name: one_line(value) for name, value in now_about().items()},
        }
        if trouble := self.trouble(record):
            line["exception"] = one_line(trouble, keep="\n\t")
        line["process"] = record.process
        # A line break of a message is an `\n` of JSON, and never ends the line.
        return msgspec.json.encode(line).decode()


class TextLines(_Lines):
    """One line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """One record; a traceback follows in further lines, each moved in so that none can pass for a record."""
        ids = "".join(f" {name}={one_line(value)}" for name, value in now_about().items())
        line = f"{_when(record.created)} {record.levelname.lower()} {one_line(record.name)}:{ids} {one_line(self.said(record))}"
        trouble = self.trouble(record)
        return line + "".join(f"\n    {one_line(each)}" for each in trouble.splitlines())


class _Counting(logging.StreamHandler[IO[str]]):
    def emit(self, record: logging.LogRecord) -> None:
        METRICS.count("log_records_total", record.levelname.lower())
        super().emit(record)


def setup(kind: LogKind = "text", level: str | int = logging.INFO, stream: IO[str] | None = None) -> logging.Handler:
    """Write all records of this process this way, and no other; uvicorn's and granian's too."""
    handler = _Counting(stream or sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else TextLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        if type(old) in (_Counting, logging.StreamHandler):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in list(logging.Logger.manager.loggerDict):
        if name.partition(".")[0] in ("uvicorn", "granian", "_granian"):
            theirs = logging.getLogger(name)
            theirs.handlers, theirs.propagate = [], True
    # It logs every request with its query, and a query may hold a login token. Routes are counted instead.
    logging.getLogger("uvicorn.access").disabled = True
    logging.captureWarnings(True)
    return handler


def _safe(text: str) -> str:
    # Redacted before it is cut: half of a secret has no shape any more. Four times as much is enough to look at.
    text = redact(text[: 4 * MOST_TEXT]) if len(text) > MOST_TEXT else redact(text)
    text = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + _CUT
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot be written


def _when(seconds: float) -> str:
    """UTC, to the millisecond."""
    millis = min(int(seconds % 1 * 1000), 999)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{millis:03d}Z"
