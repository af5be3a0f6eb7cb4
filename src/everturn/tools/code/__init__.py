"""Code execution tools: run code that a model wrote, in a sandbox.

A sandbox states which guarantees hold on this machine (`everturn.sandbox`). `code_tools` offers a tool only where its
required guarantees hold.

- `shell`: `run_shell`, in bubblewrap
- `file_hashes`: hashes of the files that a command line names, for its approval
- `path_policy`: which paths of the folder the sandbox hides or makes read-only
- `python`: `run_python`, in Monty, with the other tools as functions
- `javascript`: `run_javascript`, in QuickJS
- `report`: arguments and output that the tools have in common
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection

from everturn.core.ports import Tool
from everturn.core.sandbox import GUARANTEES, Guarantee

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
    """Those of `run_shell`, `run_python` and `run_javascript` whose guarantees hold here; an absent one is logged.

    `folder` is the folder of the shell. The first call probes the guarantees, which blocks for about a second.
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

    if shell and is_here("run_shell", in_shell.why_shell_unavailable(allow_degraded)):
        tools.append(in_shell.run_shell(folder, writable=writable, allow_degraded=allow_degraded))
    if python and is_here("run_python", monty.check().explain_missing(GUARANTEES, allow_degraded)):
        from everturn.tools.code.python import run_python

        tools.append(run_python(allow_degraded=allow_degraded))
    if javascript and is_here("run_javascript", in_javascript.why_javascript_unavailable(allow_degraded)):
        tools.append(in_javascript.run_javascript(allow_degraded=allow_degraded))
    return tools
