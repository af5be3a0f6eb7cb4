"""Tools that run code a model wrote, in a sandbox that says what it guarantees; they are absent where it does not."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection

from everturn.core.ports import Tool
from everturn.core.sandboxes import GUARANTEES, Guarantee

log = logging.getLogger(__name__)


def code_tools(
    *,
    folder: str | os.PathLike[str] | None = None,
    writable: bool = False,
    shell: bool = True,
    python: bool = True,
    javascript: bool = True,
    allow_degraded: Collection[Guarantee] = (),
) -> list[Tool]:
    """Those of `run_shell`, `run_python` and `run_javascript` whose promises hold here; why another is absent is logged.

    `folder` is what the shell is given. To find out what holds blocks for about a second, the first time.
    """
    from everturn.sandbox import check_degraded, monty
    from everturn.tools.code import javascript as in_javascript
    from everturn.tools.code import shell as in_shell

    check_degraded("code_tools", allow_degraded)
    tools: list[Tool] = []

    def is_here(name: str, reason: str) -> bool:
        if reason:
            log.warning("%s is not offered: %s", name, reason)
        return not reason

    if shell and is_here("run_shell", in_shell.absent(allow_degraded)):
        tools.append(in_shell.run_shell(folder, writable=writable, allow_degraded=allow_degraded))
    if python and is_here("run_python", monty.check().lacks(GUARANTEES, allow_degraded)):
        from everturn.tools.code.python import run_python

        tools.append(run_python(allow_degraded=allow_degraded))
    if javascript and is_here("run_javascript", in_javascript.absent(allow_degraded)):
        tools.append(in_javascript.run_javascript(allow_degraded=allow_degraded))
    return tools
