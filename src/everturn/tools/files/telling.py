"""What a system says of a path → what a model can make something of."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Generator
from typing import NoReturn

from everturn.errors import ToolError
from everturn.tools.files.paths import shown

CHANGED = "{path} was changed by somebody else just now and is left as they made it; read it again"


@contextlib.contextmanager
def told(path: str) -> Generator[None]:
    """What the system says of a path, in words for a model."""
    try:
        yield
    except OSError as error:
        _tell(error, path)


def _tell(error: OSError, path: str) -> NoReturn:
    name = shown(path)
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
            text = CHANGED.format(path=name)
        case errno.EACCES | errno.EPERM | errno.EROFS:
            text = f"{name}: the system does not permit it"
        case errno.ENAMETOOLONG:
            text = f"{name}: its name is too long for this disk"
        case errno.ENOSPC | errno.EDQUOT:
            text = f"{name} was not written: the disk is full"
        case _:
            text = f"{name}: {error.strerror or error}"
    raise ToolError(text) from None
