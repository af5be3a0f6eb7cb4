"""QuickJS worker: reads JavaScript from stdin and writes the results to stdout, as lines of JSON; run as a program,
never imported.

It loads the engine once and then forks a child for each run. The child confines itself before it reads the code, and
ends with it: no run finds anything of another, and no hostile code is ever read in the process that stays.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import socket
import sys
import time
from typing import Any

SHIM = """
(function () {
  "use strict";
  const run = eval, text = String, write = JSON.stringify, parse = JSON.parse, apply = Reflect.apply;
  const slice = text.prototype.slice, join = Array.prototype.join, then = Promise.prototype.then, G = globalThis;
  const define = Object.defineProperty, Later = Promise, Syntax = SyntaxError, Fault = Error, Later2 = (async () => {}).constructor;
  let logs = "", cut = false, state = "pending", value, error;
  const plain = (key, one) => typeof one === "bigint" ? text(one) + "n" : one;
  let KEEP = 0;
  const shown = (one) => {
    if (typeof one === "string") return one;
    if (one instanceof Fault) return text(one) + (one.stack ? "\\n" + text(one.stack) : "");
    try { const made = write(one, plain); return made === undefined ? text(one) : made; } catch { return text(one); }
  };
  const log = (...words) => {
    if (cut) return;
    const shorts = [];
    for (let at = 0; at < words.length; at++) shorts[at] = shown(words[at]);
    logs += apply(join, shorts, [" "]) + "\\n";
    if (logs.length > KEEP) { logs = apply(slice, logs, [0, KEEP]); cut = true; }
  };
  G.console = { log, info: log, warn: log, error: log, debug: log };
  const settle = (kind) => (one) => { state = kind; if (kind === "done") value = one; else error = one; };
  return (what, keep, code, given) => {
    if (what === "run") {
      KEEP = keep;
      if (given !== undefined) G.args = parse(given);
      // `await` and `return` are only for functions: what does not begin as a script, or takes `await` for a name,
      // is run as the body of one. Nothing but a log can be left of a first try.
      let begun = false, awaited = false;
      G.$begin = () => { begun = true; delete G.$begin; };
      if (/\\bawait\\b/.test(code)) define(G, "await", { configurable: true, get() { awaited = true; throw new Syntax("await"); } });
      try {
        let came, problem, failed = false;
        try { came = run("$begin();" + code); } catch (one) { problem = one; failed = true; }
        delete G.await;
        if (awaited || (failed && !begun && problem instanceof Syntax)) {
          let made;
          try { made = Later2(code); } catch { throw problem; }
          logs = "";
          cut = failed = false;
          came = made();
        }
        if (failed) throw problem;
        if (came instanceof Later) apply(then, came, [settle("done"), settle("failed")]);
        else settle("done")(came);
      } catch (problem) { settle("failed")(problem); }
      return;
    }
    let result = null;
    if (state === "done" && value !== undefined) {
      try { result = write(value, plain); } catch {}
      if (typeof result !== "string") result = write(text(value));
      if (result.length > KEEP) { result = write(apply(slice, result, [0, KEEP])); cut = true; }
    }
    let fault = "";
    if (state === "failed") {
      try { fault = apply(slice, shown(error), [0, 4000]); } catch { fault = "an error that cannot be shown"; }
    }
    return write([state, result, fault, logs, cut]);
  };
})()
"""
PENDING = "the promise was never settled: there are no timers here, and nothing that could be waited for"
LIBC = ctypes.CDLL(None)


class BpfProgram(ctypes.Structure):
    """A seccomp filter program as the kernel takes it."""

    _fields_ = (("count", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def confine_process(request: dict[str, Any]) -> bool:
    """Give up every right but computing; whether the kernel enforces it."""
    os.close(0)
    cpu = int(request["seconds"]) + 2
    for limit, number in (
        (resource.RLIMIT_AS, request["memory"] * 2 + 256 * 1024 * 1024),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        resource.setrlimit(limit, (number, number))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(request["uid"], request["uid"], request["uid"])
        os.setresuid(request["uid"], request["uid"], request["uid"])
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    program = bytes.fromhex(request["filter"])
    if not program or not sys.platform.startswith("linux"):
        return False
    buffer = ctypes.create_string_buffer(program, len(program))
    bpf_program = BpfProgram(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    no_new_privileges, filtering, by_program = 38, 22, 2
    LIBC.prctl(no_new_privileges, 1, 0, 0, 0)
    return LIBC.prctl(filtering, by_program, ctypes.byref(bpf_program), 0, 0) == 0


def find_broken_guarantees(host: int) -> list[str]:
    """What can still be done in here that should not be: each of these is a broken guarantee."""

    def fork() -> None:
        if os.fork() == 0:
            os._exit(0)

    tried = {
        "files": lambda: os.listdir("/"),
        "files ": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "disk": lambda: os.open(f"/var/tmp/everturn-{os.getpid()}", os.O_CREAT | os.O_WRONLY),
        "net": lambda: socket.socket(socket.AF_INET),
        "net ": lambda: socket.socket(socket.AF_UNIX),
        "processes": fork,
        "processes ": lambda: os.kill(host, 0),
        "syscalls": lambda: os.execv("/bin/true", ["true"]),
        "syscalls ": lambda: os.sched_getscheduler(0),
    }
    broken: list[str] = ["env"] if os.environ.keys() - {"LC_CTYPE"} else []
    for name, attempt in tried.items():
        try:
            attempt()
        except OSError:
            continue
        broken.append(name.strip())
    return broken


def run_script(request: dict[str, Any], context: Any, host: Any) -> dict[str, Any]:
    """Run code in a fresh context."""
    memory, seconds, keep = request["memory"], request["seconds"], request["keep"]
    context.set_memory_limit(memory)
    context.set_max_stack_size(512 * 1024)
    deadline = time.monotonic() + seconds
    killed = error = ""
    try:
        context.set_time_limit(seconds)
        host("run", keep, request["code"], *([request["args"]] if request["args"] else []))
        left = seconds
        while left > 0:
            context.set_time_limit(left)
            if not context.execute_pending_job():
                break
            left = deadline - time.monotonic()
        else:
            killed = "time"
    except MemoryError:
        killed = "memory"
    except Exception as raised:
        text = str(raised)
        killed = "time" if "interrupted" in text else "memory" if "out of memory" in text else ""
        error = "" if killed else text[:4000]
    # What was logged before a limit was reached is wanted most of all then.
    context.set_memory_limit(memory + 16 * keep + 8 * 1024 * 1024)
    context.set_time_limit(1.0)
    try:
        state, value, fault, logs, cut = json.loads(host("finish"))
    except Exception:
        state, value, fault, logs, cut = "failed", None, "", "", True
    if not killed and "InternalError: out of memory" in fault:
        killed = "memory"
    fault = fault.partition("\n    at eval (native)")[0]  # the rest of the stack is ours
    error = error or fault or (PENDING if state == "pending" and not killed else "")
    return {"value": value, "error": error, "logs": logs[:keep], "cut": bool(cut), "killed": killed}


def handle_request(request: dict[str, Any], context: Any, host: Any) -> None:
    """In the child: confine, run, answer."""
    is_held = confine_process(request)
    reply = (
        run_script(request, context, host)
        if request["code"]
        else {"found": find_broken_guarantees(request["host"]), "filtered": is_held}
    )
    data = json.dumps({**reply, "token": request["token"]}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def main() -> None:
    """Read a request, fork a child, wait for it; repeat."""
    sys.path.append(sys.argv[1])
    import quickjs  # pyright: ignore[reportMissingTypeStubs]

    engine: Any = quickjs
    context = engine.Context()  # each child has its own copy; nothing is ever run in this one
    host = context.eval(SHIM)
    gc.disable()
    gc.freeze()
    os.write(1, b"{}\n")
    for line in sys.stdin.buffer:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                handle_request(request, context, host)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            os.write(1, json.dumps({"token": request["token"], "died": status}).encode() + b"\n")


if __name__ == "__main__":
    main()
