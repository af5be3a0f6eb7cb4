"""Seatbelt profile: the text that tells `sandbox-exec` of macOS what a command may do.

The language (SBPL) has no public reference. Three facts that others have measured on Macs shape this file: of the rules
that match, the last decides; paths are compared as the kernel resolves them, without links (`/private/tmp`, not
`/tmp`); and a rule is about a name, not about a file. So a protected file keeps its name: neither it nor a folder above
it can be renamed, and no command makes hard links or clones, which would be second names.

`(deny default)` covers neither `process-info*` nor `nvram*`; those are denied by name.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct

from everturn.errors import ToolError
from everturn.sandbox.hidden_paths import HiddenPaths

PRIVATE: Final = (
    *("/Users", "/Volumes", "/Network", "/home", "/cores", "/System/Volumes/Data", "/Library/Keychains"),
    *("/Library/Application Support", "/Library/Preferences", "/Library/Caches", "/Library/Logs", "/private/var"),
    *("/private/tmp", "/private/etc/ssh", "/private/etc/sudoers", "/private/etc/sudoers.d"),
    *("/private/etc/master.passwd", "/private/etc/krb5.keytab", "/dev"),
)
"""Not readable: what belongs to people, to other programs, and to services. The rest are the programs of the machine."""

PROGRAM_DATA: Final = ("/private/var/select", "/private/var/db/dyld", "/private/var/db/timezone")
"""Readable again below /private/var: programs do not start, or have no time zone, without these."""

DEVICES: Final = ("/dev", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
"""Readable. Not the terminals, on which a person types."""

SYSCTLS: Final = (
    *("kern.hostname", "kern.ostype", "kern.osrelease", "kern.osversion", "kern.osproductversion", "kern.version"),
    *("kern.argmax", "kern.maxfilesperproc", "kern.ngroups", "kern.usrstack64", "kern.osvariant_status"),
    *("kern.secure_kernel", "sysctl.proc_cputype", "vm.loadavg"),
)
"""Beside those of the hardware. Not `kern.proc`, which lists processes."""

SERVICES: Final = ("com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership")
"""The only services that a command can reach: names of users and groups. Not the keychain, the clipboard, Launch
Services, preferences, DNS or Apple events.
"""

BASE: Final = (
    "(version 1)",
    "(deny default)",
    "(deny process-info* nvram*)",
    "(deny file-link file-clone)",
    "(deny network*)",
    "(allow process-exec process-fork)",
    "(allow process-info* (target same-sandbox))",
    "(allow signal (target same-sandbox))",
    "(allow ipc-posix-sem)",
)
READS: Final = "file-read* file-map-executable"


class SeatbeltPolicy(Struct, frozen=True):
    """What a command may do. All paths are absolute and resolved; `protected` are relative to the folder."""

    scratch: str  # read and written, and deleted afterwards
    folder: str = ""
    writable: bool = False
    home: str = ""  # of the person: not readable, wherever it is
    read_only: Sequence[str] = ()
    protected: HiddenPaths = HiddenPaths()
    proxy_port: int = 0  # of a proxy on this machine, the only address that can be reached; 0: none


def seatbelt_profile(policy: SeatbeltPolicy) -> str:
    """Return the text of the profile: what is readable, then what is private, the folder, and what is protected in it.

    Raises:
        ToolError: a path cannot be written in a profile.
    """
    opened = [*filter(None, (policy.folder, policy.scratch)), *policy.read_only]
    written = [policy.scratch, *([policy.folder] if policy.folder and policy.writable else [])]
    sysctls = " ".join(f'(sysctl-name "{name}")' for name in SYSCTLS)
    services = " ".join(f'(global-name "{name}")' for name in SERVICES)
    rules = [
        *BASE,
        f'(allow sysctl-read (sysctl-name-prefix "hw.") (sysctl-name-prefix "machdep.cpu.") {sysctls})',
        f"(allow mach-lookup {services})",
        f"(allow {READS})",
        _rule(f"deny {READS}", "subpath", [*PRIVATE, *filter(None, (policy.home,))]),
        _rule(f"allow {READS}", "subpath", PROGRAM_DATA),
        _rule("allow file-read*", "literal", [*DEVICES, "/private/var/db/xcode_select_link"]),
        _rule("allow file-read*", "subpath", ["/dev/fd"]),
        _rule("allow file-read-metadata", "literal", _parents([*opened, *PROGRAM_DATA])),
        _rule(f"allow {READS}", "subpath", opened),
        _rule("allow file-write-data", "literal", ["/dev/null"]),
        _rule("allow file-write-data", "subpath", ["/dev/fd"]),  # of its own open files: /dev/stdout is a link there
        _rule("allow file-write*", "subpath", written),
        _rule("deny file-write-unlink", "literal", written),
    ]
    if policy.folder:
        rules += _protect(policy.folder, policy.protected)
    if policy.proxy_port:
        rules.append(f'(allow network-outbound (remote ip "localhost:{int(policy.proxy_port)}"))')
    return "\n".join(filter(None, rules)) + "\n"


def _protect(folder: str, protected: HiddenPaths) -> list[str]:
    def absolute(paths: Iterable[str]) -> list[str]:
        return [f"{folder}/{path}" for path in paths]

    hidden_files = absolute((*protected.hidden_files, *protected.empty_files))
    hidden = [*hidden_files, *absolute(protected.hidden_folders)]
    fixed = absolute(protected.read_only)
    pinned = {parent for path in (*hidden, *fixed) for parent in _parents([path]) if len(parent) > len(folder)}
    return [
        _rule("deny file-write*", "subpath", fixed),
        _rule(f"deny {READS} file-write*", "subpath", hidden),
        _rule("allow file-read-metadata", "literal", hidden_files),  # git compares them with its index
        _rule("deny file-write-unlink", "literal", sorted({*pinned, *absolute(protected.pinned)})),
    ]


def _rule(head: str, kind: str, paths: Sequence[str]) -> str:
    return f"({head} {' '.join(f'({kind} {quote_sbpl(path)})' for path in paths)})" if paths else ""


def _parents(paths: Iterable[str]) -> list[str]:
    """The folders above these paths, which are looked at on the way to them."""
    return sorted({str(parent) for path in paths for parent in PurePosixPath(path).parents})


def quote_sbpl(path: str) -> str:
    """Return a path as a string of the profile. Only `\\` and `"` are special there.

    Raises:
        ToolError: the path is not absolute and normal, has control characters, or is not UTF-8. A rule with such a
            path might be read as another one, or match nothing.
    """
    is_text = not any(unicodedata.category(char) in ("Cc", "Cs") for char in path)
    if not is_text or not path.startswith("/") or path.startswith("//") or os.path.normpath(path) != path:
        raise ToolError(
            f"the shell was not run: {path!r} cannot be protected by the sandbox of macOS; rename it without line breaks "
            "and control characters, or choose another folder"
        )
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
