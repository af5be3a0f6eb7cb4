"""A server that speaks raw lines, and misbehaves as it is told: `python hostile_mcp_server.py LEDGER MODE`.

Every call that reaches it is a line in the ledger, which outlives it. What a tool does is in its name.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

LEDGER, MODE = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "plain"
IS_MODERN = MODE.startswith("modern")
TOOLS = (
    "echo slow die die_after big many_numbers twice wrong_id never progress ask ask_url ask_often sample change fails"
    " closes picture odd garbled notify_flood env own_error cut_in_two ask_flood"
).split()
lock = threading.Lock()
answers: dict[str, Any] = {}
arrived = threading.Condition()
epoch = {"schema": 1}


def write(message: dict[str, Any]) -> None:
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def raw(data: bytes) -> None:
    with lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def note(**row: Any) -> None:
    with lock, LEDGER.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"pid": os.getpid(), **row}) + "\n")


def schema(name: str) -> dict[str, Any]:
    properties = {"text": {"type": "string"}, "n": {"type": "integer"}, "seconds": {"type": "number"}}
    if name == "echo" and epoch["schema"] > 1:
        properties["more"] = {"type": "string"}
    return {"type": "object", "properties": properties}


def tools() -> list[Any]:
    if MODE == "bad_tools":
        return [
            {"name": "echo", "inputSchema": schema("echo"), "annotations": {"readOnlyHint": True}},
            {"name": "no_schema"},
            {"name": "wrong_type", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}},
            {"name": "lost", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}},
            {"name": 7, "inputSchema": {"type": "object"}},
            {"name": "\u0007bell", "inputSchema": {"type": "object"}},
            "nothing",
            {"name": "echo", "inputSchema": {"type": "object"}, "description": "another"},
            {"name": "get.user", "inputSchema": {"type": "object"}},
            {"name": "get_user", "inputSchema": {"type": "object"}},
            {"name": "x" * 100, "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}},
        ]
    hints = {"echo": {"readOnlyHint": True}, "slow": {"idempotentHint": True}}
    return [
        {
            "name": name,
            "description": f"It does {name}.",
            "inputSchema": schema(name),
            "annotations": hints.get(name, {}),
        }
        for name in TOOLS
    ]


def ask(method: str, params: dict[str, Any]) -> Any:
    """A request in the middle of a call, as older servers make it."""
    key = f"ask-{time.monotonic_ns()}"
    write({"id": key, "method": method, "params": params})
    with arrived:
        arrived.wait_for(lambda: key in answers, timeout=30)
        return answers.pop(key, None)


def form(text: str) -> dict[str, Any]:
    wanted = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {"mode": "form", "message": text, "requestedSchema": wanted}


PROMPT = {"messages": [{"role": "user", "content": {"type": "text", "text": "say hi"}}], "maxTokens": 10}


def modern_round(name: str, params: dict[str, Any]) -> dict[str, Any] | str:
    """What is still to be known; a text once all is."""
    responses, state = params.get("inputResponses"), params.get("requestState")
    if name == "ask_often":
        rounds = int(state or 0)
        requests = {f"k{at}": {"method": "elicitation/create", "params": form(f"{rounds}.{at}?")} for at in range(5)}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": str(rounds + 1)}
    if responses is None:
        method, question = (
            ("sampling/createMessage", PROMPT) if name == "sample" else ("elicitation/create", form("who?"))
        )
        if name == "ask_url":
            question = {"mode": "url", "message": "log in", "url": "https://example.org/login"}
        requests = {"who": {"method": method, "params": question}}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": "sealed"}
    return json.dumps({"given": responses, "state": state})


def answer(id: Any, name: str, arguments: dict[str, Any], params: dict[str, Any]) -> None:  # noqa: C901
    token = (params.get("_meta") or {}).get("progressToken")
    text = arguments.get("text", "")
    result: dict[str, Any] | None = None
    match name:
        case "slow":
            time.sleep(arguments.get("seconds", 0.2))
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "never":
            return
        case "closes":
            os.close(1)
            time.sleep(30)
        case "big":
            size = arguments.get("n", 1)
            with lock:
                sys.stdout.buffer.write(
                    f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"'.encode()
                )
                for _ in range(size):
                    sys.stdout.buffer.write(b"x" * 2**20)
                sys.stdout.buffer.write(b'"}]}}\n')
                sys.stdout.buffer.flush()
            return
        case "many_numbers":
            numbers = b"[" + b"1," * (arguments.get("n", 1) * 2**19) + b"1]"
            raw(
                f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"a":'.encode()
                + numbers
                + b"}}}\n"
            )
            return
        case "wrong_id":
            write({"id": id + 1000, "result": {"content": [{"type": "text", "text": "not yours"}]}})
            write({"id": None, "result": {"content": []}})
        case "progress":
            for at in range(5):
                write(
                    {"method": "notifications/progress", "params": {"progressToken": token, "progress": at, "total": 5}}
                )
                time.sleep(arguments.get("seconds", 0.15))
        case "notify_flood":
            for _ in range(20_000):
                write({"method": "notifications/tools/list_changed"})
        case "ask" | "ask_url" | "ask_often" | "sample" if IS_MODERN:
            came = modern_round(name, params)
            if isinstance(came, dict):
                write({"id": id, "result": came})
                return
            text = came
        case "ask":
            text = json.dumps(ask("elicitation/create", form("who?")))
        case "ask_url":
            question = {"mode": "url", "message": "log in", "url": "https://example.org/login", "elicitationId": "1"}
            text = json.dumps(ask("elicitation/create", question))
        case "ask_often":
            text = json.dumps([ask("elicitation/create", form(f"{at}?")) for at in range(arguments.get("n", 100))])
        case "sample":
            text = json.dumps(ask("sampling/createMessage", PROMPT))
        case "change":
            epoch["schema"] += 1
            write({"method": "notifications/tools/list_changed"})
        case "fails":
            result = {"content": [{"type": "text", "text": "no such thing"}], "isError": True}
        case "own_error":
            write({"id": id, "error": {"code": -32000, "message": "out of coffee"}})
            return
        case "picture":
            link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
            inner = {"type": "resource", "resource": {"uri": "file:///x/b.bin", "blob": "AAEC", "mimeType": "a/b"}}
            image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
            result = {"content": [image, {"type": "image", "data": "%%%", "mimeType": "image/png"}, link, inner]}
        case "odd":
            result = {"content": [{"type": "hologram"}, 7], "structuredContent": {"a": 1}}
        case "garbled":
            raw(b'\xff\xfe{"not": json\n\n[1,2]\n"text"\n{"jsonrpc":"2.0"}\n' + b"[" * 5000 + b"\n")
            raw(
                f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"caf'.encode()
                + b'\xe9"}]}}\n'
            )
            return
        case "cut_in_two":
            row = f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"\\ud83d"}}]}}}}'
            raw(row.encode() + b"\n")
            return
        case "ask_flood":
            with lock:  # nobody reads what it is told
                at = 0
                while True:
                    at += 1
                    sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":"q%d","method":"roots/list"}\n' % at)
        case "env":
            text = json.dumps(dict(os.environ))
        case _:
            pass
    result = result or {"content": [{"type": "text", "text": text}]}
    write({"id": id, "result": {**result, "resultType": "complete"} if IS_MODERN else result})
    if name == "twice":
        write({"id": id, "result": {"content": [{"type": "text", "text": "again"}]}})
    if name == "die_after":
        os.kill(os.getpid(), signal.SIGKILL)


def handle(message: dict[str, Any]) -> None:
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None:
        with arrived:
            answers[str(id)] = message.get("result", message.get("error"))
            arrived.notify_all()
    elif method == "tools/call":
        note(call=params["name"], arguments=params.get("arguments"), key=params.get("_meta", {}).get("everturn/key"))
        work = (id, params["name"], params.get("arguments") or {}, params)
        threading.Thread(target=answer, args=work, daemon=True).start()
    elif method == "tools/list":
        cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"} if IS_MODERN else {}
        write({"id": id, "result": {"tools": tools(), **cached}})
    elif method == "initialize" and not IS_MODERN:
        title = f"hostile-{os.getpid()}" if MODE == "identity" else "hostile"
        can = {"tools": {"listChanged": True}}
        info = {"name": title, "version": "1"}
        write({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info}})
    elif method == "server/discover" and IS_MODERN:
        found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        write({"id": id, "result": {**found, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}})
    elif method == "ping":
        write({"id": id, "result": {}})
    elif method == "notifications/cancelled":
        note(cancelled=params.get("requestId"))
    elif id is not None:
        write({"id": id, "error": {"code": -32601, "message": "Method not found"}})


def main() -> None:
    note(start=MODE)
    if MODE == "dead":
        print("cannot find my licence", file=sys.stderr)
        raise SystemExit(3)
    if MODE == "stderr_flood":
        threading.Thread(target=lambda: sys.stderr.write("blah " * 4_000_000 + "the end\n"), daemon=True).start()
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "family":
        import subprocess

        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        note(child=child.pid)
    for line in sys.stdin.buffer:
        if MODE != "mute":
            handle(json.loads(line))
    if MODE == "stubborn":
        time.sleep(60)


if __name__ == "__main__":
    main()
