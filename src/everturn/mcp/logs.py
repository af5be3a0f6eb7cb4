"""What the libraries log of a server → one line that does nothing to a terminal.

A header, a reason or an address of a server is in their lines as it came, escape sequences and all; and where nobody has
set up logging, Python prints them.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from everturn.mcp.trust import visible

LIBRARIES: Final = ("mcp", "httpx2", "httpcore2")
SHARED: Final = "client"  # what the library calls one of its own; others may have one of that name
LONGEST: Final = 1000  # characters


class _Harmless(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass as one line that can be seen, with the kind of an error in the place of its traceback."""
        if record.name == SHARED and f"{os.sep}mcp{os.sep}" not in record.pathname:
            return True
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        text = record.getMessage() + (f": {kind}" if kind else "")
        record.msg, record.args = visible(text[:LONGEST]), ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


_harmless = _Harmless()


def harmless() -> None:
    """See to it for all loggers that the libraries have by now: a filter does not hold for those beneath its logger."""
    for name in (*LIBRARIES, SHARED):
        logging.getLogger(name).addFilter(_harmless)  # once: the same one again is not added
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.partition(".")[0] in LIBRARIES:
            logger.addFilter(_harmless)
