"""Document worker: reads a file from stdin, and writes its text to stdout, as lines of JSON; run as a program.

It imports all that it needs, gives up every right but computing, and only then reads the file.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from everturn.documents.office_text import OFFICE_READERS
from everturn.documents.office_xml import Limits, UnreadableDocument

# Codecs are modules that are imported when a text needs them, which is too late here.
CODECS = (
    "ascii latin-1 cp437 utf-8 utf-16 utf-16-be utf-16-le utf-32 cp1252 cp1250 cp1251 mac-roman charmap gbk gb2312 gb18030 big5 "
    "big5hkscs shift_jis cp932 euc_jp iso2022_jp euc_kr cp949 johab hex_codec unicode_escape raw_unicode_escape"
).split()


class _BpfProgram(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def confine(request: dict[str, Any]) -> None:
    """Give up every right but computing, as far as this system can enforce it."""
    try:
        import resource
    except ImportError:  # Windows: the process is separate, and is killed in time
        return
    cpu = int(request["seconds"]) + 2
    for limit, most in (
        ("RLIMIT_AS", request["memory"]),
        ("RLIMIT_CPU", cpu),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NOFILE", 3),
    ):
        with contextlib.suppress(ValueError, OSError):  # macOS knows no limit of memory
            resource.setrlimit(getattr(resource, limit), (most, most))
    libc = ctypes.CDLL(None)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(request["uid"], request["uid"], request["uid"])
        os.setresuid(request["uid"], request["uid"], request["uid"])
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    program = bytes.fromhex(request["filter"])
    if not program:
        return
    buffer = ctypes.create_string_buffer(program, len(program))
    bpf_program = _BpfProgram(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    no_new_privileges, filtering, by_program = 38, 22, 2
    libc.prctl(no_new_privileges, 1, 0, 0, 0)
    libc.prctl(filtering, by_program, ctypes.byref(bpf_program), 0, 0)


def _write(**line: object) -> None:
    data = json.dumps(line, ensure_ascii=True).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def main() -> None:
    """Answer one request."""
    logging.disable(logging.CRITICAL)
    for name in CODECS:
        with contextlib.suppress(LookupError):
            codecs.lookup(name)
    request = json.loads(sys.stdin.buffer.readline())
    reader: Callable[[bytes, Limits], None]
    if request["kind"] == "pdf":
        from everturn.documents.pdf_text import read_pdf, warm_up

        warm_up()
        reader = read_pdf
    else:
        reader = OFFICE_READERS[request["kind"]]
    confine(request)
    data = sys.stdin.buffer.read(request["size"])
    limits = Limits(_write, time.monotonic() + request["seconds"], request["sections"], request["text"], request["xml"])
    try:
        reader(data, limits)
        problem = ""
    except UnreadableDocument as error:
        problem = str(error)
    except MemoryError:
        problem = "its text needs too much memory"
    except RecursionError:
        problem = "it is nested too deeply to be read"
    except Exception as error:
        problem = f"it is damaged or not of this type ({type(error).__name__})"
    _write(problem=problem, end=True)
    os._exit(0)
