"""A reader of the HTTP API of the terminal's server: it logs in by a link, as a browser does, and reads the messages."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


class WebReader:
    """A browser without a screen. The server may move to another process; its address and the cookie stay."""

    def __init__(self, link: str) -> None:
        where = urlsplit(link)
        self._port = where.port or 80
        form = {"content-type": "application/x-www-form-urlencoded"}
        response, _ = self._request("POST", "/login", urlencode({"token": parse_qs(where.query)["token"][0]}), form)
        self._cookie = response.headers["set-cookie"].partition(";")[0]

    def _request(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Ask until the server answers.

        Raises:
            TimeoutError: it does not.
        """
        end = time.monotonic() + 90
        while time.monotonic() < end:
            try:
                response, body = self._request("GET", path, None, {"cookie": self._cookie})
                if response.status == 200:
                    return json.loads(body)
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.2)
        raise TimeoutError(f"no answer to GET {path}")

    def wait_for(self, text: str) -> str:
        """Wait until the last message of the newest session has a text; that message.

        Raises:
            TimeoutError: it does not come.
        """
        end, last = time.monotonic() + 90, ""
        while time.monotonic() < end:
            session = self.get("/api/sessions")["sessions"][0]["id"]
            messages = self.get(f"/api/sessions/{session}/messages")["messages"]
            last = "".join(part.get("text", "") for part in messages[-1]["parts"])
            if text in last:
                return last
            time.sleep(0.2)
        raise TimeoutError(last)
