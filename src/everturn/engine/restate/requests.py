"""What we ask of Restate over HTTP: send, register, and is it there."""

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

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.4, 4.0)  # seconds between tries: about ten in all
PATIENCE = 10.0  # seconds for one request; one that hangs leaves no time for another
NEVER = frozenset({400, 401, 403, 405, 413, 415})  # asking again brings the same answer


class Requests:
    """One keep-alive connection pool to one Restate."""

    def __init__(self, ingress: str, admin: str, service: str) -> None:
        self._ingress, self._admin, self._service = ingress, admin, service
        self._http: aiohttp.ClientSession | None = None

    async def send(self, session: str, delay: float, key: str = "") -> None:
        """Have a session driven after `delay` seconds; with a key not beside another one of this key."""
        url = f"{self._ingress}/{self._service}/{quote(session, safe='')}/drive/send"
        if delay > 0:
            url += f"?delay={math.ceil(delay * 1000)}ms"  # never before its time
        status, body = await self._insist("POST", url, None, {200, 202}, {"idempotency-key": key} if key else None)
        if status not in (200, 202):
            raise EngineUnavailable(self._why(url, status, body))

    async def register(self, uri: str) -> None:
        """Tell Restate where the workers are; it asks there what they offer before it answers."""
        # Force: of a url that it knows Restate would not ask again, and keep the settings of the version before.
        body = {"uri": uri, "force": True}
        status, answer = await self._insist("POST", f"{self._admin}/deployments", body, {200, 201})
        if status not in (200, 201):
            raise EngineUnavailable(
                f"Restate at {self._admin} did not take the worker at {uri} ({status or 'no answer'}: {answer}); "
                "see that the server runs and that it can reach this url"
            )

    async def deployment(self) -> str:
        """The url to which new drives go, or nothing."""
        _, service = await self._ask("GET", f"{self._admin}/services/{self._service}")
        identifier = _get(service, "deployment_id")
        _, deployment = await self._ask("GET", f"{self._admin}/deployments/{identifier}") if identifier else (0, None)
        return _get(deployment, "uri")

    async def ingress_answers(self) -> bool:
        """Whether wakes can be sent."""
        return (await self._ask("GET", f"{self._ingress}/restate/health"))[0] == 200

    async def admin_answers(self) -> bool:
        """Whether workers can register."""
        return (await self._ask("GET", f"{self._admin}/health"))[0] == 200

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()

    def _why(self, url: str, status: int, body: object) -> str:
        if status == 404:
            return (
                f"Restate at {self._ingress} knows no service {self._service!r}; start a worker that registers it, "
                "and send this again"
            )
        return (
            f"Restate did not take a wake at {url} ({status or 'no answer'}: {body}); see that the server runs, "
            "and send this again: what was admitted is safe in the store"
        )

    async def _insist(
        self, method: str, url: str, body: object, good: set[int], headers: dict[str, str] | None = None
    ) -> tuple[int, object]:
        """Ask until the answer is good or cannot become good, for about ten seconds."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + PATIENCE
        for pause in (*PAUSES, None):
            status, answer = await self._ask(method, url, body, deadline - clock(), headers)
            if status in good or status in NEVER or pause is None or clock() + pause >= deadline:
                return status, answer
            log.debug("%s %s: %s %s; again in %g s", method, url, status, answer, pause)
            await asyncio.sleep(pause)
        raise AssertionError("the last pause is None")

    async def _ask(
        self,
        method: str,
        url: str,
        body: object = None,
        until: float = PATIENCE,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, object]:
        """A status and what came with it; status 0 is no answer, and then the reason."""
        import aiohttp
        from yarl import URL

        if self._http is None:
            # A burst of wakes shares a hundred connections: more would only make Restate slower.
            self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100, keepalive_timeout=60))
        timeout = aiohttp.ClientTimeout(total=max(until, 0.1))
        try:
            # Encoded already, or a session called "a/b" would become two steps of a path; and no type for no body,
            # which Restate would refuse.
            where, without = URL(url, encoded=True), () if body is not None else ("Content-Type",)
            request = self._http.request(
                method, where, json=body, headers=headers, skip_auto_headers=without, timeout=timeout
            )
            async with request as response:
                text = await response.text()
                return response.status, _decoded(text)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, str(error) or type(error).__name__


def _decoded(text: str) -> object:
    import msgspec

    try:
        return cast("object", msgspec.json.decode(text.encode()))
    except msgspec.DecodeError:
        return text[:500]


def _get(answer: object, key: str) -> str:
    if isinstance(answer, dict):
        return str(cast("dict[str, Any]", answer).get(key) or "")
    return ""
