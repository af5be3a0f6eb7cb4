"""Tool files: the module name of a Python file with tools, and the origin of a tool as people know it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from zlib import crc32

__all__ = ["describe_origin", "module_name_of"]

_FUNCTION_OF_FILE: Final = re.compile(r"function:everturn_tools_(?P<stem>.+)_[0-9a-f]+\.(?P<function>[^:]+)")


def module_name_of(path: Path) -> str:
    """The name under which a file with tools is imported. Files of the same name in different folders have different ones."""
    return f"everturn_tools_{path.stem}_{crc32(os.fsencode(path.resolve())):x}"


def describe_origin(origin: str) -> str:
    """An origin for the screen: the file of a function, if it has one. Two files can share it: do not compare it.

    ```pycon
    >>> describe_origin("function:everturn_tools_mail_b7223e6.send_mail")
    'send_mail in mail.py'
    >>> describe_origin("mcp:tickets")
    'mcp:tickets'

    ```
    """
    found = _FUNCTION_OF_FILE.fullmatch(origin)
    return origin if found is None else f"{found['function']} in {found['stem']}.py"
