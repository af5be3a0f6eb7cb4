"""A process in which Python says that it runs on macOS, and has nothing that only Linux has.

    python -m tests.helpers.darwin import            # imports every module; prints those that cannot be imported
    python -m tests.helpers.darwin everturn acp …    # the command line
    python -m tests.helpers.darwin pytest tests/core # tests

The kernel is still Linux, so this shows that no module needs Linux to be imported, and that what is chosen by platform is there;
it does not show how macOS behaves.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import pkgutil
import platform
import resource
import signal
import socket
import sys
import sysconfig
from types import ModuleType
from typing import Any

LINUX_ONLY: dict[ModuleType, tuple[str, ...]] = {
    os: (
        *("memfd_create", "O_PATH", "O_TMPFILE", "pidfd_open", "sched_getaffinity", "setns", "unshare", "eventfd"),
        *("posix_fallocate", "posix_fadvise", "copy_file_range", "splice", "getrandom", "getxattr", "listxattr"),
    ),
    fcntl: (
        "F_ADD_SEALS",
        "F_GET_SEALS",
        "F_SEAL_WRITE",
        "F_SEAL_SHRINK",
        "F_SEAL_GROW",
        "F_SEAL_SEAL",
        "F_SETPIPE_SZ",
    ),
    resource: ("prlimit", "RLIMIT_RTPRIO", "RLIMIT_SIGPENDING", "RLIMIT_MSGQUEUE"),
    socket: ("AF_NETLINK", "AF_PACKET", "AF_VSOCK", "SO_PEERCRED", "SO_PASSCRED"),
    signal: ("SIGRTMIN", "SIGRTMAX", "SIGPWR", "SIGSTKFLT", "sigtimedwait", "sigwaitinfo"),
}


def pretend_darwin() -> None:
    """Make this process look like one on macOS."""
    sysconfig.get_config_vars()  # it reads a file that is named after the platform
    platform.uname()
    proxies: Any = ModuleType("_scproxy")  # part of Python on macOS
    proxies._get_proxy_settings = proxies._get_proxies = dict
    sys.modules["_scproxy"] = proxies
    sys.platform = "darwin"
    for module, names in LINUX_ONLY.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


def failed_imports() -> list[str]:
    """The modules of the package that cannot be imported, with the reason."""
    import everturn

    failed: list[str] = []
    for found in pkgutil.walk_packages(everturn.__path__, "everturn."):
        if found.name.startswith("everturn.evals.bridges."):  # they need extras
            continue
        if not found.name.endswith(("__main__", "_worker", "hostile_probe")):  # programs for a sandbox, started by path
            try:
                importlib.import_module(found.name)
            except Exception as error:
                failed.append(f"{found.name}: {type(error).__name__}: {error}")
    return failed


def main(command: str, *words: str) -> int:
    """Run what is named."""
    pretend_darwin()
    if command == "import":
        failed = failed_imports()
        print("\n".join(failed))
        return len(failed) > 0
    if command == "everturn":
        from everturn.cli import main as run_everturn

        return run_everturn(list(words))
    import pytest

    return int(pytest.main(["-p", "no:cacheprovider", "-n0", "-q", *words]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
