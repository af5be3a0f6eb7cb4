"""File errors for the model: turns an `OSError` about a path into a `ToolError`."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Generator
from typing import NoReturn

from everturn.errors import ToolError
from everturn.tools.files.paths import quote_path

CHANGED_MEANWHILE = "{path} was changed by somebody else just now and is left as they made it; read it again"


@contextlib.contextmanager
def translate_os_errors(path: str) -> Generator[None]:
    """Turn an `OSError` about a path into a `ToolError` with a message for the model."""
    try:
        yield
    except OSError as error:
        _raise_tool_error(error, path)


def _raise_tool_error(error: OSError, path: str) -> NoReturn:
    name = quote_path(path)
    match error.errno:
        case errno.ELOOP | errno.EXDEV:
            text = (
                f"{name} is a symbolic link, or there is one on the way to it; links are not followed here, not even "
                "those that stay inside of the root: use the path of the file itself"
            )
        case errno.ENOENT:
            text = f"there is no {name}"
        case errno.ENOTDIR:
            text = f"{name}: a part of it is a file, and not a directory"
        case errno.EEXIST:
            text = CHANGED_MEANWHILE.format(path=name)
        case errno.EACCES | errno.EPERM | errno.EROFS:
            text = f"{name}: the system does not permit it"
        case errno.ENAMETOOLONG:
            text = f"{name}: its name is too long for this disk"
        case errno.ENOSPC | errno.EDQUOT:
            text = f"{name} was not written: the disk is full"
        case _:
            text = f"{name}: {error.strerror or error}"
    raise ToolError(text) from None
