"""Log sanitizing: reduces the log records of the MCP libraries to one line without control characters.

Their records contain headers, reasons and addresses of a server unchanged, escape sequences included; and without a
configured handler Python prints them.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from everturn.mcp.trust import escape_invisible

LIBRARIES: Final = ("mcp", "httpx2", "httpcore2")
SHARED: Final = "client"  # a logger of the library with a generic name, which others may use as well
LONGEST: Final = 1000  # characters


class _SanitizingFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Reduce the record to one visible line, with the type of an error instead of its traceback."""
        if record.name == SHARED and f"{os.sep}mcp{os.sep}" not in record.pathname:
            return True
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        text = record.getMessage() + (f": {kind}" if kind else "")
        record.msg, record.args = escape_invisible(text[:LONGEST]), ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


_sanitizer = _SanitizingFilter()


def sanitize_library_logs() -> None:
    """Add the filter to all loggers that the libraries have by now: a filter does not apply to child loggers."""
    for name in (*LIBRARIES, SHARED):
        logging.getLogger(name).addFilter(_sanitizer)  # addFilter ignores a filter that is already there
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.partition(".")[0] in LIBRARIES:
            logger.addFilter(_sanitizer)
