"""Where a model is and how it is spoken to: addresses, headers and keys, and what it means to be refused there."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager

from everturn.errors import ModelError
from everturn.models import failures
from everturn.models.profile import Origin, Profile
from everturn.transport import Post, Reply, Transport, place

REFUSAL_SIZE = 64 * 1024  # bytes of a refusal that are worth reading
KEY_SIZE = 8  # characters: what is shorter is no secret, and half of any text


class Endpoint:
    """A server, seen from a model of ours.

    `scheme` is the header that holds the key, and what stands before it there; `strays` are ends of base URLs that are
    given out of habit, and lead elsewhere.
    """

    def __init__(
        self,
        profile: Profile,
        origin: Origin,
        transport: Transport,
        key: str,
        scheme: tuple[str, str] = ("authorization", "Bearer "),
        strays: Sequence[str] = (),
    ) -> None:
        self._names, self._transport, self._key = origin.names, transport, key
        self._url = profile.base_url.rstrip("/")
        for stray in strays:
            self._url = self._url.removesuffix(stray)
        self._headers = {"accept-encoding": "identity", "user-agent": "everturn", **profile.headers}
        if key:
            self._headers[scheme[0]] = scheme[1] + key

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return place(self._url)

    def post(
        self, path: str, body: bytes, content_type: str = "application/json"
    ) -> AbstractAsyncContextManager[Reply]:
        """Send a body to a path."""
        return self._transport.post(Post(self._url + path, {**self._headers, "content-type": content_type}, body))

    async def read_refusal(self, reply: Reply) -> bytes:
        """What an answer with another status than 200 says, as much of it as matters."""
        body = bytearray()
        async for data in reply.read():
            body += data
            if len(body) > REFUSAL_SIZE:
                break
        return bytes(body)

    def refused(self, reply: Reply, body: bytes) -> ModelError:
        """The error such an answer is."""
        return failures.refused(reply.status, reply.headers, body, self._names)

    @contextmanager
    def discreet(self) -> Generator[None]:
        """Let no error tell the key: there are providers that repeat it, of all things."""
        try:
            yield
        except ModelError as error:
            told = without_key(str(error), self._key)
            if told != str(error):
                raise ModelError(told, error.kind, error.retryable, error.retry_after) from None
            raise


def without_key(text: str, key: str) -> str:
    """A text without a key, or the beginning of one that was cut off there."""
    start = key[:KEY_SIZE]
    if len(start) < KEY_SIZE:
        return text
    while (at := text.find(start)) >= 0:
        end = at + KEY_SIZE
        while end < len(text) and end - at < len(key) and text[end] == key[end - at]:
            end += 1
        text = f"{text[:at]}***{text[end:]}"
    return text
