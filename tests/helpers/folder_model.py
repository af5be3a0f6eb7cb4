"""An OpenAI-compatible model for tests in a folder: a script of calls, one for each step, and what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Step = str | tuple[str, dict[str, Any]]
"""A text that ends the turn, or a call: the name of a tool and its arguments."""


class FolderModel:
    """The steps that are left, and the requests that came."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.steps: list[Step] = []
        self.requests: list[dict[str, Any]] = []

    def says(self, *steps: Step) -> None:
        """Put steps at the end of the script."""
        self.steps += steps

    @property
    def system(self) -> str:
        """The system prompt of the last request."""
        first = self.requests[-1]["messages"][0]
        return str(first["content"]) if first["role"] in ("system", "developer") else ""

    @property
    def tools(self) -> list[str]:
        """The tools that the last request offered."""
        return [tool["function"]["name"] for tool in self.requests[-1].get("tools", ())]

    @property
    def results(self) -> list[str]:
        """The tool results in the last request."""
        return [str(message["content"]) for message in self.requests[-1]["messages"] if message["role"] == "tool"]

    def config(self, home: Path, more: str = "") -> Path:
        """Write a configuration that names this model."""
        file = home / "config" / "everturn" / "everturn.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f'[models.mine]\nmodel = "compatible:scripted"\nbase_url = "http://127.0.0.1:{self.port}/v1"\n\n'
            f'[agents.assistant]\nmodel = "mine"\n\n{more}'
        )
        return file

    def chunks(self) -> Sequence[dict[str, Any]]:
        """The chunks of the next step."""
        step = self.steps.pop(0) if self.steps else "Nothing is left to do."
        if isinstance(step, str):
            return [{"delta": {"content": step}}, {"delta": {}, "finish_reason": "stop"}]
        call = {"name": step[0], "arguments": json.dumps(step[1])}
        calls = [{"index": 0, "id": f"c{len(self.requests)}", "type": "function", "function": call}]
        return [{"delta": {"tool_calls": calls}}, {"delta": {}, "finish_reason": "tool_calls"}]


@contextmanager
def folder_model() -> Generator[FolderModel]:
    """Serve a model until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            model.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for choice in model.chunks():
                data = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
                self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model = FolderModel(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
