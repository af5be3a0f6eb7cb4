"""Endpoint of a model server: base URL, headers and API key, and how its error responses are read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from everturn.core.canonical_json import hash_values
from everturn.errors import ModelError
from everturn.models import failures
from everturn.models.load import load
from everturn.models.profile import Origin, Profile
from everturn.transport import HttpRequest, HttpResponse, Transport, url_origin
from everturn.transport.limits import too_long_error

if TYPE_CHECKING:
    from everturn.models.clouds import CloudServer, RequestSigner

REFUSAL_SIZE = 64 * 1024  # bytes of an error response that are read
CALL_SIZE = 2**20  # bytes of the response of a call
KEY_SIZE = 8  # characters: a shorter key is no secret, and would match in any text


class Endpoint:
    """A server of a model.

    `scheme` is the header for the key, and the prefix of its value; `strays` are suffixes of base URLs that users add
    out of habit, and that are removed. A `cloud` decides both itself, and authorizes requests where there is no key.
    """

    def __init__(
        self,
        profile: Profile,
        origin: Origin,
        transport: Transport,
        key: str,
        scheme: tuple[str, str] = ("authorization", "Bearer "),
        strays: Sequence[str] = (),
        cloud: CloudServer | None = None,
    ) -> None:
        self._names, self._transport, self._key = origin.names, transport, key
        self._cloud = cloud
        self._signer: RequestSigner | None = None
        self._url = profile.base_url.rstrip("/")
        if cloud is not None:
            scheme, strays = cloud.key_scheme, ()
            self._signer = None if key else cloud.signer
        for stray in strays:
            self._url = self._url.removesuffix(stray)
        self._headers = {"accept-encoding": "identity", "user-agent": "everturn", **profile.headers}
        if key:
            self._headers[scheme[0]] = scheme[1] + key

    @property
    def place(self) -> str:
        """The server's address for messages."""
        return url_origin(self._url)

    @property
    def url(self) -> str:
        """The base URL."""
        return self._url

    @property
    def account(self) -> str:
        """The hash of the server and the API key: who may read what was uploaded there."""
        return hash_values("account", self._url, self._key)[:32]

    def redact(self, text: str) -> str:
        """A text without the API key."""
        return redact_key(text, self._key)

    def load(self) -> None:
        """Import what the first request needs."""
        load(self._transport)

    def post(
        self, path: str, body: bytes, content_type: str = "application/json"
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a body to a path."""
        return self._send(HttpRequest(self._address(path), {**self._headers, "content-type": content_type}, body))

    async def call(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None, most: int = CALL_SIZE
    ) -> tuple[HttpResponse, bytes]:
        """Send a request to a path, or to a URL of the same server, and read the response.

        Raises:
            ModelError: the URL is on another server, or the response is too long.
        """
        if not url.startswith("/") and url_origin(url) != self.place:
            raise ModelError(f"{self.place} names a URL on another server: {url_origin(url)}", kind="response")
        address = self._address(url) if url.startswith("/") else url
        request = HttpRequest(address, {**self._headers, **(headers or {})}, body, method)
        data = bytearray()
        async with self._send(request) as reply:
            async for piece in reply.read():
                data += piece
                if len(data) > most:
                    raise too_long_error("stream", most)
            return reply, bytes(data)

    def _address(self, path: str) -> str:
        """The URL of a path; what its query has beyond that of the cloud follows that."""
        if self._cloud is None:
            return self._url + path
        path, _, query = path.partition("?")
        url = self._cloud.url(path)
        known = url.partition("?")[2].split("&")
        more = "&".join(field for field in query.split("&") if field and field not in known)
        return f"{url}{'&' if '?' in url else '?'}{more}" if more else url

    def _send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        return self._transport.post(request) if self._signer is None else self._post_signed(request, self._signer)

    @asynccontextmanager
    async def _post_signed(self, request: HttpRequest, signer: RequestSigner) -> AsyncGenerator[HttpResponse]:
        async with self._transport.post(await signer.sign(request)) as reply:
            if reply.status == 401:
                signer.forget()
            yield reply

    async def read_error_body(self, reply: HttpResponse) -> bytes:
        """Read the body of an error response, up to a limit."""
        body = bytearray()
        async for data in reply.read():
            body += data
            if len(body) > REFUSAL_SIZE:
                break
        return bytes(body)

    def response_error(self, reply: HttpResponse, body: bytes) -> ModelError:
        """Return the error for an error response."""
        return failures.response_error(reply.status, reply.headers, body, self._names)

    @contextmanager
    def redacting_key(self) -> Generator[None]:
        """Remove the key from errors: some providers repeat it. The error itself changes, so that no chain keeps the key."""
        try:
            yield
        except ModelError as error:
            secrets = (self._key, *(() if self._signer is None else self._signer.secrets()))
            text = str(error)
            for secret in secrets:
                text = redact_key(text, secret)
            if text != str(error):
                error.args = (text,)
                error.__cause__ = error.__context__ = None
            raise


def redact_key(text: str, key: str) -> str:
    """Return a text without the key, or its beginning where the text was cut off."""
    start = key[:KEY_SIZE]
    if len(start) < KEY_SIZE:
        return text
    while (at := text.find(start)) >= 0:
        end = at + KEY_SIZE
        while end < len(text) and end - at < len(key) and text[end] == key[end - at]:
            end += 1
        text = f"{text[:at]}***{text[end:]}"
    return text
