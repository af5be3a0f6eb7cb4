"""Restate HTTP client: sends wakes, registers workers and checks the health of Restate.

An address may name several nodes of one Restate cluster, separated by commas. The client uses one of them until it does
not answer, and then the next one. A wake that two nodes have accepted is one more drive, which changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from everturn.errors import EngineUnavailable

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

RETRY_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.4, 4.0)  # seconds between tries: about ten in all
REQUEST_TIMEOUT = 10.0  # seconds for one request; one that hangs leaves no time for another
FINAL_STATUSES = frozenset({400, 401, 403, 405, 413, 415})  # status codes that a retry does not change


class NodeAddresses:
    """The URLs of one API of Restate, one for each node, and which of them is used now."""

    def __init__(self, urls: str) -> None:
        self.urls = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
        self._at = 0

    @property
    def current(self) -> str:
        """The URL that is used now."""
        return self.urls[self._at]

    def skip(self, url: str) -> None:
        """Use the next node, unless another request has done so already."""
        if url == self.current:
            self._at = (self._at + 1) % len(self.urls)


class RestateClient:
    """One keep-alive connection pool to the nodes of Restate."""

    def __init__(self, ingress: str, admin: str, service: str) -> None:
        self._ingress, self._admin, self._service = NodeAddresses(ingress), NodeAddresses(admin), service
        self._http: aiohttp.ClientSession | None = None

    async def send(self, session: str, delay: float, key: str = "") -> None:
        """Have a session driven after `delay` seconds; invocations with the same key do not run twice."""
        path = f"/{self._service}/{quote(session, safe='')}/drive/send"
        if delay > 0:
            path += f"?delay={math.ceil(delay * 1000)}ms"  # never early
        status, body = await self._request_with_retries(
            "POST", self._ingress, path, None, {200, 202}, {"idempotency-key": key} if key else None
        )
        if status not in (200, 202):
            raise EngineUnavailable(self._error_text(f"{self._ingress.current}{path}", status, body))

    async def register(self, uri: str) -> None:
        """Register the URL of the workers; Restate queries it for its services before it answers."""
        # Force: otherwise Restate would not query a known URL again, and would keep the settings of the version before.
        body = {"uri": uri, "force": True}
        status, answer = await self._request_with_retries("POST", self._admin, "/deployments", body, {200, 201})
        if status not in (200, 201):
            raise EngineUnavailable(
                f"Restate at {self._admin.current} did not accept the worker at {uri} ({status or 'no answer'}: "
                f"{answer}); check that the server runs and can reach this URL"
            )

    async def deployment(self) -> str:
        """The URL to which new drives go, or ""."""
        _, service = await self._ask_a_node(self._admin, f"/services/{self._service}")
        identifier = _get(service, "deployment_id")
        _, deployment = await self._ask_a_node(self._admin, f"/deployments/{identifier}") if identifier else (0, None)
        return _get(deployment, "uri")

    async def ingress_answers(self) -> bool:
        """Whether wakes can be sent."""
        return (await self._ask_a_node(self._ingress, "/restate/health"))[0] == 200

    async def admin_answers(self) -> bool:
        """Whether workers can register."""
        return (await self._ask_a_node(self._admin, "/health"))[0] == 200

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()

    def _error_text(self, url: str, status: int, body: object) -> str:
        if status == 404:
            return (
                f"Restate at {self._ingress.current} knows no service {self._service!r}; start a worker that registers it, "
                "and send this again"
            )
        return (
            f"Restate did not take a wake at {url} ({status or 'no answer'}: {body}); check that the server runs, "
            "and send this again: what was admitted is safe in the store"
        )

    async def _ask_a_node(self, nodes: NodeAddresses, path: str) -> tuple[int, object]:
        """Send a GET to the nodes, one after the other, until one answers."""
        status, answer = 0, cast("object", None)
        for _ in nodes.urls:
            url = nodes.current
            status, answer = await self._request("GET", url + path, None, REQUEST_TIMEOUT / len(nodes.urls))
            if status and status < 500:
                break
            nodes.skip(url)
        return status, answer

    async def _request_with_retries(
        self,
        method: str,
        nodes: NodeAddresses,
        path: str,
        body: object,
        good: set[int],
        headers: dict[str, str] | None = None,
    ) -> tuple[int, object]:
        """Retry a request until it succeeds or cannot succeed, for about ten seconds."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + REQUEST_TIMEOUT
        for pause in (*RETRY_DELAYS, None):
            node, url = nodes.current, nodes.current + path
            within = min(
                deadline - clock(), REQUEST_TIMEOUT / len(nodes.urls)
            )  # a node that hangs leaves time for others
            status, answer = await self._request(method, url, body, within, headers)
            if status in good or status in FINAL_STATUSES or pause is None or clock() + pause >= deadline:
                return status, answer
            if not status or status >= 500:
                nodes.skip(node)
            log.debug("%s %s: %s %s; next attempt in %g s", method, url, status, answer, pause)
            await asyncio.sleep(pause)
        raise AssertionError("the last pause is None")

    async def _request(
        self,
        method: str,
        url: str,
        body: object,
        until: float,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, object]:
        """Send a request. Returns status and body; status 0 and the reason if there is no answer."""
        import aiohttp
        from yarl import URL

        if self._http is None:
            # A burst of wakes shares a hundred connections: more would only make Restate slower.
            self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100, keepalive_timeout=60))
        timeout = aiohttp.ClientTimeout(total=max(until, 0.1))
        try:
            # The URL is already encoded, or a session called "a/b" would become two path segments. Without a body
            # there is no content type, which Restate would refuse.
            target, skipped_headers = URL(url, encoded=True), () if body is not None else ("Content-Type",)
            request = self._http.request(
                method, target, json=body, headers=headers, skip_auto_headers=skipped_headers, timeout=timeout
            )
            async with request as response:
                text = await response.text()
                return response.status, _decode(text)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, str(error) or type(error).__name__


def _decode(text: str) -> object:
    import msgspec

    try:
        return cast("object", msgspec.json.decode(text.encode()))
    except msgspec.DecodeError:
        return text[:500]


def _get(answer: object, key: str) -> str:
    if isinstance(answer, dict):
        return str(cast("dict[str, Any]", answer).get(key) or "")
    return ""
