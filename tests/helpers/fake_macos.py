"""A process that looks like macOS to Python code: import this first, or load it into pytest with `-p`.

What the standard library decides by platform is imported before, because its macOS parts need modules that are not here.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import sysconfig
import tempfile
from typing import Any

for library in (
    "asyncio",
    "ctypes.util",
    "multiprocessing",
    "ssl",
    "subprocess",
    "urllib.request",
    "uuid",
    "webbrowser",
):
    importlib.import_module(library)

ABSENT = (
    *("O_PATH", "O_TMPFILE", "O_DIRECT", "O_NOATIME", "pidfd_open", "memfd_create", "MFD_CLOEXEC", "MFD_ALLOW_SEALING"),
    *("sched_getaffinity", "sched_setaffinity", "sched_getscheduler", "getxattr", "setxattr", "listxattr", "pipe2"),
    *("copy_file_range", "splice", "eventfd", "posix_fadvise", "posix_fallocate", "getresuid", "getrandom"),
)
"""What `os` does not have on macOS."""

sysconfig.get_config_vars()
system: Any = sys
system.platform = "darwin"
platform.system = lambda: "Darwin"
platform.release = lambda: "25.1.0"
platform.machine = lambda: "arm64"
temporary: Any = tempfile
temporary._O_TMPFILE_WORKS = False
for name in ABSENT:
    if hasattr(os, name):
        delattr(os, name)
