"""A route as data: what is asked, who may, what comes in and what goes out. The application, the OpenAPI document and the
tests of who may do what are all made of these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from everturn.access.access import Access, House
from everturn.core.accounts import Role

if TYPE_CHECKING:
    from everturn.server.streams import Streams

Method = Literal["GET", "POST", "PUT", "DELETE"]
Carries = Literal["json", "events", "bytes", "none"]


class Param(Struct, frozen=True):
    """A value in the query of a request."""

    name: str
    schema: dict[str, Any]  # JSON Schema
    about: str = ""
    is_needed: bool = False


class Asked:
    """A request that was let in: who asks, what for, and with what."""

    def __init__(
        self, request: Request, house: House, streams: Streams, access: Access | None, body: Any, query: dict[str, Any]
    ) -> None:
        self.request, self.house, self.streams, self._access, self.body = request, house, streams, access, body
        self.query = query  # as the route's params say: checked, and of their types; what was not given is not there

    @property
    def access(self) -> Access:
        """What whoever asks may do; a public route has none."""
        assert self._access is not None, "a public route asks for nothing that belongs to somebody"
        return self._access

    @property
    def ids(self) -> dict[str, str]:
        """The ids in the path."""
        return self.request.path_params

    @property
    def key(self) -> str:
        """The idempotency key, or ""."""
        return self.request.headers.get("idempotency-key", "")


Handler = Callable[[Asked], Awaitable[Any]]
"""Answers with one of the views of `everturn.api` (sent as JSON), None (204), or a whole Response."""


class Route(Struct, frozen=True, kw_only=True):
    """One thing that can be asked for."""

    method: Method
    path: str
    name: str  # operationId
    needs: Role | None  # None: anybody, without showing anything
    about: str
    handler: Handler
    body: Any = None  # the type of what comes in; None: nothing
    takes: Carries = "json"  # how it comes in, when `body` is something or it is bytes
    answer: Any = None  # the type of what goes out
    gives: Carries = "json"
    status: int = 200
    query: tuple[Param, ...] = ()
    is_cheap: bool = False  # anybody may ask as often as they like: nothing is looked up for them
    is_secret: bool = False  # its answer has a token of whoever asks, and is never compressed
    upload: bool = False  # its body may be as large as a file may
    tag: str = "native"
    calls: Callable[..., Any] | None = None  # the method of `Access` that it stands for; its role is the route's
    media: tuple[str, ...] = ()  # the media types that it takes or gives, when these are bytes


__all__ = ["Asked", "Carries", "Handler", "Method", "Param", "Response", "Route"]
