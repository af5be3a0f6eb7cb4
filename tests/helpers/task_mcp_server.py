"""A server that runs calls as tasks (protocol 2025-11-25): `python task_mcp_server.py FOLDER [PORT]`.

Over stdio, or over HTTP with a port. Everything is in the folder, so that tasks outlive the process: `ledger.jsonl` has
each request that reached it. A test steers it with files: `finish` completes the tasks, and `hold-METHOD` holds the
response to a method until it is gone. With `down`, a process over stdio ends before it answers anything.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
LEDGER = FOLDER / "ledger.jsonl"
SUPPORT = {
    "build": "required", "ask": "required", "fails": "required", "refused": "required", "forgets": "required",
    "at_once": "required", "floods": "required", "deploy": "optional", "look": "optional", "plain": "forbidden",
}  # fmt: skip
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
lock = threading.Lock()
answered = threading.Condition()
answers: dict[str, Any] = {}


class Refused(Exception):
    """An error response."""


def note(**row: Any) -> None:
    with lock, LEDGER.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def tools() -> list[Any]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return [
        {
            "name": name,
            "inputSchema": schema,
            "execution": {"taskSupport": support},
            "annotations": {"readOnlyHint": name == "look"},
        }
        for name, support in SUPPORT.items()
    ]


def task_file(name: str) -> Path:
    return FOLDER / f"{name}.task"


def read_task(name: str) -> dict[str, Any]:
    if not task_file(name).exists() or name.startswith("forgets"):
        raise Refused(-32602, f"Task not found: {name}")
    task = json.loads(task_file(name).read_text("utf-8"))
    if task["status"] == "working" and (FOLDER / "finish").exists():
        task["status"] = "failed" if name.startswith("fails") else "completed"
        task_file(name).write_text(json.dumps(task), "utf-8")
    return task


def create_task(name: str, params: dict[str, Any], send: Any) -> dict[str, Any]:
    with lock:
        number = len(list(FOLDER.glob("*.task"))) + 1
        id = f"{name}-{number}"
        status = "input_required" if name == "ask" else "working"
        task = {"taskId": id, "status": status, "statusMessage": f"{name} is {status}", "pollInterval": 100}
        task |= {"ttl": 60_000, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
        task_file(id).write_text(json.dumps({**task, "text": (params.get("arguments") or {}).get("text", "")}), "utf-8")
    if name == "floods":
        lies = {"method": "notifications/tasks/status", "params": {**task, "status": "completed"}}
        threading.Thread(target=lambda: [send(lies) or time.sleep(0.001) for _ in range(3000)], daemon=True).start()
    return task


def task_result(name: str, send: Any) -> dict[str, Any]:
    task = read_task(name)
    meta = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": name}}}
    if task["status"] == "input_required":
        params = {"message": "who?", "requestedSchema": FORM, **meta}
        send({"id": f"q-{name}", "method": "elicitation/create", "params": params})
        with answered:
            answered.wait_for(lambda: f"q-{name}" in answers, 30)
        task |= {"status": "completed", "text": json.dumps(answers.get(f"q-{name}"))}
        task_file(name).write_text(json.dumps(task), "utf-8")
    if task["status"] == "failed":
        raise Refused(-32603, "the disk is full")
    return {"content": [{"type": "text", "text": f"{name} is done: {task['text']}"}], **meta}


def respond(message: dict[str, Any], send: Any) -> dict[str, Any]:
    """The result of a request."""
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        can = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
        return {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": {"name": "tasks", "version": "1"}}
    if method == "tools/list":
        return {"tools": tools()}
    if method == "ping":
        return {}
    if method == "tools/call":
        name, is_task = params["name"], "task" in params
        note(call=name, task=params.get("task"))
        if name == "refused":
            raise Refused(-32603, "no licence")
        if name != "at_once" and is_task:
            return {"task": create_task(name, params, send)}
        if SUPPORT[name] == "required" and name != "at_once":
            raise Refused(-32601, "it requires a task")
        return {"content": [{"type": "text", "text": f"{name} at once"}]}
    if method.startswith("tasks/"):
        note(**{method.removeprefix("tasks/"): params["taskId"]})
        if method == "tasks/get":
            return {key: value for key, value in read_task(params["taskId"]).items() if key != "text"}
        if method == "tasks/result":
            return task_result(params["taskId"], send)
        task = {**read_task(params["taskId"]), "status": "cancelled"}
        task_file(params["taskId"]).write_text(json.dumps(task), "utf-8")
        return task
    raise Refused(-32601, "Method not found")


def handle(message: dict[str, Any], send: Any) -> None:
    """Answer a request; take the answer to a question."""
    if "method" not in message:
        note(answer=message.get("result", {"error": message.get("error")}))
        with answered:
            answers[str(message["id"])] = message.get("result", message.get("error"))
            answered.notify_all()
        return
    if "id" not in message:
        return
    try:
        reply: dict[str, Any] = {"result": respond(message, send)}
    except Refused as error:
        reply = {"error": {"code": error.args[0], "message": error.args[1]}}
    hold = FOLDER / f"hold-{message['method'].replace('/', '-')}"
    if hold.exists():
        note(held=message["method"])
        while hold.exists():
            time.sleep(0.01)
    send({"id": message["id"], **reply})


def serve_stdio() -> None:
    def send(message: dict[str, Any]) -> None:
        with lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        threading.Thread(target=handle, args=(json.loads(line), send), daemon=True).start()


def serve_http(port: int) -> None:
    """Streamable HTTP without sessions: the messages for a request are events of its response."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.send_error(405)

        do_DELETE = do_GET

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            is_request = "method" in message and "id" in message
            self.send_response(200 if is_request else 202)
            self.send_header("content-type", "text/event-stream" if is_request else "application/json")
            self.send_header("connection", "close")
            self.end_headers()
            if not is_request:
                return handle(message, None)
            return handle(message, self._event)

        def _event(self, message: dict[str, Any]) -> None:
            with lock:
                try:
                    self.wfile.write(f"data: {json.dumps({'jsonrpc': '2.0', **message})}\n\n".encode())
                    self.wfile.flush()
                except OSError:  # the client has gone
                    pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    (FOLDER / "port").write_text(str(server.server_address[1]))
    server.serve_forever()


if __name__ == "__main__":
    if (FOLDER / "down").exists():
        sys.exit(1)
    if len(sys.argv) > 2:
        serve_http(int(sys.argv[2]))
    serve_stdio()
